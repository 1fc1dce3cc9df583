"""Parse a trtexec command line into its build: the inverse of `dryfit.board.trtexec_line`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from dryfit.board.board_build import DEFAULT_LEVEL, BoardBuild, BoardFiles
from dryfit.board.trtexec_arguments import SHAPE_OPTIONS, TrtexecArguments, read_arguments
from dryfit.board.trtexec_meaning import as_trtexec_builds, trtexec_problems
from dryfit.board.trtexec_options import (
    CONSTRAINT_WORDS,
    FLAG_OPTIONS,
    SPARSITY_WORDS,
    pairs,
    parse_shapes,
    parse_types,
)
from dryfit.board.versions import Version, layers_by_name, plausible_name, require_known
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
    read = read_arguments(arguments, software)
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
    core = _number(read, "--useDLACore", -1)
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
        _formats(values, "--inputIOFormats", network.inputs),
        _formats(values, "--outputIOFormats", network.outputs),
        _pools(values),
        tuple(_profile(profile, network) for profile in read.profiles),
        read_scales(files.calibration_cache) if is_implicit and files.calibration_cache else None,
        is_implicit and not files.calibration_cache,
        read.has("--stronglyTyped"),
        frozenset(),
        _verbosity(values),
        _number(read, "--builderOptimizationLevel", DEFAULT_LEVEL),
    )
    meant, _ = as_trtexec_builds(build)
    problems = trtexec_problems(meant, network)
    if problems:
        raise ConfigError(
            "trtexec rejects this command line",
            where="trtexec",
            found="; ".join(problems),
            remedy="Change the options named here",
        )
    return meant, files


def _flags(read: TrtexecArguments, software: Version) -> frozenset[BuilderFlag]:
    found = {flag for flag, option in FLAG_OPTIONS.items() if "=" not in option and read.has(option)}
    if read.has("--best"):
        # BF16 came with 10.0; all boards with a DLA that have this version compute in it.
        best = (BuilderFlag.FP16, BuilderFlag.INT8, *([BuilderFlag.BF16] if software >= (10, 0) else []))
        found.update(best)
    if not read.has("--noTF32"):
        found.add(BuilderFlag.TF32)
    word = _word(read, "--precisionConstraints", "none", ["none", *CONSTRAINT_WORDS])
    if word != "none":
        found.add(CONSTRAINT_WORDS[word])
    if _word(read, "--sparsity", "disable", SPARSITY_WORDS) == "enable":
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


def _formats(values: Mapping[str, str], option: str, tensors: Sequence[Tensor]) -> tuple[IoFormat, ...]:
    if option not in values:
        return ()
    entries = parse_io_formats(values[option], option)
    if len(entries) not in (1, len(tensors)):
        raise ConfigError(
            "The types and formats must match the model",
            where=option,
            found=f"{len(entries)} entries",
            allowed=f"1 or {len(tensors)}",
            remedy="Give one entry for all, or one for each input or output of the model",
        )
    return tuple(entries * len(tensors))[: len(tensors)]


def _pools(values: Mapping[str, str]) -> Mapping[str, int]:
    if "--workspace" in values:
        return parse_memory_pool_sizes(f"{MemoryPoolType.WORKSPACE}:{values['--workspace']}", "--workspace").limits
    return parse_memory_pool_sizes(values["--memPoolSize"], "--memPoolSize").limits if "--memPoolSize" in values else {}


def _profile(said: Mapping[str, str], network: Network) -> ProfileShapes:
    """Return the profile of one set of shape options; a single shape is used for all three."""
    least, best, largest, run = (parse_shapes(said.get(option, ""), option) for option in SHAPE_OPTIONS)
    best = best or run
    if not best or bool(least) != bool(largest) or (least and not least.keys() == best.keys() == largest.keys()):
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
    for name, shape in best.items():
        if name not in inputs:
            raise UnknownNameError("input", name, inputs, where="--optShapes")
        place = contents if inputs[name].is_shape_tensor else shapes
        place[name] = (least.get(name, shape), shape, largest.get(name, shape))
    return ProfileShapes(shapes, contents)


def _verbosity(values: Mapping[str, str]) -> ProfilingVerbosity:
    word = values.get("--profilingVerbosity", "layer_names_only")
    words = {one.name.lower(): one for one in ProfilingVerbosity}
    if word not in words:
        raise UnknownNameError("profiling verbosity", word, words, where="--profilingVerbosity")
    return words[word]


def _word(read: TrtexecArguments, option: str, default: str, known: Iterable[str]) -> str:
    word = read.values.get(option, default)
    if word not in known:
        raise UnknownNameError("word", word, known, where=option)
    return word


def _number(read: TrtexecArguments, option: str, default: int) -> int:
    text = read.values.get(option, str(default))
    if not text.removeprefix("-").isdigit():
        raise ConfigError("The value must be a number", where=option, found=repr(text), remedy=f"Write {option}=N")
    return int(text)
