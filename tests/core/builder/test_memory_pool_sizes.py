"""Limits of memory pools as trtexec spells them."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dryfit.builder.memory_pool_sizes import TRTEXEC_POOLS, memory_pool_sizes_text, parse_memory_pool_sizes
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
    ],
)
def test_sizes_are_in_mebibytes_or_have_a_unit(text, expected):
    assert parse_memory_pool_sizes(text, "--mem-pool-size") == expected


@pytest.mark.parametrize("text", ["", "dlaSRAM", "dlaSRAM:", ":1", "dlaSRAM:-1", "dlaSRAM:1T", "dlaSRAM:one"])
def test_what_is_no_limit_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"--mem-pool-size: .*such as dlaSRAM:0\.5"):
        parse_memory_pool_sizes(text, "--mem-pool-size")


@given(st.dictionaries(st.sampled_from([*TRTEXEC_POOLS.values(), "ACME_SRAM"]), st.integers(1, 1 << 34), min_size=1))
def test_what_is_written_is_read_back(sizes):
    assert parse_memory_pool_sizes(memory_pool_sizes_text(sizes), "here") == sizes
