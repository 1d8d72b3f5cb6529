{{- /* symph.checkDigest: stops an upgrade that would run the values of another version of the experiment. */ -}}
{{- define "symph.checkDigest" -}}
{{- $made := index (.Chart.Annotations | default dict) "symph.dev/spec-digest" | toString -}}
{{- if ne (toString .Values.specDigest) $made -}}
{{- fail (printf "\n\nThe values are those of another version of experiment %s: this chart was made from %s, the values say %v.\nThat is what --reuse-values does, and it would run the old experiment. Use --reset-then-reuse-values, which keeps\nyour own settings over the new experiment, or --reset-values.\n" .Chart.Name $made .Values.specDigest) -}}
{{- end -}}
{{- end -}}

{{- /* symph.checkWorkload (dict "model" "checks"): stops settings that do not go together, by files/checks.yaml and the kind. */ -}}
{{- define "symph.checkWorkload" -}}
{{- $row := .model.row -}}
{{- $workload := .model.values.workload -}}
{{- $facts := dict "kind" .model.kind "gang" ($workload.gang | default "none" | toString) "ownQueue" (toString $row.queues) -}}
{{- range $fact := list "gangVersion" "queue" "queuePriority" -}}
{{- $_ := set $facts $fact (index $workload $fact | default "" | toString) -}}
{{- end -}}
{{- $_ := set $facts "scheduler" (.model.values.defaults.schedulerName | default "" | toString) -}}
{{- $faults := list -}}
{{- range $check := concat (fromYamlArray .checks) ($row.checks | default list) -}}
{{- $isFault := eq (include "symph.isSo" (dict "facts" $facts "wanted" ($check.when | default dict))) "true" -}}
{{- range $check.unless -}}
{{- $isFault = and $isFault (ne (include "symph.isSo" (dict "facts" $facts "wanted" .)) "true") -}}
{{- end -}}
{{- if $isFault -}}
{{- $faults = append $faults (printf "%s: %s" $check.path (include "symph.fill" (dict "pattern" $check.says "parts" $facts))) -}}
{{- end -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\n%s\n" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}

{{- /* symph.isSo (dict "facts" "wanted"): "true" if every fact that is wanted has one of the values. */ -}}
{{- define "symph.isSo" -}}
{{- $isSo := true -}}
{{- range $fact, $values := .wanted -}}
{{- $isSo = and $isSo (has (index $.facts $fact) $values) -}}
{{- end -}}
{{- $isSo -}}
{{- end -}}

{{- /*
symph.checkSealed (dict "secrets" "name" "namespace"): stops a release whose Secret is to be sealed where values are not,
or were sealed for another one; its pods would wait for ever.
*/ -}}
{{- define "symph.checkSealed" -}}
{{- if eq (.secrets.source | toString) "sealed" -}}
{{- $step := printf "symph secrets seal SPEC -n %s --cert cluster > sealed.yaml, then -f sealed.yaml" .namespace -}}
{{- $sealed := .secrets.encryptedData | default dict -}}
{{- $lacking := list -}}
{{- if or $sealed (not .secrets.name) -}}
{{- range $key, $file := .secrets.files -}}
{{- if not (index $sealed $key) -}}
{{- $lacking = append $lacking $key -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $lacking -}}
{{- fail (printf "\n\nsecrets.encryptedData: nothing is sealed for %s\n%s\n" (join ", " $lacking) $step) -}}
{{- end -}}
{{- $scope := .secrets.scope | default "strict" -}}
{{- $own := ternary (printf "%s/%s" .namespace .name) (ternary .namespace "" (eq $scope "namespace-wide")) (eq $scope "strict") -}}
{{- $said := .secrets.sealedFor | default "" -}}
{{- if and $said $own (ne $said $own) -}}
{{- fail (printf "\n\nsecrets.sealedFor: what is sealed opens as %s alone, and this is %s\n%s\n" $said $own $step) -}}
{{- end -}}
{{- end -}}
{{- end -}}
