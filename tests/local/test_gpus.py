"""Assignment of GPUs to processes: nvidia-smi's formats, CUDA_VISIBLE_DEVICES as CUDA reads it, and allocation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.local.plan.resources import (
    Gpu,
    assign_gpus,
    gpu_environment,
    gpu_requests,
    gpus_here,
    parse_gpus,
    visible,
)
from symphony_charts.spec.data import from_data
from tests.local.nvidia import LISTING, MIG_LISTING, gpu

FOUR = tuple(Gpu(index=number, id=gpu(number)) for number in range(4))
WISHES = st.lists(st.integers(1, 5), max_size=6).map(
    lambda counts: {f"p/{number}": count for number, count in enumerate(counts)}
)


def test_gpus_are_read_from_the_lines_of_nvidia_smi() -> None:
    assert parse_gpus(LISTING) == FOUR


def test_a_divided_gpu_stands_as_its_instances() -> None:
    found = parse_gpus(MIG_LISTING)
    assert [(one.index, one.id) for one in found] == [(0, gpu(0)), (1, "MIG-11111111-2222"), (1, "MIG-33333333-4444")]


def test_other_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="No devices"):
        parse_gpus("No devices were found")


@pytest.mark.parametrize(
    ("caller", "indexes"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", [2, 0]),
        ("0,2,-1,1", [0, 2]),
        ("1,9,0", [1]),
        ("1, 3", [1, 3]),
        ("1,1", [1]),
        (gpu(3), [3]),
        (f"{gpu(3)},{gpu(1)[:6]}", [3, 1]),
        ("GPU-", []),
        ("0x1", []),
    ],
)
def test_the_callers_choice_is_read_as_cuda_reads_it(caller: str | None, indexes: list[int]) -> None:
    assert [one.index for one in visible(FOUR, caller)] == indexes


def test_instances_are_chosen_by_either_form_of_their_ids() -> None:
    parts = parse_gpus(MIG_LISTING)
    old = "MIG-GPU-aaaa/1/0"
    assert [one.id for one in visible(parts, f"MIG-33333333-4444,{old}")] == ["MIG-33333333-4444", old]


@given(WISHES, st.integers(0, 8))
def test_no_gpu_is_dealt_twice_unless_shared(wishes: dict[str, int], count: int) -> None:
    gpus = [Gpu(index=number, id=gpu(number)) for number in range(count)]
    dealt = assign_gpus(wishes, gpus, share=False)
    given_out = [one for ids in (dealt or {}).values() for one in ids]
    assert len(set(given_out)) == len(given_out)
    assert (dealt is None) == (sum(wishes.values()) > count)


@given(WISHES, st.integers(1, 8))
def test_sharing_gives_each_process_different_gpus_as_evenly_as_can_be(wishes: dict[str, int], count: int) -> None:
    gpus = [Gpu(index=number, id=gpu(number)) for number in range(count)]
    dealt = assign_gpus(wishes, gpus, share=True)
    if dealt is None:
        assert any(wish > count for wish in wishes.values())
        return
    assert all(len(set(ids)) == len(ids) for ids in dealt.values())
    uses = [sum(one.id in ids for ids in dealt.values()) for one in gpus]
    assert max(uses) - min(uses) <= 1


def test_a_process_without_gpus_sees_none() -> None:
    assert gpu_environment((), None) == {"CUDA_VISIBLE_DEVICES": ""}
    assert gpu_environment((), "0,1") == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_numbers_that_the_experiment_sets_count_in_the_gpus_of_the_process() -> None:
    assert gpu_environment((gpu(2), gpu(3)), "1")["CUDA_VISIBLE_DEVICES"] == gpu(3)
    assert gpu_environment((gpu(2), gpu(3)), None)["CUDA_VISIBLE_DEVICES"] == f"{gpu(2)},{gpu(3)}"


def test_what_local_says_of_gpus_counts_here() -> None:
    data = {"gpus": 4, "command": ["c"], "local": {"gpus": 1}}
    assert gpus_here(from_data({"name": "x", "image": "i", "processes": {"a": data}}).processes["a"]) == 1


def test_symphonys_assign_to_gpu_asks_for_gpus() -> None:
    data = {"command": ["c"], "assign_to": {"assign_to": "gpu", "gpu_count": 2}}
    assert gpus_here(from_data({"name": "x", "image": "i", "processes": {"a": data}}).processes["a"]) == 2


def test_every_replica_asks_for_its_own() -> None:
    data = {"a": {"gpus": 2, "replicas": 2, "command": ["c"]}, "b": {"command": ["c"]}}
    wishes = gpu_requests(from_data({"name": "x", "image": "i", "processes": data}))
    assert wishes == {"a-0/a": 2, "a-1/a": 2}
