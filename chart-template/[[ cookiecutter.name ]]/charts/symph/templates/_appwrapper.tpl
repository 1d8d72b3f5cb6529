{{- /*
symph.unforgiven: the fields of the Job of a member in v1beta2. The controller forgives no failed pod, and a Job keeps those
that it replaced: what would be retries of a pod are retries of the whole.
*/ -}}
{{- define "symph.unforgiven" -}}
{{- $fields := .fields -}}
{{- if .group.replacements -}}
{{- $fields = mergeOverwrite (omit $fields "backoffLimitPerIndex" "maxFailedIndexes") (dict "backoffLimit" 0) -}}
{{- end -}}
{{- toJson $fields -}}
{{- end -}}

{{- /* symph.wrappedJob (list member fields): the Job of a member inside an AppWrapper. */ -}}
{{- define "symph.wrappedJob" -}}
{{- $fields := index . 1 -}}
{{- with index . 0 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name | quote }}
  {{- include "symph.entries" .metadata | trim | nindent 2 }}
spec:
  template:
    {{- include "symph.json" .template | nindent 4 }}
  {{- include "symph.entries" $fields | trim | nindent 2 }}
{{- end -}}
{{- end -}}

{{- /* symph.podResources: what each container of a member asks for, for MCAD, which adds them up. */ -}}
{{- define "symph.podResources" -}}
{{- $out := list -}}
{{- $pods := .fields.parallelism | default 1 -}}
{{- $running := list -}}
{{- range .template.spec.initContainers -}}
{{- if eq (.restartPolicy | default "") "Always" -}}
{{- $running = append $running . -}}
{{- end -}}
{{- end -}}
{{- range concat $running .template.spec.containers -}}
{{- $resources := .resources | default dict -}}
{{- $entry := dict "replicas" $pods "requests" ($resources.requests | default dict) -}}
{{- with $resources.limits -}}
{{- $_ := set $entry "limits" . -}}
{{- end -}}
{{- $out = append $out $entry -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}
