{{- /* Kind dijob: what its tasks are. The minimal definition of the kind has no defaults, so every field is said. */ -}}

{{- define "symph.dijobOperator" -}}
{{- (.workload.dijob | default dict).operator | default "v1.1" -}}
{{- end -}}

{{- /* symph.dijobType (dict "own" "name"): the type of the task of a group: as said, else its own name if that is one. */ -}}
{{- define "symph.dijobType" -}}
{{- $said := index (.own.tasks | default dict) .name -}}
{{- $said | default (ternary .name "none" (has .name (list "learner" "collector" "evaluator" "none"))) -}}
{{- end -}}

{{- /* symph.checkDijob: stops what no DIJob can run; takes the model. */ -}}
{{- define "symph.checkDijob" -}}
{{- $model := . -}}
{{- $operator := include "symph.dijobOperator" .values -}}
{{- $own := .values.workload.dijob | default dict -}}
{{- $faults := list -}}
{{- $types := list -}}
{{- $groups := list -}}
{{- $unit := include "symph.fit" (list .fullname .row.unit) -}}
{{- /* Of 63 characters a run, the number of a replica and three hyphens take 16. */ -}}
{{- $most := sub 47 (len $unit) | int -}}
{{- if .values.networks -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "networks" "parts" (dict))) -}}
{{- end -}}
{{- if and (eq $operator "v1.1.0") (eq (toString .values.networkPolicy.enabled) "true") -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "policy" "parts" (dict))) -}}
{{- end -}}
{{- range $name, $group := .groups -}}
{{- if or $group.isFinite $group.inUnit -}}
{{- $groups = append $groups $name -}}
{{- $types = append $types (include "symph.dijobType" (dict "own" $own "name" $name)) -}}
{{- $lives := list -}}
{{- range $group.values.containers -}}
{{- $lives = append $lives (.lifecycle | default "finite") -}}
{{- end -}}
{{- if gt (len (uniq $lives)) 1 -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "mixed" "parts" (dict "group" $name))) -}}
{{- end -}}
{{- if and $group.inUnit (gt (len $group.member) $most) (has $operator (list "v1.1" "v1.1.0")) -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "long" "parts" (dict "group" $name "most" (toString $most) "unit" $unit))) -}}
{{- end -}}
{{- if and (eq $operator "v0") (not $group.inUnit) -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "role" "parts" (dict "group" $name "roles" (join ", " $model.row.roles)))) -}}
{{- end -}}
{{- if and (eq $operator "v0") (eq $name "coordinator") (gt $group.replicas 1) -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "single" "parts" (dict))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if has $operator (list "v1.1" "v1.1.0") -}}
{{- range $type := list "learner" "collector" "evaluator" -}}
{{- $same := list -}}
{{- range $types -}}
{{- if eq . $type -}}
{{- $same = append $same . -}}
{{- end -}}
{{- end -}}
{{- if gt (len $same) 1 -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "type" "parts" (dict "type" $type))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $operator "v1.0") (gt (len $groups) 1) -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "one" "parts" (dict))) -}}
{{- end -}}
{{- if and (eq $operator "v0") $groups (not (has "coordinator" $groups)) -}}
{{- $faults = append $faults (include "symph.fault" (dict "model" $model "fault" "coordinator" "parts" (dict))) -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\n%s\n" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}

{{- /* symph.setDijobMembers: `ranked`, the members by rank: those of workload.order first, then the others by name. */ -}}
{{- define "symph.setDijobMembers" -}}
{{- $members := dict -}}
{{- include "symph.setMembers" . -}}
{{- range .members -}}
{{- $_ := set $members .group.name . -}}
{{- end -}}
{{- $out := list -}}
{{- range (include "symph.ordered" (dict "map" $members "order" .values.workload.order) | fromJsonArray) -}}
{{- $out = append $out (index $members .) -}}
{{- end -}}
{{- $_ := set . "ranked" $out -}}
{{- end -}}

{{- /*
symph.dijobTemplate (dict "member" "own"): the spec of a member's pods, which is all that an operator takes; a deadline is
each pod's own. Containers bear the names that the operator looks for. Operator v0 copies the policy, the later ones set it.
*/ -}}
{{- define "symph.dijobTemplate" -}}
{{- $own := .own -}}
{{- with .member -}}
{{- $spec := .template.spec -}}
{{- $group := .group.name -}}
{{- $containers := list -}}
{{- range $spec.containers -}}
{{- $usual := ternary "di-container" .name (and (eq (len $spec.containers) 1) (eq .name $group)) -}}
{{- $path := ternary .name (printf "%s/%s" $group .name) (eq .name $group) -}}
{{- $containers = append $containers (set (deepCopy .) "name" (index ($own.containers | default dict) $path | default $usual)) -}}
{{- end -}}
{{- $spec = set (deepCopy $spec) "containers" $containers -}}
{{- if and (hasKey .fields "activeDeadlineSeconds") (not (hasKey $spec "activeDeadlineSeconds")) -}}
{{- $_ := set $spec "activeDeadlineSeconds" .fields.activeDeadlineSeconds -}}
{{- end -}}
{{- if and .group.isFinite (ne (toString $own.operator) "v0") -}}
{{- $_ := set $spec "restartPolicy" "Never" -}}
{{- end -}}
{{- dict "spec" $spec | toJson -}}
{{- end -}}
{{- end -}}
