"""Limits of memory pools as trtexec spells them."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dryfit.builder.config.trtexec_spellings import TRTEXEC_POOLS, memory_pool_sizes_text, parse_memory_pool_sizes
from dryfit.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dlaSRAM:1", {"DLA_MANAGED_SRAM": 1 << 20}),
        ("dlasram:0.5", {"DLA_MANAGED_SRAM": 1 << 19}),
        ("workspace:16, dlaGlobalDRAM:256M", {"WORKSPACE": 16 << 20, "DLA_GLOBAL_DRAM": 256 << 20}),
        ("dlaLocalDRAM:4k,ACME_SRAM:1g", {"DLA_LOCAL_DRAM": 4096, "ACME_SRAM": 1 << 30}),
        ("dlaLocalDRAM:4096B", {"DLA_LOCAL_DRAM": 4096}),
        ("dlaLocalDRAM:0.3", {"DLA_LOCAL_DRAM": 314572}),
        ("dlaSRAM:3", {"DLA_MANAGED_SRAM": 2 << 20}),
        ("DLA_MANAGED_SRAM:3,dlaLocalDRAM:3", {"DLA_MANAGED_SRAM": 3 << 20, "DLA_LOCAL_DRAM": 3 << 20}),
        ("dlaSRAM:0", {"DLA_MANAGED_SRAM": 0}),
    ],
)
def test_sizes_are_in_mebibytes_or_have_a_unit(text, expected):
    assert parse_memory_pool_sizes(text, "--mem-pool-size").limits == expected


@pytest.mark.parametrize("text", ["", "dlaSRAM", "dlaSRAM:", ":1", "dlaSRAM:1T", "dlaSRAM:one"])
def test_what_is_no_limit_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"--mem-pool-size: .*such as dlaSRAM:0\.5"):
        parse_memory_pool_sizes(text, "--mem-pool-size")


def test_a_negative_limit_is_named():
    with pytest.raises(
        ConfigError, match=r"--mem-pool-size, dlaSRAM: .* must not be negative .found -1; allowed: 0 or more"
    ):
        parse_memory_pool_sizes("dlaLocalDRAM:4K,dlaSRAM:-1", "--mem-pool-size")


def test_a_size_that_is_rounded_as_trtexec_rounds_it_is_noted():
    assert parse_memory_pool_sizes("dlaSRAM:3,dlaLocalDRAM:3", "--mem-pool-size").notes == [
        "--mem-pool-size: dlaSRAM:3 is 3145728 bytes, rounded down to 2097152, a power of two, as trtexec does"
    ]


POOLS = [*(set(TRTEXEC_POOLS.values()) - {"DLA_MANAGED_SRAM"}), "ACME_SRAM"]


@given(st.dictionaries(st.sampled_from(sorted(POOLS)), st.integers(1, 1 << 34), min_size=1), st.integers(12, 30))
def test_what_is_written_is_read_back(sizes, power):
    sizes = {**sizes, "DLA_MANAGED_SRAM": 1 << power}
    assert parse_memory_pool_sizes(memory_pool_sizes_text(sizes), "here").limits == sizes
