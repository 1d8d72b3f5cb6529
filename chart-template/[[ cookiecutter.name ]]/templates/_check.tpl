{{- /* symph.checkDigest: stops an upgrade that would run the values of another version of the experiment. */ -}}
{{- define "symph.checkDigest" -}}
{{- if ne (toString .Values.specDigest) (include "symph.digest" .) -}}
{{- fail (printf "\n\nThe values are those of another version of experiment %s: this chart was made from %s, the values say %v.\nThat is what --reuse-values does, and it would run the old experiment. Use --reset-then-reuse-values, which keeps\nyour own settings over the new experiment, or --reset-values.\n" .Chart.Name (include "symph.digest" .) .Values.specDigest) -}}
{{- end -}}
{{- end -}}
