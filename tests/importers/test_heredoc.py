"""Files that scripts write are extracted only if the shell would write exactly the same bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from symphony_charts.integrations.common.scripts import lift, literal_body


def run(script: str, folder: Path, configs: dict[str, str]) -> str:
    """Return the text that a real shell writes to the file ``out`` under the script."""
    config_dir = folder / "config"
    config_dir.mkdir(exist_ok=True)
    for name, text in configs.items():
        (config_dir / name).write_text(text, newline="")
    env = {"PATH": "/usr/bin:/bin", "SYMPH_CONFIG_DIR": str(config_dir), "NAME": "value"}
    subprocess.run(["sh", "-c", script], cwd=folder, env=env, check=True, timeout=20, capture_output=True)
    with (folder / "out").open(newline="") as file:
        return file.read()


SCRIPTS = {
    "unquoted": "cat <<EOF > out\na\n  b\nEOF",
    "before": "cat > out <<EOF\na\nEOF",
    "single": "cat <<'EOF' > out\n$NAME `x` \\n\nEOF",
    "double": 'cat <<"EOF" > out\n$NAME\nEOF',
    "tabs": "cat <<-EOF > out\n\ta\n\t\tb\n\tEOF",
    "escapes": "cat <<EOF > out\n\\$NAME \\` \\\\ \\x cost: 5$ a$\nEOF",
    "joined-line": "cat <<EOF > out\na\\\nb\nEOF",
    "append": "printf x > out\ncat <<EOF >> out\na\nEOF",
    "tee": "tee out <<EOF >/dev/null\na\nEOF",
    "chain": "cat <<EOF > out && echo more >> out\na\nEOF",
    "variable": "cat <<EOF > out\n$NAME\nEOF",
    "command": "cat <<EOF > out\n$(echo hi)\nEOF",
    "empty": "cat <<EOF > out\nEOF",
    "path": "mkdir -p d\ncat <<EOF > ./d/../out\na\nEOF",
    "several": "cat <<A > one\n1\nA\ncat <<B > out\n2\nB",
    "inner-word": "cat <<EOF > out\n EOF\nEOF2\nEOF",
    "quotes-in-body": 'cat <<EOF > out\nit\'s "so"\nEOF',
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_the_lifted_script_writes_the_same_file(script: str, tmp_path: Path) -> None:
    lifted = lift(script, {})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert run(lifted.script, tmp_path / "b", lifted.files) == run(script, tmp_path / "a", {})


def test_a_file_and_what_follows_it_come_apart() -> None:
    lifted = lift("cat <<EOF > conf.py\na = 1\nEOF\nrun conf.py", {})
    assert lifted.files == {"conf.py": "a = 1\n"}
    assert lifted.script == 'cat < "$SYMPH_CONFIG_DIR/conf.py" > conf.py\nrun conf.py'


@pytest.mark.parametrize("script", [SCRIPTS["variable"], SCRIPTS["command"], "cat <<EOF > $OUT/\na\nEOF"])
def test_bodies_that_need_the_shell_stay_and_are_told(script: str) -> None:
    lifted = lift(script, {})
    assert (lifted.script, lifted.files, lifted.kept) == (script, {}, (1,))


@pytest.mark.parametrize(
    "script",
    [
        "cat <<EOF > out\nno end",
        "echo '<<EOF > out'\nEOF",
        "# cat <<EOF > out\nEOF",
        "cat <<<word > out",
        "cat <<A <<B > out\nA\nB",
    ],
)
def test_what_only_looks_like_a_file_stays(script: str) -> None:
    assert lift(script, {}).script == script


def test_a_name_that_holds_other_text_gets_a_number() -> None:
    assert list(lift("cat <<EOF > a.py\nnew\nEOF", {"a.py": "old\n"}).files) == ["a-2.py"]
    assert list(lift("cat <<EOF > a.py\nold\nEOF", {"a.py": "old\n"}).files) == ["a.py"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("ab$`\\ \n'\"(){}5_", max_size=24))
@example("$\\\n5")
@example("$\\\n(")
def test_a_literal_body_is_what_the_shell_writes(tmp_path: Path, body: str) -> None:
    literal = literal_body(f"{body}\n", is_quoted=False)
    if literal is not None:
        assert run(f"cat <<EOF > out\n{body}\nEOF", tmp_path, {}) == literal
