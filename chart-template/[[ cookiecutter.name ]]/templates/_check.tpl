{{- /* symph.checkDigest: stops an upgrade that would run the values of another version of the experiment. */ -}}
{{- define "symph.checkDigest" -}}
{{- if ne (toString .Values.specDigest) (include "symph.digest" .) -}}
{{- fail (printf "\n\nThe values are those of another version of experiment %s: this chart was made from %s, the values say %v.\nThat is what --reuse-values does, and it would run the old experiment. Use --reset-then-reuse-values, which keeps\nyour own settings over the new experiment, or --reset-values.\n" .Chart.Name (include "symph.digest" .) .Values.specDigest) -}}
{{- end -}}
{{- end -}}

{{- /* symph.checkWorkload: stops combinations of settings that cannot be; takes the values. */ -}}
{{- define "symph.checkWorkload" -}}
{{- $kind := .workload.kind | default "jobs" | toString -}}
{{- $gang := .workload.gang | default "none" | toString -}}
{{- $queue := .workload.queue | default "" | toString -}}
{{- $faults := list -}}
{{- if and (eq $gang "kueue") (not $queue) -}}
{{- $faults = append $faults "workload.queue: gang kueue admits what a queue names: name one" -}}
{{- end -}}
{{- if and $queue (not (has $gang (list "kueue" "volcano"))) (ne $kind "volcano") -}}
{{- $faults = append $faults (printf "workload.queue: a queue is read by gang kueue or volcano, not by %s: choose one, or drop the queue" $gang) -}}
{{- end -}}
{{- if and .workload.queuePriority (ne $gang "kueue") -}}
{{- $faults = append $faults "workload.queuePriority: a priority class of the queue is read by gang kueue alone" -}}
{{- end -}}
{{- if and (eq $gang "native") (not .workload.gangVersion) -}}
{{- $faults = append $faults "workload.gangVersion: gang native needs the version that the cluster serves: v1alpha2 (Kubernetes 1.36) or v1beta1 (1.37)" -}}
{{- end -}}
{{- if and (eq $gang "coscheduling") (not .defaults.schedulerName) -}}
{{- $faults = append $faults "workload.gang: gang coscheduling needs the name of its scheduler: set defaults.schedulerName" -}}
{{- end -}}
{{- if and (eq $kind "volcano") (not (has $gang (list "none" "volcano"))) -}}
{{- $faults = append $faults (printf "workload.gang: kind volcano makes its own gang, which %s would hold back: use volcano or none" $gang) -}}
{{- end -}}
{{- if and (eq $kind "dijob") (or (ne $gang "none") $queue) -}}
{{- $faults = append $faults "workload.gang: a DIJob can be neither queued nor started as a gang: use kind jobset" -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\n%s\n" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}
