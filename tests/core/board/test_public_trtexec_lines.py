"""Published command lines of trtexec, read as their sources mean them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from tests.core.board.models_of_lines import model_of, named_layers, shapes_of, words_of
from tests.core.board.trtexec_lines import LINES, V11, Facts, PublicLine, Version

from dryfit.board.board_build import BoardBuild, BoardFiles
from dryfit.board.trtexec_arguments import TrtexecArguments, read_arguments
from dryfit.board.trtexec_meaning import as_trtexec_builds
from dryfit.board.trtexec_options import OPTION_ALIASES, TRTEXEC_OPTIONS, OptionAnswer
from dryfit.board.trtexec_parser import build_of, parse_trtexec, refuse_problems
from dryfit.board.versions import version_text
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability
from dryfit.builder.config.trtexec_spellings import parse_io_formats
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx

FEWEST = 110
TYPES = {"fp32": DataType.FLOAT, "fp16": DataType.HALF}
SCALES = {"input": 1.0}
INFERENCE = {
    "iterations": ("--iterations", 10),
    "warm_up_ms": ("--warmUp", 200),
    "duration_s": ("--duration", 3),
    "idle_ms": ("--idleTime", 0),
    "streams": ("--infStreams", 1),
    "average_runs": ("--avgRuns", 10),
}
"""Option and default of each setting of a run."""
PRINTING = {"verbose": "--verbose", "profile": "--dumpProfile", "layers": "--dumpLayerInfo", "output": "--dumpOutput"}
EXPORTS = ("--exportTimes", "--exportOutput", "--exportProfile", "--exportLayerInfo")


def name_of(line: PublicLine) -> str:
    """A name for a test: the number of the line and the start of its source."""
    return f"{LINES.index(line) + 1}-{line.source.address[:40]}"


LATER = {
    "--weightStreamingBudget=1": "a strongly typed network excludes FP16",
    "--fp8 --fp16 --stronglyTyped": "a strongly typed network excludes FP16, FP8",
    "--sparsity=force": "word: 'force'",
}
"""Parts of lines that `dryfit exec` takes, with a warning, and the parser of builds refuses; what the refusal names."""


TAKEN = [line for line in LINES if not line.facts.refused]
BUILT = [line for line in TAKEN if not line.facts.loads]
REFUSED = [
    (line, version, names)
    for line in LINES
    for version, names in {line.version: line.facts.refused, **line.also_refused_by}.items()
    if names
]
"""Lines, the versions that refuse them, and what the refusals name."""

WITHOUT_ENGINES = [one for one in REFUSED if not one[0].facts.loads]


def test_there_are_enough_lines_and_each_is_there_once() -> None:
    written = Counter(" ".join(line.command.split()) for line in LINES)
    assert len(written) >= FEWEST
    assert not [command for command, count in written.items() if count > 1]
    assert all(line.source.address and line.source.why and line.does for line in LINES)


def parsed(line: PublicLine, version: Version, network: Network) -> tuple[BoardBuild, BoardFiles]:
    """The build of a line, with what trtexec adds."""
    words = words_of(line)
    if version < V11:
        return parse_trtexec(words, network, version, lambda _: SCALES)
    build, files = build_of(read_arguments(words, version), network, version, lambda _: SCALES)
    meant, _ = as_trtexec_builds(build)
    refuse_problems(meant, network)
    return meant, files


def expected_flags(facts: Facts, version: Version) -> set[BuilderFlag]:
    """The flags that trtexec sets for a line; types of layers and of networks are the model's from 11 on."""
    flags = {BuilderFlag[name] for name in facts.types | facts.flags}
    if facts.tf32:
        flags.add(BuilderFlag.TF32)
    if facts.constraints:
        flags.add(BuilderFlag[f"{facts.constraints.upper()}_PRECISION_CONSTRAINTS"])
    if facts.core >= 0:
        flags.add(BuilderFlag.GPU_FALLBACK if facts.falls_back else BuilderFlag.DIRECT_IO)
        if not facts.constraints and version < V11:
            flags.add(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
        if not facts.types & {"FP16", "INT8"} and version < V11:
            flags.add(BuilderFlag.FP16)
    return flags


def by_layer(listed: Mapping[str, str]) -> dict[str, str]:
    """The words of a list by the names that the model's layers have."""
    return {name.replace("*", "0"): word for name, word in listed.items() if name != "*"}


@pytest.mark.parametrize("line", BUILT, ids=name_of)
def test_the_build_of_a_line_is_as_its_source_says(line: PublicLine) -> None:
    facts = line.facts
    network = network_from_onnx(model_of(facts))
    for part, names in LATER.items():
        if part in line.command:
            with pytest.raises(DryfitError, match=names):
                parsed(line, line.version, network)
            return
    build, files = parsed(line, line.version, network)
    assert build.flags == expected_flags(facts, line.version)
    assert (build.default_device, build.dla_core) == ("DLA" if facts.core >= 0 else "GPU", facts.core)
    assert build.capability is (EngineCapability.DLA_STANDALONE if facts.loadable else EngineCapability.STANDARD)
    assert build.profiles == ((ProfileShapes(shapes_of(facts)),) if facts.shapes else ())
    for text, formats, tensors in (
        (facts.inputs, build.input_formats, network.inputs),
        (facts.outputs, build.output_formats, network.outputs),
    ):
        entries = parse_io_formats(text, "") if text else []
        assert list(formats) == (entries * len(tensors) if len(entries) == 1 else entries)
    assert dict(build.pools) == dict(facts.pools)
    assert build.precisions == {name: TYPES[word] for name, word in by_layer(facts.layer_types).items()}
    assert build.output_types == {name: (TYPES[word],) for name, word in by_layer(facts.layer_outputs).items()}
    assert build.devices.keys() >= by_layer(facts.layer_devices).keys()
    assert not facts.layer_devices or set(build.devices.values()) == set(facts.layer_devices.values())
    assert build.is_strongly_typed == (facts.strongly_typed or line.version >= V11)
    assert build.profiling_verbosity.name.lower() == facts.verbosity
    assert build.optimization_level == facts.level
    assert build.assumes_scales == ("INT8" in facts.types and not facts.calibration)
    assert build.scales == (SCALES if facts.calibration else None)
    assert (files.engine, files.timing_cache) == (facts.saves, facts.timing_cache)
    assert set(named_layers(facts)) <= {layer.name for layer in network.layers}


@pytest.mark.parametrize("line", TAKEN, ids=name_of)
def test_the_run_of_a_line_is_as_its_source_says(line: PublicLine) -> None:
    facts, read = line.facts, read_arguments(words_of(line), line.version)
    assert read.text("--loadEngine") == facts.loads
    for setting, (option, default) in INFERENCE.items():
        if not facts.skips_inference:
            assert read.decimal(option, default) == facts.inference.get(setting, default), option
    if not facts.skips_inference:
        assert read.has("--noDataTransfers") == (not facts.inference.get("data_transfers", True))
    assert {word for word, option in PRINTING.items() if read.has(option)} == facts.prints
    assert {read.text(option) for option in EXPORTS if read.has(option)} == set(facts.writes)
    assert fed(read) == dict(facts.feeds)
    for name, shape in facts.runs_at.items():
        assert f"{name}:{shape}" in read.listed("--shapes")


def fed(read: TrtexecArguments) -> dict[str, str]:
    """The files of a line by input."""
    return {name.strip("'"): file for name, _, file in (one.rpartition(":") for one in read.listed("--loadInputs"))}


@pytest.mark.parametrize(
    ("line", "version", "names"),
    WITHOUT_ENGINES,
    ids=[f"{name_of(line)}-{version_text(version)}" for line, version, _ in WITHOUT_ENGINES],
)
def test_a_line_that_trtexec_refuses_is_refused(line: PublicLine, version: Version, names: str) -> None:
    with pytest.raises(DryfitError, match=f"(?i){names}"):
        parsed(line, version, network_from_onnx(model_of(line.facts)))


@pytest.mark.parametrize("line", LINES, ids=name_of)
def test_options_without_effect_are_known_as_such(line: PublicLine) -> None:
    for option in line.facts.no_effect:
        answer = TRTEXEC_OPTIONS[OPTION_ALIASES.get(option, option)]
        assert answer.answer is OptionAnswer.NO_EFFECT
        assert answer.why
