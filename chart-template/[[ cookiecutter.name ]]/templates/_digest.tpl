{{- /* The one template that is not the same in every chart: the digest of the experiment that it was made from. */ -}}
{{- define "symph.digest" -}}
[[ cookiecutter._spec_digest ]]
{{- end -}}
