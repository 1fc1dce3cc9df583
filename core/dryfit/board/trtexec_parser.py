"""Parse a trtexec command line into its build: the inverse of `dryfit.board.trtexec_line`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from dryfit.board.board_build import DEFAULT_LEVEL, BoardBuild, BoardFiles
from dryfit.board.trtexec_arguments import SHAPE_OPTIONS, TrtexecArguments, read_arguments
from dryfit.board.trtexec_meaning import as_trtexec_builds, trtexec_problems
from dryfit.board.trtexec_values import (
    CONSTRAINT_WORDS,
    FLAG_OPTIONS,
    FORMAT_NAMES,
    SPARSITY_WORDS,
    pairs,
    parse_shapes,
    parse_types,
)
from dryfit.board.versions import FIRST_REFUSED, Version, layers_by_name, plausible_name, require_known
from dryfit.builder.config.enumerations import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    ProfilingVerbosity,
)
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.config.trtexec_spellings import IoFormat, parse_io_formats, parse_memory_pool_sizes
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor

Word = TypeVar("Word")

COPIES_SHAPES: Version = (8, 6)
"""The first version that takes the shapes of an option that is not given from another one."""

READS_UNITS: Version = (10, 0)
"""The first version that reads the unit of the size of a memory pool; before, all sizes are in MiB."""

_UNIT = re.compile(r"(?<=[\d.])[A-Za-z]+(?=,|$)")


def parse_trtexec(
    arguments: Sequence[str],
    network: Network,
    software: Version,
    read_scales: Callable[[str], Mapping[str, float]],
) -> tuple[BoardBuild, BoardFiles]:
    """Parse a command line into its build, including everything that trtexec adds, and the files that it names.

    Args:
        arguments: words after the program's name; see `dryfit.board.trtexec_arguments.arguments_of`.
        network: network of the model in the command line; provides names, shape inputs and quantization.
        software: TensorRT version.
        read_scales: function that returns the scales in the calibration cache at a path.

    Raises:
        UnknownNameError: An option, flag or value does not exist.
        ConfigError: Trtexec would reject the command line, or this version is not supported.
        CalibrationError: Raised by `read_scales`.
    """
    require_known(software)
    build, files = build_of(read_arguments(arguments, software), network, software, read_scales)
    meant, _ = as_trtexec_builds(build)
    refuse_problems(meant, network)
    return meant, files


def build_of(
    read: TrtexecArguments,
    network: Network,
    software: Version,
    read_scales: Callable[[str], Mapping[str, float]],
) -> tuple[BoardBuild, BoardFiles]:
    """Return the build that a command line requests, without what trtexec adds, and the files that it names.

    Raises:
        UnknownNameError: A flag or value does not exist.
        ConfigError: A model is missing, or options conflict.
        CalibrationError: Raised by `read_scales`.
    """
    values = read.values
    if "--onnx" not in values:
        raise ConfigError("A model is required", where="trtexec", remedy="Add --onnx=FILE")
    files = BoardFiles(
        values["--onnx"],
        values.get("--saveEngine", ""),
        values.get("--calib", ""),
        values.get("--timingCacheFile", ""),
    )
    flags = _flags(read, software)
    is_implicit = BuilderFlag.INT8 in flags and not is_explicit(network)
    core = read.number("--useDLACore", -1)
    counts = bool(flags.intersection(CONSTRAINT_WORDS.values()))  # else trtexec leaves the types of layers out
    names = list(layers_by_name(network))
    precisions = parse_types(values.get("--layerPrecisions", ""), "--layerPrecisions") if counts else {}
    output_types = parse_types(values.get("--layerOutputTypes", ""), "--layerOutputTypes") if counts else {}
    build = BoardBuild(
        software,
        flags,
        str(DeviceType.DLA if core >= 0 else DeviceType.GPU),
        core,
        _capability(read, core),
        _of_layers(names, _devices(values.get("--layerDeviceTypes", ""))),
        _of_layers(names, {name: types[0] for name, types in precisions.items()}),
        _of_layers(names, output_types),
        _formats(values, "--inputIOFormats", network.inputs, software),
        _formats(values, "--outputIOFormats", network.outputs, software),
        _pools(values, software),
        tuple(_profiles(read, network, software)),
        read_scales(files.calibration_cache) if is_implicit and files.calibration_cache else None,
        is_implicit and not files.calibration_cache,
        is_strongly_typed(read, software),
        frozenset(),
        _verbosity(values),
        read.number("--builderOptimizationLevel", DEFAULT_LEVEL),
    )
    return build, files


def is_strongly_typed(read: TrtexecArguments, software: Version) -> bool:
    """Return whether trtexec builds a strongly typed network."""
    return read.has("--stronglyTyped") or software >= FIRST_REFUSED


def refuse_problems(build: BoardBuild, network: Network) -> None:
    """Reject a build that trtexec does not perform.

    Raises:
        ConfigError: The message lists all reasons.
    """
    problems = trtexec_problems(build, network)
    if problems:
        raise ConfigError(
            "trtexec rejects this command line",
            where="trtexec",
            found="; ".join(problems),
            remedy="Change the options named here",
        )


def _flags(read: TrtexecArguments, software: Version) -> frozenset[BuilderFlag]:
    found = {flag for flag, option in FLAG_OPTIONS.items() if "=" not in option and read.has(option)}
    if read.has("--best") and read.has("--stronglyTyped"):
        raise ConfigError(
            "--best and --stronglyTyped cannot be combined",
            where="trtexec",
            remedy="Leave one of them out: a strongly typed network has the types of the model",
        )
    if read.has("--best"):
        # BF16 came with 10.0; all boards with a DLA that have this version compute in it.
        best = (BuilderFlag.FP16, BuilderFlag.INT8, *([BuilderFlag.BF16] if software >= (10, 0) else []))
        found.update(best)
    if read.has("--stripAllWeights"):
        found |= {BuilderFlag.REFIT, BuilderFlag.STRIP_PLAN}
    if not read.has("--noTF32"):
        found.add(BuilderFlag.TF32)
    word = read.word("--precisionConstraints", "none", ["none", *CONSTRAINT_WORDS])
    if word != "none":
        found.add(CONSTRAINT_WORDS[word])
    if read.word("--sparsity", "disable", SPARSITY_WORDS) == "enable":
        found.add(BuilderFlag.SPARSE_WEIGHTS)
    return frozenset(found)


def _capability(read: TrtexecArguments, core: int) -> EngineCapability:
    if read.has("--buildDLAStandalone") or (read.has("--safe") and core >= 0):
        return EngineCapability.DLA_STANDALONE
    return EngineCapability.SAFETY if read.has("--safe") else EngineCapability.STANDARD


def _devices(text: str) -> dict[str, str]:
    known = [str(DeviceType.GPU), str(DeviceType.DLA)]
    found = dict(pairs(text, "--layerDeviceTypes"))
    for device in found.values():
        if device not in known:
            raise UnknownNameError("device type", device, known, where="--layerDeviceTypes")
    return found


def _of_layers(names: Iterable[str], listed: Mapping[str, Word]) -> dict[str, Word]:
    """Return values by layer from a list, with stars in names expanded; layers that do not exist are skipped."""
    entries = {name: plausible_name(name, listed) for name in names}
    return {name: listed[entry] for name, entry in entries.items() if entry is not None}


def _formats(
    values: Mapping[str, str], option: str, tensors: Sequence[Tensor], software: Version
) -> tuple[IoFormat, ...]:
    if option not in values:
        return ()
    if software < FIRST_REFUSED:
        entries = parse_io_formats(values[option], option)
    else:  # TensorRT 11 takes the types from the model
        types = [tensor.dtype for tensor in tensors]
        words = values[option].split(",")
        cycled = words * len(tensors) if len(words) == 1 else words
        entries = [
            attrs.evolve(IoFormat.parse(f"fp32:{word}", option), dtype=dtype)
            for word, dtype in zip(cycled, types, strict=False)
        ]
        entries += entries[:1] * (len(cycled) - len(entries))
    known = [name for name, since in FORMAT_NAMES.items() if software >= since]
    for name in dict.fromkeys(name for entry in entries for name in entry.formats):
        if name not in known:
            raise UnknownNameError("format", name, known, where=option)
    if len(entries) not in (1, len(tensors)):
        raise ConfigError(
            "The types and formats must match the model",
            where=option,
            found=f"{len(entries)} entries",
            allowed=f"1 or {len(tensors)}",
            remedy="Specify one entry for all, or one for each input or output of the model",
        )
    return tuple(entries * len(tensors))[: len(tensors)]


def _pools(values: Mapping[str, str], software: Version) -> Mapping[str, int]:
    if "--workspace" in values:
        return parse_memory_pool_sizes(f"{MemoryPoolType.WORKSPACE}:{values['--workspace']}", "--workspace").limits
    text = values.get("--memPoolSize", "")
    if software < READS_UNITS:
        text = sizes_without_units(text)
    return parse_memory_pool_sizes(text, "--memPoolSize").limits if text else {}


def sizes_without_units(text: str) -> str:
    """Return the sizes of memory pools as trtexec of TensorRT 8 reads them: it ignores what follows the number."""
    return _UNIT.sub("", text)


def _profiles(read: TrtexecArguments, network: Network, software: Version) -> Iterator[ProfileShapes]:
    """Return the profiles; the shapes of the run are those of the build where it has none."""
    run = parse_shapes(read.text("--shapes"), "--shapes")
    given = read.profiles or ([{}] if run else [])
    used = read.number("--useProfile", 0)
    for index, profile in enumerate(given):
        said = profile if software < COPIES_SHAPES else _with_copied_shapes(profile)
        yield _profile(said, run if index == used or len(given) == 1 else {}, network)


def copied_shapes(said: Mapping[str, str]) -> Mapping[str, str]:
    """Return each shape option that is not given, and the one whose shapes trtexec takes for it."""
    least, best, largest = SHAPE_OPTIONS
    sources = {least: (best, largest), best: (largest, least), largest: (best, least)}
    missing = [option for option in SHAPE_OPTIONS if said and option not in said]
    return {option: next(one for one in sources[option] if one in said) for option in missing}


def _with_copied_shapes(said: Mapping[str, str]) -> Mapping[str, str]:
    return {**said, **{option: said[source] for option, source in copied_shapes(said).items()}}


def calibration_shapes(read: TrtexecArguments, network: Network) -> ProfileShapes | None:
    """Return the shapes to calibrate with: those of their own options, or of `--calibProfile`; None for neither.

    Raises:
        ConfigError: The options do not form a profile, or the profile does not exist.
    """
    said = {option: read.text(f"{option}Calib") for option in SHAPE_OPTIONS if read.has(f"{option}Calib")}
    if said:
        return _profile(said, {}, network)
    index = read.number("--calibProfile", 0)
    if not read.has("--calibProfile"):
        return None
    profiles = list(_profiles(read, network, COPIES_SHAPES))
    if not 0 <= index < max(len(profiles), 1):
        raise ConfigError(
            "The optimization profile does not exist",
            where="--calibProfile",
            found=index,
            allowed=f"0 to {max(len(profiles), 1) - 1}",
            remedy="Use the index of a profile of this command line",
        )
    return profiles[index] if profiles else None


def _profile(said: Mapping[str, str], run: Mapping[str, Shape], network: Network) -> ProfileShapes:
    """Return the profile of one set of shape options; a single shape is used for all three."""
    least, best, largest = (parse_shapes(said.get(option, ""), option) for option in SHAPE_OPTIONS)
    if (
        (said and not best)
        or bool(least) != bool(largest)
        or (least and not least.keys() == best.keys() == largest.keys())
    ):
        raise ConfigError(
            "A profile must have --optShapes alone, or all of --minShapes, --optShapes and "
            "--maxShapes, of the same inputs",
            where="trtexec",
            found=", ".join(f"{option}={value}" for option, value in said.items()),
            remedy="Name the same inputs in all three options, or give --optShapes only",
        )
    shapes: dict[str, tuple[Shape, Shape, Shape]] = {}
    contents: dict[str, tuple[Shape, Shape, Shape]] = {}
    inputs = {tensor.name: tensor for tensor in network.inputs}
    for listed, where in ((best, "--optShapes"), (run, "--shapes")):
        for entry in listed:
            if not any(plausible_name(name, [entry]) for name in inputs):
                raise UnknownNameError("input", entry, inputs, where=where)
    for name, tensor in inputs.items():
        place = contents if tensor.is_shape_tensor else shapes
        if (found := plausible_name(name, best)) is not None:
            place[name] = (least.get(found, best[found]), best[found], largest.get(found, best[found]))
        elif (found := plausible_name(name, run)) is not None:
            place[name] = (run[found],) * 3
    return ProfileShapes(shapes, contents)


def _verbosity(values: Mapping[str, str]) -> ProfilingVerbosity:
    word = values.get("--profilingVerbosity", "layer_names_only")
    words = {one.name.lower(): one for one in ProfilingVerbosity}
    words |= {"default": ProfilingVerbosity.LAYER_NAMES_ONLY, "verbose": ProfilingVerbosity.DETAILED}  # before 8.5
    if word not in words:
        raise UnknownNameError("profiling verbosity", word, words, where="--profilingVerbosity")
    return words[word]
