{{- /* Values as the other templates read them: no nulls, whole numbers as numbers, every top-level map there. */ -}}

{{- define "symph.values" -}}
{{- $json := toJson .Values -}}
{{- $values := fromJson $json -}}
{{- /* Most values hold no null, and walking through them all costs more than looking for the word. */ -}}
{{- if or (contains ":null" $json) (contains ",null" $json) (contains "[null" $json) -}}
{{- include "symph.prune" (dict "map" $values "path" "values") -}}
{{- end -}}
{{- range list "configs" "defaults" "groups" "networkPolicy" "secrets" "services" "tests" "workload" -}}
{{- if not (hasKey $values .) -}}
{{- $_ := set $values . dict -}}
{{- end -}}
{{- end -}}
{{- toJson $values -}}
{{- end -}}

{{- /* symph.prune: drops nulls from a map and all below it, in place; a null in a list is a mistake and fails. */ -}}
{{- define "symph.prune" -}}
{{- $map := .map -}}
{{- $path := .path -}}
{{- range $key, $value := $map -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $map $key -}}
{{- else if kindIs "map" $value -}}
{{- include "symph.prune" (dict "map" $value "path" (printf "%s.%s" $path $key)) -}}
{{- else if kindIs "slice" $value -}}
{{- include "symph.pruneList" (dict "list" $value "path" (printf "%s.%s" $path $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "symph.pruneList" -}}
{{- $path := .path -}}
{{- range $index, $value := .list -}}
{{- if kindIs "invalid" $value -}}
{{- fail (printf "%s[%d] is null: give the whole list" $path $index) -}}
{{- else if kindIs "map" $value -}}
{{- include "symph.prune" (dict "map" $value "path" (printf "%s[%d]" $path $index)) -}}
{{- else if kindIs "slice" $value -}}
{{- include "symph.pruneList" (dict "list" $value "path" (printf "%s[%d]" $path $index)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
symph.json: a value as indented JSON, which readers of YAML take back unchanged whatever text is in it. It stays readable:
no more is escaped than has to be. The two code points are those that JSON takes as they are and YAML does not.
*/ -}}
{{- define "symph.json" -}}
{{- toPrettyJson . | replace "\\\\" "\x00" | replace "\\u0026" "&" | replace "\\u003c" "<" | replace "\\u003e" ">" | replace "\x00" "\\\\" | replace "\ufffe" "\\ufffe" | replace "\uffff" "\\uffff" -}}
{{- end -}}

{{- /* symph.entries: the entries of a map as lines, to be indented where they stand. */ -}}
{{- define "symph.entries" -}}
{{- range $key, $value := . }}
{{- if kindIs "string" $value }}
{{ $key | quote }}: {{ $value | quote }}
{{- else if or (kindIs "map" $value) (kindIs "slice" $value) }}
{{ $key | quote }}:
  {{- include "symph.json" $value | nindent 2 }}
{{- else }}
{{ $key | quote }}: {{ toJson $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* symph.scalar: the text of a string, number or boolean; numbers never as 1e+07. */ -}}
{{- define "symph.scalar" -}}
{{- if kindIs "string" . -}}
{{- . -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{- /* symph.int (list value default what): a whole number, given as a number or as its digits. */ -}}
{{- define "symph.int" -}}
{{- $value := index . 0 -}}
{{- if kindIs "invalid" $value -}}
{{- index . 1 -}}
{{- else -}}
{{- $text := include "symph.scalar" $value -}}
{{- if or (ne (int64 $text | toString) $text) (hasPrefix "-" $text) (gt (len $text) 10) -}}
{{- fail (printf "%s must be a whole number, not %s" (index . 2) $text) -}}
{{- end -}}
{{- int64 $text -}}
{{- end -}}
{{- end -}}

{{- /* symph.list: a list of strings as JSON; a lone string is a list of one. */ -}}
{{- define "symph.list" -}}
{{- $out := list -}}
{{- if kindIs "slice" . -}}
{{- range . -}}
{{- $out = append $out (include "symph.scalar" .) -}}
{{- end -}}
{{- else if not (kindIs "invalid" .) -}}
{{- $out = append $out (include "symph.scalar" .) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.strings: a map with the text of each value, as JSON. */ -}}
{{- define "symph.strings" -}}
{{- $out := dict -}}
{{- range $key, $value := . -}}
{{- $_ := set $out $key (include "symph.scalar" $value) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /* symph.ordered (dict "map" "order"): the keys of a map as JSON, those of `order` first, the rest sorted. */ -}}
{{- define "symph.ordered" -}}
{{- $map := .map -}}
{{- $out := list -}}
{{- range .order -}}
{{- if and (hasKey $map .) (not (has . $out)) -}}
{{- $out = append $out . -}}
{{- end -}}
{{- end -}}
{{- range (keys $map | sortAlpha) -}}
{{- if not (has . $out) -}}
{{- $out = append $out . -}}
{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- /*
symph.merge (dict "base" "over"): Kubernetes' strategic merge, in place. Maps merge, lists with a merge key merge item by
item with what is new last, all else is replaced. `keys` is the table of merge keys, handed down.
*/ -}}
{{- define "symph.merge" -}}
{{- $base := .base -}}
{{- $keys := .keys -}}
{{- if and .over (not $keys) -}}
{{- $keys = include "symph.mergeKeys" . | fromJson -}}
{{- end -}}
{{- range $field, $over := .over -}}
{{- $old := index $base $field -}}
{{- $key := "-" -}}
{{- if and (hasKey $keys $field) (kindIs "slice" $over) (kindIs "slice" $old) -}}
{{- $key = index $keys $field -}}
{{- end -}}
{{- if and (kindIs "map" $over) (kindIs "map" $old) -}}
{{- include "symph.merge" (dict "base" $old "over" $over "keys" $keys) -}}
{{- else if and (eq $key "") (include "symph.arePlain" $over) (include "symph.arePlain" $old) -}}
{{- $_ := set $base $field (concat $old $over | uniq) -}}
{{- else if and (ne $key "-") (ne $key "") (include "symph.areKeyed" (list $over $key)) (include "symph.areKeyed" (list $old $key)) -}}
{{- include "symph.mergeList" (dict "into" $base "field" $field "over" $over "key" $key "keys" $keys) -}}
{{- else -}}
{{- $_ := set $base $field $over -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "symph.mergeList" -}}
{{- $items := index .into .field -}}
{{- range $item := .over -}}
{{- $isNew := true -}}
{{- range $old := $items -}}
{{- if and $isNew (eq (toJson (index $old $.key)) (toJson (index $item $.key))) -}}
{{- $isNew = false -}}
{{- include "symph.merge" (dict "base" $old "over" $item "keys" $.keys) -}}
{{- end -}}
{{- end -}}
{{- if $isNew -}}
{{- $items = append $items $item -}}
{{- end -}}
{{- end -}}
{{- $_ := set .into .field $items -}}
{{- end -}}

{{- /*
symph.said (dict "own" "defaults" "key" "ownKey"): sets `out` to what a group or container says under a key, else to the
default. What is said counts even where it is empty: false, "", [] and {} take the default away. Other maps merge into it.
*/ -}}
{{- define "symph.said" -}}
{{- $key := .ownKey | default .key -}}
{{- $default := index (.defaults | default dict) .key -}}
{{- $out := $default -}}
{{- if hasKey .own $key -}}
{{- $out = index .own $key -}}
{{- if and $out $default (kindIs "map" $out) (kindIs "map" $default) -}}
{{- $own := $out -}}
{{- $out = deepCopy $default -}}
{{- include "symph.merge" (dict "base" $out "over" $own) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "out" $out -}}
{{- end -}}

{{- /* symph.areKeyed (list items key): "true" for a list whose items all are maps with a text or a number at `key`. */ -}}
{{- define "symph.areKeyed" -}}
{{- $key := index . 1 -}}
{{- $keyed := true -}}
{{- range index . 0 -}}
{{- if not (kindIs "map" .) -}}
{{- $keyed = false -}}
{{- else if not (has (kindOf (index . $key)) (list "string" "float64" "int" "int64")) -}}
{{- $keyed = false -}}
{{- end -}}
{{- end -}}
{{- if $keyed -}}true{{- end -}}
{{- end -}}

{{- /* symph.arePlain: "true" for a list of nothing but text. */ -}}
{{- define "symph.arePlain" -}}
{{- $plain := true -}}
{{- range . -}}
{{- if not (kindIs "string" .) -}}
{{- $plain = false -}}
{{- end -}}
{{- end -}}
{{- if $plain -}}true{{- end -}}
{{- end -}}
