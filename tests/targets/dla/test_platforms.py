"""Boards, software versions, pools and arithmetic of the DLA."""

import pytest

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry


@pytest.mark.parametrize(
    ("name", "family", "cores"),
    [
        ("agx-orin-64", "orin", 2),
        ("agx-orin-32", "orin", 2),
        ("orin-nx-16", "orin", 2),
        ("orin-nx-8", "orin", 1),
        ("orin-nano", "orin", 0),
        ("agx-xavier", "xavier", 2),
        ("xavier-nx", "xavier", 2),
        ("Orin", "orin", 2),
        ("XAVIER", "xavier", 2),
    ],
)
def test_a_board_has_its_family_and_cores(name, family, cores):
    platform = registry.target("dla").platform(name)
    assert (platform.family, platform.cores) == (family, cores)


def test_the_newest_software_of_a_board_is_the_default():
    dla = registry.target("DLA")
    assert dla.software(None, dla.platform("orin")) == (10, 16)
    assert dla.software(None, dla.platform("xavier")) == (8, 5, 10)


@pytest.mark.parametrize(
    ("platform", "version"), [("orin", "8.2"), ("orin", "11.0"), ("xavier", "10.3"), ("xavier", "7.0"), ("orin", "7.1")]
)
def test_software_that_a_board_never_had_is_refused(platform, version):
    dla = registry.target("DLA")
    with pytest.raises(ConfigError) as error:
        dla.software(version, dla.platform(platform))
    assert error.value.found == version
    assert "8.5" in error.value.allowed
    assert error.value.source


def test_sixteen_loadables_since_8_5_and_eight_before():
    rules = registry.target("DLA").segment_rules
    assert rules.same_batch
    assert [rules.segment_limit(version) for version in ((7, 1), (8, 2), (8, 4), (8, 5), (10, 3))] == [8, 8, 8, 16, 16]


def test_the_pools_have_the_documented_defaults():
    pools = {pool.name: pool for pool in registry.target("DLA").memory_pools}
    sram = pools["DLA_MANAGED_SRAM"]
    assert (sram.default_for("orin"), sram.default_for("xavier")) == (512 << 10, 1 << 20)
    assert pools["DLA_LOCAL_DRAM"].default_for("orin") == 1 << 30
    assert pools["DLA_GLOBAL_DRAM"].default_for("xavier") == 512 << 20
    assert {pool.holds for pool in pools.values()} == {"cache", "activations", "weights"}


def test_int8_rounds_ties_away_from_zero_in_8_and_to_even_in_10():
    arithmetic = registry.target("DLA").arithmetic[DataType.INT8]
    assert [arithmetic.rounding_for(version).value for version in ((8, 2), (8, 6, 12), (10, 0), (10, 16), ())] == [
        "half_away_from_zero",
        "half_away_from_zero",
        "half_to_even",
        "half_to_even",
        "half_to_even",
    ]
    assert registry.target("DLA").arithmetic[DataType.HALF].fidelity == "inferred"
