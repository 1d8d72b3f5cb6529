"""The steps of a user: each line is a command of `symph`, or of another program after `!`; after `#` its output."""

from __future__ import annotations

from tests.matrix.journey import Journey

_INSTALLED_FROM = f"git+https://example.org/symphony-charts.git@{'a' * 40}"

_TOOLS = """
--help                                      # promote
completion bash                             # symph
completion zsh                              # symph
completion fish                             # symph
schema                                      # $schema
doctor                                      # tmux
catalog show e2-standard-8                  # e2-standard-8
init rl --template yaml
init rl-py --template python
"""
_CHARTS = """
validate {spec}                             # 0 error
render {spec}                               # kind: Job
render {spec} -o json                       # "items": [
plan {spec} --pools rl/pools.yaml           # PROVEN
package {spec}                              # 0.1.0
"""
_TMUX = """
package rl/experiment.yaml --set groups.client.replicas=3       # 0.1.1
import compose compose.yaml                 # web
up rl/experiment.yaml --wait
ls -a                                       # rl
p rl                                        # client
logs client/0 rl                            # heard
describe rl                                 # server
up web.json
wait web --for ready --timeout 60s
exec web web -- sh -c 'echo inside'         # inside
visit --url-only page web                   # http://
top web --once                              # web
restart -e web
collect web --to collected
down web
ls -o name
up rl-py/experiment.py --wait
delete rl-py --yes
"""
_GIT = """
! git init --quiet --bare -b main charts.git
gitops init --install-from {installed_from}                     # next:
publish rl/experiment.yaml --env dev                            # 0.1.0
promote rl --from dev --to prod                                 # 0.1.0
publish rl/experiment.yaml --env dev --set groups.client.replicas=3     # 0.1.1
diff rl 0.1.0 0.1.1                         # client
rollback rl --env dev                       # 0.1.0
publish rl/experiment.yaml --env dev --set groups.client.replicas=4     # 0.1.2
publish rl/experiment.yaml --env prod --version 0.3.0           # 0.3.0
history rl --env dev                        # rollback
status rl --env dev                         # 0.1.2
! git clone --quiet charts.git checkout
gitops lint checkout                        # 0 error
retire rl --env prod --yes
! openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout k.pem -out c.pem
"""
_CLUSTER = """
doctor --cluster -n default                 # cluster
install app.json {place} --create-namespace --wait --timeout 90s        # app
secrets push app.json {place}
secrets check app.json {place}
ls {there}                                  # app
process app {there}
describe app {there}
events app {there}
top app --once {there}
wait app --for ready --timeout 60s {there}
logs web app {there}                        # up
exec web app {there} -- sh -c 'echo inside' # inside
scp web:/etc/secrets/key.txt copied app {there}
! cat copied                                # hush
collect app --to from-cluster {there}
switch-experiment app {there}
upgrade app.json --set groups.web.replicas=2 {place} --wait --timeout 90s
history app {place}                         # 2
status app {place}                          # running
rollback app {place} --yes
uninstall app {place} --yes                 # web
sweep rl/experiment.yaml -g processes.client.replicas=1,2 --on kube --up {place} --timeout 90s
delete-batch rl-.* --yes {there}
install app.json {place} --name late        # late
delete late --yes {there}
ls {there}
"""


def _service(name: str, says: str = "", **more: object) -> dict[str, object]:
    command = f"{says}exec python3 -m http.server --bind $SYMPH_PAGE_BIND_HOST $SYMPH_PAGE_PORT"
    web = {"cmds": [command], "lifecycle": "service", "binds": "page", "grace_period": 1}
    return {"name": name, "image": "python:3.12-slim", "processes": {"web": web}, **more}


def local_steps(user: Journey, version: str) -> None:
    """Go from a new folder over charts and plans to an experiment in tmux."""
    user.symph("--version", says=version)
    user.run(str(user.programs / "symphony"), "--version", says=version)
    user.walk(_TOOLS)
    for name, spec in (("rl", "experiment.yaml"), ("rl-py", "experiment.py")):
        made = sorted(path.name for path in (user.work / name).rglob("*"))
        user.expect(f"init makes its files: {name}", made == [".gitignore", "counter.py", spec, "pools.yaml"], made)
        user.walk(_CHARTS.format(spec=f"{name}/{spec}"))
    user.write("compose.yaml", "services: {web: {image: 'nginx:1', ports: ['8080:80']}}\n")
    user.write("web.json", _service("web"))
    user.walk(_TMUX)


def git_steps(user: Journey) -> None:
    """Go from the first commit of a repository to a publish after a rollback."""
    environments = "environments:\n  dev: {namespace: rl-dev}\n  prod: {namespace: rl-prod}\n"
    user.write(".symph.yaml", f"team: ml\nrepository: {user.work}/charts.git\n{environments}")
    user.walk(_GIT.format(installed_from=_INSTALLED_FROM))


def extra_steps(user: Journey, extras: frozenset[str]) -> None:
    """Try the additions of each extra, and the message without it."""
    has = extras | ({"seal", "argo", "top"} if "all" in extras else set())
    flows = "from symphony_charts.clusters.hera_flows import hera_flows; print(list(hera_flows('rl/experiment.yaml')))"
    for extra, code, there, missing in (
        ("argo", flows, "WorkflowTemplate", "ToolMissing"),
        ("top", "import symphony_charts.cli.cockpit", "", "textual"),
    ):
        says = there if extra in has else missing
        user.run(str(user.programs / "python"), "-c", code, status=0 if extra in has else 1, says=says)
    processes = {"w": {"cmds": ["echo loss=$X"], "env": {"X": "0"}, "restart": "never"}}
    user.write("tune.json", {"name": "tune", "processes": processes})
    user.write("key.txt", "hush")
    sealed = {"secrets": ["key.txt"], "secret_source": {"source": "sealed"}, "processes": {"a": {"cmds": ["true"]}}}
    user.write("sealed.json", {"name": "s", "image": "busybox:1", **sealed})
    for extra, line, says in (
        ("optuna", "sweep tune.json --grid x=1,2 --search 1 --up --metric loss", "tune-x"),
        ("argo", "sweep rl/experiment.yaml --grid processes.client.replicas=1,2 --on argo --dry-run", "rl-sweep"),
        ("torchx", "import torchx dist.ddp -- -j 1x1 --script main.py", "dist"),
        ("seal", "secrets seal sealed.json -n ml --cert c.pem", "sealed"),
    ):
        user.symph(*line.split(), status=0 if extra in has else 5, says=says if extra in has else "[")


def cluster_steps(user: Journey, namespace: str) -> None:
    """Install, look at, enter, change and remove releases and experiments."""
    user.write("key.txt", "hush")
    user.write("app.json", _service("app", "echo up; ", secrets=["key.txt"]))
    place, there = f"-n {namespace}", f"--on kube -n {namespace}"
    looking, ending = _CLUSTER.split("collect", 1)
    user.walk(looking.format(place=place, there=there))
    user.symph("ssh", "web", "app", *there.split(), stdin="echo shell\n", says="shell")
    user.begins("visit", "--url-only", "page", "app", *there.split(), says="http://127.0.0.1:")
    user.walk(f"collect{ending}".format(place=place, there=there))
