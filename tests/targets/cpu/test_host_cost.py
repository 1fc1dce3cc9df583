"""The estimate of this machine: a roofline that says what it rests on."""

from __future__ import annotations

import attrs
import pytest

from dryfit.network.data_types import DataType
from dryfit_cpu.compiler.tier import TIERS
from dryfit_cpu.cost import Machine, this_machine


def machine(tier: str) -> Machine:
    return Machine(4, 2e9, "stated", next(one for one in TIERS if one.name == tier))


@pytest.mark.parametrize(
    ("tier", "floats", "bytes_"),
    [("avx512-vnni", 32, 128), ("avx512", 32, 64), ("avx2-vnni", 16, 64), ("avx2", 16, 32), ("generic", 8, 16)],
)
def test_multiply_accumulates_follow_from_the_vectors(tier, floats, bytes_):
    assert machine(tier).macs_per_cycle(DataType.FLOAT) == floats
    assert machine(tier).macs_per_cycle(DataType.HALF) == floats
    assert machine(tier).macs_per_cycle(DataType.DOUBLE) == floats / 2
    assert machine(tier).macs_per_cycle(DataType.INT8) == bytes_


def test_this_machine_is_described_alike_whenever_it_is_asked():
    this_machine.cache_clear()
    first = this_machine()
    this_machine.cache_clear()
    assert attrs.astuple(first, recurse=False) == attrs.astuple(this_machine(), recurse=False)
    assert first.threads >= 1
    assert first.clock_source in {"cpuinfo_max_freq", "the processor's name", "assumed"}
