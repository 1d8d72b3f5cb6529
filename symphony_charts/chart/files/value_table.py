"""The table holds every value of a chart: where it stands, its type, its meaning, and what holds where nothing is said.

Schema, README and the comments of values.yaml are made of it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["FIELDS", "NAMES", "REQUIRED", "TOP", "Field", "Kind"]

Kind = Literal[
    "annotations",
    "bool",
    "count",
    "env",
    "gateway",
    "host",
    "hostNames",
    "image",
    "integer",
    "labelKey",
    "labelText",
    "labels",
    "mode",
    "mountPath",
    "name",
    "nameStart",
    "object",
    "objects",
    "path",
    "port",
    "pullSecrets",
    "quantities",
    "ranges",
    "scalar",
    "signed",
    "strings",
    "text",
    "texts",
    "words",
]


class Field(NamedTuple):
    """One value; ``*`` in its path stands for a name that the experiment gives.

    `default` is what the templates take where nobody says it.
    """

    path: str
    kind: Kind
    meaning: str
    default: str = ""


# The sections of values.yaml, in their order.
TOP: dict[str, str] = {
    "experiment": "The name that processes and labels know the experiment by.",
    "groups": "The pods, keyed by name: how many, what runs in them, where. A group with 0 replicas is left out.",
    "services": "The ports that processes listen on, keyed by name; addresses in the environment follow from them.",
    "configs": "Configuration files, keyed by name; they stand in /etc/symph/config of every process.",
    "secrets": "The Secret whose keys stand as files in /etc/secrets; never its content in the clear.",
    "doneWhen": "The processes whose success ends the experiment, as group/process; empty: all that end by themselves.",
    "runKey": "Change it to run the same experiment again.",
    "hold": "Keep processes that succeeded up, listening on their ports; for tests of the chart.",
    "labels": "Labels of every object and pod.",
    "annotations": "Annotations of every pod.",
    "networks": "Further networks of every pod (Multus).",
    "commonLabels": "Labels of every object, but of no pod.",
    "commonAnnotations": "Annotations of every object, but of no pod.",
    "serviceAccount": "The service account of the pods, which the chart can create.",
    "networkPolicy": "Let in only the connections that the experiment declares.",
    "defaults": "What every pod and container gets unless its own values say otherwise.",
    "workload": "How the experiment is queued.",
    "compat": "di-engine: every process that ends finds its rank and its peers (DI_RANK, DI_NODES), as in a DIJob.",
    "tests": "The pod that `helm test` starts; it dials every bound service.",
    "nameOverride": "Replaces the chart's name in names and labels.",
    "fullnameOverride": "Replaces what all names start with.",
    "extra": "Free for your own templates (templates/extra-*).",
    "global": "Shared with a parent chart.",
    "specDigest": "Which version of the experiment these values belong to; never set it.",
}

_PROGRAM = (
    ("image", "image", "A text, or a map of registry, repository, tag and digest; empty: defaults.image."),
    ("imagePullPolicy", "text", "Always, IfNotPresent or Never."),
    ("command", "texts", "The entry point, in place of the image's own."),
    ("args", "texts", "Its arguments; a lone string is one argument."),
    ("workingDir", "path", "The folder it starts in."),
    ("env", "env", "Environment variables: text, or a Kubernetes `valueFrom`."),
    ("resources.requests", "quantities", "What it asks for; memory asked for is its limit too unless one is given."),
    ("resources.limits", "quantities", "What it may use at most; GPUs stand here."),
    ("mounts.*.mountPath", "mountPath", "Where a volume of the group is seen."),
    ("mounts.*.volume", "text", "The volume, when the mount is not named after it."),
    ("mounts.*.readOnly", "bool", "Whether it can only be read.", "false"),
    ("mounts.*.subPath", "text", "The part of the volume that is seen."),
    ("envFrom", "objects", "Kubernetes' sources of further variables."),
    ("securityContext", "object", "Merged into defaults.securityContext."),
    ("overlay", "object", "Merged into the finished container."),
)

_POD = (
    ("replicas", "count", "How many pods; each knows its number as SYMPH_INDEX.", "1"),
    ("minReplicas", "count", "How many of them a gang starts with; all where it is not said."),
    ("order", "words", "The order of the containers; those not listed follow by name."),
    ("initOrder", "words", "The order of the init containers."),
    ("restartPolicy", "text", "Of a pod that ends: Never (a new pod is tried) or OnFailure (in place).", "Never"),
    ("backoffLimit", "integer", "How often each replica is tried again; an evicted pod has not failed.", "0"),
    ("activeDeadlineSeconds", "integer", "After how many seconds a pod that has not ended fails."),
    ("terminationGracePeriodSeconds", "integer", "Seconds between TERM and KILL.", "30"),
    (
        "names",
        "hostNames",
        "Names of Services, as they stand, that lead to the pods besides; nobody else may have them.",
    ),
    (
        "keep",
        "bool",
        "Whether pods of services outlive a run; without it those do to which no process of the run connects.",
    ),
    ("labels", "labels", "Labels of the pods."),
    ("annotations", "annotations", "Annotations of the pods."),
    ("nodeSelector", "labels", "Labels that a node must have."),
    ("tolerations", "objects", "Taints that the pods bear."),
    ("affinity", "object", "Kubernetes' affinity."),
    ("topologySpreadConstraints", "objects", "Kubernetes' topology spread constraints."),
    ("serviceAccountName", "name", "The service account."),
    ("automountServiceAccountToken", "bool", "Whether the pods get its token."),
    ("priorityClassName", "name", "The priority class."),
    ("schedulerName", "name", "The scheduler."),
    ("securityContext", "object", "Merged into defaults.podSecurityContext."),
    ("volumes.*", "object", "A volume of the pods, as Kubernetes writes its source."),
    ("overlay", "object", "Merged into the finished pod: metadata and spec."),
)

_MAIN = (
    ("lifecycle", "text", "finite: it ends by itself; service: it runs until the experiment ends.", "finite"),
    ("connects", "texts", "The services it dials; the network policy lets exactly these through."),
    ("readinessProbe", "object", "Kubernetes' probe; a port may be the name of a service."),
    ("livenessProbe", "object", "The same; a process that fails it is started again."),
    ("startupProbe", "object", "The same; the other probes wait for it."),
    ("lifecycleHooks", "object", "Kubernetes' postStart and preStop."),
)

FIELDS: tuple[Field, ...] = (
    Field("experiment", "text", TOP["experiment"]),
    *(Field(f"groups.*.{path}", *rest) for path, *rest in _POD),  # type: ignore[arg-type]  # Kind
    *(Field(f"groups.*.containers.*.{path}", *rest) for path, *rest in (*_PROGRAM, *_MAIN)),  # type: ignore[arg-type]  # Kind
    *(Field(f"groups.*.initContainers.*.{path}", *rest) for path, *rest in _PROGRAM),  # type: ignore[arg-type]  # Kind
    Field("services.*.group", "text", "The group that listens."),
    Field("services.*.process", "text", "The process in it that listens."),
    Field("services.*.port", "port", "The port, the same inside and outside of the pod."),
    Field("services.*.bind", "bool", "Whether other processes dial it.", "false"),
    Field("services.*.expose", "text", "LoadBalancer, NodePort, ClusterIP, Ingress or Gateway; empty: not exposed."),
    Field("services.*.host", "host", "The host name at an Ingress or Gateway."),
    Field("services.*.className", "name", "The class of an Ingress."),
    Field("services.*.path", "path", "The path at an Ingress or Gateway.", "/"),
    Field(
        "services.*.pathType", "text", "How an Ingress compares it: Prefix, Exact or ImplementationSpecific.", "Prefix"
    ),
    Field("services.*.tls", "objects", "Kubernetes' TLS of an Ingress: hosts and secretName."),
    Field("services.*.nodePort", "port", "The port of the nodes of a NodePort or LoadBalancer."),
    Field("services.*.externalTrafficPolicy", "text", "Cluster or Local: whether traffic may change nodes."),
    Field(
        "services.*.loadBalancerClass", "labelText", "What makes a load balancer other than the cluster's usual one."
    ),
    Field("services.*.gateway", "gateway", "The Gateway, as name or namespace/name."),
    Field("services.*.sourceRanges", "ranges", "Addresses that a load balancer lets in; empty: the whole world."),
    Field("services.*.annotations", "annotations", "Annotations of what exposes it."),
    Field("configs.*.text", "text", "Its content."),
    Field("configs.*.base64", "text", "Its content when it is not text."),
    Field("configs.*.mode", "mode", "Its mode as a decimal number (420 is 0644).", "420"),
    Field("secrets.name", "name", "The Secret; empty: <full name>-secrets."),
    Field(
        "secrets.source",
        "text",
        "existing: made apart from the chart; sealed, external: made by the chart.",
        "existing",
    ),
    Field(
        "secrets.scope", "text", "What sealed values are bound to: strict, namespace-wide or cluster-wide.", "strict"
    ),
    Field("secrets.encryptedData", "strings", "Sealed values by key; `symph secrets seal` makes them."),
    Field("secrets.sealedFor", "text", "What they open as: namespace/Secret, or the namespace; empty: not compared."),
    Field("secrets.store.name", "name", "The SecretStore that external values come from."),
    Field("secrets.store.isCluster", "bool", "Whether it is a ClusterSecretStore.", "false"),
    Field("secrets.refreshInterval", "text", "After how long external values are read again.", "1h"),
    Field("secrets.files.*.remote", "text", "Where the store holds it, as name or name#property; empty: the key."),
    Field("secrets.files.*.alsoAt", "texts", "Further paths at which the key is seen, as a file."),
    Field("secrets.files.*.only", "texts", "The processes that see the key, as group/process; empty: all."),
    Field("doneWhen", "words", TOP["doneWhen"]),
    Field("runKey", "scalar", TOP["runKey"]),
    Field("hold", "bool", TOP["hold"], "false"),
    Field("labels", "labels", TOP["labels"]),
    Field("annotations", "annotations", TOP["annotations"]),
    Field("networks", "texts", TOP["networks"]),
    Field("commonLabels", "labels", TOP["commonLabels"]),
    Field("commonAnnotations", "annotations", TOP["commonAnnotations"]),
    Field("serviceAccount.create", "bool", "Whether the chart creates it.", "false"),
    Field("serviceAccount.name", "name", "Its name; empty: that of the release where it is created, else none."),
    Field("serviceAccount.annotations", "annotations", "Its annotations, as of a cloud's workload identity."),
    Field("networkPolicy.enabled", "bool", TOP["networkPolicy"], "false"),
    Field("networkPolicy.egress", "bool", "Let out only to them and to DNS, too.", "false"),
    Field("networkPolicy.egressRules", "objects", "What pods may dial besides, as Kubernetes writes egress rules."),
    Field("defaults.image", "image", "The image of every container that names none."),
    Field("defaults.imagePullPolicy", "text", "Always, IfNotPresent or Never; empty: as Kubernetes decides."),
    Field(
        "defaults.imagePullSecrets", "pullSecrets", "Secrets that images are pulled with, as texts or as {name: ...}."
    ),
    Field("defaults.resources.requests", "quantities", "Asked for where a container says nothing."),
    Field("defaults.resources.limits", "quantities", "Limits where a container says nothing."),
    Field("defaults.env", "env", "Environment variables of every process."),
    Field("defaults.nodeSelector", "labels", "Labels that every node must have."),
    Field("defaults.tolerations", "objects", "Taints that every pod bears."),
    Field("defaults.affinity", "object", "Kubernetes' affinity of every pod."),
    Field("defaults.topologySpreadConstraints", "objects", "Kubernetes' topology spread constraints of every pod."),
    Field("defaults.terminationGracePeriodSeconds", "integer", "Seconds between TERM and KILL."),
    Field(
        "defaults.automountServiceAccountToken", "bool", "Whether pods get the token of their service account.", "false"
    ),
    Field("defaults.serviceAccountName", "name", "The service account of every pod."),
    Field("defaults.priorityClassName", "name", "The priority class of every pod."),
    Field("defaults.schedulerName", "name", "The scheduler of every pod."),
    Field("defaults.securityContext", "object", "The security context of every container."),
    Field("defaults.podSecurityContext", "object", "The security context of every pod."),
    Field("workload.kind", "text", "What runs the processes that end.", "jobs"),
    Field("workload.gang", "text", "What starts the pods together or not at all.", "none"),
    Field(
        "workload.gangScope",
        "text",
        "Whose pods one gang has: those of the experiment, or of each group.",
        "experiment",
    ),
    Field("workload.gangVersion", "text", "The version of scheduling.k8s.io for the gang `native`."),
    Field("workload.gangTopology", "text", "A label of nodes: a gang `native` starts on nodes that bear it alike."),
    Field("workload.queue", "name", "The queue that admits them."),
    Field("workload.queuePriority", "name", "Gang kueue: its priority class, by name."),
    Field("workload.order", "words", "The groups in the order of their ranks; those not listed follow by name."),
    Field("workload.priority", "signed", "Kind appwrapper v1beta1: the higher, the sooner."),
    Field(
        "workload.jobset.maxRestarts", "integer", "Kind jobset: how often all starts again when a part has failed.", "0"
    ),
    Field("workload.appwrapper.version", "text", "Kind appwrapper: v1beta2, or v1beta1 of MCAD.", "v1beta2"),
    Field("workload.appwrapper.annotations", "annotations", "Kind appwrapper: annotations, as of its fault tolerance."),
    Field("workload.volcano.plugins.*", "words", "Kind volcano: the arguments of a plugin, beside `env` and `svc`."),
    Field("workload.argo.schedules", "texts", "Kind argo: when to run, as cron lines; without any it runs at once."),
    Field("workload.argo.timezone", "text", "Kind argo: where the schedules' clock stands."),
    Field(
        "workload.argo.concurrency",
        "text",
        "Kind argo: a run while one goes on is left out, or takes its place.",
        "Forbid",
    ),
    Field("workload.argo.submit", "bool", "Kind argo: false runs nothing until a Workflow is submitted.", "true"),
    Field("workload.argo.needs.*", "texts", "Kind argo: a release that runs first, and which others it waits for."),
    Field("workload.argo.retries", "integer", "Kind argo: how often the whole starts again.", "0"),
    Field("workload.argo.parameters", "texts", "Kind argo: variables that a submission may set."),
    Field("workload.argo.serviceAccount", "name", "Kind argo: what creates the Jobs; made where none is named."),
    Field(
        "workload.dijob.operator", "text", "Kind dijob: the version of DI-orchestrator: v0, v1.0, v1.1.0, v1.1.", "v1.1"
    ),
    Field("workload.dijob.cleanPodPolicy", "text", "Kind dijob: the pods that go at the end: Running, All or None."),
    Field("workload.dijob.tasks.*", "text", "Kind dijob: a group's type: learner, collector, evaluator or none."),
    Field("workload.dijob.containers.*", "text", "Kind dijob: what the container of a process is called."),
    Field("workload.dijob.group", "text", "Kind dijob: its group, which operators before v1.1.1 know."),
    Field("workload.dijob.priority", "text", "Kind dijob: normal or high; no operator acts on it."),
    Field("workload.dijob.topology", "text", "Kind dijob, operator v1.0: star, alone or mesh."),
    Field("workload.dijob.parallelWorkers", "integer", "Kind dijob, operator v1.0: workers in a pod."),
    Field("workload.dijob.maxReplicas", "integer", "Kind dijob, operator v1.0: it acts on minReplicas alone."),
    Field("compat", "text", TOP["compat"]),
    Field("tests.enabled", "bool", TOP["tests"], "true"),
    Field("tests.image", "image", "An image with a shell and nc, python3 or bash."),
    Field("nameOverride", "nameStart", TOP["nameOverride"]),
    Field("fullnameOverride", "nameStart", TOP["fullnameOverride"]),
    Field("extra", "object", TOP["extra"]),
    Field("global.imageRegistry", "text", "The registry that all images come from, in place of their own."),
    Field("global.imagePullSecrets", "pullSecrets", "Further Secrets that images are pulled with."),
    Field("specDigest", "text", TOP["specDigest"]),
)

# A mistyped name in `--set groups.agnet.replicas=3` makes a new group, which lacks what every group must have.
REQUIRED: dict[str, tuple[str, ...]] = {
    "": ("tests",),
    "groups.*": ("containers",),
    "groups.*.containers.*": ("image",),
    "groups.*.initContainers.*": ("image",),
    "groups.*.containers.*.mounts.*": ("mountPath",),
    "groups.*.initContainers.*.mounts.*": ("mountPath",),
    "services.*": ("group", "port", "process"),
    "tests": ("image",),
}

# What the names in a path may be: a type of the schema.
NAMES: dict[str, str] = {
    "groups": "member",
    "groups.*.containers": "member",
    "groups.*.initContainers": "member",
    "groups.*.containers.*.mounts": "member",
    "groups.*.initContainers.*.mounts": "member",
    "groups.*.volumes": "member",
    "services": "member",
    "configs": "fileKey",
    "secrets.files": "fileKey",
}
