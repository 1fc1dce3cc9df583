import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.engine.test_binding import shares_memory

from dryfit.engine import memory_planner
from dryfit.engine.buffers import arena_arrays
from dryfit.engine.memory_planner import largest_live_set, plan_memory
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.target.kernels import HostLayout


@st.composite
def lives(draw):
    size = draw(st.integers(0, 5000))
    first = draw(st.integers(0, 40))
    return size, first, first + draw(st.integers(0, 12))


def overlapping(buffers, plan):
    """Pairs of buffers that share a step and a byte."""
    return [
        (a, b)
        for a, (size_a, first_a, last_a) in enumerate(buffers)
        for b, (size_b, first_b, last_b) in enumerate(buffers[:a])
        if first_a <= last_b
        and first_b <= last_a
        and plan.offsets[a] < plan.offsets[b] + size_b
        and plan.offsets[b] < plan.offsets[a] + size_a
    ]


def largest_live_set_by_steps(buffers, alignment):
    steps = {step for _, first, last in buffers for step in (first, last)}
    return max(
        (
            sum(-(-size // alignment) * alignment for size, first, last in buffers if first <= step <= last)
            for step in steps
        ),
        default=0,
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(lives(), max_size=40), st.sampled_from([1, 64, 256]))
def test_buffers_that_live_together_never_overlap(buffers, alignment):
    plan = plan_memory(buffers, alignment)
    assert overlapping(buffers, plan) == []
    assert all(offset % alignment == 0 for offset in plan.offsets)
    assert all(offset + size <= plan.total for offset, (size, _, _) in zip(plan.offsets, buffers, strict=True))
    assert plan.total >= largest_live_set(buffers, alignment) == largest_live_set_by_steps(buffers, alignment)


@settings(max_examples=60, deadline=None)
@given(st.lists(lives(), max_size=40))
def test_each_order_of_placing_is_sound_by_itself(buffers):
    live = [index for index, (size, _, _) in enumerate(buffers) if size]
    for priority in memory_planner._PRIORITIES:
        order = sorted(live, key=lambda index: priority(buffers[index]))
        assert overlapping(buffers, memory_planner._place_in_order(buffers, order)) == []
        for advance in memory_planner._ADVANCES:
            assert overlapping(buffers, memory_planner._repaired(buffers, list(order), advance, 3, 1)) == []
    assert overlapping(buffers, memory_planner._place_in_time(buffers, live)) == []
    capacity = largest_live_set(buffers, 1)
    assert overlapping(buffers, memory_planner._place_from_both_ends(buffers, live, capacity)) == []


def test_a_plan_that_is_too_wide_to_compare_pairs_is_still_sound(monkeypatch):
    monkeypatch.setattr(memory_planner, "STEPS_ALLOWED", 0)
    generator = np.random.default_rng(1)
    firsts = generator.integers(0, 60, 200)
    buffers = [(int(generator.integers(1, 999)), int(first), int(first + generator.integers(0, 9))) for first in firsts]
    assert overlapping(buffers, plan_memory(buffers)) == []


def test_the_same_buffers_always_lie_at_the_same_place():
    buffers = [(64 * (index % 7), index // 3, index // 3 + index % 5) for index in range(200)]
    assert plan_memory(buffers) == plan_memory(list(buffers))


def test_a_chain_of_layers_takes_its_largest_pair_of_neighbours():
    sizes = [64 * int(size) for size in np.random.default_rng(1).integers(1, 99, 1000)]
    chain = [(size, step, step + 1) for step, size in enumerate(sizes)]
    assert plan_memory(chain).total == max(a + b for a, b in itertools.pairwise(sizes))


def test_a_buffer_of_no_bytes_takes_no_room():
    assert plan_memory([(0, 0, 9), (64, 0, 9)]) == ([0, 0], 64)


def test_a_single_buffer_is_aligned_up():
    assert plan_memory([(1, 0, 0)], alignment=64).total == 64


@pytest.mark.parametrize("buffer", [(-1, 0, 1), (8, 3, 2)])
def test_a_buffer_that_cannot_be_is_refused_by_its_number(buffer):
    with pytest.raises(BuildError, match="buffer 1"):
        plan_memory([(8, 0, 1), buffer])


@shares_memory
def test_workspaces_of_several_threads_begin_at_one_address_apart_from_tensors():
    spec = TensorSpec((100,), DataType.FLOAT)
    tensors = {name: (spec, HostLayout.LINEAR, step, step + 1) for step, name in enumerate("abc")}
    arrays, workspaces = arena_arrays(tensors, [100, 0, 5000], num_threads=2)
    assert [len(one) for one in workspaces] == [100, 0, 5000]
    assert len({one.ctypes.data for one in workspaces if len(one)}) == 1
    assert not any(np.shares_memory(array, one) for array in arrays.values() for one in workspaces)


@shares_memory
def test_the_workspace_of_one_thread_takes_the_memory_of_tensors_that_are_not_live():
    spec = TensorSpec((2000,), DataType.FLOAT)
    arrays, workspaces = arena_arrays({"a": (spec, HostLayout.LINEAR, 0, 1)}, [0, 0, 5000])
    assert np.shares_memory(arrays["a"], workspaces[2])
