"""Generated experiments: every field that a chart knows, with strings that break careless charts."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from tests.spec.overlay_strategies import container_overlays, pod_overlays

HOSTILE = (
    "{{ .Values.secret }}",
    "}}{{",
    "\"quoted\" and 'quoted'",
    "line\nbreak",
    "one\u2028two\nthree",
    "\u2029#\n\ufeff",
    "ends in newline\n",
    "\n\nstarts in newlines",
    "  leading\n   and trailing spaces  ",
    "key: value # comment",
    "- item",
    "on",
    "n",
    "null",
    "~",
    "1e3",
    "0o17",
    "0x1F",
    "1_000",
    "12:30:45",
    "2020-01-01",
    ".5",
    "9007199254740991",
    "9007199254740993",
    "=",
    "<<",
    "!!binary x",
    "&anchor *alias",
    "%TAG",
    "@at `tick`",
    "caf\u00e9 \u4e16\u754c \U0001f600",
    "\u2028\u2029",
    "tab\there",
    "<>&",
    "\\n \\u0041 \\",
    "$(SYMPH_EXPERIMENT) $$(X) $HOME",
    "[[ cookiecutter.name ]]",
    "",
    "x" * 200 + " " + "y" * 200,
)

_SAFE = st.characters(
    exclude_categories=["Cs", "Cc", "Cn", "Co"], exclude_characters="\ufeff", include_characters="\n\t"
)
hostile_text = st.one_of(st.sampled_from(HOSTILE), st.text(_SAFE, max_size=40))

_NAMES = st.sampled_from(
    ["a", "agent", "learner", "n", "on", "replay-server", "team-a", "x1", "worker-0", "no", "yes", "pods"]
)
_LONG = st.sampled_from(["a-very-long-name-of-a-group-xx", "b"])
_ENV_KEYS = st.sampled_from(["A", "LR", "N", "ON", "n", "y", "PATH_X", "Z_LAST", "SYMPH_EXTRA", "off", "my.var", "-x"])
_COUNT = st.sampled_from(["1", "2k"])
_QUANTITY = st.sampled_from(["1", "500m", "0.5", "2Gi", "1.7", "100Mi"])
_LIMIT = st.sampled_from(["4Gi", "8.5Gi"])  # no request exceeds it


@st.composite
def _process(draw: st.DrawFn, name: str, volumes: Mapping[str, object], *, grouped: bool) -> dict[str, object]:
    process: dict[str, object] = {"lifecycle": draw(st.sampled_from(["finite", "service"]))}
    start = draw(st.sampled_from(["image", "command", "args", "cmds", "preamble"]))
    if start in ("command", "preamble"):
        process["command"] = ["prog", draw(hostile_text)]
    if start in ("args", "command"):
        process["args"] = draw(st.lists(hostile_text, max_size=3))
    if start == "cmds":
        process["cmds"] = ["echo start", "exec prog"]
        process["shell"] = draw(st.sampled_from(["sh", "bash", ["/bin/{{ sh }}", "-c"]]))
    if start == "preamble":
        process["preamble"] = ["cd /"]
    process["env"] = draw(st.dictionaries(_ENV_KEYS, hostile_text, max_size=3))
    if draw(st.booleans()):
        process["env"]["FROM"] = draw(  # type: ignore[index]  # a dict, just made
            st.sampled_from(
                [
                    {"secret": "s", "key": "k"},
                    {"config": "c", "key": "k", "optional": True},
                    {"field": "spec.nodeName"},
                    {"resource": "limits.memory"},
                ]
            )
        )
    process["requests"] = draw(
        st.fixed_dictionaries({}, optional={"cpu": _QUANTITY, "memory": _QUANTITY, "rdma/ib": _COUNT})
    )
    process["limits"] = draw(st.dictionaries(st.sampled_from(["memory", "ephemeral-storage"]), _LIMIT, max_size=1))
    process["gpus"] = draw(st.sampled_from([0, 0, 2]))
    mounts = draw(st.lists(st.sampled_from(sorted(volumes)), max_size=2, unique=True)) if volumes else []
    process["mounts"] = [{"volume": volume, "at": f"/mnt/{index}/{name}"} for index, volume in enumerate(mounts)]
    if draw(st.booleans()):
        process["cwd"] = "/work"
    if draw(st.integers(0, 2)) == 0:
        process["container_overlay"] = draw(container_overlays)
    if not grouped:
        process |= draw(_pod_settings(name, process["lifecycle"] == "finite", [name]))
    return process


@st.composite
def _pod_settings(draw: st.DrawFn, name: str, finite: bool, members: list[str]) -> dict[str, object]:
    settings: dict[str, object] = {"replicas": draw(st.sampled_from([1, 1, 2, 12]))}
    optional: dict[str, st.SearchStrategy[object]] = {
        "node_selector": st.just({"pool": "n"}),
        "labels": st.just({"tier": "on"}),
        "annotations": st.dictionaries(st.sampled_from(["example.org/a", "b"]), hostile_text, min_size=1),
        "tolerations": st.just([{"key": "spot", "operator": "Exists", "effect": "NoExecute", "seconds": 5}]),
        "service_account": st.just("runner"),
        "priority_class": st.just("high"),
        "grace_period": st.sampled_from([0, 5]),
        "names": st.just([f"db-{name}"]),
        "pod_overlay": st.one_of(
            st.just({"spec": {"hostNetwork": True, "volumes": [{"name": "symph-config", "x": "1"}]}}),
            pod_overlays(*members),
        ),
    }
    if finite:
        optional |= {
            "retries": st.sampled_from([0, 3]),
            "restart": st.sampled_from(["never", "on-failure"]),
            "deadline": st.just(3600),
        }
    else:
        optional["until"] = st.sampled_from(["run", "uninstall"])
    for key, strategy in optional.items():
        if draw(st.integers(0, 3)) == 0:
            settings[key] = draw(strategy)
    return settings


_VOLUMES: dict[str, dict[str, object]] = {
    "nfs": {"type": "nfs", "server": "10.0.0.1", "path": "/data"},
    "node": {"type": "host_path", "path": "/var/x", "kind": "Directory"},
    "claim": {"type": "claim", "claim": "pvc"},
    "shm": {"type": "empty_dir", "memory": True, "size": "1Gi"},
    "token": {"type": "secret", "secret": "s", "mode": "0400", "items": {"a": "b"}},
    "conf": {"type": "config", "config": "c"},
    "ib": {"type": "device", "path": "/dev/infiniband"},
    "code": {"type": "git", "repository": "https://example.org/r.git", "revision": "main"},
}


def _wire(draw: st.DrawFn, processes: list[tuple[str, dict[str, object]]]) -> None:
    """Give some processes services to bind, some to expose, and let others connect to them."""
    bound = []
    for number, (_, process) in enumerate(processes):
        for which in range(draw(st.sampled_from([0, 1, 1, 2]))):
            service = f"svc-{number}-{which}"
            kind = draw(st.sampled_from(["binds", "exposes"]))
            port = draw(st.sampled_from([None, 6000 + 10 * number + which]))
            said = process.get(kind)
            process[kind] = {**(said if isinstance(said, dict) else {}), service: port}
            bound += [service] if kind == "binds" else []
    for _, process in processes:
        if bound:
            process["connects"] = draw(st.lists(st.sampled_from(bound), max_size=2, unique=True))


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, object]:
    volumes = {
        name: _VOLUMES[name] for name in draw(st.lists(st.sampled_from(sorted(_VOLUMES)), max_size=3, unique=True))
    }
    names = draw(st.lists(st.one_of(_NAMES, _LONG), min_size=1, max_size=4, unique=True))
    split = draw(st.integers(0, len(names)))
    data: dict[str, object] = {"name": draw(st.sampled_from(["exp", "n", "a-long-experiment-name"]))}
    data["image"] = "registry.example.org:5000/team/image:1.2"
    processes = {name: draw(_process(name, volumes, grouped=False)) for name in names[split:]}
    groups = {}
    members = list(processes.items())
    for name in names[:split]:
        inside = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
        group = {inner: draw(_process(inner, volumes, grouped=True)) for inner in inside}
        finite = any(process["lifecycle"] == "finite" for process in group.values())
        groups[name] = {**draw(_pod_settings(name, finite, inside)), "processes": group}
        members += group.items()
    _wire(draw, members)
    data |= {"processes": processes, "groups": groups, "volumes": volumes}
    data["configs"] = {
        key: {"text": draw(hostile_text)}
        for key in draw(st.lists(st.sampled_from(["a.yaml", "n", "x.py"]), max_size=2, unique=True))
    }
    if draw(st.booleans()):
        data["secrets"] = [
            {"file": "/tmp/token", "also_at": draw(st.sampled_from([[], ["/run/secrets/t", "/srv/.token"]]))},
            {"file": "/tmp/key.pem", "key": "key", "remote": "vault/key#pem"},
        ]
        data["secret_source"] = draw(
            st.sampled_from(
                [
                    {},
                    {"source": "sealed", "scope": "namespace-wide"},
                    {"source": "external", "store": "vault", "is_cluster_store": True},
                ]
            )
        )
    if draw(st.booleans()):
        data["prepare"] = {"fetch": {"command": ["get", draw(hostile_text)], "env": {"on": "off"}}}
    data["security"] = {
        "level": draw(st.sampled_from(["baseline", "restricted", "privileged"])),
        "network_policy": draw(st.booleans()),
        "run_as_user": draw(st.sampled_from([None, 1000])),
    }
    data["labels"] = draw(st.sampled_from([{}, {"cost": "1e3"}]))
    data["networks"] = draw(st.sampled_from([[], ["macvlan"]]))
    data["workload"] = draw(
        st.sampled_from(
            [
                {},
                {"run_key": "7"},
                {"gang": "kueue", "queue": "q"},
                {"retries": 2},
                {"kind": "jobset"},
                {"kind": "appwrapper", "appwrapper": {"annotations": {"example.org/a": "n"}}, "retries": 1},
                {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}, "priority": 7, "retries": 2},
                {"kind": "volcano", "queue": "q", "volcano": {"plugins": {"ssh": ["--ssh-port=2222"]}}, "retries": 2},
                {"kind": "volcano"},
            ]
        )
    )
    return data
