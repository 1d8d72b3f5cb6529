"""A random walk: users publish, promote, roll back, retire, tidy, edit by hand and rewind; a model gives the result."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import yaml
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from symphony_charts.formats.yaml_write import dump, dump_all
from tests.gitops.servers import commit, git
from tests.gitops.walk.model import Deployed, Key, Place, RefusedError, Runs, Tree, Values, merged
from tests.gitops.walk.world import Answer, Machine, Server, World, flat, nested

ENVS, NAMES, TEAMS = ("dev", "prod"), ("rl", "es"), ("ml", "ops")
REPLICAS, LIMIT = "groups.nap.replicas", "groups.nap.retries"
REVIEWS = ("review-a", "review-b")
WRITINGS = ("symph", "PyYAML", "JSON", "comments", "CRLF", "newer")
SETTINGS: tuple[Values, ...] = ({}, {REPLICAS: 8}, {REPLICAS: 8, LIMIT: 1})

envs, names, teams = st.sampled_from(ENVS), st.sampled_from(NAMES), st.sampled_from(TEAMS)
labels = st.sampled_from("1234")
machines = st.integers(0, 2)
given_values = st.sampled_from(({}, {}, {}, {REPLICAS: 3}, {LIMIT: 5}, {REPLICAS: None}, {REPLICAS: 4, LIMIT: 6}))


class GitWalk(RuleBasedStateMachine):
    """One world and its model: `trees` has the content of every commit that ever was a tip."""

    server: ClassVar[Server]
    steps: ClassVar[int] = 0
    numbers: ClassVar[Any] = itertools.count()
    worlds: ClassVar[Any] = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        folder = Path(tempfile.mkdtemp(prefix="symph-walk-")) / f"world-{os.getpid()}-{next(self.numbers)}"
        number = next(self.worlds)
        self.world = World(
            server=self.server,
            folder=folder,
            root="deploy/charts" if number % 3 == 2 else "",
            object_format="sha256" if number % 5 == 3 else "sha1",
        )
        if number % 2 == 1:
            source = {"metadata": {"name": "walk", "namespace": "flux-system"}}
            commit(self.world.bare, {self.world.path("bootstrap/flux-source.yaml"): dump(source)})
        chain = self.world.chain()
        self.trees: dict[str, Tree] = {commit: Tree() for commit in chain}
        self.parents: dict[str, str] = dict(zip(chain, [*chain[1:], ""], strict=True))
        self.labels: dict[str, str] = {}
        self.settings: dict[str, Values] = dict.fromkeys(ENVS, SETTINGS[0])
        self.places: dict[str, Place] = {env: ("", f"ns-{env}") for env in ENVS}
        self.version = 0
        self.stop: tuple[signal.Signals, float] | None = None
        self._configure()

    def teardown(self) -> None:
        if sys.exc_info()[0]:
            # Another run of the same steps, as hypothesis makes it, may meet other faults of the servers.
            traceback.print_exc(file=sys.stdout)
        git(self.world.bare, "fsck", "--strict")
        self.world.remove()
        shutil.rmtree(self.world.folder.parent, ignore_errors=True)

    @initialize(label=labels)
    def begin(self, label: str) -> None:
        """Run an experiment everywhere, so that walks start in an interesting state."""
        for env in ENVS:
            self.publish(0, env, "ml", "rl", label, {}, "")

    # Actions of users.

    @rule(
        who=machines, env=envs, team=teams, name=names, label=labels, given=given_values, way=st.sampled_from("   vrcd")
    )
    def publish(self, who: int, env: str, team: str, name: str, label: str, given: Values, way: str) -> None:
        """Publish; `way` is v for a named version, r for a branch, c for the chart alone, d for a dry run."""
        self.version += 1
        wanted = f"{self.version}.0.0" if way == "v" else None
        ref = REVIEWS[self.version % 2] if way == "r" else "main"
        if ref != "main" and self.world.tip(ref):
            git(self.world.bare, "update-ref", "-d", f"refs/heads/{ref}")  # as servers do with merged branches
        key, tree = (team, name), self.tree("main")
        version = tree.version_for(key, label, self.labels, wanted)
        words = ["publish", self.machine(who).write_spec(name, label), "--team", team]
        words += ["--chart-only"] if way == "c" else ["--env", env]
        words += ["--version", wanted] if wanted else []
        words += ["--branch", ref] if ref != "main" else []
        words += ["--dry-run"] if way == "d" else []
        if way != "c":
            for path, value in given.items():
                words += ["--env-unset", path] if value is None else ["--env-set", f"{path}={value}"]
        before = tree.runs.get(env, {}).get(key)
        answer = self.change(who, words, lambda: self._published(tree, key, version, env, label, given, way), ref)
        if answer.status:
            return
        (change,) = answer.record["changes"]
        assert change["version"] == version, (change, tree.charts.get(key, {}))
        assert change["isNew"] == (version not in tree.charts.get(key, {})), (change, tree.charts.get(key, {}))
        if way != "c":
            assert change["was"] == (before.now.version if before else None)
            assert change["run"] in self._runs(before, env, version, given), (change["run"], before)
        if way == "d":
            self.publish(who, env, team, name, label, given, "v" if wanted else "")
            assert sorted(change["paths"]) == sorted(self.last_paths), "a dry run says what is done"

    @rule(who=machines, team=teams, name=names, copies=st.booleans(), to_prod=st.booleans())
    def promote(self, who: int, team: str, name: str, copies: bool, to_prod: bool) -> None:
        """Promote the version of one environment to the other."""
        tree = self.tree("main")
        before, after = ENVS if to_prod else ENVS[::-1]
        words = ["promote", name, "--team", team, "--from", before, "--to", after]
        settings, place = self.settings[after], self.places[after]
        self.change(
            who,
            [*words, "--copy-values"] if copies else words,
            lambda: self._whole(
                tree.promoted((team, name), before, after, settings, place, copies=copies),
                (team, name),
                after,
            ),
        )

    @rule(who=machines, env=envs, team=teams, name=names)
    def rollback(self, who: int, env: str, team: str, name: str) -> None:
        words = ["rollback", name, "--team", team, "--env", env]
        key, tree = (team, name), self.tree("main")
        self.change(who, words, lambda: self._whole(tree.rolled_back(env, key), key, env))

    @rule(who=machines, env=envs, team=teams, name=names)
    def retire(self, who: int, env: str, team: str, name: str) -> None:
        words = ["retire", name, "--team", team, "--env", env, "--yes"]
        key, tree = (team, name), self.tree("main")

        def after() -> Tree:
            tree.running(env, key)
            return tree.run(env, key, None)

        self.change(who, words, after)

    @rule(who=machines, keep=st.integers(1, 3))
    def tidy(self, who: int, keep: int) -> None:
        tree = self.tree("main")
        self.change(who, ["gitops", "gc", "--keep", str(keep), "--yes"], lambda: tree.tidied(keep))

    @rule(who=machines, env=envs)
    def render(self, who: int, env: str) -> None:
        """Print manifests; nothing is written."""
        tip = self.world.tip()
        answer = self.machine(who).symph("gitops", "render", "--env", env, "-o", "json")
        assert answer.status == 0, answer.err
        assert bool(answer.record["items"]) == bool(self.tree("main").runs.get(env))
        assert self.world.tip() == tip

    @rule(who=machines, env=envs)
    def look(self, who: int, env: str) -> None:
        """Check that status and history agree with the model."""
        runs = self.tree("main").runs.get(env, {})
        answer = self.machine(who).symph("status", "--env", env, "-o", "json")
        assert answer.status == 0, answer.err
        items = answer.record["items"]
        # A branch that waits for review has its own row, beside the running versions.
        assert {row["branch"] for row in items if row.get("branch")} <= set(REVIEWS)
        rows = {(row["team"], row["name"]): row for row in items if not row.get("branch")}
        told = {key: row["version"] for key, row in rows.items()}
        assert told == {key: each.now.version for key, each in runs.items()}, (told, answer.err)
        for team, name in list(runs)[:1]:
            answer = self.machine(who).symph("history", name, "--team", team, "--env", env, "-o", "json")
            assert answer.status == 0, answer.err
            ran = runs[team, name]
            entries = [row["version"] for row in answer.record["items"]]
            # A restored pointer has its retirement, and its previous deployment, between its entries.
            was_retired = any(row["op"] == "retire" for row in answer.record["items"])
            versions = [entry.version for entry in (ran.now, *ran.history)]
            rest = iter(entries)
            assert all(version in rest for version in versions) if was_retired else entries[: len(versions)] == versions

    @rule(who=machines, env=envs, label=labels)
    def compare(self, who: int, env: str, label: str) -> None:
        """Check that `diff` shows the effect of a publish, and changes nothing."""
        if not (before := self.tree("main").runs.get(env, {}).get(("ml", "rl"))):
            return
        spec = self.machine(who).write_spec("rl", label)
        answer = self.machine(who).symph("diff", spec, "--team", "ml", "--env", env, "-o", "json")
        assert answer.status == 0, answer.err
        if before.place != self.places[env]:
            assert answer.record["outcome"] == "new run"
            assert self.places[env][1] in answer.record["summary"], "it is said where it goes"

    # Other events.

    @rule(env=envs, values=st.sampled_from(SETTINGS), moves=st.integers(0, 4))
    def settle(self, env: str, values: Values, moves: int) -> None:
        """Change the settings: values of an environment, and sometimes its namespace or its cluster."""
        self.settings[env] = values
        cluster, namespace = self.places[env]
        if moves == 3:
            namespace = f"ns-{env}" if namespace.endswith("-2") else f"ns-{env}-2"
        if moves == 4:
            cluster = "" if cluster else "big"
        self.places[env] = (cluster, namespace)
        self._configure()

    @rule(back=st.integers(1, 3))
    def rewind(self, back: int) -> None:
        """Remove the last commits, as an administrator."""
        chain = self.chain("main")
        if len(chain) > back:
            git(self.world.bare, "update-ref", "refs/heads/main", chain[back])

    @rule(back=st.integers(1, 2))
    def purge(self, back: int) -> None:
        """Restart the history from the content of a few commits ago, as an administrator."""
        chain = self.chain("main")
        if len(chain) > back:
            argv = ["commit-tree", f"{chain[back]}^{{tree}}", "-m", f"purged {next(self.numbers)}"]
            new = git(self.world.bare, *argv).strip()
            # The removed commits contained the retirements.
            self.trees[new], self.parents[new] = replace(self.trees[chain[back]], retired={}), ""
            git(self.world.bare, "update-ref", "refs/heads/main", new)

    @rule(env=envs, team=teams, name=names, value=st.integers(20, 22), way=st.sampled_from(WRITINGS))
    def edit_values(self, env: str, team: str, name: str, value: int, way: str = WRITINGS[0]) -> None:
        """Edit an environment's values in Git by hand, with another writer of YAML."""
        tree, key = self.tree("main"), (team, name)
        runs = tree.runs.get(env, {}).get(key)
        if runs is None:
            return
        values = {**runs.now.values, REPLICAS: value}
        path = _pointer(env, key)
        text = git(self.world.bare, "show", f"main:{self.world.path(path)}")
        documents: list[Any] = list(yaml.safe_load_all(text))
        # A rewind may have taken the commit away that made the repository one for Flux.
        is_release = documents[0].get("kind") == "HelmRelease"
        (documents[0]["spec"] if is_release else documents[0])["values"] = nested(values)
        if way == "newer":
            documents[-1] |= {"apiVersion": "symph.dev/v1.1", "approvedBy": ["cy"]}
        now = Deployed(version=runs.now.version, values=values, settings=runs.now.settings)
        after = Runs(now=now, place=runs.place, history=runs.history)
        self._by_hand({path: _written(documents, way)}, tree.run(env, key, after))

    @rule(env=envs, team=teams, name=names)
    def delete_pointer(self, env: str, team: str, name: str) -> None:
        """Delete a pointer in Git by hand: its experiment ends, without a retirement that could be rolled back."""
        tree, key = self.tree("main"), (team, name)
        if key in tree.runs.get(env, {}):
            after = replace(
                tree.run(env, key, None), retired={k: v for k, v in tree.retired.items() if k != (env, key)}
            )
            self._by_hand({_pointer(env, key): None}, after)

    @rule(number=st.integers(0, 3))
    def edit_chart(self, number: int) -> None:
        """Edit a published chart in Git by hand, which is not allowed."""
        tree = self.tree("main")
        places = sorted((key, version) for key, versions in tree.charts.items() for version in versions)
        if not places:
            return
        key, version = places[number % len(places)]
        path = f"charts/{key[0]}/{key[1]}/{version}"
        text = (
            git(self.world.bare, "show", f"main:{self.world.path(path)}/README.md") + f"\nby hand {next(self.numbers)}"
        )
        self._by_hand({f"{path}/README.md": text}, tree)
        oid = self.world.entries()[path]
        self.labels[oid] = f"by hand {oid}"
        self.trees[self.world.tip()] = tree.add_chart(key, version, oid)

    @rule(text=st.integers(0, 9))
    def edit_else(self, text: int) -> None:
        """Edit an unrelated file."""
        names = ("NOTES.md", "envs/README.md", "charts/ml/README.md", "bootstrap/own.yaml", ".gitattributes")
        self._by_hand({names[text % len(names)]: f"# {text} {next(self.numbers)}\n"}, self.tree("main"))

    @rule(
        who=machines,
        what=st.sampled_from(
            ["all", "HEAD", "objects/pack", "refs", "config", "shallow", "packed-refs", "../tip", "../blobs"]
        ),
    )
    def lose_cache(self, who: int, what: str) -> None:
        """Lose a machine's cache, or a part of it."""
        machine = self.machine(who)
        machine.forget() if what == "all" else machine.damage(what)

    @rule(how=st.sampled_from((signal.SIGKILL, signal.SIGINT)), tenths=st.integers(2, 12))
    def stop_next(self, how: signal.Signals, tenths: int) -> None:
        """Kill or interrupt the next command that writes: it is done as a whole or has no effect, also later."""
        self.stop = how, tenths / 10

    # Invariants after each of them.

    @invariant()
    def the_repository_is_what_the_model_says(self) -> None:
        """Compare tree, pointers and history with the model."""
        type(self).steps += 1
        for ref in ("main", *REVIEWS):
            if self.world.tip(ref):
                self._check(ref)

    def _check(self, ref: str) -> None:
        assert self.world.chain(ref) == self.chain(ref), "nothing that was taken back returns"
        tree, entries = self.tree(ref), self.world.entries(ref)
        charts = {path: oid for path, oid in entries.items() if path.startswith("charts/") and path.count("/") == 3}
        assert charts == {
            f"charts/{key[0]}/{key[1]}/{version}": oid
            for key, versions in tree.charts.items()
            for version, oid in versions.items()
        }
        expected = {_pointer(env, key): runs for env, each in tree.runs.items() for key, runs in each.items()}
        pointers = self.world.read([path for path in entries if path.endswith(".symph-app.yaml")], ref)
        assert pointers.keys() == expected.keys()
        for path, runs in expected.items():
            pointer = pointers[path]
            assert (pointer["version"], flat(pointer["values"])) == (runs.now.version, runs.now.values), path
            assert (pointer["destination"]["name"], pointer["destination"]["namespace"]) == runs.place, path
            assert pointer["chart"] in charts
            history = [(entry["version"], flat(entry["values"])) for entry in pointer["history"]]
            assert history == [(entry.version, entry.values) for entry in runs.history], path

    def machine(self, who: int) -> Machine:
        return self.world.machines[who % len(self.world.machines)]

    def tree(self, ref: str) -> Tree:
        return self.trees[self.world.tip(ref)]

    def chain(self, ref: str) -> list[str]:
        """Return the commits of a branch, newest first, by the model."""
        commits, now = [], self.world.tip(ref)
        while now:
            commits.append(now)
            now = self.parents[now]
        return commits

    def change(self, who: int, words: list[str], after: Callable[[], Tree], ref: str = "main") -> Answer:
        """Run a command that changes the repository as `after` returns, or is refused with the error it raises."""
        tip = self.world.tip(ref) or self.world.tip()
        before = self.world.entries()
        stop, self.stop = self.stop, None
        if stop:
            answer = self.machine(who).stopped(*stop, *words, "-o", "json")
            self.world.wait_until_idle()
        else:
            answer = self.machine(who).symph(*words, "-o", "json")
        if answer.was_stopped:
            new = self.world.tip(ref)
            if new not in (tip, ""):
                assert "--dry-run" not in words
                self.parents[new], self.trees[new] = tip, after()
            return answer
        try:
            tree = after()
        except RefusedError as error:
            tree, status = self.tree("main"), error.status
        else:
            status = 0
        assert answer.status == status, (words, answer.status, answer.err)
        if status:
            assert self.world.tip(ref) in (tip, ""), "what is refused changes nothing"
            return answer
        if "--dry-run" in words:
            assert self.world.tip() == tip
            return answer
        self._landed(answer, ref, tip, tree)
        now = self.world.entries(ref) if self.world.tip(ref) else before
        self.last_paths = answer.record["changes"][0]["paths"]
        for path, what in self.last_paths.items():
            assert (path in now) == (what == "write"), path
        return answer

    def _landed(self, answer: Answer, ref: str, tip: str, tree: Tree) -> None:
        """Check that the receipt names the tip if that is new, and that its parent is the previous one."""
        now = self.world.tip(ref)
        assert answer.record["commit"] == (now if now not in (tip, "") else None)
        if now and now != tip:
            self.parents[now], self.trees[now] = tip, tree
        else:
            assert tree == self.trees[tip], "something was to change"

    def _published(self, tree: Tree, key: Key, version: str, env: str, label: str, given: Values, way: str) -> Tree:
        if way != "d" and version not in tree.charts.get(key, {}):
            entries = self.world.entries(REVIEWS[self.version % 2] if way == "r" else "main")
            oid = entries.get(f"charts/{key[0]}/{key[1]}/{version}", "")
            assert not oid or self.labels.setdefault(oid, label) == label
            tree = tree.add_chart(key, version, oid)
        if way == "c":
            return tree
        before = tree.runs.get(env, {}).get(key)
        settings, place = self.settings[env], self.places[env]
        values = merged(before.now if before else None, settings, given)
        now = Deployed(version=version, values=values, settings=settings)
        return tree.run(env, key, before.moved(now, place) if before else Runs(now=now, place=place))

    def _whole(self, tree: Tree, key: Key, env: str) -> Tree:
        """Return `tree`; raise RefusedError if the chart to run was edited by hand."""
        version = tree.running(env, key).now.version
        if self.labels[tree.charts[key][version]].startswith("by hand"):
            raise RefusedError(7)
        return tree

    def _runs(self, before: Runs | None, env: str, version: str, given: Values) -> tuple[str | None, ...]:
        """Return the allowed descriptions of the run in a receipt."""
        if before is None:
            return (None,)
        if before.place != self.places[env]:
            return ("new",)
        after = merged(before.now, self.settings[env], given)
        return ("same",) if (version, after) == (before.now.version, before.now.values) else ("same", "new", None)

    def _by_hand(self, files: Mapping[str, str | None], tree: Tree) -> None:
        tip = self.world.tip()
        new = commit(self.world.bare, {self.world.path(path): text for path, text in files.items()})
        self.parents[new], self.trees[new] = tip, tree

    def _configure(self) -> None:
        for machine in self.world.machines:
            machine.configure(
                {
                    env: {
                        "namespace": namespace,
                        "values": nested(self.settings[env]),
                        **({"cluster": cluster} if cluster else {}),
                    }
                    for env, (cluster, namespace) in self.places.items()
                }
            )


def _written(documents: list[Any], way: str) -> str:
    """Return documents as another program writes them."""
    if way == "symph":
        return dump_all(documents)
    if way == "JSON":
        return "---\n".join(f"{json.dumps(each)}\n" for each in documents)
    text = yaml.safe_dump_all(documents)
    return {"comments": f"# mine\n{text}", "CRLF": text.replace("\n", "\r\n")}.get(way, text)


def _pointer(env: str, key: Key) -> str:
    return f"envs/{env}/{key[0]}/{key[1]}.symph-app.yaml"
