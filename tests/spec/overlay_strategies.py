"""Generated pods and overlays of pods: every list that merges item by item, some that do not, and maps in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Data = dict[str, Any]

_WORDS = st.sampled_from(["a", "b", "c-1", "n", "on"])
_TEXTS = st.lists(_WORDS, max_size=2)


def _maps(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries({}, optional=optional)


def _keyed(key: str, keys: list[Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Data]]:
    """Return a list whose items have different values at `key`; often one item, seldom none."""
    item = st.fixed_dictionaries({key: st.sampled_from(keys)}, optional=optional)
    return st.lists(item, max_size=3, unique_by=lambda made: made[key])


_SECURITY: dict[str, st.SearchStrategy[Any]] = {
    "runAsUser": st.integers(0, 2000),
    "capabilities": _maps(add=_TEXTS, drop=_TEXTS),
    "readOnlyRootFilesystem": st.booleans(),
    "allowPrivilegeEscalation": st.booleans(),
    "privileged": st.booleans(),
}
_SOURCES: dict[str, st.SearchStrategy[Any]] = {
    "emptyDir": _maps(medium=st.just("Memory"), sizeLimit=st.just("1Gi")),
    "hostPath": st.fixed_dictionaries({"path": st.just("/var/x")}, optional={"type": st.just("Directory")}),
    "configMap": st.fixed_dictionaries({"name": _WORDS}),
    "csi": st.fixed_dictionaries({"driver": _WORDS}, optional={"volumeAttributes": st.dictionaries(_WORDS, _WORDS)}),
}
_VALUE_FROM: list[Data] = [
    {"fieldRef": {"fieldPath": "status.podIP"}},
    {"secretKeyRef": {"name": "s", "key": "k"}},
    {"resourceFieldRef": {"containerName": "a", "resource": "limits.cpu"}},
]
_ENV = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": st.sampled_from(["A", "B", "C"]), "value": _WORDS}),
        st.fixed_dictionaries({"name": st.sampled_from(["A", "D"]), "valueFrom": st.sampled_from(_VALUE_FROM)}),
    ),
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)


def _container() -> dict[str, st.SearchStrategy[Any]]:
    return {
        "image": st.sampled_from(["u:1", "u:2"]),
        "imagePullPolicy": st.sampled_from(["Always", "Never"]),
        "command": st.lists(_WORDS, min_size=1, max_size=2),
        "args": _TEXTS,
        "workingDir": st.sampled_from(["/w", "/v"]),
        "env": _ENV,
        "ports": _keyed("containerPort", [8080, 8081], name=_WORDS, protocol=st.sampled_from(["TCP", "UDP"])),
        "volumeMounts": _keyed(
            "mountPath",
            ["/mnt/a", "/mnt/b"],
            name=_WORDS,
            readOnly=st.booleans(),
            mountPropagation=st.just("None"),
        ),
        "resources": _maps(
            requests=_maps(cpu=st.sampled_from(["1", "500m"]), memory=st.sampled_from(["1Mi", "2Mi"])),
            limits=_maps(
                **{"memory": st.sampled_from(["16Gi", "32Gi"]), "nvidia.com/gpu": st.sampled_from(["1", "4"])}
            ),
        ),
        "securityContext": _maps(**_SECURITY),
        "livenessProbe": _maps(
            exec=st.fixed_dictionaries({"command": st.lists(_WORDS, min_size=1, max_size=2)}),
            periodSeconds=st.integers(1, 9),
        ),
        "readinessProbe": _maps(
            httpGet=st.fixed_dictionaries({"port": st.sampled_from([80, 81])}, optional={"path": st.just("/ok")}),
            timeoutSeconds=st.integers(1, 9),
        ),
        "tty": st.booleans(),
    }


container_overlays = _maps(**_container())


def _pod(containers: st.SearchStrategy[list[Data]]) -> st.SearchStrategy[Data]:
    volumes = st.lists(
        st.tuples(_WORDS, st.sampled_from(sorted(_SOURCES))).flatmap(
            lambda drawn: st.fixed_dictionaries({"name": st.just(drawn[0]), drawn[1]: _SOURCES[drawn[1]]})
        ),
        max_size=3,
        unique_by=lambda item: str(item["name"]),
    )
    spec = _maps(
        containers=containers,
        volumes=volumes,
        tolerations=st.lists(st.sampled_from([{"key": "a", "operator": "Exists"}, {"key": "b", "value": "x"}])),
        nodeSelector=st.dictionaries(_WORDS, _WORDS, max_size=2),
        imagePullSecrets=_keyed("name", ["a", "b"]),
        hostAliases=_keyed("ip", ["10.0.0.1", "10.0.0.2"], hostnames=_TEXTS),
        topologySpreadConstraints=_keyed(
            "topologyKey",
            ["zone", "host"],
            maxSkew=st.integers(1, 3),
            whenUnsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        ),
        schedulingGates=_keyed("name", ["a", "b"]),
        securityContext=_maps(runAsUser=st.integers(0, 9), fsGroup=st.integers(0, 9), supplementalGroups=st.just([1])),
        dnsConfig=_maps(searches=_TEXTS, nameservers=_TEXTS),
        terminationGracePeriodSeconds=st.integers(0, 90),
        serviceAccountName=_WORDS,
        priorityClassName=_WORDS,
        hostNetwork=st.booleans(),
    )
    texts = st.dictionaries(_WORDS, _WORDS, max_size=2)
    metadata = _maps(labels=texts, annotations=texts, finalizers=st.lists(_WORDS, max_size=2, unique=True))
    return _maps(metadata=metadata, spec=spec)


pods = _pod(_keyed("name", ["p", "q", "r"], **_container()))


def pod_overlays(*names: str) -> st.SearchStrategy[Data]:
    """Return overlays of a pod that has the containers `names`; some name a container that it lacks."""
    return _pod(_keyed("name", [*names, "extra"], **_container()))
