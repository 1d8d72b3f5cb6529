from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import SpecError, UsageError
from symphony_charts.formats.names import DNS_LABEL
from symphony_charts.spec.data import from_data
from symphony_charts.sweep.trials import Axis, Span, Trial, apply, parse_axis, parse_points, parse_span, trials

EXPERIMENT = from_data(
    {
        "name": "rl",
        "image": "a/b:1",
        "processes": {"agent": {"args": ["x", "y"], "env": {"LR": "1"}, "replicas": 2}},
        "groups": {"g": {"processes": {"tb": {"env": {"LR": "1", "OTHER": "o"}}}}},
    }
)

keys = st.from_regex(r"[a-z][a-z_.]{0,12}[a-z]", fullmatch=True)
axes = st.lists(
    st.builds(Axis, key=keys, values=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map(tuple)),
    min_size=1,
    max_size=3,
    unique_by=lambda axis: axis.key,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("lr=1e-3,1e-4", ("1e-3", "1e-4")),
        ("seed=0..3", ("0", "1", "2", "3")),
        ("seed=3..1", ("3", "2", "1")),
        ("x=0..0.3..0.1", ("0", "0.1", "0.2", "0.3")),
        ("x=1,2..3,1", ("1", "2", "3")),
        ("path=a..b", ("a..b",)),
        ("e=a=b", ("a=b",)),
    ],
)
def test_an_axis_lists_its_values_once_and_in_order(text: str, values: tuple[str, ...]) -> None:
    assert parse_axis(text).values == values


@pytest.mark.parametrize("text", ["x=1e-3,0.001", "x=0.1,0.10", "x=1..2,1.0,2e0"])
def test_values_that_are_equal_as_numbers_are_one_and_are_told(text: str) -> None:
    axis = parse_axis(text)
    assert len({float(value) for value in axis.values}) == len(axis.values)
    assert axis.equal


@pytest.mark.parametrize("text", ["x=007,7", "x=1_0,10", "x=3.1a,3.10a", "x=a,A"])
def test_texts_are_equal_only_to_themselves(text: str) -> None:
    assert len(parse_axis(text).values) == 2


def test_each_point_of_a_list_is_combined_with_the_grid() -> None:
    points = parse_points("lr, seed\n0.1,0\n\n0.3, 1\n0.30,1.0\n", "p.csv")
    made = trials("rl", [parse_axis("x=a,b")], (), points)
    assert [tuple(one.settings.items()) for one in made] == [
        (("lr", "0.1"), ("seed", "0"), ("x", "a")),
        (("lr", "0.1"), ("seed", "0"), ("x", "b")),
        (("lr", "0.3"), ("seed", "1"), ("x", "a")),
        (("lr", "0.3"), ("seed", "1"), ("x", "b")),
    ]


@pytest.mark.parametrize(
    "text", ["", "lr,seed", "lr,lr\n1,2", "lr,seed\n1", "lr,seed\n1,2,3", "lr,seed\n1,", ",a\n1,2"]
)
def test_what_is_no_list_of_points_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_points(text, "p.csv")


@pytest.mark.parametrize(
    "text",
    [
        *("lr", "=1", "lr=", "lr=1,,2", "x=0..1..0", "x=0..1..-1", "x=0..99999999"),
        *("x=0.1..0.5", "x=1e-3..1e-1", "x=1...5", "x=1..", "x=..5", "x=1,2..", "x=0.1:0.5", "x=1:9:2", "x=1;2"),
        *("x=1 2", "x=[1,2]", "x=(1,2)", "x={1,2}", 'x="1,2"', "x=range(3)", "x=np.linspace(0,1,5)"),
    ],
)
def test_what_is_no_axis_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_axis(text)


@pytest.mark.parametrize(
    ("text", "is_log"), [("x=2..1", False), ("x=a..b", False), ("x=0..1", True), ("x=1..inf", False)]
)
def test_what_is_no_span_is_a_usage_error(text: str, is_log: bool) -> None:
    with pytest.raises(UsageError):
        parse_span(text, is_log=is_log)


def test_every_combination_is_a_trial_with_the_last_setting_changing_fastest() -> None:
    found = trials("rl", [parse_axis("lr=1e-3,1e-4"), parse_axis("seed=0..1")])
    assert [trial.name for trial in found] == [
        "rl-lr1e-3-seed0",
        "rl-lr1e-3-seed1",
        "rl-lr1e-4-seed0",
        "rl-lr1e-4-seed1",
    ]
    assert found[2].settings == {"lr": "1e-4", "seed": "0"}


@given(axes)
def test_trials_have_names_of_their_own_that_kubernetes_takes(given_axes: list[Axis]) -> None:
    found = trials("rl", given_axes)
    assert len({trial.name for trial in found}) == len(found)
    assert all(DNS_LABEL.fullmatch(trial.name) and len(trial.name) <= 40 for trial in found)
    assert len({tuple(trial.settings.items()) for trial in found}) == len(found)


@given(axes, st.integers(1, 20), st.integers())
def test_drawn_trials_depend_on_the_seed_alone_and_are_of_the_grid(
    given_axes: list[Axis], draw: int, seed: int
) -> None:
    found = trials("rl", given_axes, draw=draw, chance=Random(seed))
    assert found == trials("rl", given_axes, draw=draw, chance=Random(seed))
    everything = [trial.settings for trial in trials("rl", given_axes)]
    assert len(found) == min(draw, len({tuple(each.items()) for each in everything}))
    assert all(trial.settings in everything for trial in found)


@given(st.floats(1e-6, 1), st.floats(1.1, 100), st.booleans())
def test_what_is_drawn_lies_within_its_span(low: float, factor: float, is_log: bool) -> None:
    span = Span(key="lr", low=low, high=low * factor, is_log=is_log)
    values = [float(trial.settings["lr"]) for trial in trials("rl", [], [span], draw=5, chance=Random(1))]
    assert all(low * (1 - 1e-5) <= value <= low * factor * (1 + 1e-5) for value in values)


def test_more_values_later_rename_no_trial() -> None:
    few = trials("rl", [parse_axis("seed=0..1")])
    many = trials("rl", [parse_axis("seed=0..9")])
    assert {trial.name for trial in few} < {trial.name for trial in many}


def test_too_many_trials_are_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match="10404 trials") as failure:
        trials("rl", [parse_axis("a=1..102"), parse_axis("b=1..102")])
    assert "--random" in failure.value.next


def test_a_span_without_a_number_of_trials_is_refused() -> None:
    with pytest.raises(UsageError, match="need the number of trials"):
        trials("rl", [], [parse_span("lr=1..2", is_log=False)])


def test_one_setting_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="lr is given twice"):
        trials("rl", [parse_axis("lr=1"), parse_axis("lr=2")])


def test_a_short_name_sets_the_variable_wherever_it_is_declared() -> None:
    made = apply(EXPERIMENT, Trial(name="t", settings={"lr": "0.5"}))
    assert made.name == "t"
    assert made.processes["agent"].env == {"LR": "0.5"}
    assert made.groups["g"].processes["tb"].env == {"LR": "0.5", "OTHER": "o"}


def test_a_path_sets_any_key_of_the_spec() -> None:
    settings = {"processes.agent.replicas": "8", "processes.agent.env.NEW": "1", "processes.agent.args[1]": "z"}
    agent = apply(EXPERIMENT, Trial(name="t", settings=settings)).processes["agent"]
    assert (agent.replicas, agent.env["NEW"], agent.args) == (8, "1", ["x", "z"])


def test_all_settings_that_name_nothing_are_told_at_once() -> None:
    settings = {"lrr": "1", "processes.agnt.replicas": "2", "processes.agent.args[9]": "z"}
    with pytest.raises(SpecError) as failure:
        apply(EXPERIMENT, Trial(name="t", settings=settings))
    assert [problem.path for problem in failure.value.problems] == ["sweep.lrr", *list(settings)[1:]]
    assert "LR" in failure.value.problems[0].next
    assert '"agent"' in failure.value.problems[1].next


def test_a_value_that_the_spec_refuses_is_told_with_its_path() -> None:
    with pytest.raises(SpecError, match="replicas"):
        apply(EXPERIMENT, Trial(name="t", settings={"processes.agent.replicas": "many"}))
