{{- /* The Workflow of kind argo; all take the model. Argo expands two braces at run time: a user's are written as escapes. */ -}}

{{- define "symph.argoName" -}}
{{- .unit | trimSuffix (printf "-%s" .run) -}}
{{- end -}}

{{- /* symph.argoParameters: the parameters by name with the value that processes declare. */ -}}
{{- define "symph.argoParameters" -}}
{{- $model := . -}}
{{- $members := .members -}}
{{- $out := dict -}}
{{- range $key := include "symph.list" (.values.workload.argo | default dict).parameters | fromJsonArray | sortAlpha -}}
{{- $found := list -}}
{{- range $member := $members -}}
{{- range $container := concat ($member.template.spec.initContainers | default list) $member.template.spec.containers -}}
{{- range $entry := $container.env -}}
{{- if and (eq $entry.name $key) (hasKey $entry "value") -}}
{{- $found = append $found $entry.value | uniq -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if or (not (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" $key)) (contains "{{" (join "" $found)) -}}
{{- fail (include "symph.fault" (dict "model" $model "fault" "parameter" "parts" (dict "name" $key))) -}}
{{- else if not $found -}}
{{- fail (include "symph.fault" (dict "model" $model "fault" "unknown" "parts" (dict "name" $key))) -}}
{{- else if gt (len $found) 1 -}}
{{- fail (include "symph.fault" (dict "model" $model "fault" "torn" "parts" (dict "name" $key))) -}}
{{- end -}}
{{- $_ := set $out $key (first $found) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.argoArguments (list parameters source): each parameter, passed on. */ -}}
{{- define "symph.argoArguments" -}}
{{- $source := index . 1 -}}
{{- $out := list -}}
{{- range $key, $value := index . 0 -}}
{{- $out = append $out (dict "name" $key "value" (printf "{{%s.parameters.%s}}" $source $key)) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.argoManifest (dict "model" "member" "parameters"): the Job of a member as the text that Argo expands. */ -}}
{{- define "symph.argoManifest" -}}
{{- $template := deepCopy .member.template -}}
{{- $run := .model.run -}}
{{- $parameters := .parameters -}}
{{- range $container := concat ($template.spec.initContainers | default list) $template.spec.containers -}}
{{- range $entry := $container.env -}}
{{- if and (hasKey $entry "value") (hasKey $parameters $entry.name) -}}
{{- $_ := set $entry "value" (printf "symph.dev/parameter/%s/%s" $entry.name $run) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $metadata := mergeOverwrite (deepCopy .member.metadata) (dict "name" .member.name "labels" (mergeOverwrite (include "symph.unitLabels" .model | fromJson) .member.metadata.labels)) -}}
{{- $spec := mergeOverwrite (deepCopy .member.fields) (dict "template" $template) -}}
{{- $text := printf "%s,\"spec\":%s}" (toJson $metadata | trimPrefix "{") (toJson $spec) | replace "{{" "{\\u007b" -}}
{{- range $key, $value := $parameters -}}
{{- $text = $text | replace (printf "\"symph.dev/parameter/%s/%s\"" $key $run) (printf "{{=toJson(inputs.parameters.%s)}}" $key) -}}
{{- end -}}
{"apiVersion":"batch/v1","kind":"Job","metadata":{"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","controller":true,"kind":"Workflow","name":"{{ "{{workflow.name}}" }}","uid":"{{ "{{workflow.uid}}" }}"}],{{ $text }}
{{- end -}}

{{- /* symph.argoDeletion (dict "model" "name" "selector"): the template that deletes Jobs of the release. */ -}}
{{- define "symph.argoDeletion" -}}
{{- $keys := list -}}
{{- range $key := list "app.kubernetes.io/instance" "app.kubernetes.io/name" -}}
{{- $keys = append $keys (printf "%s=%s" $key (index $.model.identity $key)) -}}
{{- end -}}
{{- with .selector -}}
{{- $keys = append $keys . -}}
{{- end -}}
{{- dict "name" .name "resource" (dict "action" "delete" "flags" (list "job" (printf "--selector=%s" (join "," $keys)) "--cascade=foreground")) | toJson -}}
{{- end -}}

{{- /* symph.argoRest: the groups that run on once the experiment is done, as a selector. */ -}}
{{- define "symph.argoRest" -}}
{{- $done := include "symph.doneGroups" . | fromJsonArray -}}
{{- $rest := list -}}
{{- if $done -}}
{{- range $name, $group := .groups -}}
{{- if and $group.isFinite (not (has $name $done)) -}}
{{- $rest = append $rest $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $rest -}}
{{- printf "symph.dev/group in (%s)" (join "," $rest) -}}
{{- end -}}
{{- end -}}

{{- /* symph.argoSpec: the spec of the WorkflowTemplate. */ -}}
{{- define "symph.argoSpec" -}}
{{- $model := . -}}
{{- $own := .values.workload.argo | default dict -}}
{{- $name := include "symph.argoName" . -}}
{{- $members := .members -}}
{{- $done := include "symph.doneGroups" . | fromJsonArray -}}
{{- $rest := include "symph.argoRest" . -}}
{{- $parameters := include "symph.argoParameters" . | fromJson -}}
{{- $inputs := list -}}
{{- range $key, $value := $parameters -}}
{{- $inputs = append $inputs (dict "name" $key "value" $value) -}}
{{- end -}}
{{- $main := list -}}
{{- range $need, $after := $own.needs -}}
{{- $task := dict "name" $need "templateRef" (dict "name" $need "template" "experiment") -}}
{{- with (include "symph.list" $after | fromJsonArray) -}}
{{- $_ := set $task "dependencies" . -}}
{{- end -}}
{{- $main = append $main $task -}}
{{- end -}}
{{- $itself := dict "name" $name "template" "experiment" -}}
{{- with $own.needs -}}
{{- $_ := set $itself "dependencies" (keys . | sortAlpha) -}}
{{- end -}}
{{- $tasks := list (dict "name" "clear" "template" "clear") -}}
{{- $creations := list -}}
{{- range $member := $members -}}
{{- $task := dict "name" (printf "run-%s" .group.name) "template" (printf "run-%s" .group.name) "dependencies" (list "clear") -}}
{{- $resource := dict "action" "create" "manifest" (include "symph.argoManifest" (dict "model" $model "member" $member "parameters" $parameters)) -}}
{{- if or (not $done) (has .group.name $done) -}}
{{- $_ := set $resource "successCondition" "status.completionTime" -}}
{{- $_ := set $resource "failureCondition" "status.conditions.0.type in (FailureTarget,Failed),status.conditions.1.type in (FailureTarget,Failed),status.conditions.2.type in (FailureTarget,Failed)" -}}
{{- end -}}
{{- $creation := dict "name" (printf "run-%s" .group.name) "resource" $resource -}}
{{- if $inputs -}}
{{- $_ := set $task "arguments" (dict "parameters" (include "symph.argoArguments" (list $parameters "inputs") | fromJsonArray)) -}}
{{- $names := list -}}
{{- range $inputs -}}
{{- $names = append $names (dict "name" .name) -}}
{{- end -}}
{{- $_ := set $creation "inputs" (dict "parameters" $names) -}}
{{- end -}}
{{- $tasks = append $tasks $task -}}
{{- $creations = append $creations $creation -}}
{{- end -}}
{{- if $rest -}}
{{- $after := list -}}
{{- range $done -}}
{{- $after = append $after (printf "run-%s" .) -}}
{{- end -}}
{{- $tasks = append $tasks (dict "name" "rest" "template" "rest" "dependencies" $after) -}}
{{- end -}}
{{- $experiment := dict "name" "experiment" "synchronization" (dict "mutexes" (list (dict "name" $name))) "dag" (dict "tasks" $tasks) -}}
{{- $retries := include "symph.int" (list $own.retries 0 "workload.argo.retries") | int -}}
{{- if $retries -}}
{{- $_ := set $experiment "retryStrategy" (dict "limit" (toString $retries) "retryPolicy" "Always") -}}
{{- end -}}
{{- $spec := dict "entrypoint" "main" "serviceAccountName" ($own.serviceAccount | default (printf "%s-argo" $name)) "podGC" (dict "strategy" "OnPodSuccess") -}}
{{- $_ := set $spec "workflowMetadata" (dict "labels" (mergeOverwrite (deepCopy .identity) (dict "symph.dev/experiment" (index .labels "symph.dev/experiment") "symph.dev/run" .run))) -}}
{{- if $inputs -}}
{{- $_ := set $itself "arguments" (dict "parameters" (include "symph.argoArguments" (list $parameters "workflow") | fromJsonArray)) -}}
{{- $_ := set $experiment "inputs" (dict "parameters" $inputs) -}}
{{- $_ := set $spec "arguments" (dict "parameters" $inputs) -}}
{{- end -}}
{{- $templates := list (dict "name" "main" "dag" (dict "tasks" (append $main $itself))) $experiment (include "symph.argoDeletion" (dict "model" $model "name" "clear" "selector" "") | fromJson) -}}
{{- if $rest -}}
{{- $templates = append $templates (include "symph.argoDeletion" (dict "model" $model "name" "rest" "selector" $rest) | fromJson) -}}
{{- end -}}
{{- $_ := set $spec "templates" (concat $templates $creations) -}}
{{- toJson $spec -}}
{{- end -}}
