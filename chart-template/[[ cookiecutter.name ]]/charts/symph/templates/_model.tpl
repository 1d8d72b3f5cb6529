{{- /*
symph.load: computes the model of this release once and keeps it as `.symph`, where all templates of the chart find it: names,
live services, addresses, and per group the pod template and the identity of its run. All objects are printed from it.
What fills in a part of the model sets it in place, since a round trip through JSON costs more than all the rest.
*/ -}}
{{- define "symph.load" -}}
{{- if not (hasKey . "symph") -}}
{{- include "symph.checkDigest" . -}}
{{- $values := include "symph.values" . | fromJson -}}
{{- $fullname := include "symph.fullname" . -}}
{{- $model := dict "values" $values "fullname" $fullname "experiment" ($values.experiment | default .Chart.Name) -}}
{{- $_ := set $model "identity" (include "symph.identity" . | fromJson) -}}
{{- $_ := set $model "labels" (include "symph.labels" . | fromJson) -}}
{{- $_ := set $model "annotations" ($values.commonAnnotations | default dict) -}}
{{- $_ := set $model "account" (include "symph.account" $model) -}}
{{- $_ := set $values.defaults "serviceAccountName" ($values.defaults.serviceAccountName | default $model.account) -}}
{{- $_ := set $model "secretName" ($values.secrets.name | default (include "symph.join" (list $fullname "secrets" 63))) -}}
{{- $_ := set $model "kind" ($values.workload.kind | default "jobs" | toString) -}}
{{- $_ := set $model "row" (include "symph.kind" (dict "kinds" (.Files.Get "files/kinds.yaml") "workload" $values.workload) | fromJson) -}}
{{- include "symph.checkWorkload" (dict "model" $model "checks" (required "the chart has lost files/checks.yaml" (.Files.Get "files/checks.yaml"))) -}}
{{- $_ := set $model "scripts" (dict "rank" (.Files.Get "files/scripts/rank.sh") "hold" (.Files.Get "files/scripts/hold.sh") "attempt" (.Files.Get "files/scripts/attempt.sh")) -}}
{{- include "symph.checkSealed" (dict "secrets" $values.secrets "name" $model.secretName "namespace" .Release.Namespace) -}}
{{- include "symph.setGroups" $model -}}
{{- if eq $model.kind "dijob" -}}
{{- include "symph.checkDijob" $model -}}
{{- end -}}
{{- include "symph.setServices" $model -}}
{{- range $name, $group := $model.groups -}}
{{- include "symph.setRestarted" (dict "model" $model "group" $group) -}}
{{- end -}}
{{- include "symph.checkNames" $model -}}
{{- include "symph.setAddresses" $model -}}
{{- include "symph.setNodes" $model -}}
{{- include "symph.setConfigs" $model -}}
{{- include "symph.setPlain" $model -}}
{{- include "symph.setPullSecrets" $model -}}
{{- range $name, $group := $model.groups -}}
{{- include "symph.setPodTemplate" (dict "model" $model "group" $group) -}}
{{- end -}}
{{- $run := include "symph.run" $model -}}
{{- $_ := set $model "run" $run -}}
{{- $_ := set $model "unit" (printf "%s-%s" (include "symph.fit" (list $fullname $model.row.unit)) $run) -}}
{{- range $name, $group := $model.groups -}}
{{- if $group.selector -}}
{{- $_ := set $group "selector" (include "symph.fill" (dict "pattern" (toJson $group.selector) "parts" (dict "run" $run)) | fromJson) -}}
{{- $_ := set $group "template" (include "symph.strip" (dict "template" $group.template "env" (dict "SYMPH_RUN" $run)) | fromJson) -}}
{{- else if not $group.keep -}}
{{- $_ := set $group.template.metadata.labels "symph.dev/run" $run -}}
{{- end -}}
{{- $_ := set $group "workload" ($group.workloadPattern | replace "{run}" $run) -}}
{{- end -}}
{{- range $name, $gang := include "symph.gangs" $model | fromJson -}}
{{- range $gang.groups -}}
{{- $group := index $model.groups . -}}
{{- include "symph.merge" (dict "base" $group.template "over" (include "symph.gangFields" (dict "model" $model "name" $name "template" $group.template) | fromJson)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "symph" $model -}}
{{- end -}}
{{- end -}}

{{- /* symph.account: the service account of the release, the chart's own where it is created; nothing where none is named. */ -}}
{{- define "symph.account" -}}
{{- $own := .values.serviceAccount | default dict -}}
{{- $made := ternary (include "symph.fit" (list .fullname 63)) "" (eq (toString $own.create) "true") -}}
{{- $own.name | default $made -}}
{{- end -}}

{{- /* symph.setGroups: the groups that run (replicas above 0), with what follows from their values. */ -}}
{{- define "symph.setGroups" -}}
{{- $fullname := .fullname -}}
{{- $kind := .row -}}
{{- $unit := include "symph.fit" (list .fullname $kind.unit) -}}
{{- $hasRanks := and (eq (toString .values.compat) "di-engine") (not $kind.selector) -}}
{{- $values := .values -}}
{{- $hasRoles := hasKey $kind "roles" -}}
{{- $isLive := eq (toString $kind.live) "true" -}}
{{- $groups := dict -}}
{{- range $name, $group := .values.groups -}}
{{- $replicas := include "symph.int" (list $group.replicas 1 (printf "groups.%s.replicas" $name)) | int -}}
{{- if gt $replicas 0 -}}
{{- $finite := false -}}
{{- range $process, $container := $group.containers -}}
{{- if ne ($container.lifecycle | default "finite") "service" -}}
{{- $finite = true -}}
{{- end -}}
{{- end -}}
{{- $base := include "symph.join" (list $fullname $name 43) -}}
{{- $inUnit := $finite -}}
{{- if $hasRoles -}}
{{- $inUnit = has $name $kind.roles -}}
{{- end -}}
{{- $member := include "symph.fit" (list $name $kind.member) -}}
{{- $own := dict "name" $name "values" $group "replicas" $replicas "isFinite" $finite "inUnit" $inUnit "base" $base "pods" (printf "%s-pods" $base) "member" $member "listening" dict -}}
{{- if $inUnit -}}
{{- $parts := dict "base" $base "unit" $unit "member" $member -}}
{{- $_ := set $own "workloadPattern" (include "symph.fill" (dict "pattern" $kind.workload "parts" $parts)) -}}
{{- $_ := set $parts "workload" $own.workloadPattern -}}
{{- $_ := set $own "podPattern" (include "symph.fill" (dict "pattern" $kind.pod "parts" $parts)) -}}
{{- $_ := set $own "domainPattern" (include "symph.fill" (dict "pattern" ($kind.domain | default "{base}-pods") "parts" $parts)) -}}
{{- $_ := set $own "index" $kind.index -}}
{{- if $kind.selector -}}
{{- $_ := set $own "selector" (include "symph.fill" (dict "pattern" (toJson $kind.selector) "parts" $parts) | fromJson) -}}
{{- end -}}
{{- else -}}
{{- $own = merge $own (dict "workloadPattern" $base "podPattern" (printf "%s-{index}" $base) "domainPattern" $own.pods "index" "metadata.labels['apps.kubernetes.io/pod-index']") -}}
{{- end -}}
{{- $_ := set $own "isNode" (and $hasRanks $finite) -}}
{{- $_ := set $own "isIndexed" (and $finite (or (gt $replicas 1) $own.isNode)) -}}
{{- $_ := set $own "isLive" (and $inUnit $isLive) -}}
{{- $retries := include "symph.int" (list $group.backoffLimit 0 (printf "groups.%s.backoffLimit" $name)) | int -}}
{{- $_ := set $own "retries" $retries -}}
{{- $_ := set $own "restart" "Always" -}}
{{- if $finite -}}
{{- /* What is never tried again is not restarted in place either. */ -}}
{{- $restart := $group.restartPolicy | default "Never" | toString -}}
{{- if and (eq $restart "OnFailure") (not $retries) -}}
{{- $restart = "Never" -}}
{{- end -}}
{{- $_ := set $own "restart" ((($group.overlay | default dict).spec | default dict).restartPolicy | default $restart | toString) -}}
{{- end -}}
{{- if and $inUnit $kind.failures (eq $own.restart "Never") -}}
{{- $tries := dict -}}
{{- if $retries -}}
{{- $_ := set $tries "SYMPH_FAILURES" $kind.failures -}}
{{- end -}}
{{- if and $kind.restarts (include "symph.int" (list ($values.workload.jobset | default dict).maxRestarts 0 "workload.jobset.maxRestarts") | int) -}}
{{- $_ := set $tries "SYMPH_RESTARTS" $kind.restarts -}}
{{- end -}}
{{- $_ := set $own "tries" $tries -}}
{{- end -}}
{{- $_ := set $own "replacements" (ternary 0 $retries (eq $own.restart "OnFailure")) -}}
{{- $_ := set $own "keep" (not $inUnit) -}}
{{- $_ := set $groups $name $own -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "groups" $groups -}}
{{- end -}}

{{- /*
symph.setServices: the services whose listener runs, with name, port and the hosts of each replica; each group has those of
its processes as `listening`.
*/ -}}
{{- define "symph.setServices" -}}
{{- $model := . -}}
{{- $services := dict -}}
{{- range $name, $service := .values.services -}}
{{- $group := index $model.groups ($service.group | toString) -}}
{{- $process := $service.process | toString -}}
{{- if and $group (hasKey ($group.values.containers | default dict) $process) -}}
{{- $host := include "symph.join" (list $model.fullname $name 63) -}}
{{- $port := include "symph.int" (list $service.port nil (printf "services.%s.port" $name)) | int -}}
{{- $hosts := printf "%s:%d" $host $port -}}
{{- if and (gt $group.replicas 1) $group.podPattern -}}
{{- $hosts = include "symph.hosts" (dict "group" $group "port" (printf ":%d" $port)) -}}
{{- end -}}
{{- $own := dict "name" $name "host" $host "hosts" $hosts "port" $port "group" $service.group "process" $process "prefix" (printf "SYMPH_%s" ($name | upper | replace "-" "_")) "bind" (eq (toString $service.bind) "true") "expose" ($service.expose | default "") "values" $service -}}
{{- if or $group.isLive $group.isIndexed -}}
{{- $_ := set $own "hasRunHosts" true -}}
{{- $_ := set $model "hasRunHosts" true -}}
{{- end -}}
{{- $_ := set $services $name $own -}}
{{- $_ := set $group.listening $process (append (index $group.listening $process | default list) $own) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "services" $services -}}
{{- end -}}

{{- /*
symph.setRestarted (dict "model" "group" "reached"): unsets `keep` of a group of services that begins anew with each run, and of
those that it reaches: what the processes of a run connect to, unless `keep` is true; what is told the pods of a run by name;
and what `keep` is false for. Other services begin anew when they themselves change.
*/ -}}
{{- define "symph.setRestarted" -}}
{{- $model := .model -}}
{{- $said := toString .group.values.keep -}}
{{- $restarts := or .group.inUnit (eq $said "false") (and .reached (ne $said "true")) -}}
{{- $dialled := list -}}
{{- range .group.values.containers -}}
{{- range (include "symph.list" .connects | fromJsonArray) -}}
{{- with (index $model.services .) -}}
{{- $dialled = append $dialled .group -}}
{{- $restarts = or $restarts .hasRunHosts -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $restarts (not .group.isSpread) -}}
{{- $_ := set .group "isSpread" true -}}
{{- $_ := set .group "keep" false -}}
{{- range uniq $dialled -}}
{{- include "symph.setRestarted" (dict "model" $model "group" (index $model.groups .) "reached" true) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* symph.checkNames: stops a name of a pod's own that is that of another Service of the release. */ -}}
{{- define "symph.checkNames" -}}
{{- $taken := dict -}}
{{- range .services -}}
{{- $_ := set $taken .host true -}}
{{- end -}}
{{- range .groups -}}
{{- $_ := set $taken .pods true -}}
{{- end -}}
{{- range $group, $own := .groups -}}
{{- range $own.values.names -}}
{{- if hasKey $taken . -}}
{{- fail (printf "groups.%s.names: another Service of the release is called %s" $group .) -}}
{{- end -}}
{{- $_ := set $taken . true -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* symph.hosts (dict "group" "port"): the addresses of a group's replicas by index, each with `port` behind it. */ -}}
{{- define "symph.hosts" -}}
{{- /* Written as they come: a list that grows is copied for each of them. */ -}}
{{- $pattern := printf "%s.%s%s" .group.podPattern .group.domainPattern .port | replace "{run}" "$(SYMPH_RUN)" -}}
{{- range $index := until .group.replicas -}}
{{- ternary "," "" (gt $index 0) -}}{{- $pattern | replace "{index}" (toString $index) -}}
{{- end -}}
{{- end -}}

{{- /*
symph.setNodes: the groups whose replicas are told their ranks, in order of them, each with its first rank and its hosts; those
of type `none` have the hosts of them all, as tasks of a DIJob do.
*/ -}}
{{- define "symph.setNodes" -}}
{{- $nodes := dict -}}
{{- $rank := 0 -}}
{{- $all := list -}}
{{- $untyped := list -}}
{{- $own := .values.workload.dijob | default dict -}}
{{- range $name := (include "symph.ordered" (dict "map" .groups "order" .values.workload.order) | fromJsonArray) -}}
{{- $group := index $.groups $name -}}
{{- if $group.isNode -}}
{{- $hosts := include "symph.hosts" (dict "group" $group "port" "") -}}
{{- $_ := set $nodes $name (dict "rank" (toString $rank) "hosts" $hosts) -}}
{{- $rank = add $rank $group.replicas -}}
{{- $all = append $all $hosts -}}
{{- if eq (include "symph.dijobType" (dict "own" $own "name" $name)) "none" -}}
{{- $untyped = append $untyped $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $theirs := list -}}
{{- range $untyped -}}
{{- $theirs = append $theirs (index $nodes .).hosts -}}
{{- end -}}
{{- range $untyped -}}
{{- $_ := set (index $nodes .) "hosts" (join "," $theirs) -}}
{{- end -}}
{{- $_ := set . "nodes" $nodes -}}
{{- $_ := set . "nodeHosts" (join "," $all) -}}
{{- end -}}

{{- /* symph.setAddresses: what every process finds about every service; HOSTS come as env entries of who dials or listens. */ -}}
{{- define "symph.setAddresses" -}}
{{- $data := dict -}}
{{- range $name, $service := .services -}}
{{- $port := toString $service.port -}}
{{- $_ := set $data (printf "%s_HOST" $service.prefix) $service.host -}}
{{- $_ := set $data (printf "%s_PORT" $service.prefix) $port -}}
{{- $_ := set $data (printf "%s_ADDR" $service.prefix) (printf "%s:%s" $service.host $port) -}}
{{- end -}}
{{- if $data -}}
{{- $_ := set . "addresses" (dict "name" (include "symph.join" (list .fullname (printf "addresses-%s" (toJson $data | sha256sum | trunc 8)) 63)) "data" $data) -}}
{{- end -}}
{{- end -}}

{{- /* symph.setPlain: the texts of what every pod and container gets, once for all of them. */ -}}
{{- define "symph.setPlain" -}}
{{- $defaults := .values.defaults -}}
{{- $resources := $defaults.resources | default dict -}}
{{- $plain := dict -}}
{{- range $key, $map := dict "labels" .values.labels "annotations" .values.annotations "nodeSelector" $defaults.nodeSelector "requests" $resources.requests "limits" $resources.limits -}}
{{- $_ := set $plain $key (include "symph.strings" $map | fromJson) -}}
{{- end -}}
{{- $_ := set . "plain" $plain -}}
{{- end -}}

{{- /*
symph.strip (dict "template" "env" "drop"): a pod template without metadata, and with these variables of its containers left
out, or filled in where they are empty.
*/ -}}
{{- define "symph.strip" -}}
{{- $spec := deepCopy .template.spec -}}
{{- range $key := list "initContainers" "containers" -}}
{{- range (index $spec $key) -}}
{{- $env := list -}}
{{- range .env -}}
{{- if and (hasKey $.env .name) (not $.drop) (eq (.value | default "") "") (not .valueFrom) -}}
{{- $_ := set . "value" (index $.env .name) -}}
{{- end -}}
{{- if not (and $.drop (hasKey $.env .name)) -}}
{{- $env = append $env . -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "env" $env -}}
{{- end -}}
{{- end -}}
{{- dict "spec" $spec | toJson -}}
{{- end -}}

{{- /* symph.setConfigs: the configuration files as one ConfigMap, and how they are mounted. */ -}}
{{- define "symph.setConfigs" -}}
{{- $data := dict -}}
{{- $binary := dict -}}
{{- $items := list -}}
{{- range $name, $file := .values.configs -}}
{{- $item := dict "key" $name "path" $name -}}
{{- if not (kindIs "invalid" $file.mode) -}}
{{- $_ := set $item "mode" (include "symph.int" (list $file.mode nil (printf "configs.%s.mode" $name)) | int) -}}
{{- end -}}
{{- $items = append $items $item -}}
{{- if hasKey $file "base64" -}}
{{- $_ := set $binary $name $file.base64 -}}
{{- else -}}
{{- $_ := set $data $name (include "symph.scalar" ($file.text | default "")) -}}
{{- end -}}
{{- end -}}
{{- if $items -}}
{{- $content := dict "data" $data "binaryData" $binary -}}
{{- $name := include "symph.join" (list .fullname (printf "config-%s" (toJson $content | sha256sum | trunc 8)) 63) -}}
{{- $_ := set . "configs" (dict "name" $name "items" $items "data" $data "binaryData" $binary) -}}
{{- end -}}
{{- end -}}

{{- /*
symph.run: eight hex digits that change whenever a field changes that Kubernetes does not let change in the objects of the
kind, in any group of the run or in its own settings, or runKey, or how many pods a gang needs. The pod templates enter without the label of the run
and their gang, which would make the hash circular.
*/ -}}
{{- define "symph.run" -}}
{{- $groups := dict -}}
{{- $kind := .row -}}
{{- $moving := dict -}}
{{- range $name, $service := .services -}}
{{- if (index $.groups $service.group).isLive -}}
{{- $_ := set $moving (printf "%s_HOSTS" .prefix) "" -}}
{{- end -}}
{{- end -}}
{{- range $name, $group := .groups -}}
{{- if not $group.keep -}}
{{- $template := $group.template -}}
{{- $dropped := ternary (merge (dict "SYMPH_REPLICAS" "") $moving) $moving $group.isLive -}}
{{- if or $dropped $group.selector -}}
{{- $template = include "symph.strip" (dict "template" $template "env" $dropped "drop" true) | fromJson -}}
{{- if not $group.selector -}}
{{- $_ := set $template "metadata" $group.template.metadata -}}
{{- end -}}
{{- end -}}
{{- $fields := dict "isFinite" $group.isFinite "template" $template -}}
{{- if $group.inUnit -}}
{{- include "symph.setJobFields" $group -}}
{{- $job := $group.fields -}}
{{- if hasKey $kind "fixed" -}}
{{- $fixed := dict -}}
{{- range $kind.fixed -}}
{{- if hasKey $job . -}}
{{- $_ := set $fixed . (index $job .) -}}
{{- end -}}
{{- end -}}
{{- $job = $fixed -}}
{{- end -}}
{{- $_ := set $fields "job" $job -}}
{{- end -}}
{{- $_ := set $groups $name $fields -}}
{{- end -}}
{{- end -}}
{{- $key := "" -}}
{{- if not (kindIs "invalid" .values.runKey) -}}
{{- $key = include "symph.scalar" .values.runKey -}}
{{- end -}}
{{- $covered := dict "groups" $groups "runKey" $key -}}
{{- if $kind.whole -}}
{{- $_ := set $covered "done" (include "symph.doneGroups" . | fromJsonArray) -}}
{{- /* Pods of one kind must not be taken for those of the next while they go. */ -}}
{{- $_ := set $covered "kind" (toString .values.workload.kind) -}}
{{- end -}}
{{- if $kind.settings -}}
{{- $settings := dict -}}
{{- range $kind.settings -}}
{{- if hasKey $.values.workload . -}}
{{- $_ := set $settings . (index $.values.workload .) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $covered "settings" $settings -}}
{{- end -}}
{{- with (include "symph.gangMembers" . | fromJson) -}}
{{- $_ := set $covered "gang" (dict "settings" (pick $.values.workload "gang" "gangScope" "gangTopology" "gangVersion") "minimum" .) -}}
{{- end -}}
{{- $covered | toJson | sha256sum | trunc 8 -}}
{{- end -}}
