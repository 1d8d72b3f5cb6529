{{- /*
One container. All take (dict "model" "group" "name" "container" "role"), where group is the group as the model sees it
and role is main, sidecar or step. They return JSON.
*/ -}}

{{- define "symph.container" -}}
{{- $defaults := .model.values.defaults -}}
{{- $model := .model -}}
{{- $c := .container -}}
{{- $image := required (printf "groups.%s: container %s needs an image" .group.name .name) $c.image -}}
{{- $out := dict "name" .name "image" $image "env" (include "symph.env" . | fromJsonArray) -}}
{{- with ($c.imagePullPolicy | default $defaults.imagePullPolicy) -}}
{{- $_ := set $out "imagePullPolicy" . -}}
{{- end -}}
{{- $command := include "symph.list" $c.command | fromJsonArray -}}
{{- $args := include "symph.list" $c.args | fromJsonArray -}}
{{- if and .group.isNode (gt (int .group.replicas) 1) (ne .role "step") -}}
{{- if not $command -}}
{{- fail (printf "groups.%s: container %s needs a command, so that its replicas learn their ranks" .group.name .name) -}}
{{- end -}}
{{- $command = concat (list "/bin/sh" "-c" (trimSuffix "\n" .model.scripts.rank) "symph-rank") $command -}}
{{- end -}}
{{- if and .model.values.hold .group.isFinite (eq .role "main") $command -}}
{{- $ports := "" -}}
{{- range $service := (include "symph.listening" . | fromJson) -}}
{{- $ports = printf "%s %v" $ports $service.port -}}
{{- end -}}
{{- $command = concat (list "/bin/sh" "-c" (.model.scripts.hold | trimSuffix "\n" | replace "@PORTS@" $ports) "symph-hold") $command $args -}}
{{- $args = list -}}
{{- end -}}
{{- with $command -}}
{{- $_ := set $out "command" . -}}
{{- end -}}
{{- with $args -}}
{{- $_ := set $out "args" . -}}
{{- end -}}
{{- with $c.workingDir -}}
{{- $_ := set $out "workingDir" . -}}
{{- end -}}
{{- with .model.addresses -}}
{{- $_ := set $out "envFrom" (list (dict "configMapRef" (dict "name" .name))) -}}
{{- end -}}
{{- with (include "symph.resources" . | fromJson) -}}
{{- $_ := set $out "resources" . -}}
{{- end -}}
{{- with (include "symph.mounts" . | fromJsonArray) -}}
{{- $_ := set $out "volumeMounts" . -}}
{{- end -}}
{{- with (include "symph.securityContext" (dict "defaults" $defaults.securityContext "own" $c.securityContext) | fromJson) -}}
{{- $_ := set $out "securityContext" . -}}
{{- end -}}
{{- if ne .role "step" -}}
{{- with (include "symph.containerPorts" . | fromJsonArray) -}}
{{- $_ := set $out "ports" . -}}
{{- end -}}
{{- range $key := list "livenessProbe" "readinessProbe" "startupProbe" -}}
{{- with (include "symph.probe" (dict "model" $model "container" $c "probe" (index $c $key)) | fromJson) -}}
{{- $_ := set $out $key . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .role "sidecar" -}}
{{- $_ := set $out "restartPolicy" "Always" -}}
{{- end -}}
{{- include "symph.overlay" (dict "base" $out "over" ($c.overlay | default dict)) -}}
{{- end -}}

{{- /* symph.listening: the services on which this container listens. */ -}}
{{- define "symph.listening" -}}
{{- $out := dict -}}
{{- if ne .role "step" -}}
{{- $group := .group.name -}}
{{- $process := .name -}}
{{- range $name, $service := .model.services -}}
{{- if and (eq $service.group $group) (eq $service.process $process) -}}
{{- $_ := set $out $name $service -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- define "symph.containerPorts" -}}
{{- $out := list -}}
{{- range $name, $service := (include "symph.listening" . | fromJson) -}}
{{- $out = append $out (dict "containerPort" $service.port "protocol" "TCP") -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.env: SYMPH_* with the user's variables over them; what refers to others comes last. */ -}}
{{- define "symph.env" -}}
{{- $env := include "symph.symphEnv" . | fromJson -}}
{{- if and .group.isNode (ne .role "step") -}}
{{- $env = mergeOverwrite $env (include "symph.diEnv" . | fromJson) -}}
{{- end -}}
{{- range $set := list .model.values.defaults.env .container.env -}}
{{- range $key, $value := $set -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $env $key (dict "name" $key "valueFrom" $value) -}}
{{- else -}}
{{- $_ := set $env $key (dict "name" $key "value" (include "symph.scalar" $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $plain := list -}}
{{- $referring := list -}}
{{- range $key, $entry := $env -}}
{{- if contains "$(" ($entry.value | default "") -}}
{{- $referring = append $referring $entry -}}
{{- else -}}
{{- $plain = append $plain $entry -}}
{{- end -}}
{{- end -}}
{{- concat $plain $referring | toJson -}}
{{- end -}}

{{- define "symph.symphEnv" -}}
{{- $env := dict -}}
{{- $values := dict "SYMPHONY_ROLE" .name "SYMPH_CONFIG_DIR" "/etc/symph/config" "SYMPH_SECRETS_DIR" "/etc/secrets" "SYMPH_EXPERIMENT" .model.experiment "SYMPH_GROUP" .group.name "SYMPH_REPLICAS" (toString .group.replicas) "SYMPH_INDEX" "0" -}}
{{- range $key, $value := .model.runHosts -}}
{{- $_ := set $values $key $value -}}
{{- end -}}
{{- range $key, $value := $values -}}
{{- $_ := set $env $key (dict "name" $key "value" $value) -}}
{{- end -}}
{{- $fields := dict -}}
{{- if or (gt (int .group.replicas) 1) .group.isLive -}}
{{- $_ := unset $env "SYMPH_INDEX" -}}
{{- $_ := set $fields "SYMPH_INDEX" .group.index -}}
{{- end -}}
{{- /* No label of such a pod holds the run: it is filled in once it is known. */ -}}
{{- if and .model.runHosts .group.selector -}}
{{- $_ := set $env "SYMPH_RUN" (dict "name" "SYMPH_RUN" "value" "") -}}
{{- else if or .model.runHosts .group.isNode -}}
{{- $_ := set $fields "SYMPH_RUN" "metadata.labels['symph.dev/run']" -}}
{{- end -}}
{{- range $name, $service := (include "symph.listening" . | fromJson) -}}
{{- $_ := set $fields (printf "%s_HOST" $service.prefix) "status.podIP" -}}
{{- $_ := set $fields (printf "%s_BIND_HOST" $service.prefix) "status.podIP" -}}
{{- end -}}
{{- range $key, $path := $fields -}}
{{- if $path -}}
{{- $_ := set $env $key (dict "name" $key "valueFrom" (dict "fieldRef" (dict "fieldPath" $path))) -}}
{{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{- /* symph.diEnv: what `ditask` reads; of several replicas each adds its index to the rank of the first. */ -}}
{{- define "symph.diEnv" -}}
{{- $node := index .model.nodes .group.name -}}
{{- $values := dict "DI_JOB_ID" (printf "$(DI_JOB_NAMESPACE)/%s-$(SYMPH_RUN)" .model.fullname) "DI_NODES" .model.nodeHosts -}}
{{- $_ := set $values (printf "DI_%s_NODES" (.group.name | upper | replace "-" "_")) $node.hosts -}}
{{- $_ := set $values (ternary "DI_FIRST_RANK" "DI_RANK" (gt (int .group.replicas) 1)) $node.rank -}}
{{- $env := dict "DI_JOB_NAMESPACE" (dict "name" "DI_JOB_NAMESPACE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace"))) -}}
{{- range $key, $value := $values -}}
{{- $_ := set $env $key (dict "name" $key "value" $value) -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{- /* symph.resources: a stated default request where there is none; memory is limited to what was asked for. */ -}}
{{- define "symph.resources" -}}
{{- $resources := .container.resources | default dict -}}
{{- $defaults := .model.values.defaults.resources | default dict -}}
{{- $requests := include "symph.strings" $resources.requests | fromJson -}}
{{- $limits := include "symph.strings" $resources.limits | fromJson -}}
{{- range $key, $value := $requests -}}
{{- if and (or (eq $key "memory") (contains "/" $key)) (not (hasKey $limits $key)) -}}
{{- $_ := set $limits $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := (include "symph.strings" $defaults.limits | fromJson) -}}
{{- if not (hasKey $limits $key) -}}
{{- $_ := set $limits $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := (include "symph.strings" $defaults.requests | fromJson) -}}
{{- if and (not (hasKey $requests $key)) (not (hasKey $limits $key)) -}}
{{- $_ := set $requests $key $value -}}
{{- end -}}
{{- end -}}
{{- $out := dict -}}
{{- with $requests -}}
{{- $_ := set $out "requests" . -}}
{{- end -}}
{{- with $limits -}}
{{- $_ := set $out "limits" . -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- define "symph.mounts" -}}
{{- $out := list -}}
{{- range $key, $mount := .container.mounts -}}
{{- $item := dict "name" ($mount.volume | default $key) "mountPath" $mount.mountPath -}}
{{- if eq (toString $mount.readOnly) "true" -}}
{{- $_ := set $item "readOnly" true -}}
{{- end -}}
{{- with $mount.subPath -}}
{{- $_ := set $item "subPath" . -}}
{{- end -}}
{{- $out = append $out $item -}}
{{- end -}}
{{- if .model.configs -}}
{{- $out = append $out (dict "name" "symph-config" "mountPath" "/etc/symph/config" "readOnly" true) -}}
{{- end -}}
{{- with (include "symph.secretVolume" . | fromJson) -}}
{{- $out = append $out (dict "name" .name "mountPath" "/etc/secrets" "readOnly" true) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.secretVolume: the volume with the secret files that this container may see, if there are any. */ -}}
{{- define "symph.secretVolume" -}}
{{- $name := .name -}}
{{- $role := .role -}}
{{- $path := printf "%s/%s" .group.name .name -}}
{{- $items := list -}}
{{- $all := true -}}
{{- range $key, $file := .model.values.secrets.files -}}
{{- if or (not $file.only) (and (ne $role "step") (has $path $file.only)) -}}
{{- $items = append $items (dict "key" $key "path" $key) -}}
{{- else -}}
{{- $all = false -}}
{{- end -}}
{{- end -}}
{{- if $items -}}
{{- $volume := ternary "symph-secrets" (include "symph.join" (list "symph-secrets" $name 63)) $all -}}
{{- dict "name" $volume "secret" (dict "secretName" .model.secretName "items" $items) | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{- /*
symph.probe (dict "model" "container" "probe"): a probe with service names turned into ports; none when the service is
gone. A name that the overlay gives to a port is left to Kubernetes.
*/ -}}
{{- define "symph.probe" -}}
{{- $probe := .probe | default dict | deepCopy -}}
{{- $named := list -}}
{{- range (.container.overlay | default dict).ports -}}
{{- if kindIs "map" . -}}
{{- $named = append $named .name -}}
{{- end -}}
{{- end -}}
{{- $services := .model.services -}}
{{- $out := $probe -}}
{{- range $kind := list "tcpSocket" "httpGet" -}}
{{- with (index $probe $kind) -}}
{{- if kindIs "string" .port -}}
{{- if regexMatch "^[1-9][0-9]{0,9}$" .port -}}
{{- $_ := set . "port" (int64 .port) -}}
{{- else if hasKey $services .port -}}
{{- $_ := set . "port" (index $services .port).port -}}
{{- else if not (has .port $named) -}}
{{- $out = dict -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /*
symph.securityContext (dict "defaults" "own"): the defaults with the container's own merged in. What is privileged
cannot forbid that at the same time, nor would Kubernetes take it.
*/ -}}
{{- define "symph.securityContext" -}}
{{- $base := deepCopy (.defaults | default dict) -}}
{{- $own := .own | default dict -}}
{{- if eq (toString $own.privileged) "true" -}}
{{- $base = omit $base "allowPrivilegeEscalation" "capabilities" -}}
{{- end -}}
{{- include "symph.overlay" (dict "base" $base "over" $own) -}}
{{- end -}}
