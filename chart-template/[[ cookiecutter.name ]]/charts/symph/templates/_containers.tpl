{{- /*
One container. All take (dict "model" "group" "name" "container" "role" "listening"), where group is the group as the model sees
it, role is main, sidecar or step, and listening are the services on which it listens.
*/ -}}

{{- /* symph.setContainer: sets `out` to the finished container. */ -}}
{{- define "symph.setContainer" -}}
{{- $defaults := .model.values.defaults -}}
{{- $model := .model -}}
{{- $c := .container -}}
{{- $image := required (printf "groups.%s: container %s needs an image" .group.name .name) ($c.image | default $defaults.image) -}}
{{- $listening := list -}}
{{- if ne .role "step" -}}
{{- $listening = index .group.listening .name | default list -}}
{{- end -}}
{{- $_ := set . "listening" $listening -}}
{{- $command := list -}}
{{- if not (kindIs "invalid" $c.command) -}}
{{- $command = include "symph.list" $c.command | fromJsonArray -}}
{{- end -}}
{{- $_ := set . "hasCommand" (gt (len $command) 0) -}}
{{- include "symph.setEnv" . -}}
{{- $out := dict "name" .name "image" (include "symph.image" (dict "model" $model "image" $image)) "env" .env -}}
{{- with (index (ternary $c $defaults (hasKey $c "imagePullPolicy")) "imagePullPolicy") -}}
{{- $_ := set $out "imagePullPolicy" . -}}
{{- end -}}
{{- $args := list -}}
{{- if not (kindIs "invalid" $c.args) -}}
{{- $args = include "symph.list" $c.args | fromJsonArray -}}
{{- end -}}
{{- $isRanked := and .group.isNode (gt .group.replicas 1) (ne .role "step") -}}
{{- if and $isRanked (not $command) -}}
{{- fail (printf "groups.%s: container %s needs a command, so that its replicas learn their ranks" .group.name .name) -}}
{{- end -}}
{{- $isTried := and .group.tries (eq .role "main") $command -}}
{{- $isHeld := and .model.values.hold .group.isFinite (eq .role "main") $command -}}
{{- if or $isRanked $isTried $isHeld -}}
{{- /* A shell drops variables whose names it cannot set, so these are told once more behind it. */ -}}
{{- $dropped := list -}}
{{- range .env -}}
{{- if not (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" .name) -}}
{{- $dropped = append $dropped .name -}}
{{- end -}}
{{- end -}}
{{- if $dropped -}}
{{- $words := list "env" "--" -}}
{{- range $dropped | sortAlpha -}}
{{- $words = append $words (printf "%s=$(%s)" . .) -}}
{{- end -}}
{{- $command = concat $words $command -}}
{{- end -}}
{{- end -}}
{{- if $isRanked -}}
{{- $command = concat (list "/bin/sh" "-c" (trimSuffix "\n" .model.scripts.rank) "symph-rank") $command -}}
{{- end -}}
{{- if $isTried -}}
{{- $command = concat (list "/bin/sh" "-c" (trimSuffix "\n" .model.scripts.attempt) "symph-attempt") $command -}}
{{- end -}}
{{- if $isHeld -}}
{{- $ports := "" -}}
{{- range $listening -}}
{{- $ports = printf "%s %d" $ports .port -}}
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
{{- /* Ours come last, so that nothing of a user's takes the place of an address. */ -}}
{{- $from := $c.envFrom | default list -}}
{{- with .model.addresses -}}
{{- $from = append $from (dict "configMapRef" (dict "name" .name)) -}}
{{- end -}}
{{- with $from -}}
{{- $_ := set $out "envFrom" . -}}
{{- end -}}
{{- include "symph.setResources" (dict "container" $c "plain" $model.plain "into" $out) -}}
{{- if or $c.mounts $model.configs $model.values.secrets.files -}}
{{- with (include "symph.mounts" . | fromJsonArray) -}}
{{- $_ := set $out "volumeMounts" . -}}
{{- end -}}
{{- end -}}
{{- /* What is privileged cannot forbid escalation at the same time, nor would Kubernetes take it. */ -}}
{{- $security := dict "own" $c "key" "securityContext" "defaults" $defaults -}}
{{- if eq (toString ($c.securityContext | default dict).privileged) "true" -}}
{{- $_ := set $security "defaults" (dict "securityContext" (omit ($defaults.securityContext | default dict) "allowPrivilegeEscalation" "capabilities")) -}}
{{- end -}}
{{- include "symph.said" $security -}}
{{- with $security.out -}}
{{- $_ := set $out "securityContext" . -}}
{{- end -}}
{{- if ne .role "step" -}}
{{- $ports := list -}}
{{- range $listening -}}
{{- $port := dict "containerPort" .port "protocol" "TCP" -}}
{{- if and $model.row.port (eq .name .group) -}}
{{- $_ := set $port "name" $model.row.port -}}
{{- end -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- with $ports -}}
{{- $_ := set $out "ports" . -}}
{{- end -}}
{{- with $c.lifecycleHooks -}}
{{- $_ := set $out "lifecycle" . -}}
{{- end -}}
{{- range $key := list "livenessProbe" "readinessProbe" "startupProbe" -}}
{{- if index $c $key -}}
{{- with (include "symph.probe" (dict "model" $model "container" $c "probe" (index $c $key)) | fromJson) -}}
{{- $_ := set $out $key . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .role "sidecar" -}}
{{- $_ := set $out "restartPolicy" "Always" -}}
{{- end -}}
{{- with $c.overlay -}}
{{- $out = deepCopy $out -}}
{{- include "symph.merge" (dict "base" $out "over" .) -}}
{{- end -}}
{{- $_ := set . "out" $out -}}
{{- end -}}

{{- /* symph.setEnv: sets `env` to SYMPH_* with the user's variables over them; what refers to others comes last. */ -}}
{{- define "symph.setEnv" -}}
{{- $env := dict "SYMPHONY_ROLE" .name "SYMPH_CONFIG_DIR" "/etc/symph/config" "SYMPH_SECRETS_DIR" "/etc/secrets" "SYMPH_EXPERIMENT" .model.experiment "SYMPH_GROUP" .group.name "SYMPH_REPLICAS" (toString .group.replicas) "SYMPH_INDEX" "0" -}}
{{- if or (gt .group.replicas 1) .group.isLive -}}
{{- $_ := unset $env "SYMPH_INDEX" -}}
{{- with .group.index -}}
{{- $_ := set $env "SYMPH_INDEX" (dict "fieldRef" (dict "fieldPath" .)) -}}
{{- end -}}
{{- end -}}
{{- /* No label of such a pod holds the run: it is filled in once it is known. */ -}}
{{- if and .model.hasRunHosts .group.selector -}}
{{- $_ := set $env "SYMPH_RUN" "" -}}
{{- else if and (or .model.hasRunHosts .group.isNode) (not .group.keep) -}}
{{- $_ := set $env "SYMPH_RUN" (dict "fieldRef" (dict "fieldPath" "metadata.labels['symph.dev/run']")) -}}
{{- end -}}
{{- if and .container.connects (ne .role "step") -}}
{{- range (include "symph.list" .container.connects | fromJsonArray) -}}
{{- with (index $.model.services .) -}}
{{- $_ := set $env (printf "%s_HOSTS" .prefix) .hosts -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .listening -}}
{{- $_ := set $env (printf "%s_HOSTS" .prefix) .hosts -}}
{{- $_ := set $env (printf "%s_HOST" .prefix) (dict "fieldRef" (dict "fieldPath" "status.podIP")) -}}
{{- $_ := set $env (printf "%s_BIND_HOST" .prefix) (dict "fieldRef" (dict "fieldPath" "status.podIP")) -}}
{{- $_ := set $env (printf "%s_ADDR" .prefix) (printf "$(%s_BIND_HOST):%s" .prefix (toString .port)) -}}
{{- end -}}
{{- if and (hasKey .group "tries") (eq .role "main") -}}
{{- if not .group.tries -}}
{{- $_ := set $env "SYMPH_ATTEMPT" "1" -}}
{{- else if .hasCommand -}}
{{- range $key, $path := .group.tries -}}
{{- $_ := set $env $key (dict "fieldRef" (dict "fieldPath" $path)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .group.isNode (ne .role "step") -}}
{{- $env = mergeOverwrite $env (include "symph.diEnv" . | fromJson) -}}
{{- end -}}
{{- $user := dict "own" .container "defaults" .model.values.defaults "key" "env" -}}
{{- include "symph.said" $user -}}
{{- range $key, $value := $user.out -}}
{{- $_ := set $env $key (ternary $value (include "symph.scalar" $value) (kindIs "map" $value)) -}}
{{- end -}}
{{- $plain := list -}}
{{- $referring := list -}}
{{- $ours := list -}}
{{- range $key, $value := $env -}}
{{- if kindIs "map" $value -}}
{{- $plain = append $plain (dict "name" $key "valueFrom" $value) -}}
{{- else if and (contains "$(" $value) (hasPrefix "SYMPH_" $key) -}}
{{- $ours = append $ours (dict "name" $key "value" $value) -}}
{{- else if contains "$(" $value -}}
{{- $referring = append $referring (dict "name" $key "value" $value) -}}
{{- else -}}
{{- $plain = append $plain (dict "name" $key "value" $value) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "env" (concat $plain $ours $referring) -}}
{{- end -}}

{{- /* symph.diEnv: what `ditask` reads; of several replicas each adds its index to the rank of the first. */ -}}
{{- define "symph.diEnv" -}}
{{- $node := index .model.nodes .group.name -}}
{{- $values := dict "DI_JOB_ID" (printf "$(DI_JOB_NAMESPACE)/%s-$(SYMPH_RUN)" .model.fullname) "DI_NODES" .model.nodeHosts -}}
{{- $_ := set $values (printf "DI_%s_NODES" (.group.name | upper | replace "-" "_")) $node.hosts -}}
{{- $_ := set $values (ternary "DI_FIRST_RANK" "DI_RANK" (gt .group.replicas 1)) $node.rank -}}
{{- $_ := set $values "DI_JOB_NAMESPACE" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")) -}}
{{- toJson $values -}}
{{- end -}}

{{- /* symph.setResources: a stated default request where there is none; memory is limited to what was asked for. */ -}}
{{- define "symph.setResources" -}}
{{- $own := .container.resources | default dict -}}
{{- $isCleared := and (hasKey .container "resources") (not $own) -}}
{{- $requests := dict -}}
{{- $limits := dict -}}
{{- range $key, $value := $own.requests -}}
{{- $_ := set $requests $key (include "symph.scalar" $value) -}}
{{- if or (eq $key "memory") (contains "/" $key) -}}
{{- $_ := set $limits $key (index $requests $key) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $own.limits -}}
{{- $_ := set $limits $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- /* What it limits itself it asks for, too; what is limited for all is only a bound. */ -}}
{{- if not (or $isCleared (and (hasKey $own "requests") (not $own.requests))) -}}
{{- range $key, $value := .plain.requests -}}
{{- if and (not (hasKey $requests $key)) (not (hasKey $limits $key)) -}}
{{- $_ := set $requests $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (or $isCleared (and (hasKey $own "limits") (not $own.limits))) -}}
{{- range $key, $value := .plain.limits -}}
{{- if not (hasKey $limits $key) -}}
{{- $_ := set $limits $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $resources := dict -}}
{{- with $requests -}}
{{- $_ := set $resources "requests" . -}}
{{- end -}}
{{- with $limits -}}
{{- $_ := set $resources "limits" . -}}
{{- end -}}
{{- with $resources -}}
{{- $_ := set $.into "resources" . -}}
{{- end -}}
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
{{- $volume := .name -}}
{{- $out = append $out (dict "name" $volume "mountPath" "/etc/secrets" "readOnly" true) -}}
{{- range .secret.items -}}
{{- $key := .key -}}
{{- range (include "symph.list" (index $.model.values.secrets.files $key).alsoAt | fromJsonArray) -}}
{{- $out = append $out (dict "name" $volume "mountPath" . "subPath" $key "readOnly" true) -}}
{{- end -}}
{{- end -}}
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
{{- if or (not $file.only) (and (ne $role "step") (has $path (include "symph.list" $file.only | fromJsonArray))) -}}
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
