{{- /* Gangs: pods that start together or not at all. What Kueue admits is told by a label of the workload instead. */ -}}

{{- /*
symph.least: how many pods of a group must start together with the rest. A StatefulSet replaces its pods one after the
other: a new run that waited for all of them would wait for ever.
*/ -}}
{{- define "symph.least" -}}
{{- if kindIs "invalid" .values.minReplicas -}}
{{- ternary (int .replicas) 1 .isFinite -}}
{{- else -}}
{{- min (include "symph.int" (list .values.minReplicas nil (printf "groups.%s.minReplicas" .name)) | int) (int .replicas) -}}
{{- end -}}
{{- end -}}

{{- /* symph.gangMembers: the groups of a new run with how many of their pods must start together; none without PodGroups. */ -}}
{{- define "symph.gangMembers" -}}
{{- $out := dict -}}
{{- if and (has (toString .values.workload.gang) (list "native" "coscheduling" "volcano")) .row.podGroups -}}
{{- range $name, $group := .groups -}}
{{- if not $group.keep -}}
{{- $_ := set $out $name (include "symph.least" $group | int) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.gangs: the PodGroups by name, with their groups and minimum; takes the model with its run. */ -}}
{{- define "symph.gangs" -}}
{{- $model := . -}}
{{- $out := dict -}}
{{- $whole := printf "%s-%s" (include "symph.join" (list .fullname "gang" 43)) .run -}}
{{- range $name, $least := (include "symph.gangMembers" . | fromJson) -}}
{{- $key := $whole -}}
{{- if eq (toString $model.values.workload.gangScope) "group" -}}
{{- $key = printf "%s-%s" (index $model.groups $name).base $model.run -}}
{{- end -}}
{{- $gang := index $out $key | default (dict "groups" (list) "minimum" 0) -}}
{{- $_ := set $out $key (dict "groups" (append $gang.groups $name) "minimum" (add (int $gang.minimum) (int $least))) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.gangFields (dict "model" "name" "template"): what a pod template of the gang `name` carries. */ -}}
{{- define "symph.gangFields" -}}
{{- $kind := toString .model.values.workload.gang -}}
{{- if eq $kind "native" -}}
{{- dict "spec" (dict "schedulingGroup" (dict "podGroupName" .name)) | toJson -}}
{{- else if eq $kind "coscheduling" -}}
{{- dict "metadata" (dict "labels" (dict "scheduling.x-k8s.io/pod-group" .name)) | toJson -}}
{{- else -}}
{{- dict "metadata" (dict "annotations" (dict "scheduling.k8s.io/group-name" .name)) "spec" (dict "schedulerName" (.template.spec.schedulerName | default "volcano")) | toJson -}}
{{- end -}}
{{- end -}}
