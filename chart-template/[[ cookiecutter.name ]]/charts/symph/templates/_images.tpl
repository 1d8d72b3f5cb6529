{{- /* Where images come from, and what they are pulled with. */ -}}

{{- /* symph.image (dict "model" "image"): an image as one text, from the registry of all images where there is one. */ -}}
{{- define "symph.image" -}}
{{- $text := "" -}}
{{- if kindIs "map" .image -}}
{{- $image := .image -}}
{{- range $part := list (list "registry" "%s/") (list "repository" "%s") (list "tag" ":%s") (list "digest" "@%s") -}}
{{- $said := index $image (first $part) -}}
{{- if not (or (kindIs "invalid" $said) (eq (toString $said) "")) -}}
{{- $text = print $text (printf (last $part) (include "symph.scalar" $said)) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $text = include "symph.scalar" .image -}}
{{- end -}}
{{- with (.model.values.global | default dict).imageRegistry -}}
{{- $host := first (splitList "/" $text) -}}
{{- if and (contains "/" $text) (or (contains "." $host) (contains ":" $host) (eq $host "localhost")) -}}
{{- $text = trimPrefix (print $host "/") $text -}}
{{- end -}}
{{- $text = printf "%s/%s" . $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- /* symph.setPullSecrets: the Secrets that all images are pulled with, those of a parent chart first, each once. */ -}}
{{- define "symph.setPullSecrets" -}}
{{- $names := list -}}
{{- range $said := list (.values.global | default dict).imagePullSecrets .values.defaults.imagePullSecrets -}}
{{- range $item := (ternary $said (list $said) (kindIs "slice" $said)) -}}
{{- if kindIs "map" $item -}}
{{- $names = append $names (include "symph.scalar" $item.name) | uniq -}}
{{- else if not (kindIs "invalid" $item) -}}
{{- $names = append $names (include "symph.scalar" $item) | uniq -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $secrets := list -}}
{{- range $names -}}
{{- $secrets = append $secrets (dict "name" .) -}}
{{- end -}}
{{- $_ := set . "pullSecrets" $secrets -}}
{{- end -}}
