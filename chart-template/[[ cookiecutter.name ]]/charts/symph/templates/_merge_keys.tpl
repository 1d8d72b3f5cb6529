{{- /* Written by scripts/merge_keys.py: the keys by which a pod's lists merge; a set has none. */ -}}
{{- define "symph.mergeKeys" -}}
{"containers":"name","env":"name","ephemeralContainers":"name","evictionResponders":"name","finalizers":"","hostAliases":"ip","imagePullSecrets":"name","initContainers":"name","ownerReferences":"uid","ports":"containerPort","resourceClaims":"name","schedulingGates":"name","topologySpreadConstraints":"topologyKey","volumeDevices":"devicePath","volumeMounts":"mountPath","volumes":"name"}
{{- end -}}
