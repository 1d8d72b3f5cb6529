"""Compose files rely on resolved host names and on word splitting, which other backends lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.importers.input_file import read
from symphony_charts.integrations.compose.importer import ComposeContext, import_compose
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import allocate
from symphony_charts.spec.sources import (
    ClaimVolume,
    ConfigFile,
    DeviceVolume,
    EmptyDirVolume,
    ExecProbe,
    HostPathVolume,
    Mount,
    NfsVolume,
    Probe,
    SecretFile,
    SecretVolume,
)
from tests.importers.samples import EXAMPLES, compose, notes_of


def example() -> Experiment:
    source = read((EXAMPLES / "compose.yaml").read_bytes(), "compose.yaml")
    return import_compose(source, ComposeContext(folder="/work")).experiment


def service(body: str, rest: str = "") -> Process:
    """Return the process of a service `a` with an image and `body`."""
    return compose(f"services:\n  a:\n    image: i\n    {body}\n{rest}").experiment.processes["a"]


def mounted(body: str, rest: str = "") -> dict[str, object]:
    """Return the volumes of a service by their mount points."""
    experiment = compose(f"services:\n  a:\n    image: i\n    {body}\n{rest}", folder="/home/ada").experiment
    return {mount.at: experiment.volumes[mount.volume] for mount in experiment.processes["a"].mounts}


def test_services_of_active_profiles_become_processes() -> None:
    assert list(example().processes) == ["learner", "actor", "migrate", "redis", "db", "board"]
    text = (EXAMPLES / "compose.yaml").read_text()
    assert "shell" in compose(text, profiles=["debug"]).experiment.processes


def test_addresses_of_services_become_variables_and_connections() -> None:
    learner = example().processes["learner"]
    assert learner.args == ["python", "-m", "learner", "--replay", "$(SYMPH_REDIS_ADDR)", "--rate", "$LR"]
    assert learner.env["DATABASE"] == "postgres://ml@$(SYMPH_DB_ADDR)/runs"
    assert set(learner.connects) == {"redis", "db"}
    # A port that only others speak of.
    assert example().processes["redis"].binds == {"redis": 6379}


def test_the_values_behind_a_replaced_name_are_not_repeated_in_the_report() -> None:
    text = "services:\n  a: {image: i, environment: {URL: 'http://user:hunter2@b:80/'}}\n  b: {image: i}"
    assert "hunter2" not in notes_of(compose(text))


def test_published_ports_are_exposed_and_others_bound() -> None:
    process = service('ports: ["8080:80", "127.0.0.1:9:9"]\n    expose: [7]')
    assert process.exposes == {"a-80": 80}
    assert process.binds == {"a-9": 9, "a-7": 7}


def test_a_published_port_has_no_address_outside_of_a_cluster() -> None:
    imported = compose("services:\n  redis: {image: r, ports: ['6379:6379']}")
    services = [item for item in prepare_experiment(imported.experiment).objects if item["kind"] == "Service"]
    assert {sub(item, "spec").get("type", "ClusterIP") for item in services} == {"ClusterIP"}
    assert "port 6379 of redis is reachable only inside" in notes_of(imported)


def test_a_port_that_is_exposed_and_dialled_is_bound_as_well() -> None:
    text = "services:\n  a: {image: i, ports: ['80:80']}\n  b: {image: i, environment: {URL: 'http://a:80'}}"
    process = compose(text).experiment.processes["a"]
    assert (process.binds, process.exposes) == ({"a": 80}, {"a": 80})


@pytest.mark.parametrize(
    ("body", "command", "args"),
    [
        ("command: echo 'a b' c", None, ["echo", "a b", "c"]),
        ("command: [echo, a b]", None, ["echo", "a b"]),
        ("entrypoint: sh -c", ["sh", "-c"], None),
        ("entrypoint: [run]\n    command: x", ["run"], ["x"]),
        ("command: echo $$HOME $$(VAR)", None, ["echo", "$HOME", "$$(VAR)"]),
        ("command:", None, None),
    ],
)
def test_commands_are_split_as_compose_splits_them(
    body: str, command: list[str] | None, args: list[str] | None
) -> None:
    process = service(body)
    assert (process.command, process.args) == (command, args)


def test_variables_come_from_the_environment_file_or_their_defaults() -> None:
    text = "services:\n  a: {image: 'x:${TAG:-1}', environment: {B: $B, C: '${C-d}', D: '${D:+e}', E: '$$F'}}"
    process = compose(text, variables={"TAG": "", "B": "b", "D": "1"}).experiment.processes["a"]
    assert process.image == "x:1"
    assert process.env == {"B": "b", "C": "d", "D": "e", "E": "$F"}


def test_environment_files_are_read_and_overruled() -> None:
    files = {"a.env": "# words\nA=1\nexport B='two words'\nC=3 # not this\n"}
    text = "services: {a: {image: i, env_file: a.env, environment: [A=9, D=]}}"
    process = compose(text, read_text=files.get).experiment.processes["a"]
    assert process.env == {"A": "9", "B": "two words", "C": "3", "D": ""}


def test_an_environment_file_may_be_allowed_to_be_missing() -> None:
    assert compose("services: {a: {image: i, env_file: [{path: a.env, required: false}]}}").experiment


def test_waiting_for_services_and_for_finished_work() -> None:
    processes = example().processes
    assert processes["learner"].after == ["db", "migrate"]
    lives = {name: process.lifecycle for name, process in processes.items()}
    assert lives["db"] == lives["redis"] == lives["board"] == "service"
    assert lives["migrate"] == lives["learner"] == lives["actor"] == "finite"


@pytest.mark.parametrize(
    ("body", "is_task"),
    [
        ("command: ./manage.py migrate", True),
        ("command: ./manage.py migrate, restart: 'no'", True),
        ("command: ./manage.py migrate, restart: 'on-failure:3'", True),
        ("command: ./load --db postgres://u@db-server/x", True),
        ("entrypoint: [sh, -c, alembic upgrade head]", True),
        ("command: ./manage.py migrate, restart: always", False),
        ("command: ./manage.py migrate, expose: [80]", False),
        ("command: ./manage.py migrate, healthcheck: {test: 'true'}", False),
        ("command: ./manage.py runserver", False),
        ("command: redis-server --appendonly yes", False),
        ("command: --save 60 1", False),
        ("environment: {A: b}", False),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_a_command_that_others_start_after_is_a_task_unless_it_serves(body: str, is_task: bool, ends: bool) -> None:
    other = "\n  last: {image: i, depends_on: {a: {condition: service_completed_successfully}}}" if ends else ""
    imported = compose(f"services:\n  a: {{image: i, {body}}}\n  web: {{image: i, depends_on: [a]}}{other}")
    is_task = is_task or ends
    processes = imported.experiment.processes
    assert processes["a"].lifecycle == ("finite" if is_task else "service")
    assert processes["web"].after == ([] if is_task else ["a"])
    assert ("web does not wait for a" in notes_of(imported)) == is_task


def test_a_task_that_others_dial_or_wait_to_be_healthy_serves() -> None:
    start = "services:\n  a: {image: i, command: run}\n  web: {image: i, "
    for rest in ("command: [x, 'a:80']", "environment: {A_HOST: a}", "depends_on: {a: {condition: service_healthy}}"):
        assert compose(f"{start}{rest}}}").experiment.processes["a"].lifecycle == "service", rest


def test_restarts_on_failure_are_retries_and_the_word_no_needs_no_quotes() -> None:
    actor = example().processes["actor"]
    assert (actor.restart, actor.retries, actor.replicas) == ("on-failure", 3, 8)
    assert service("restart: no").restart is None


@pytest.mark.parametrize(
    ("test", "command"),
    [
        ("[CMD, curl, x]", ["curl", "x"]),
        ("curl x", ["sh", "-c", "curl x"]),
        ("[NONE]", None),
        ('["CMD-SHELL", "a | b"]', ["sh", "-c", "a | b"]),
    ],
)
def test_forms_of_a_health_check(test: str, command: list[str] | None) -> None:
    ready = service(f"healthcheck: {{test: {test}, interval: 1m30s}}").ready
    assert (ready.exec.command if isinstance(ready, Probe) and ready.exec is not None else None) == command


def test_a_check_begins_at_once_since_failures_count_for_nothing_before_it_was_ready() -> None:
    body = "entrypoint: [x], healthcheck: {test: x, interval: 3s, start_period: 30s}"
    imported = compose(f"services: {{a: {{image: i, {body}}}}}")
    check = ExecProbe(command=["sh", "-c", "x"])
    assert imported.experiment.processes["a"].ready == Probe(exec=check, period=3, timeout=30, failures=3)
    assert notes_of(imported) == ""


def test_memory_is_binary_gpus_are_counted_and_a_health_check_is_readiness() -> None:
    processes = example().processes
    assert (processes["learner"].limits, processes["learner"].gpus) == ({"cpu": "4000m", "memory": "8Gi"}, 1)
    check = ExecProbe(command=["sh", "-c", "pg_isready -U ml"])
    assert processes["db"].ready == Probe(exec=check, period=10, timeout=30, failures=5)


@pytest.mark.parametrize(
    ("text", "size"),
    [("50M", "50Mi"), ("1gb", "1Gi"), ("512k", "512Ki"), ("100b", "100"), ("1.5g", "1610612736"), ("7", "7")],
)
def test_sizes(text: str, size: str) -> None:
    assert service(f"mem_limit: {text}").limits == {"memory": size}


def test_mounts_of_every_kind() -> None:
    body = """volumes:
      - named:/a:ro
      - ./src:/b
      - /host:/c
      - /scratch
      - {type: tmpfs, target: /d, tmpfs: {size: 1m}}
      - {type: bind, source: ../up, target: /e, read_only: true}
      - nfs:/f
    tmpfs: /g
    shm_size: 1g
    devices: ["/dev/fuse:/dev/fuse:rw"]"""
    rest = "volumes:\n  named: {name: real}\n  nfs: {driver_opts: {type: nfs, o: 'addr=10.0.0.1,rw', device: ':/data'}}"
    assert mounted(body, rest) == {
        "/a": ClaimVolume(claim="real"),
        "/b": HostPathVolume(path="/home/ada/src"),
        "/c": HostPathVolume(path="/host"),
        "/scratch": EmptyDirVolume(),
        "/d": EmptyDirVolume(memory=True, size="1Mi"),
        "/e": HostPathVolume(path="/home/up"),
        "/f": NfsVolume(server="10.0.0.1", path="/data"),
        "/g": EmptyDirVolume(memory=True),
        "/dev/shm": EmptyDirVolume(memory=True, size="1Gi"),
        "/dev/fuse": DeviceVolume(path="/dev/fuse", perm="rw"),
    }


def test_a_config_is_copied_to_its_place_before_the_service_starts() -> None:
    experiment = example()
    assert experiment.configs == {"learner": ConfigFile(text="rate = 0.001\n")}
    assert experiment.prepare["learner-config-learner"].cmds == [
        'cp "$SYMPH_CONFIG_DIR/learner" "/mnt/config-learner/learner"'
    ]
    mount = Mount(volume="config-learner", at="/etc/learner.toml", sub_path="learner", read_only=True)
    assert mount in experiment.processes["learner"].mounts


def test_secrets_of_files_and_of_the_cluster() -> None:
    assert example().secrets == [
        SecretFile(file="./token.txt", key="token", only=["learner"], also_at=["/run/secrets/token"])
    ]
    text = """services:
  a: {image: i, secrets: [s, {source: t, target: /etc/t.pem}, f]}
secrets: {s: {external: true}, t: {external: true, name: other}, f: {file: f.txt}}
"""
    imported = compose(text)
    mounts = {mount.at: mount for mount in imported.experiment.processes["a"].mounts}
    for at, key, name in (("/run/secrets/s", "s", "s"), ("/etc/t.pem", "t", "other")):
        assert (mounts[at].sub_path, mounts[at].read_only) == (key, True)
        assert imported.experiment.volumes[mounts[at].volume] == SecretVolume(secret=name)
        assert f'secret "{key}" comes from the key "{key}" of the Secret {name}' in str(imported.report.changed)
    assert [secret.also_at for secret in imported.experiment.secrets] == [["/run/secrets/f"]]


def test_a_secret_stands_where_compose_puts_it() -> None:
    text = """services:
  db: {image: i, secrets: [word, {source: token, target: /etc/token}, {source: token, target: t}]}
  web: {image: i, secrets: [{source: word, target: w}]}
secrets: {word: {file: p.txt}, token: {file: o.txt}}
"""
    imported = compose(text)
    assert imported.experiment.secrets == [
        SecretFile(file="p.txt", key="word", only=["db", "web"], also_at=["/run/secrets/word", "/run/secrets/w"]),
        SecretFile(file="o.txt", key="token", only=["db"], also_at=["/etc/token", "/run/secrets/t"]),
    ]
    assert imported.report.lost == ()


def test_a_service_that_is_built_stops_the_import_with_the_way_unless_its_image_is_given() -> None:
    text = "services:\n  web: {build: {context: ./web}}"
    with pytest.raises(SpecError) as caught:
        compose(text)
    (problem,) = caught.value.problems
    assert problem.next.startswith("docker build -t HOST/web ./web, docker push HOST/web, then --image web=HOST/web")
    given = compose(text, images={"web": "h/web:1"})
    assert (given.experiment.processes["web"].image, given.report.lost) == ("h/web:1", ())
    with pytest.raises(SpecError, match="which is not a service"):
        compose("services: {a: {image: i}}", images={"b": "h/b"})


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("proxy_pass http://backend;", True),
        ("url: http://backend:8000/x", True),
        ("address = backend:8000", True),
        ("postgres://u:p@backend/db", True),
        ("redis.Redis(host='backend', db=0)", True),
        ("dsn: host=backend port=5432", True),
        ("upstream { server backend; }", True),
        ("peers: http://back{x...y} http://backen{1...3}:9000", False),
        ("the backend is here", False),
        ("/srv/backend:1", False),
        ("http://my-backend/", False),
    ],
)
def test_a_service_that_a_mounted_file_dials_keeps_its_name(text: str, is_kept: bool) -> None:
    body = "services: {web: {image: i, volumes: ['./conf:/conf']}, backend: {image: i, expose: [8000]}}"
    processes = compose(body, texts_below=lambda path: [text] if path == "./conf" else []).experiment.processes
    assert (processes["backend"].names, processes["web"].names) == (["backend"] if is_kept else [], [])


def test_a_folder_that_is_not_there_is_made_as_compose_makes_it_and_a_tilde_is_the_users_home() -> None:
    text = "services: {a: {image: i, volumes: ['./data:/d', './conf:/c', '/run/d.sock:/s', '~/d:/e']}}"
    there = ("/x/conf", "/home/ada/d")
    imported = compose(text, folder="/x", home="/home/ada", is_there=lambda path: path in there)
    assert list(imported.experiment.volumes.values()) == [
        HostPathVolume(path="/x/data", kind="DirectoryOrCreate"),
        HostPathVolume(path="/x/conf"),
        HostPathVolume(path="/run/d.sock"),
        HostPathVolume(path="/home/ada/d"),
    ]


def test_what_extends_another_service_has_its_fields() -> None:
    text = """services:
  base: {image: i, environment: {A: '1'}, command: [x]}
  a: {extends: base, environment: {B: '2'}, command: [y]}
"""
    process = compose(text).experiment.processes["a"]
    assert (process.image, process.env, process.args) == ("i", {"A": "1", "B": "2"}, ["y"])


def test_security_users_and_hosts_become_overlays() -> None:
    process = service(
        "user: '1000:100'\n    cap_add: [SYS_PTRACE]\n    read_only: true\n    extra_hosts: ['h:1.2.3.4']"
    )
    security = {
        "readOnlyRootFilesystem": True,
        "capabilities": {"add": ["SYS_PTRACE"]},
        "runAsUser": 1000,
        "runAsGroup": 100,
    }
    assert process.container_overlay == {"securityContext": security}
    assert process.pod_overlay == {"spec": {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}]}}


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("build: .", "is built from source"),
        ("network_mode: host", "`network_mode` of a service is not carried over"),
        ("ports: ['53:53/udp']", "only TCP ports"),
        ("ports: ['8080:80']", "is reachable as 80, not as 8080"),
        ("environment: [TOKEN]", "TOKEN would come from the shell"),
        ("ulimits: {nofile: 1}", "`ulimits` of a service is not carried over"),
        ("deploy: {mode: global}", "deploy mode global"),
        ("gpus: all", "all GPUs of the machine"),
        ("user: '$TAG'", "variable TAG has no value"),
        ("ports: ['80:80']\n    restart: 'on-failure:3'", "always restarts"),
    ],
)
def test_what_does_not_come_over_is_reported(body: str, note: str) -> None:
    assert note in notes_of(compose(f"services:\n  a:\n    image: i\n    {body}"))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("ports: ['a:b']", "is not a port"),
        ("ports: [99999]", "is not a port"),
        ("mem_limit: lots", "is not a size"),
        ("volumes: [x:/y]", 'unknown volume "x"'),
        ("volumes: ['C:\\\\x:/y']", "is a Windows path"),
        ("configs: [x]", 'unknown config "x"'),
        ("secrets: [x]", 'unknown secret "x"'),
        ("restart: sometimes", "is not a restart policy"),
        ("stop_grace_period: soon", "is not a duration"),
        ("healthcheck: {test: [curl]}", "begins with CMD"),
        ("tmpfs: relative", "is not an absolute path"),
        ('command: "echo \'a"', "cannot be split into words"),
        ("env_file: [a.env]", "cannot read the environment file"),
        ("hostname: 'x${TAG:?say it}'", "variable TAG is required: say it"),
        ("extends: b\n  b: {extends: a}", "does not extend another service of this file"),
    ],
)
def test_what_is_wrong_is_refused(body: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        service(body)


def test_a_service_without_image_is_refused_with_its_line() -> None:
    source = read(b"services:\n  a: {}\n  b: {image: [1]}\n", "compose.yaml")
    with pytest.raises(SpecError) as caught:
        import_compose(source, ComposeContext())
    assert [problem.path for problem in source.with_location(caught.value).problems] == [
        "compose.yaml:2, services.a.image",
        "compose.yaml:3, services.b.image",
        "compose.yaml:3, services.b.image",
    ]


def test_the_experiment_is_called_after_the_file_or_its_folder() -> None:
    assert compose("name: My_App\nservices: {a: {image: i}}").experiment.name == "my-app"
    assert compose("services: {a: {image: i}}", name="folder").experiment.name == "folder"


def test_a_variable_that_holds_a_host_alone_is_replaced_only_where_its_name_says_so() -> None:
    text = (
        "services:\n  a: {image: i, environment: {REDIS_HOST: redis, KIND: redis}}\n  redis: {image: r, expose: [6379]}"
    )
    env = compose(text).experiment.processes["a"].env
    assert env == {"REDIS_HOST": "$(SYMPH_REDIS_HOST)", "KIND": "redis"}


def test_a_name_that_others_depend_on_and_nothing_rewrote_is_kept() -> None:
    text = "services:\n  db: {image: i, expose: [5432]}\n  web: {image: i, depends_on: [db], links: ['db:sql']}"
    imported = compose(text)
    assert imported.experiment.processes["db"].names == ["db", "sql"]
    assert 'db keeps the name "db"' in notes_of(imported)
    rewritten = compose(text.replace("depends_on: [db]", "command: [run, 'db:5432']").replace(":sql", ""))
    assert rewritten.experiment.processes["db"].names == []
    assert rewritten.report.lost == ()


def test_a_service_whose_port_nobody_says_is_found_by_its_name_until_the_end() -> None:
    redis = compose("services:\n  vote: {image: v, depends_on: [redis]}\n  redis: {image: r}").experiment.processes[
        "redis"
    ]
    assert (redis.names, redis.lifecycle, redis.binds) == (["redis"], "service", {})


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("container_name: box", ["box"]),
        ("hostname: box", ["box"]),
        ("networks: {back: {aliases: [one, two]}}", ["one", "two"]),
        ("hostname: other", []),
    ],
)
def test_a_service_is_found_by_its_other_names_as_well(body: str, names: list[str]) -> None:
    text = f"services:\n  web: {{image: i, environment: {{CACHE: box}}}}\n  redis:\n    image: r\n    {body}"
    assert compose(text).experiment.processes["redis"].names == names


@pytest.mark.parametrize(
    ("own", "others", "is_kept"),
    [
        ("PLAINTEXT://kafka:29092,OUTSIDE://localhost:9092", "kafka:29092", True),
        ("server.1=0.0.0.0:2888:3888", "server.1=kafka:2888:3888;2181 server.2=0.0.0.0:2888:3888", True),
        ("x", "other,kafka", True),
        ("kafka", "kafka:29092", False),
        ("x", "the kafka, other", False),
    ],
)
def test_a_name_that_a_service_says_of_itself_or_that_no_variable_can_replace_is_kept(
    own: str, others: str, is_kept: bool
) -> None:
    services = {"kafka": {"image": "k", "environment": {"A": own}}, "etl": {"image": "e", "environment": {"B": others}}}
    processes = compose(json.dumps({"services": services})).experiment.processes
    assert processes["kafka"].names == (["kafka"] if is_kept else [])
    replaced = {"B": "$(SYMPH_KAFKA_ADDR)"} if others == "kafka:29092" else {"B": others}
    assert processes["etl"].env == replaced


def test_names_that_are_counted_are_spelled_out() -> None:
    text = "services:\n  web: {image: i, command: [run, 'http://box{1...2}:90/a{1...2}']}\n" + "".join(
        f"  box{number}: {{image: i}}\n" for number in (1, 2, 3)
    )
    processes = compose(text).experiment.processes
    assert [processes[f"box{number}"].names for number in (1, 2, 3)] == [["box1"], ["box2"], []]


@pytest.mark.parametrize("name", ["my_db", "localhost", "a" * 64])
def test_a_name_that_no_service_can_have_is_lost(name: str) -> None:
    text = f"services:\n  web: {{image: i, environment: {{CACHE: {name}}}}}\n  {name}: {{image: r}}"
    assert f'other services connect to "{name}", which is not a valid name of a Service' in notes_of(compose(text))


def test_a_name_of_two_services_leads_to_one_of_them() -> None:
    body = "{image: r, networks: {back: {aliases: [cache]}}}"
    imported = compose(f"services:\n  a: {body}\n  b: {body}")
    assert [process.names for process in imported.experiment.processes.values()] == [["cache"], []]
    assert '"cache" reaches only a, not b' in notes_of(imported)


def test_numbers_are_those_of_docker_compose() -> None:
    # Judged by compose-go 2.4.
    values = {
        "1e3": "1000", "3.0": "3", "1.50": "1.5", "010": "8", "0x10": "16", "1_000": "1000", "0o17": "15", "08": "8",
        "1e5": "100000", "1e6": "1e+06", "123456789.5": "1.234567895e+08", "0.00001": "1e-05", "-0.0": "-0",
        "1_000.5": "1000.5", "18446744073709551616": "1.8446744073709552e+19", "0o8": "0o8", "'010'": "010",
        "yes": "yes", "true": "true", "7": "7", "1.2.3": "1.2.3",
    }  # fmt: skip
    env = "\n".join(f"      V{index}: {text}" for index, text in enumerate(values))
    process = compose(f"services:\n  a:\n    image: i\n    environment:\n{env}").experiment.processes["a"]
    assert list(process.env.values()) == list(values.values())


def test_reset_removes_and_override_replaces() -> None:
    text = """
services:
  base: {image: i, environment: {A: '1'}, ports: ['80:80'], expose: [5], command: [x]}
  a:
    extends: base
    environment: !override {B: '2'}
    ports: !override ['81:81']
    expose: !reset []
    command: !reset null
"""
    process = compose(text).experiment.processes["a"]
    assert (process.env, process.exposes, process.binds, process.args) == ({"B": "2"}, {"a": 81}, {}, None)


FILES = {
    "./tokenizer.json": "{}",
    "./nginx.conf": "listen 80;",
    "./run.sh": "#!/bin/sh",
    "./tls.key": "x",
    "./big": "x" * 70_000,
}


def test_a_mounted_file_beside_the_compose_file_is_a_configuration_file() -> None:
    program = "{type: bind, source: ./run.sh, target: /run.sh}"
    body = f"volumes: ['./nginx.conf:/etc/nginx/nginx.conf:ro', {program}, './big:/b']"
    imported = compose(
        f"services:\n  a:\n    image: i\n    {body}", read_text=FILES.get, is_program=lambda name: name == "./run.sh"
    )
    experiment = imported.experiment
    assert experiment.configs == {
        "nginx.conf": ConfigFile(text="listen 80;"),
        "run.sh": ConfigFile(text="#!/bin/sh", mode="0755"),
    }
    first, second, third = experiment.processes["a"].mounts
    assert (first.at, first.sub_path, first.read_only) == ("/etc/nginx/nginx.conf", "nginx.conf", True)
    assert (second.sub_path, second.read_only) == ("run.sh", False)
    assert isinstance(experiment.volumes[third.volume], HostPathVolume)
    assert [note.path for note in imported.report.lost] == ["services.a.volumes[2]"]
    assert prepare_experiment(experiment).objects


def test_on_one_machine_a_mounted_file_is_the_file_itself(tmp_path: Path) -> None:
    body = "command: cat /etc/nginx.conf\n    volumes: ['./nginx.conf:/etc/nginx.conf:ro']"
    imported = compose(f"services:\n  a:\n    image: i\n    {body}", read_text=FILES.get, folder=str(tmp_path))
    plan = plan_here(imported.experiment, allocate(imported.experiment), tmp_path, "r")
    (process,) = (each for each in plan.processes if not each.is_step)
    (bind,) = (each for each in process.binds if each.target == "/etc/nginx.conf")
    assert (bind.source, bind.read_only, process.argv[0]) == (str(tmp_path / "nginx.conf"), True, "cat")


def test_a_mounted_file_that_looks_like_a_secret_is_one() -> None:
    body = "volumes: ['./tls.key:/etc/tls.key', './tokenizer.json:/t.json']"
    imported = compose(f"services:\n  a:\n    image: i\n    {body}", read_text=FILES.get)
    secret = SecretFile(file="./tls.key", key="tls.key", only=["a"], also_at=["/etc/tls.key"])
    assert (imported.experiment.secrets, list(imported.experiment.configs)) == ([secret], ["tokenizer.json"])


@pytest.mark.parametrize(
    ("body", "command", "said"),
    [
        ("command: python app.py", ["python", "app.py"], ""),
        ("command: gunicorn app", ["gunicorn", "app"], "`gunicorn`, which is not installed"),
        ("command: --save 60", None, "the image sets its program"),
        ("{}", None, "the image sets its program"),
        ("entrypoint: [python, app.py]", None, ""),
    ],
)
def test_a_command_runs_here_too_and_the_report_names_what_cannot(
    body: str, command: list[str] | None, said: str
) -> None:
    text = f"services:\n  a:\n    image: i\n    {'' if body == '{}' else body}"
    imported = compose(text, is_installed=lambda name: name == "python")
    local = imported.experiment.processes["a"].local
    assert (local.command if local else None) == command
    assert ("`symph up`" in notes_of(imported)) == bool(said)
    assert said in notes_of(imported)


def test_a_folder_of_the_image_is_not_where_it_starts_here() -> None:
    assert service("command: python a.py\n    working_dir: /app").local.cwd == "."  # type: ignore[union-attr]
