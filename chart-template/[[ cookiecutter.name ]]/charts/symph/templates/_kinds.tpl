{{- /* symph.kind (dict "kinds" "workload"): the row of files/kinds.yaml for the kind that `workload` asks for. */ -}}
{{- define "symph.kind" -}}
{{- $table := fromYaml .kinds -}}
{{- $name := .workload.kind | default "jobs" | toString -}}
{{- if not (hasKey $table.kinds $name) -}}
{{- fail (printf "workload.kind %q is none of %s" $name (keys $table.kinds | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $row := $table.usual -}}
{{- $own := index $table.kinds $name -}}
{{- range list $own (index ($own.variants | default dict) (toString (index .workload $name | default dict).operator) | default dict) -}}
{{- range $key, $value := . -}}
{{- $_ := set $row $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $row -}}
{{- end -}}

{{- /* symph.fault (dict "model" "fault" "parts"): where and why the kind cannot run something, as its row says. */ -}}
{{- define "symph.fault" -}}
{{- $fault := index .model.row.faults .fault -}}
{{- include "symph.fill" (dict "pattern" (printf "%s: %s" $fault.path $fault.says) "parts" .parts) -}}
{{- end -}}

{{- /* symph.fill (dict "pattern" "parts"): the pattern with its parts. */ -}}
{{- define "symph.fill" -}}
{{- $text := .pattern -}}
{{- range $key, $part := .parts -}}
{{- $text = $text | replace (printf "{%s}" $key) $part -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- /* symph.setMembers: the groups that end, with labels and annotations of their Jobs, pod template and Job fields. */ -}}
{{- define "symph.setMembers" -}}
{{- $model := . -}}
{{- $members := list -}}
{{- range $name, $group := .groups -}}
{{- if $group.inUnit -}}
{{- $labels := merge (dict "symph.dev/experiment" (index $model.labels "symph.dev/experiment") "symph.dev/group" $name "symph.dev/run" $model.run) $model.identity -}}
{{- $metadata := dict "labels" $labels -}}
{{- with (include "symph.workloadAnnotations" (dict "model" $model "group" $group) | fromJson) -}}
{{- $_ := set $metadata "annotations" . -}}
{{- end -}}
{{- $members = append $members (dict "group" $group "name" $group.workload "member" $group.member "metadata" $metadata "template" $group.template "fields" $group.fields) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "members" $members -}}
{{- end -}}

{{- /* symph.unitLabels: the labels of what runs the groups that end. */ -}}
{{- define "symph.unitLabels" -}}
{{- $labels := mergeOverwrite (deepCopy .labels) (dict "symph.dev/run" .run) -}}
{{- with .values.workload -}}
{{- if eq (toString .gang) "kueue" -}}
{{- $_ := set $labels "kueue.x-k8s.io/queue-name" .queue -}}
{{- with .queuePriority -}}
{{- $_ := set $labels "kueue.x-k8s.io/priority-class" . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end -}}
