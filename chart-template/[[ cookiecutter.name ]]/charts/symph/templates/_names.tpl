{{- /* Names and labels. Every object's name starts with the release's full name; nothing here knows an experiment. */ -}}

{{- /* symph.fit (list text limit): the text, cut to the limit with a hash of the whole so that two never meet. */ -}}
{{- define "symph.fit" -}}
{{- $text := index . 0 -}}
{{- $limit := int (index . 1) -}}
{{- if le (len $text) $limit -}}
{{- $text -}}
{{- else -}}
{{- printf "%s-%s" ($text | trunc (int (sub $limit 6)) | trimSuffix "-") ($text | sha256sum | trunc 5) -}}
{{- end -}}
{{- end -}}

{{- /* symph.join (list fullname suffix limit): fullname-suffix; the full name is cut first, the suffix beyond 30. */ -}}
{{- define "symph.join" -}}
{{- $suffix := include "symph.fit" (list (index . 1) 30) -}}
{{- $room := sub (index . 2) (add 1 (len $suffix)) -}}
{{- printf "%s-%s" (include "symph.fit" (list (index . 0) $room)) $suffix -}}
{{- end -}}

{{- /* symph.fullname: what all names start with. A release may bear the names of several charts in an umbrella at once. */ -}}
{{- define "symph.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if and .Chart.IsRoot (contains $name .Release.Name) -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- end -}}

{{- /* symph.identity: the labels that selectors use. */ -}}
{{- define "symph.identity" -}}
{{- dict "app.kubernetes.io/name" (include "symph.fit" (list (.Values.nameOverride | default .Chart.Name) 63)) "app.kubernetes.io/instance" (include "symph.fit" (list .Release.Name 63)) | toJson -}}
{{- end -}}

{{- /* symph.labels: the labels of every object; the user's last but for those that selectors and tools look for. */ -}}
{{- define "symph.labels" -}}
{{- $experiment := .Values.experiment | default .Chart.Name -}}
{{- $labels := dict "app.kubernetes.io/part-of" $experiment -}}
{{- range $said := list .Values.commonLabels .Values.labels -}}
{{- range $key, $value := $said | default dict | toJson | fromJson -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $labels $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Objects of a group and of a service bear these beside the labels of all. */ -}}
{{- $labels = omit $labels "symph.dev/group" "symph.dev/service" "symph.dev/run" -}}
{{- $labels = mergeOverwrite $labels (include "symph.identity" . | fromJson) -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (include "symph.fit" (list (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") 63)) -}}
{{- $_ := set $labels "symph.dev/experiment" $experiment -}}
{{- toJson $labels -}}
{{- end -}}

{{- /* symph.annotations (list common own): the annotations of an object, as they stand in its metadata; its own win. */ -}}
{{- define "symph.annotations" -}}
{{- $out := dict -}}
{{- range . -}}
{{- range $key, $value := . -}}
{{- $_ := set $out $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- end -}}
{{- with $out }}
  annotations:
    {{- include "symph.entries" . | trim | nindent 4 }}
{{- end }}
{{- end -}}
