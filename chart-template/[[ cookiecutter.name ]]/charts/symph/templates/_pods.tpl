{{- /* symph.setPodTemplate (dict "model" "group"): gives the group its pod template, without the label of the run. */ -}}
{{- define "symph.setPodTemplate" -}}
{{- $model := .model -}}
{{- $group := .group -}}
{{- $g := .group.values -}}
{{- $defaults := .model.values.defaults -}}
{{- include "symph.setContainers" . -}}
{{- $spec := dict "enableServiceLinks" false "containers" .main -}}
{{- with .init -}}
{{- $_ := set $spec "initContainers" . -}}
{{- end -}}
{{- if or $g.volumes .model.configs .model.values.secrets.files -}}
{{- with (include "symph.podVolumes" . | fromJsonArray) -}}
{{- $_ := set $spec "volumes" . -}}
{{- end -}}
{{- end -}}
{{- range $key := list "serviceAccountName" "priorityClassName" "schedulerName" "affinity" "topologySpreadConstraints" "tolerations" -}}
{{- with (index (ternary $g $defaults (hasKey $g $key)) $key) -}}
{{- $_ := set $spec $key . -}}
{{- end -}}
{{- end -}}
{{- $key := "automountServiceAccountToken" -}}
{{- $_ := set $spec $key (eq (toString (index (ternary $g $defaults (hasKey $g $key)) $key)) "true") -}}
{{- $selector := dict "defaults" .model.plain "own" dict "key" "nodeSelector" -}}
{{- if hasKey $g "nodeSelector" -}}
{{- $_ := set $selector.own "nodeSelector" (include "symph.strings" $g.nodeSelector | fromJson) -}}
{{- end -}}
{{- include "symph.said" $selector -}}
{{- with $selector.out -}}
{{- $_ := set $spec "nodeSelector" . -}}
{{- end -}}
{{- $security := dict "defaults" $defaults "own" $g "key" "podSecurityContext" "ownKey" "securityContext" -}}
{{- include "symph.said" $security -}}
{{- with $security.out -}}
{{- $_ := set $spec "securityContext" . -}}
{{- end -}}
{{- with $model.pullSecrets -}}
{{- $_ := set $spec "imagePullSecrets" . -}}
{{- end -}}
{{- $grace := $g.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $grace -}}
{{- $grace = $defaults.terminationGracePeriodSeconds -}}
{{- end -}}
{{- $_ := set $spec "terminationGracePeriodSeconds" (include "symph.int" (list $grace 30 (printf "groups.%s.terminationGracePeriodSeconds" $group.name)) | int) -}}
{{- $_ := set $spec "restartPolicy" $group.restart -}}
{{- if and $group.isIndexed (not $group.selector) -}}
{{- $_ := set $spec "subdomain" $group.pods -}}
{{- end -}}
{{- $template := dict "metadata" dict "spec" $spec -}}
{{- include "symph.setPodLabels" (dict "model" $model "group" $group "metadata" $template.metadata) -}}
{{- include "symph.setPodAnnotations" (dict "model" $model "group" $group "metadata" $template.metadata "first" (first .main).name) -}}
{{- with $g.overlay -}}
{{- $template = deepCopy $template -}}
{{- include "symph.merge" (dict "base" $template "over" .) -}}
{{- end -}}
{{- $_ := set $group "template" $template -}}
{{- end -}}

{{- /* symph.setContainers: sets `init` and `main`: steps and, in a pod that ends, its services come first, as init containers. */ -}}
{{- define "symph.setContainers" -}}
{{- $model := .model -}}
{{- $group := .group -}}
{{- $init := list -}}
{{- $main := list -}}
{{- with $steps := $group.values.initContainers -}}
{{- range $name := (include "symph.ordered" (dict "map" $steps "order" $group.values.initOrder) | fromJsonArray) -}}
{{- $call := dict "model" $model "group" $group "name" $name "container" (index $steps $name) "role" "step" -}}
{{- include "symph.setContainer" $call -}}
{{- $init = append $init $call.out -}}
{{- end -}}
{{- end -}}
{{- $containers := $group.values.containers | default dict -}}
{{- if not $containers -}}
{{- fail (printf "groups.%s has no containers; set its replicas to 0 to leave it out" $group.name) -}}
{{- end -}}
{{- $names := keys $containers -}}
{{- if gt (len $names) 1 -}}
{{- $names = include "symph.ordered" (dict "map" $containers "order" $group.values.order) | fromJsonArray -}}
{{- end -}}
{{- range $name := $names -}}
{{- $container := index $containers $name -}}
{{- $isSidecar := and $group.isFinite (eq ($container.lifecycle | default "finite") "service") -}}
{{- $call := dict "model" $model "group" $group "name" $name "container" $container "role" (ternary "sidecar" "main" $isSidecar) -}}
{{- include "symph.setContainer" $call -}}
{{- if $isSidecar -}}
{{- $init = append $init $call.out -}}
{{- else -}}
{{- $main = append $main $call.out -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "init" $init -}}
{{- $_ := set . "main" $main -}}
{{- end -}}

{{- define "symph.podVolumes" -}}
{{- $model := .model -}}
{{- $group := .group -}}
{{- $out := list -}}
{{- range $name, $source := $group.values.volumes -}}
{{- $out = append $out (mergeOverwrite (deepCopy $source) (dict "name" $name)) -}}
{{- end -}}
{{- with $model.configs -}}
{{- $out = append $out (dict "name" "symph-config" "configMap" (dict "name" .name "items" .items)) -}}
{{- end -}}
{{- $secrets := dict -}}
{{- range $role, $containers := dict "step" $group.values.initContainers "main" $group.values.containers -}}
{{- range $name, $container := $containers -}}
{{- with (include "symph.secretVolume" (dict "model" $model "group" $group "name" $name "role" $role) | fromJson) -}}
{{- $_ := set $secrets .name . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $volume := $secrets -}}
{{- $out = append $out $volume -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- define "symph.setPodLabels" -}}
{{- $labels := dict -}}
{{- range $key, $value := .model.plain.labels -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- range $key, $value := .group.values.labels -}}
{{- $_ := set $labels $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- range $key, $value := .model.identity -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- $_ := set $labels "app.kubernetes.io/component" "experiment" -}}
{{- $_ := set $labels "symph.dev/experiment" .model.experiment -}}
{{- $_ := set $labels "symph.dev/group" .group.name -}}
{{- $containers := keys .group.values.containers -}}
{{- if eq (len $containers) 1 -}}
{{- $_ := set $labels "symph.dev/process" (first $containers) -}}
{{- end -}}
{{- $_ := set .metadata "labels" $labels -}}
{{- end -}}

{{- define "symph.setPodAnnotations" -}}
{{- $annotations := dict "kubectl.kubernetes.io/default-container" .first -}}
{{- with include "symph.list" .model.values.networks | fromJsonArray | join "," -}}
{{- $_ := set $annotations "k8s.v1.cni.cncf.io/networks" . -}}
{{- end -}}
{{- range $key, $value := .model.plain.annotations -}}
{{- $_ := set $annotations $key $value -}}
{{- end -}}
{{- range $key, $value := .group.values.annotations -}}
{{- $_ := set $annotations $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- $_ := set .metadata "annotations" $annotations -}}
{{- end -}}

{{- /* symph.setJobFields: gives a group the fields of its Job beside its pod template. */ -}}
{{- define "symph.setJobFields" -}}
{{- $inPlace := eq .restart "OnFailure" -}}
{{- $out := dict -}}
{{- if or .isIndexed .replacements -}}
{{- $_ := set $out "completionMode" "Indexed" -}}
{{- $_ := set $out "completions" .replicas -}}
{{- $_ := set $out "parallelism" .replicas -}}
{{- end -}}
{{- if .replacements -}}
{{- $_ := set $out "backoffLimitPerIndex" .replacements -}}
{{- $_ := set $out "maxFailedIndexes" 0 -}}
{{- else -}}
{{- $_ := set $out "backoffLimit" (ternary (include "symph.lastRestart" . | int) 0 $inPlace) -}}
{{- end -}}
{{- if not $inPlace -}}
{{- $_ := set $out "podFailurePolicy" (dict "rules" (list (dict "action" "Ignore" "onPodConditions" (list (dict "type" "DisruptionTarget" "status" "True"))))) -}}
{{- end -}}
{{- if not (kindIs "invalid" .values.activeDeadlineSeconds) -}}
{{- $_ := set $out "activeDeadlineSeconds" (include "symph.int" (list .values.activeDeadlineSeconds nil (printf "groups.%s.activeDeadlineSeconds" .name)) | int) -}}
{{- end -}}
{{- $_ := set . "fields" $out -}}
{{- end -}}

{{- /*
symph.lastRestart: the number of the restart in place of a group's pods that is one too many. Jobs and tasks count those of
all containers of all replicas together, so that is how many they all may have.
*/ -}}
{{- define "symph.lastRestart" -}}
{{- mul .retries .replicas (len .template.spec.containers) | add1 | min 2147483647 -}}
{{- end -}}
