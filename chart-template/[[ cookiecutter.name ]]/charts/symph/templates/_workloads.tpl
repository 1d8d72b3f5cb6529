{{- /* What Jobs, StatefulSets, Services and policies say about a group; all take (dict "model" "group"). */ -}}

{{- define "symph.workloadLabels" -}}
{{- $labels := mergeOverwrite (deepCopy .model.labels) (dict "symph.dev/group" .group.name) -}}
{{- if not .group.keep -}}
{{- $_ := set $labels "symph.dev/run" .model.run -}}
{{- end -}}
{{- toJson $labels -}}
{{- end -}}

{{- /* symph.workloadAnnotations: marks the Jobs whose success ends the experiment. */ -}}
{{- define "symph.workloadAnnotations" -}}
{{- $out := dict -}}
{{- $name := .group.name -}}
{{- range .model.values.doneWhen -}}
{{- if eq $name (first (splitList "/" .)) -}}
{{- $_ := set $out "symph.dev/done-when" "true" -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.selector: the pods of a group, whatever their run where they bear our labels. */ -}}
{{- define "symph.selector" -}}
{{- .group.selector | default (merge (dict "symph.dev/group" .group.name) .model.identity) | toJson -}}
{{- end -}}

{{- /* symph.runSelector: the pods of a group in this run only, so that no Service reaches an old pod. */ -}}
{{- define "symph.runSelector" -}}
{{- $selector := include "symph.selector" . | fromJson -}}
{{- if not (or .group.keep .group.selector) -}}
{{- $_ := set $selector "symph.dev/run" .model.run -}}
{{- end -}}
{{- toJson $selector -}}
{{- end -}}

{{- /* symph.isHeadless: "true" where the address of each replica is needed: every StatefulSet, and Jobs that are dialled. */ -}}
{{- define "symph.isHeadless" -}}
{{- if or (not .group.inUnit) .group.isNode (and .group.isIndexed (not .group.selector) .group.listening) -}}true{{- end -}}
{{- end -}}

{{- /* symph.setDialling: gives each service the groups whose processes connect to it, and each group those services. */ -}}
{{- define "symph.setDialling" -}}
{{- range $name, $group := .groups -}}
{{- range $process, $container := $group.values.containers -}}
{{- range (include "symph.list" $container.connects | fromJsonArray) -}}
{{- with (index $.services .) -}}
{{- $_ := set . "dialling" (append (.dialling | default list) $name | uniq) -}}
{{- $_ := set $group "dialled" (append ($group.dialled | default list) .name | uniq) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* symph.policyRules: one rule per service of the group: from those who connect, the test pod, or anyone if exposed;
and one for peers, which dial each other on ports that nobody declares. */ -}}
{{- define "symph.policyRules" -}}
{{- $model := .model -}}
{{- $own := dict -}}
{{- range $process, $services := .group.listening -}}
{{- range $services -}}
{{- $_ := set $own .name . -}}
{{- end -}}
{{- end -}}
{{- $rules := list -}}
{{- range $name, $service := $own -}}
{{- $rule := dict "ports" (list (dict "port" $service.port "protocol" "TCP")) -}}
{{- if not $service.expose -}}
{{- $from := list (dict "podSelector" (dict "matchLabels" (merge (dict "app.kubernetes.io/component" "test") $model.identity))) -}}
{{- range $service.dialling -}}
{{- $from = append $from (dict "podSelector" (dict "matchLabels" (include "symph.selector" (dict "model" $model "group" (index $model.groups .)) | fromJson))) -}}
{{- end -}}
{{- $_ := set $rule "from" $from -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- with (include "symph.peers" . | fromJsonArray) -}}
{{- $rules = append $rules (dict "from" .) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{- /* symph.peers: the pods that a group dials, and is dialled by, on ports that nobody declares; none where it has no such. */ -}}
{{- define "symph.peers" -}}
{{- $model := .model -}}
{{- $peers := list -}}
{{- if or .group.isNode .group.selector -}}
{{- range $other, $group := $model.groups -}}
{{- if or $group.isNode $group.selector -}}
{{- $peers = append $peers (dict "podSelector" (dict "matchLabels" (include "symph.selector" (dict "model" $model "group" $group) | fromJson))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $peers -}}
{{- end -}}

{{- /* symph.namesRule: the rule that lets pods ask for addresses: DNS. */ -}}
{{- define "symph.namesRule" -}}
{{- dict "ports" (list (dict "port" 53 "protocol" "UDP") (dict "port" 53 "protocol" "TCP")) | toJson -}}
{{- end -}}

{{- /* symph.dialled: the addresses that `helm test` dials: of every bound service; none where tests are switched off. */ -}}
{{- define "symph.dialled" -}}
{{- $bound := list -}}
{{- if ne (toString .values.tests.enabled) "false" -}}
{{- range $name, $service := .services -}}
{{- if $service.bind -}}
{{- $bound = append $bound (printf "%s:%d" $service.host (int $service.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $bound -}}
{{- end -}}

{{- /* symph.outwardRules: what a group may dial: names, the services that it connects to, its peers, and what is said besides. */ -}}
{{- define "symph.outwardRules" -}}
{{- $model := .model -}}
{{- $rules := list (include "symph.namesRule" . | fromJson) -}}
{{- range (.group.dialled | default list | sortAlpha) -}}
{{- $service := index $model.services . -}}
{{- $selector := include "symph.selector" (dict "model" $model "group" (index $model.groups $service.group)) | fromJson -}}
{{- $rules = append $rules (dict "to" (list (dict "podSelector" (dict "matchLabels" $selector))) "ports" (list (dict "port" $service.port "protocol" "TCP"))) -}}
{{- end -}}
{{- with (include "symph.peers" . | fromJsonArray) -}}
{{- $rules = append $rules (dict "to" .) -}}
{{- end -}}
{{- concat $rules ($model.values.networkPolicy.egressRules | default list) | toJson -}}
{{- end -}}

{{- /* symph.doneGroups: the finite groups that run and whose success ends the experiment; takes the model. */ -}}
{{- define "symph.doneGroups" -}}
{{- $model := . -}}
{{- $out := list -}}
{{- range $name, $group := .groups -}}
{{- if $group.isFinite -}}
{{- range $model.values.doneWhen -}}
{{- if eq $name (first (splitList "/" .)) -}}
{{- $out = append $out $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $out | uniq | toJson -}}
{{- end -}}
