"""Measuring: by a clock of the test's own, so that nothing here depends on how fast the machine is."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import chain
from tests.core.builder.rival_kernels import brisk, compiled, toilsome

from dryfit.builder.config.timing_cache import TimingCache
from dryfit.builder.kernels.timing import LEAST_RUNS, MOST_RUNS, KernelTimes, group_signature, least_microseconds
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import HostLayout, kernel


def rectifier():
    network = chain("r")
    return LayerGroup((network.layer("r0"),)), {tensor.name: tensor.spec for tensor in network.tensors}


class Clock:
    """Says that the runs take these seconds, one after another; the last for all that follow."""

    def __init__(self, *seconds):
        self._seconds = list(seconds)
        self._now = 0.0
        self.runs = 0

    def __call__(self):
        self.runs += 0.5
        if not self.runs % 1:
            self._now += self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0]
        return self._now


def microseconds(kernel, group, specs, clock):
    """The time of the one kernel, which does not fail."""
    times, failures = least_microseconds([kernel], group, specs, clock)
    assert not failures
    return times[kernel.name]


def test_the_least_time_of_the_runs_counts_because_all_that_disturbs_makes_it_longer():
    clock = Clock(0.09, 0.001, 0.002)
    assert microseconds(brisk, *rectifier(), clock) == pytest.approx(1000)
    assert clock.runs == LEAST_RUNS


def test_rivals_take_turns_so_that_a_burst_of_other_work_meets_all_of_them():
    order = []

    def rival(name):
        @kernel(f"acme.{name}", kinds="activation", data_types="fp32")
        def noting(binding):
            return lambda: order.append(name)

        return noting

    # The machine is busy in the first turn, and quiet afterwards: the second kernel is the faster in both.
    clock = Clock(0.05, 0.04, 0.005, 0.004, 0.005, 0.004)
    times, _ = least_microseconds([rival("a"), rival("b")], *rectifier(), clock)
    assert "".join(order) == "ab" + LEAST_RUNS * "ab"
    assert times == {"acme.a": pytest.approx(5e3), "acme.b": pytest.approx(4e3)}


def test_a_kernel_that_fails_in_a_later_run_is_left_out():
    runs = []

    @kernel("acme.tiring", kinds="activation", data_types="fp32")
    def tiring(binding):
        def run():
            runs.append(1)
            if len(runs) == 3:
                raise RuntimeError("enough")

        return run

    times, failures = least_microseconds([tiring, brisk], *rectifier(), Clock(0.1))
    assert times.keys() == {"acme.brisk"}
    (failure,) = failures
    assert failure.startswith("acme.tiring: ")
    assert "RuntimeError: enough" in failure
    assert len(runs) == 3


def test_a_slow_kernel_runs_three_times_and_a_fast_one_more_often_but_not_for_ever():
    slow, fast = Clock(0.1), Clock(1e-9)
    microseconds(brisk, *rectifier(), slow)
    assert microseconds(brisk, *rectifier(), fast) > 0
    assert (slow.runs, fast.runs) == (LEAST_RUNS, MOST_RUNS)


def test_a_kernel_whose_run_takes_long_is_measured_once():
    clock = Clock(2.0)
    assert microseconds(brisk, *rectifier(), clock) == pytest.approx(2e6)
    assert clock.runs == 1


def test_rivals_are_measured_on_the_same_arrays_and_inputs_are_random_numbers():
    seen = []

    def rival(name):
        @kernel(f"acme.{name}", kinds="activation", data_types="fp32")
        def noting(binding):
            seen.append((binding.inputs[0], binding.outputs[0]))
            return lambda: None

        return noting

    least_microseconds([rival("a"), rival("b")], *rectifier(), Clock(0.1))
    (first, second), (again, output) = seen
    assert first is again
    assert second is output
    assert first.std() > 0.5


def test_a_first_run_is_not_counted_because_the_kernel_may_compile_itself_in_it():
    runs = []

    @kernel("acme.counting", kinds="activation", data_types="fp32")
    def counting(binding):
        return lambda: runs.append(1)

    clock = Clock(1.0)
    microseconds(counting, *rectifier(), clock)
    assert len(runs) == clock.runs + 1


def test_a_kernel_is_measured_on_numbers_in_the_layout_that_it_asks_for():
    seen = []

    @kernel("acme.looking", kinds="activation", data_types="fp32", layout=HostLayout.CHANNELS_LAST, workspace_bytes=100)
    def looking(binding):
        return lambda: seen.append((binding.inputs[0], binding.workspace))

    microseconds(looking, *rectifier(), Clock(1.0))
    x, workspace = seen[0]
    assert x.strides[1] == x.itemsize
    assert np.isfinite(x).all()
    assert x.std() > 0.5
    assert workspace.shape == (100,)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT8, DataType.BOOL, DataType.HALF, DataType.BF16])
def test_inputs_of_every_type_can_be_filled(dtype):
    network = Network()
    identity = network.add_identity(network.add_input("x", dtype, (2, 3)))
    network.mark_output(identity.get_output(0))
    specs = {tensor.name: tensor.spec for tensor in network.tensors}

    @kernel("acme.any", kinds="identity", data_types=DataType)
    def copy(binding):
        (x,), (y,) = binding.inputs, binding.outputs
        return lambda: np.copyto(y, x)

    assert microseconds(copy, LayerGroup((identity,)), specs, Clock(1.0)) == pytest.approx(1e6)


def test_the_cache_is_asked_first_and_told_afterwards():
    group, specs = rectifier()
    cache, clock = TimingCache(), Clock(3.0)
    times = KernelTimes(lambda: specs, lambda: cache, clock=clock)
    assert times.microseconds([brisk], group) == {"acme.brisk": pytest.approx(3e6)}
    runs = clock.runs
    assert times.microseconds([brisk], group) == {"acme.brisk": pytest.approx(3e6)}
    assert clock.runs == runs
    assert times.microseconds([brisk, compiled], group).keys() == {"acme.brisk", "acme.compiled"}
    assert clock.runs > runs


def test_a_kernel_that_fails_is_left_out_with_a_warning(caplog):
    def fail(binding):
        raise RuntimeError("the board is on fire")

    group, specs = rectifier()
    broken = attrs.evolve(toilsome, bind=fail)
    times = KernelTimes(lambda: specs, clock=Clock(1.0))
    assert times.microseconds([brisk, broken], group).keys() == {"acme.brisk"}
    assert "r0: a kernel fails and is left out: acme.toilsome: RuntimeError: the board is on fire" in caplog.text
    with pytest.raises(BuildError, match=r"layer 'r0'.*the board is on fire"):
        times.microseconds([broken], group)


def test_empty_and_unknown_shapes_are_not_measured():
    group, specs = rectifier()
    for extent in (0, -1):
        other = {name: attrs.evolve(spec, shape=(extent, 8, 6, 6)) for name, spec in specs.items()}
        assert KernelTimes(lambda other=other: other).microseconds([brisk], group) is None


# Signatures -----------------------------------------------------------------------------------------------------------


def signature(network, *names):
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    return group_signature(LayerGroup([network.layer(name) for name in names]), specs)


def sum_network(same, name="sum"):
    network = Network()
    x, y = (network.add_input(one, DataType.FLOAT, (2, 3)) for one in "xy")
    layer = network.add_elementwise(x, x if same else y, ElementWiseOperation.SUM)
    network.rename_layer(layer, name)
    network.mark_output(layer.get_output(0))
    return network


def test_groups_that_differ_in_names_and_weights_only_have_one_signature():
    first, second = chain("c", "r"), chain("e", "c", "r")
    assert signature(first, "c0", "r1") == signature(second, "c1", "r2")
    assert signature(sum_network(False, "sum"), "sum") == signature(sum_network(False, "other"), "other")


def test_kinds_parameters_shapes_and_connections_are_in_the_signature():
    one = signature(chain("c", "r"), "c0", "r1")
    assert "kernel=FLOAT[8, 8, 3, 3]" in one
    assert one.endswith("+ activation(%1; activation_type=RELU) FLOAT[1, 8, 6, 6] -> FLOAT[1, 8, 6, 6]")
    others = [
        signature(chain("c", "e"), "c0", "e1"),
        signature(chain("c", "r"), "c0"),
        signature(chain("c", "r", shape=(2, 8, 6, 6)), "c0", "r1"),
    ]
    assert len({one, *others}) == 4
    assert signature(sum_network(False), "sum") != signature(sum_network(True), "sum")
