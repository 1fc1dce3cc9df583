"""Files of segments for their device's own runtime: those of the DLA, and those of a stranger's device."""

import attrs
import pytest
from tests.core.builder.networks import chain, half_network
from tests.core.engine import compiling_target

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.errors import BuildError, PluginError
from dryfit.target.target import Platform, Target

HERE = "tests.core.builder.segments.test_export"

TARGET = Target(
    device="ACME_EXPORTER",
    title="Acme, which writes its segments",
    platforms=[Platform("board", "board", "Acme board")],
    limits_at="tests.core.engine.compiling_target:LIMITS",
    memory_pools_at="tests.core.engine.compiling_target:POOLS",
    export_segment_at=f"{HERE}:write",
    simulated="what a segment's file holds",
)


def write(segment):
    """A file that tells of everything that an exporter gets."""
    run = "; ".join(f"{' + '.join(one.layers)} by {one.kernel}" for one in segment.host_run.operations)
    return f"{segment.network.name}: {run}; {dict(segment.pools)}; {dict(segment.origins)}".encode()


def stumble(segment):
    raise KeyError(segment.index)


def write_text(segment):
    return segment.network.name


STUMBLING = attrs.evolve(TARGET, device="ACME_STUMBLING", export_segment_at=f"{HERE}:stumble")
TEXT = attrs.evolve(TARGET, device="ACME_TEXT_WRITER", export_segment_at=f"{HERE}:write_text")
ENTRY_POINTS = {
    "dryfit.targets": {
        "acme-exporter": f"{HERE}:TARGET",
        "acme-stumbling": f"{HERE}:STUMBLING",
        "acme-text-writer": f"{HERE}:TEXT",
    }
}


@pytest.fixture(autouse=True)
def _acme(install):
    """The targets, installed."""
    install("acme_exporters", "", ENTRY_POINTS)


def files(device, network):
    config = BuilderConfig()
    config.default_device_type = device
    return Builder().build_loadables(network, config).files


def test_a_strangers_exporter_gets_the_segment_with_how_the_host_runs_it_and_its_needs():
    (contents,) = files("ACME_EXPORTER", chain("c", "r")).values()
    text = contents.decode()
    assert text.startswith("net, segment 0: c0 + r1 by cpu.convolution; ")
    assert "'ACME_WEIGHTS': 2304" in text
    assert "{'x': 'x', 'r1': 'r1'}" in text


def test_the_programs_of_compiled_segments_are_their_files(install):
    install("acme_compilers", "", compiling_target.ENTRY_POINTS)
    (contents,) = files("ACME_COMPILER", chain("c", "r")).values()
    assert contents.startswith(compiling_target.MAGIC)


def test_a_device_without_files_has_none():
    assert files("GPU", half_network()) == {}


def test_an_exporter_that_stumbles_is_told_with_the_segment():
    with pytest.raises(BuildError, match=r"segment 0 of ACME_STUMBLING: .*KeyError: 0"):
        files("ACME_STUMBLING", chain("c"))


def test_an_exporter_gives_bytes():
    with pytest.raises(PluginError, match="exporter must return bytes"):
        files("ACME_TEXT_WRITER", chain("c"))
