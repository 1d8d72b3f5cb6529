{{- /*
symph.kinds: the kinds of workload, one template each. `workload` and `pod` are patterns of the names of a group's Job and of
a replica's pod; `unit` and `member` bound the names that they contain; of the fields of Jobs in `fixed` (absent: of all) a
change is a new run, as of these `settings` of workload; `whole`: one object runs all groups that end; `podGroups`: the chart
makes the PodGroups of a gang; `index`: where a pod finds the number of its replica; `domain`: that of the pods' host names;
`selector`: labels that a controller gives its pods in place of ours; `roles`: the groups that it runs where it is not all
that end; `live`: another number of replicas is no new run; `variants`: the kind under other versions of its controller.
*/ -}}
{{- define "symph.kinds" -}}
jobs:
  workload: "{base}-{run}"
  pod: "{workload}-{index}"
  unit: 43
  member: 18
  fixed: [backoffLimitPerIndex, completionMode, completions, maxFailedIndexes]
  whole: false
  podGroups: true
  index: "metadata.annotations['batch.kubernetes.io/job-completion-index']"
jobset:
  workload: "{unit}-{run}-{member}-0"
  pod: "{workload}-{index}"
  unit: 22
  member: 18
  whole: true
  podGroups: true
  index: "metadata.annotations['batch.kubernetes.io/job-completion-index']"
appwrapper:
  workload: "{base}-{run}"
  pod: "{workload}-{index}"
  unit: 43
  member: 18
  whole: true
  podGroups: true
  index: "metadata.annotations['batch.kubernetes.io/job-completion-index']"
volcano:
  workload: "{unit}-{run}-{member}"
  pod: "{workload}-{index}"
  unit: 22
  member: 18
  settings: [queue, volcano]
  whole: true
  podGroups: false
  index: "metadata.labels['volcano.sh/task-index']"
dijob:
  workload: "{unit}-{run}"
  pod: "{unit}-{run}-{member}-{index}"
  unit: 22
  member: 18
  fixed: []
  settings: [dijob, order]
  whole: false
  podGroups: false
  index: "metadata.annotations['diengine/task-rank']"
  domain: "di-{unit}-{run}"
  selector: {diengine/job: "{unit}-{run}", diengine/task-name: "{member}"}
  live: true
  variants:
    v1.1.0:
      domain: "{unit}-{run}"
      selector: {diengine/job: "{unit}-{run}", diengine/pod: "{unit}-{run}-{member}-0"}
    v1.0:
      pod: "{unit}-{run}-0-{index}"
      index: "metadata.annotations['diengine/rank']"
      domain: "{unit}-{run}"
      selector: {diengine/job: "{unit}-{run}"}
      live: false
    v0:
      pod: ""
      index: ""
      selector: {dijob-name: "{unit}-{run}", replica-type: "{member}"}
      roles: [coordinator, collector, learner, aggregator]
      live: false
argo:
  workload: "{base}-{run}"
  pod: "{workload}-{index}"
  unit: 43
  member: 18
  settings: [argo]
  whole: true
  podGroups: true
  index: "metadata.annotations['batch.kubernetes.io/job-completion-index']"
{{- end -}}

{{- /* symph.kind: the row of the kind that the values ask for. */ -}}
{{- define "symph.kind" -}}
{{- $kinds := include "symph.kinds" . | fromYaml -}}
{{- $name := .workload.kind | default "jobs" | toString -}}
{{- if not (hasKey $kinds $name) -}}
{{- fail (printf "workload.kind %q is none of %s" $name (keys $kinds | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $row := index $kinds $name -}}
{{- range $key, $value := index ($row.variants | default dict) (toString (index .workload $name | default dict).operator) -}}
{{- $_ := set $row $key $value -}}
{{- end -}}
{{- toJson $row -}}
{{- end -}}

{{- /* symph.fill (dict "pattern" "parts"): the pattern with its parts. */ -}}
{{- define "symph.fill" -}}
{{- $text := .pattern -}}
{{- range $key, $part := .parts -}}
{{- $text = $text | replace (printf "{%s}" $key) $part -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- /* symph.members: the groups that end, with labels and annotations of their Jobs, pod template and Job fields. */ -}}
{{- define "symph.members" -}}
{{- $model := . -}}
{{- $out := list -}}
{{- range $name, $group := .groups -}}
{{- if $group.inUnit -}}
{{- $labels := mergeOverwrite (deepCopy $model.identity) (dict "symph.dev/experiment" (index $model.labels "symph.dev/experiment") "symph.dev/group" $name "symph.dev/run" $model.run) -}}
{{- $metadata := dict "labels" $labels -}}
{{- with (include "symph.workloadAnnotations" (dict "model" $model "group" $group) | fromJson) -}}
{{- $_ := set $metadata "annotations" . -}}
{{- end -}}
{{- $out = append $out (dict "group" $group "name" $group.workload "member" $group.member "metadata" $metadata "template" $group.template "fields" (include "symph.jobFields" $group | fromJson)) -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
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

{{- /* symph.retries: how often a failed pod of a member is started again. */ -}}
{{- define "symph.retries" -}}
{{- .fields.backoffLimitPerIndex | default .fields.backoffLimit | int -}}
{{- end -}}

{{- /* symph.replacements: how often it is replaced by a new one: never where it is restarted in place. */ -}}
{{- define "symph.replacements" -}}
{{- ternary 0 (include "symph.retries" . | int) (eq .template.spec.restartPolicy "OnFailure") -}}
{{- end -}}
