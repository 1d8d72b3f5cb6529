"""The next step of an error uses the place and options of the failed command line."""

from __future__ import annotations

import argparse

import pytest

from symphony_charts.cli import options
from symphony_charts.cli.error_report import placed
from symphony_charts.cli.parser import Symph
from symphony_charts.errors import NotFound


@pytest.mark.parametrize(
    ("words", "step", "wanted"),
    [
        ("wait bad --on kube -n w", "symph logs bad", "symph logs --on kube -n w bad"),
        ("wait bad --context c", "or look: symph p bad", "or look: symph p --context c bad"),
        ("secrets check e.yaml -n s", "symph secrets push e.yaml", "symph secrets -n s push e.yaml"),
        ("logs bad -n w", "symph ls --on kube shows all", "symph ls -n w --on kube shows all"),
        ("logs bad -n w", "symph logs bad -n other", "symph logs bad -n other"),
        ("wait bad -n w", "symph schema lists the keys, symph nothing none", None),
        ("sweep e.yaml --grid a=1", "symph logs e-a1", None),
        ("sweep e.yaml --grid a=1 --on argo -n w", "symph logs e-a1", "symph logs -n w e-a1"),
        ("wait bad", "symph logs bad", None),
        ("wait bad -n w", "give a --timeout", None),
    ],
)
def test_the_verbs_of_a_step_are_given_the_flags_that_they_take(words: str, step: str, wanted: str | None) -> None:
    symph = Symph()
    assert placed(step, symph.parse(words.split())) == (wanted or step)


class Failing(Symph):
    """A command with one verb that fails."""

    def setup(self) -> None:
        """Add the verb."""
        options.add_backend(self.add_subparser("fail"))

    def action_fail(self, _args: argparse.Namespace) -> int:
        """Fail."""
        raise NotFound("there is none", next="symph ls shows all")


def test_what_is_printed_goes_on_where_the_verb_looked(capsys: pytest.CaptureFixture[str]) -> None:
    assert Failing().main(["fail", "-n", "w"]) == 8
    assert "next: symph ls -n w shows all" in capsys.readouterr().err


def test_a_step_is_one_that_the_command_takes() -> None:
    symph = Symph()
    step = placed("symph secrets push e.yaml", symph.parse(["secrets", "check", "e.yaml", "-n", "s"]))
    again = symph.parse(step.split()[1:])
    assert (again.action, again.spec, again.namespace) == ("push", "e.yaml", "s")
