"""Tactics: which one runs a group is read from what was measured on this processor, else it is the kernel's first."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import chain

import dryfit
from dryfit.builder.config.timing_cache import SharedTimingCache, TimingCache, TimingCacheKey, save_timing_cache
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import kernel
from dryfit.target.tactics import Tactics, chosen_tactic, group_signature, timed_name, timing_file

NAMES = ("first", "second", "third")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """A timing cache of the test's own; compiled kernels stay where they are."""
    monkeypatch.setattr("dryfit.target.tactics.cache_folder", lambda: tmp_path)
    monkeypatch.setattr(SharedTimingCache, "_measured", {})


def rectifier():
    network = chain("r")
    return LayerGroup((network.layer("r0"),)), {tensor.name: tensor.spec for tensor in network.tensors}


def kernel_with(names=NAMES, *, are_ranked=True, ran=None):
    @kernel(
        "acme.ways",
        kinds="activation",
        data_types="fp32",
        tactics=lambda group, specs: Tactics(names, are_ranked=are_ranked),
    )
    def ways(binding):
        (x,), (y,) = binding.inputs, binding.outputs

        def run():
            if ran is not None:
                ran.append(binding.tactic)
            np.maximum(x, 0, out=y)

        return run

    return ways


def keep(microseconds):
    """Write times of tactics to the shared timing cache of this processor."""
    group, specs = rectifier()
    cache = TimingCache()
    for name, time in microseconds.items():
        cache.update(TimingCacheKey(group_signature(group, specs), timed_name("acme.ways", name), 1, "any"), time)
    save_timing_cache(cache, timing_file())


def test_without_measurements_the_first_tactic_runs():
    assert chosen_tactic(kernel_with(), *rectifier()) == "first"
    assert chosen_tactic(kernel_with(()), *rectifier()) == ""


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"first": 10.0, "second": 9.0, "third": 11.0}, "second"),
        ({"first": 10.0, "second": 9.9, "third": 11.0}, "first"),  # too little to be more than noise
        ({"second": 9.0}, "first"),  # nothing to compare with
        ({"first": 3.0, "gone": 1.0}, "first"),
    ],
)
def test_the_tactic_that_was_fastest_on_this_processor_runs(times, expected):
    keep(times)
    assert chosen_tactic(kernel_with(), *rectifier()) == expected


def test_times_of_another_version_of_the_kernel_or_in_damaged_lines_do_not_count():
    keep({"first": 10.0, "second": 5.0})
    assert chosen_tactic(attrs.evolve(kernel_with(), version=2), *rectifier()) == "first"
    damaged = [line.replace('"microseconds": ', '"microseconds": x') for line in timing_file().read_text().splitlines()]
    timing_file().write_text("\n".join(damaged))
    assert chosen_tactic(kernel_with(), *rectifier()) == "first"


class Clock:
    """Counts so many seconds for each run of a tactic, in turns."""

    def __init__(self, *seconds):
        self._seconds, self._now, self._calls = seconds, 0.0, 0

    def __call__(self):
        self._calls += 1
        if self._calls % 2 == 0:
            self._now += self._seconds[(self._calls // 2 - 1) % len(self._seconds)]
        return self._now


def times_of(cache, *, measures_all=False):
    _, specs = rectifier()
    return KernelTimes(
        lambda: specs, tactic_cache=lambda: cache, measures_all=measures_all, tactic_clock=Clock(3e-6, 2e-6, 4e-6)
    )


def test_a_build_measures_tactics_whose_order_the_kernel_does_not_know():
    cache, ran = TimingCache(), list[str]()
    said = times_of(cache).tactic(kernel_with(are_ranked=False, ran=ran), rectifier()[0])
    assert said == "tactic second, measured: 1.50x faster than first"
    assert set(ran) == set(NAMES)
    assert {key.kernel: cache.query(key) for key in cache.query_keys()} == {
        "acme.ways/first": pytest.approx(3),
        "acme.ways/second": pytest.approx(2),
        "acme.ways/third": pytest.approx(4),
    }
    ran.clear()
    assert times_of(cache).tactic(kernel_with(are_ranked=False, ran=ran), rectifier()[0]) == said
    assert not ran


def test_a_build_takes_the_order_that_a_kernel_knows_unless_it_measures_all():
    ran = list[str]()
    ways = kernel_with(ran=ran)
    assert times_of(TimingCache()).tactic(ways, rectifier()[0]) == "tactic first, the default on this processor"
    assert not ran
    assert "measured" in times_of(TimingCache(), measures_all=True).tactic(ways, rectifier()[0])


def test_a_build_at_level_4_says_what_it_measured_and_engines_read_it(caplog):
    network = dryfit.Network("one layer")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 64, 14, 14))
    weights = np.random.default_rng(0).standard_normal((64, 64, 1, 1)).astype(np.float32)
    network.mark_output(network.add_convolution_nd(x, 64, (1, 1), weights).get_output(0))
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    config.builder_optimization_level = 4
    with caplog.at_level("INFO", logger="dryfit.builder"):
        engine = dryfit.Builder().build_engine(network, config)
    assert any("cpu.convolution" in line and "tactic" in line and "measured" in line for line in caplog.messages)
    lines = [json.loads(line) for line in timing_file().read_text().splitlines()[1:]]
    times = {line["kernel"]: line["microseconds"] for line in lines}
    assert times.keys() == {"cpu.convolution/tiles", "cpu.convolution/panels"}
    # Whatever an edited cache says, the bits are the same.
    image = {"x": np.random.default_rng(1).standard_normal((1, 64, 14, 14)).astype(np.float32)}
    results = []
    for slow in times:
        edited = [json.dumps({**line, "microseconds": 100.0 if line["kernel"] == slow else 1.0}) for line in lines]
        timing_file().write_text("\n".join([timing_file().read_text().splitlines()[0], *edited]))
        results.append(engine.create_execution_context().run(image))
    np.testing.assert_array_equal(*[next(iter(result.values())) for result in results])
