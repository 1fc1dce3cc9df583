"""Build the engine or the loadable of a trtexec command line, as trtexec does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from dryfit.answers.build import timing_cache_file
from dryfit.answers.export_loadables import write_loadable
from dryfit.answers.pruning import ACCURACY, plan_pruning
from dryfit.answers.text import bytes_text
from dryfit.answers.trtexec.log import TrtexecLog
from dryfit.answers.trtexec.ranges import RandomCalibrator, invent_ranges, take_border_ranges
from dryfit.answers.trtexec.remarks import remarks
from dryfit.attrs_classes import frozen
from dryfit.board.board_build import BoardBuild
from dryfit.board.trtexec_arguments import TrtexecArguments
from dryfit.board.trtexec_meaning import PRECISION_FLAGS, as_trtexec_builds, trtexec_complaints
from dryfit.board.trtexec_parser import build_of, calibration_shapes, is_strongly_typed, refuse_problems
from dryfit.board.versions import FIRST_REFUSED, Version
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag, DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.config.standalone import is_standalone
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan, ProfileShapes
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx
from dryfit.quantization import calibration_cache
from dryfit.target.overlays import Overlay

UNUSED_POOL = "tacticSharedMem"
"""The memory pool of trtexec that no device here has."""

FORCE = "force"
"""The value of `--sparsity` that overwrites weights."""


@frozen(eq=False)
class TrtexecBuild:
    """The result of a build.

    Attributes:
        network: network of the model.
        config: config that it was built with.
        engine: the engine; None for a loadable.
        size: size of the engine or loadable in bytes.
    """

    network: Network
    config: BuilderConfig
    engine: Engine | None
    size: int


@frozen
class SimulatedBoard:
    """The board and the software that a build is for.

    Attributes:
        version: TensorRT version whose trtexec is simulated.
        platform: board; None for the default of the device.
        rules: TensorRT version whose rules apply to the DLA.
        overlays: what boards showed, as corrections of the rules.
    """

    version: Version
    platform: str | None
    rules: Version
    overlays: Sequence[Overlay] = ()


def built(
    read: TrtexecArguments, board: SimulatedBoard, journal: TrtexecLog, progress: ProgressMonitor | None
) -> TrtexecBuild:
    """Build the model of a command line, and save the result where the line says.

    Raises:
        ConfigError: trtexec refuses the options, or they do not match the model.
        OnnxImportError: The model is corrupt or has unsupported operators.
        BuildError: The network cannot be built.
        EngineFileError: The file cannot be written.
    """
    network = _network(read, board.version, journal)
    build, calibrates = _board_build(read, network, board, journal)
    config = _config(read, network, build, board)
    if calibrates:
        _calibrate_random(read, network, config, journal)
    for name in read.listed("--markDebug"):
        network.mark_debug(network.tensor(name))
    if read.has("--markUnfusedTensorsAsDebugTensors"):
        network.mark_unfused_tensors_as_debug_tensors()
    if read.text("--sparsity") == FORCE:
        pruning = plan_pruning(network, config)
        pruning.apply(network)
        journal.warning(f"--sparsity=force: {pruning}. {ACCURACY if pruning.pruned else ''}".rstrip())
    config.progress_monitor = progress
    timing_cache = read.text("--timingCacheFile")
    use_cache = bool(timing_cache) and not read.has("--noBuilderCache")
    started = time.perf_counter()
    with journal.of_builder(), timing_cache_file(Path(timing_cache) if use_cache else None, config):
        made = _made(network, config, read.text("--saveEngine"))
        plan = made[1]
    journal.info(f"Engine built in {time.perf_counter() - started:.6g} sec.")
    if build.uses_dla:
        for line in fallback_lines(plan):
            journal.warning(line)
        for line in placement_lines(plan):
            journal.info(line)
    journal.info(f"Created engine with size: {bytes_text(made[2])}")
    return TrtexecBuild(network, config, made[0], made[2])


def _network(read: TrtexecArguments, version: Version, journal: TrtexecLog) -> Network:
    path = Path(read.text("--onnx")).expanduser()
    if not path.is_file():
        raise ConfigError(
            "The model does not exist",
            where=f"--onnx={read.text('--onnx')}",
            remedy="Check the path, which starts in the current folder",
        )
    journal.info("Start parsing network model.")
    started = time.perf_counter()
    strongly_typed = 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
    with journal.of_builder():
        network = network_from_onnx(path, flags=strongly_typed if is_strongly_typed(read, version) else 0)
    journal.info(f"Finished parsing network model. Parse time: {time.perf_counter() - started:.6g}")
    return network


def _board_build(
    read: TrtexecArguments, network: Network, board: SimulatedBoard, journal: TrtexecLog
) -> tuple[BoardBuild, bool]:
    """Return (build as trtexec performs it, whether it calibrates with a random batch)."""
    given = _without_words_of_exec(read, journal)
    build, _ = build_of(given, network, board.version, _scales)
    calibrates = build.assumes_scales and read.has("--calib")  # the file does not exist
    for text in remarks(given, network, board.version):
        journal.warning(text)
    if board.version < FIRST_REFUSED:
        _warn_of_constraints(read, journal)
    if build.is_strongly_typed and build.flags & PRECISION_FLAGS:
        names = ", ".join(flag.name for flag in sorted(build.flags & PRECISION_FLAGS))
        journal.warning(f"A strongly typed network has the types of the model: {names} is disabled")
        build = attrs.evolve(build, flags=build.flags - PRECISION_FLAGS, assumes_scales=False, scales=None)
    build = _with_shapes(build, network, journal)
    meant, _ = as_trtexec_builds(build)
    refuse_problems(meant, network)
    for text in trtexec_complaints(meant):
        journal.warning(text)
    if not calibrates:
        _take_ranges(meant, given.text("--calib"), network, journal)
    # The ranges are set in the network, with which a build works; a config that assumes scales is for assessments.
    return attrs.evolve(meant, assumes_scales=False), calibrates


def _without_words_of_exec(read: TrtexecArguments, journal: TrtexecLog) -> TrtexecArguments:
    """Return the options without what only an execution can do, and a board's build does not record."""
    values = dict(read.values)
    if values.get("--calib") and not Path(values["--calib"]).is_file():
        del values["--calib"]
    if values.get("--sparsity") == FORCE:
        values["--sparsity"] = "enable"
    if values.get("--builderOptimizationLevel") == "-1":
        del values["--builderOptimizationLevel"]
    pools = read.listed("--memPoolSize")
    kept = [entry for entry in pools if not entry.startswith(f"{UNUSED_POOL}:")]
    if kept != pools:
        journal.warning(f"The memory pool {UNUSED_POOL} has no effect: it is memory of GPU kernels")
        values.pop("--memPoolSize")
        values |= {"--memPoolSize": ",".join(kept)} if kept else {}
    return attrs.evolve(read, values=values)


def _take_ranges(build: BoardBuild, calib: str, network: Network, journal: TrtexecLog) -> None:
    """Set the ranges that trtexec gives the network if the calibration cache has none for it."""
    # Without the flag INT8, only inputs and outputs that are INT8 need ranges.
    is_int8 = any(one.dtype is DataType.INT8 for one in (*build.input_formats, *build.output_formats))
    is_weak = not build.is_strongly_typed and not is_explicit(network)
    needs_some = is_weak and is_int8 and BuilderFlag.INT8 not in build.flags
    if needs_some and calib:
        take_border_ranges(network, _scales(calib))
    elif needs_some or build.assumes_scales:
        invent_ranges(network)
        journal.warning("INT8 ranges are invented, as no calibration cache is given: outputs have no meaning (--calib)")


def _scales(path: str) -> Mapping[str, float]:
    return calibration_cache.parse(Path(path).read_bytes(), path).scales


def _warn_of_constraints(read: TrtexecArguments, journal: TrtexecLog) -> None:
    has_types = read.has("--layerPrecisions") or read.has("--layerOutputTypes")
    word = read.text("--precisionConstraints", "none")
    if has_types and word == "none":
        journal.warning(
            "--layerPrecisions and --layerOutputTypes have no effect without --precisionConstraints=obey or prefer"
        )
    elif not has_types and word != "none":
        journal.warning(f"--precisionConstraints={word} has no effect without --layerPrecisions or --layerOutputTypes")


def _with_shapes(build: BoardBuild, network: Network, journal: TrtexecLog) -> BoardBuild:
    """Return a build whose profiles have shapes for all dynamic inputs, and for these alone.

    Raises:
        ConfigError: Shapes were given for a static model.
    """
    dynamic = {one.name: one for one in network.inputs if -1 in one.shape or one.is_shape_tensor}
    if build.profiles and not dynamic:
        raise ConfigError(
            "A model without dynamic inputs takes no shapes",
            where="trtexec",
            found=", ".join(name for profile in build.profiles for name in (*profile.shapes, *profile.values)),
            remedy="Leave out the shapes: the model has them",
        )
    needed = {name: tensor for name, tensor in dynamic.items() if not tensor.is_shape_tensor}
    if not needed and not build.profiles:
        return build
    profiles = []
    for profile in build.profiles or (ProfileShapes({}, {}),):
        shapes = {name: triple for name, triple in profile.shapes.items() if name in dynamic}
        for name, tensor in needed.items():
            if name not in shapes:
                shape = tuple(max(extent, 1) for extent in tensor.shape)
                text = "x".join(map(str, shape))
                journal.warning(
                    f"Dynamic dimensions of input {name!r} have no shape: {text} is used (--shapes={name}:{text})"
                )
                shapes[name] = (shape,) * 3
        profiles.append(ProfileShapes(shapes, dict(profile.values)))
    return attrs.evolve(build, profiles=tuple(profiles))


def _config(read: TrtexecArguments, network: Network, build: BoardBuild, board: SimulatedBoard) -> BuilderConfig:
    config = BuilderConfig()
    if board.platform is not None:
        config.set_platform(DeviceType.DLA if build.uses_dla else DeviceType.GPU, board.platform)
    attrs.evolve(build, software=board.rules).apply_to(network, config)
    config.overlays = board.overlays
    shapes = calibration_shapes(read, network)
    if shapes is not None:
        profile = OptimizationProfile()
        for name, (least, best, largest) in shapes.shapes.items():
            profile.set_shape(name, least, best, largest)
        config.set_calibration_profile(profile)
    return config


def _calibrate_random(read: TrtexecArguments, network: Network, config: BuilderConfig, journal: TrtexecLog) -> None:
    """Let the build calibrate with one random batch, as trtexec does if the calibration cache does not exist."""
    if is_explicit(network):
        return
    journal.warning(
        f"{read.text('--calib')} does not exist: scales are calibrated with one random batch: results have no meaning"
    )
    profile = config.get_calibration_profile()
    if profile is None and config.num_optimization_profiles:
        profile = config.get_optimization_profile(0)
    chosen: Mapping[str, tuple[int, ...]] = (
        {} if profile is None else {name: triple[1] for name, triple in profile.shapes.items()}
    )
    config.int8_calibrator = RandomCalibrator({one.name: chosen.get(one.name, one.shape) for one in network.inputs})


def _made(network: Network, config: BuilderConfig, output: str) -> tuple[Engine | None, Plan, int]:
    """Build an engine or a loadable; return (engine or None, its plan, size of the file)."""
    builder = Builder()
    if is_standalone(config):
        found = builder.build_loadables(network, config)
        [contents] = found.files.values()
        if output:
            write_loadable(Path(output), contents, f"--saveEngine={output}")
        return None, found.plan, len(contents)
    engine = builder.build_engine(network, config)
    if output:
        engine.save(Path(output))
        return engine, engine.plan, Path(output).stat().st_size
    return engine, engine.plan, len(engine.serialize())


def fallback_lines(plan: Plan) -> Iterator[str]:
    """Return TensorRT's line for each layer that the DLA does not support, as programs that read logs look for it."""
    for one in plan.layers:
        verdict = plan.verdicts.get(one.layer, {}).get(DeviceType.DLA)
        if verdict is not None and not verdict.supported and one.device == DeviceType.GPU:
            kind = one.kind.upper()
            yield f"Layer '{one.layer}' ({kind}): Unsupported on DLA. Switching this layer's device type to GPU."


def placement_lines(plan: Plan) -> Iterator[str]:
    """Return the lists of TensorRT's build log that show where layers run, by the names of the ONNX nodes."""
    placed = {one.layer: one for one in plan.layers}
    yield "---------- Layers Running on DLA ----------"
    for segment in plan.segments:
        if segment.device == DeviceType.DLA:
            names = [next(iter(placed[name].onnx_nodes), name) for name in segment.layers]
            yield f"[DlaLayer] {{ForeignNode[{'...'.join(dict.fromkeys((names[0], names[-1])))}]}}"
    yield "---------- Layers Running on GPU ----------"
    for operation in plan.operations:
        if operation.device == DeviceType.GPU:
            kinds = [placed[name].kind.upper() for name in operation.source_layers if name in placed]
            yield f"[GpuLayer] {kinds[0] if kinds else 'REFORMAT'}: {operation.name}"
