"""Execute a trtexec command line on this machine: build or load, run, and report, in the order of trtexec."""

from __future__ import annotations

import platform as host_platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from dryfit.answers.defaults import with_overlay_board
from dryfit.answers.estimate import estimate
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.options import NetworkOptions, OverlaysSaid
from dryfit.answers.run import load_engine
from dryfit.answers.text import Answer, Block, Line, bytes_text
from dryfit.answers.trtexec.accuracy import Tolerances, accuracy_lines
from dryfit.answers.trtexec.build import SimulatedBoard, TrtexecBuild, built
from dryfit.answers.trtexec.conflicts import refuse_conflicts
from dryfit.answers.trtexec.debug_files import DebugFiles
from dryfit.answers.trtexec.exports import (
    layer_information_json,
    layer_information_lines,
    optimization_profile_lines,
    output_lines,
    outputs_json,
    profile_json,
    profile_lines,
    times_json,
    write_export,
    write_raw_bindings,
)
from dryfit.answers.trtexec.inference import EngineRunner, InferenceSettings, InferenceTimes, measure
from dryfit.answers.trtexec.inputs import inference_inputs, input_files
from dryfit.answers.trtexec.log import PLAIN, LogListener, TrtexecLog
from dryfit.answers.trtexec.option_text import given_option_lines, help_lines
from dryfit.answers.trtexec.performance import BoardEstimate, performance_lines
from dryfit.attrs_classes import define, frozen
from dryfit.board.trtexec_arguments import TrtexecArguments, read_arguments
from dryfit.board.trtexec_options import DEFAULT_API, TRTEXEC_OPTIONS, api_version
from dryfit.board.trtexec_values import pairs, parse_shapes
from dryfit.board.versions import FIRST_REFUSED, Version, version_text
from dryfit.builder.config.enumerations import software_version
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.container_reader import read_manifest
from dryfit.engine.engine import Engine
from dryfit.engine.file_source import file_bytes
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError, OnnxImportError
from dryfit.onnx.refitter import OnnxParserRefitter
from dryfit.short_text import count_text
from dryfit.target.machine_code import usable_processors

Array = np.ndarray[Any, Any]

_SKIPPING = ("--skipInference", "--buildOnly", "--buildDLAStandalone")
"""Options after which nothing runs."""


@frozen
class IgnoredOption:
    """An option that has no effect.

    Attributes:
        option: name of the option.
        reason: why it has no effect here.
    """

    option: str
    reason: str


@frozen(repr=False)
class ExecTrtexecAnswer(Answer):
    """What a trtexec command line did on this machine.

    Attributes:
        arguments: options of the command line.
        tensorrt: TensorRT version whose trtexec was simulated.
        platform: board of the build; "" for the default of the device.
        software: TensorRT version whose rules apply to the DLA.
        overlays: overlays that were given, each with its board and a digest.
        engine: path of the engine or loadable that was saved or loaded; "" if it was not saved.
        engine_bytes: size of the engine or loadable.
        is_loadable: whether a DLA loadable was built.
        ignored: options without effect here.
        queries: number of measured queries; 0 if nothing ran.
        host_median_milliseconds: median latency of these queries on this host; None if nothing ran.
        estimate: estimated latency on the board; "" without a board with a DLA.
        files: files that were written besides the engine.
        outputs: outputs of the last query by name.
        lines: severity and text of each line of the log.
    """

    COMMAND: ClassVar[str] = "exec"

    arguments: Sequence[str]
    tensorrt: str
    platform: str
    software: str
    overlays: Sequence[str]
    engine: str
    engine_bytes: Count
    is_loadable: bool
    ignored: Sequence[IgnoredOption]
    queries: Count
    host_median_milliseconds: Amount | None
    estimate: str
    files: Sequence[str]
    outputs: Mapping[str, Array] = hidden(eq=False)
    lines: Sequence[tuple[str, str]] = hidden(())

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        what = "loadable" if self.is_loadable else "engine"
        ran = f", {count_text(self.queries, 'measured run')} on this host" if self.queries else ""
        return f"{self.engine or what}: {bytes_text(self.engine_bytes)}{ran}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  the command line says it
        """Return the log that `dryfit exec` prints."""
        yield from (Line(f"[{severity}] {text}" if severity else text) for severity, text in self.lines)


@define(eq=False)
class _Execution:
    """The state of one execution.

    Attributes:
        read: options of the command line.
        board: what is simulated.
        journal: lines so far.
        progress: monitor of builds and runs.
        build: result of the build; None for an engine that was loaded.
        size: size of the engine or loadable in bytes.
        times: measured times; None if nothing ran.
        estimate: estimate for the board.
        files: files that were written.
    """

    read: TrtexecArguments
    board: SimulatedBoard
    journal: TrtexecLog
    progress: ProgressMonitor | None
    build: TrtexecBuild | None = None
    size: int = 0
    times: InferenceTimes | None = None
    estimate: BoardEstimate | None = None
    files: list[str] = attrs.field(factory=list)

    def run(self) -> None:
        """Do what the options request."""
        read = self.read
        if read.has("--getPlanVersionOnly"):
            self._print_plan_version()
            return
        engine = self._engine()
        if engine is None:
            self.journal.info("Skipped inference phase since a DLA loadable was built.")
            return
        self._refit(engine)
        if self._is_skipped(engine):
            self._print_layers(engine, None)
            self.journal.info("Skipped inference phase since --skipInference is added.")
            return
        if read.has("--timeDeserialize"):
            self._time_deserialize(engine)
            return
        self._infer(engine)

    # The engine -------------------------------------------------------------------------------------------------------

    def _engine(self) -> Engine | None:
        path = self.read.text("--loadEngine")
        if not path:
            self.build = built(self.read, self.board, self.journal, self.progress)
            self.size = self.build.size
            return self.build.engine
        started = time.perf_counter()
        if not Path(path).is_file():
            raise ConfigError("The engine does not exist", where=f"--loadEngine={path}", remedy="Check the path")
        engine = load_engine(Path(path))
        self.size = Path(path).stat().st_size
        self.journal.info(f"Engine loaded in {time.perf_counter() - started:.6g} sec.")
        self.journal.info(f"Loaded engine with size: {bytes_text(self.size)}")
        return engine

    def _print_plan_version(self) -> None:
        path = self.read.text("--loadEngine")
        data, where = file_bytes(path)
        written_by = read_manifest(data, where)[1].get("written_by", "unknown")
        self.journal.info(f"Plan was created with {written_by}")

    def _refit(self, engine: Engine) -> None:
        read = self.read
        if read.has("--dumpRefit") and engine.refittable:
            for layer, role in zip(*Refitter(engine).get_all(), strict=True):
                self.journal.info(f"{layer} {role.name}")
        source = read.text("--refitFromOnnx") or (read.text("--onnx") if read.has("--timeRefit") else "")
        if not source or not engine.refittable:
            if source:
                self.journal.warning(
                    "The engine was built without --refit or --stripWeights: its weights stay as they are"
                )
            return
        refitter = Refitter(engine)
        parser = OnnxParserRefitter(refitter)
        started = time.perf_counter()
        if not parser.refit_from_file(source):
            reasons = [parser.get_error(index).desc() for index in range(parser.num_errors)]
            raise OnnxImportError(
                "The model does not match the engine",
                where=f"file {source!r}",
                found="; ".join(reasons[:3]),
                remedy="Use the model that the engine was built from, retrained or not",
            )
        refitter.refit_cuda_engine()
        self.journal.info(f"Engine refitted in {(time.perf_counter() - started) * 1e3:.6g} ms.")

    def _is_skipped(self, engine: Engine) -> bool:
        if any(map(self.read.has, _SKIPPING)) or self.read.text("--runtimePlatform", "SameAsBuild") != "SameAsBuild":
            return True
        if engine.is_stripped:
            self.journal.warning(
                "The engine has no weights and is not run: refit it (--refitFromOnnx, or `dryfit refit`), or add "
                "--skipInference"
            )
        return engine.is_stripped

    # Reports ----------------------------------------------------------------------------------------------------------

    def _print_layers(self, engine: Engine, runner: EngineRunner | None) -> None:
        read = self.read
        context = None if runner is None else runner.context
        if read.has("--dumpLayerInfo"):
            for line in layer_information_lines(engine, context):
                self.journal.info(line)
        if read.has("--exportLayerInfo"):
            text = layer_information_json(engine, context, major=self.board.version[0])
            self._export("--exportLayerInfo", [text])
        if read.has("--dumpOptimizationProfile"):
            for line in optimization_profile_lines(engine):
                self.journal.info(line)

    def _export(self, option: str, chunks: Iterator[str] | Sequence[str]) -> None:
        path = self.read.text(option)
        write_export(path, chunks, option)
        self.files.append(path)

    def _time_deserialize(self, engine: Engine) -> None:
        contents = engine.serialize()
        started = time.perf_counter()
        first = Engine.load(contents)
        once = time.perf_counter() - started
        del first
        rounds = 10
        started = time.perf_counter()
        for _ in range(rounds):
            Engine.load(contents)
        mean = (time.perf_counter() - started) / rounds
        self.journal.info(f"First deserialization time = {once * 1e3:.6g} ms.")
        self.journal.info(f"Average deserialization time over {rounds} runs = {mean * 1e3:.6g} ms (on this host).")

    # Inference --------------------------------------------------------------------------------------------------------

    def _infer(self, engine: Engine) -> None:
        read, journal = self.read, self.journal
        settings = self._settings()
        index = read.number("--useProfile", 0)
        shapes = parse_shapes(read.text("--shapes"), "--shapes")
        if engine.plan.profiles and not 0 <= index < engine.num_optimization_profiles:
            raise ConfigError(
                "The optimization profile does not exist",
                where="--useProfile",
                found=index,
                allowed=f"0 to {engine.num_optimization_profiles - 1}",
                remedy="Use the index of a profile of the engine",
            )
        if self.build is not None and engine.plan.profiles:  # a loaded engine has the shapes of --shapes alone
            profile = engine.plan.profiles[index]
            found = {name: triple[1] for name, triple in (*profile.shapes.items(), *profile.values.items())}
            shapes = {**found, **shapes}
        runners = [EngineRunner(engine, profile_index=index) for _ in range(settings.streams)]
        given = inference_inputs(engine, input_files(read.text("--loadInputs")), shapes)
        for line in given.lines:
            journal.info(line)
        for line in given.warnings:
            journal.warning(line)
        self._print_layers(engine, runners[0])
        journal.info("Starting inference")
        self.times = times = measure(runners, given.arrays, settings, progress=self.progress)
        self.estimate = self._board_estimate()
        host = f"{host_platform.machine()}, {count_text(usable_processors(), 'CPU')}"
        for one in performance_lines(times, settings, host=host, estimate=self.estimate, api=self.board.version):
            journal.add(one.severity, one.text)
        if read.has("--dumpOutput"):
            for line in "".join(output_lines(times.outputs)).splitlines():
                journal.info(line)
        if read.has("--dumpRawBindingsToFile"):
            for line in write_raw_bindings(engine, given.arrays, times.outputs, Path()):
                journal.info(line)
        if times.layers is not None and read.has("--dumpProfile"):
            for line in profile_lines(times.layers, major=self.board.version[0]):
                journal.info(line)
        self._save_debug_tensors(engine, runners[0], given.arrays)
        if read.has("--exportTimes"):
            self._export("--exportTimes", times_json(times))
        if read.has("--exportOutput"):
            self._export("--exportOutput", outputs_json(times.outputs))
        if times.layers is not None and read.has("--exportProfile"):
            self._export("--exportProfile", profile_json(times.layers))

        if read.has("--loadRefOutputs"):
            files = {name: Path(file) for name, file in pairs(read.text("--loadRefOutputs"), "--loadRefOutputs")}
            for line in accuracy_lines(engine, times.outputs, files, self._tolerances()):
                journal.info(line)

    def _save_debug_tensors(self, engine: Engine, runner: EngineRunner, inputs: Mapping[str, Array]) -> None:
        read = self.read
        if not read.has("--saveDebugTensors") and not read.has("--saveAllDebugTensors"):
            return
        named = {name: Path(file) for name, file in pairs(read.text("--saveDebugTensors"), "--saveDebugTensors")}
        writer = DebugFiles(engine, named, read.listed("--saveAllDebugTensors"))
        writer.write(runner.context, inputs)
        self.files += writer.files
        self.journal.info(f"Debug tensors written to {count_text(len(writer.files), 'file')}")

    def _tolerances(self) -> Tolerances:
        read = self.read
        return Tolerances(
            read.text("--accuracyAlgorithm", "l0"),
            read.decimal("--atol", 1e-5),
            read.decimal("--rtol", 1e-5),
            read.decimal("--accuracyThreshold", 0.0),
        )

    def _settings(self) -> InferenceSettings:
        read = self.read
        is_11 = self.board.version >= FIRST_REFUSED
        percentiles = read.decimals("--percentile") if read.has("--percentile") else (90.0, 95.0, 99.0)
        return InferenceSettings(
            iterations=read.number("--iterations", 10),
            warm_up_ms=read.decimal("--warmUp", 200.0),
            duration_s=read.decimal("--duration", 3.0),
            sleep_ms=read.decimal("--sleepTime", 0.0),
            idle_ms=read.decimal("--idleTime", 0.0),
            streams=read.number("--infStreams", 1),
            threads=read.has("--threads"),
            data_transfers=read.has("--includeDataTransfers") if is_11 else not read.has("--noDataTransfers"),
            average_runs=read.number("--avgRuns", 10),
            percentiles=percentiles,
            profile=read.has("--dumpProfile") or read.has("--exportProfile"),
            separate_profile_run=is_11 or read.has("--separateProfileRun"),
        )

    def _board_estimate(self) -> BoardEstimate | None:
        """Return the estimate for the board, if one was named and its DLA is used."""
        if self.build is None or self.board.platform is None or not self.read.has("--useDLACore"):
            return None
        return BoardEstimate.of(estimate(self.build.network, self.build.config))


def exec_trtexec(
    arguments: Sequence[str],
    *,
    api: str = DEFAULT_API,
    platform: str | None = None,
    software: str | None = None,
    overlays: OverlaysSaid = (),
    report: LogListener | None = None,
    progress: ProgressMonitor | None = None,
) -> ExecTrtexecAnswer:
    """Execute a trtexec command line on this machine: build, save, load, run and report as its options say.

    Each option of trtexec 8.6, 10.16 and 11.1 works, is ignored with a warning, or is refused. Times are those of this
    host; with a board that has a DLA, its estimate is reported beside them.

    Args:
        arguments: words after the program's name.
        api: TensorRT version whose trtexec is simulated: 8.6, 10.16 or 11.1.
        platform: board, such as agx-orin-64; None for the default of the device.
        software: TensorRT or JetPack version whose rules apply to the DLA; None for `api`.
        overlays: what boards showed, as corrections of the rules: overlays, or paths of their files. Without platform
            and software, those of the overlay hold.
        report: function that receives severity and text of each line of the log as soon as it is known.
        progress: monitor that receives the progress of the build and of the run.

    Raises:
        ConfigError: trtexec refuses the options, or they do not match the model.
        BuildError: The model cannot be built.
        OnnxImportError: The model is corrupt or has unsupported operators.
        EngineFileError: A file is corrupt or cannot be written.
        ExecutionError: Inputs cannot be read or do not match the engine.
        UnknownNameError: An option, a word, the version or the board does not exist.

    Example:
        >>> answer = dryfit.exec_trtexec(
        ...     ["--onnx=digits.onnx", "--useDLACore=0", "--allowGPUFallback", "--fp16", "--saveEngine=digits.engine"]
        ... )
        >>> answer.engine
        'digits.engine'
    """
    version = api_version(api)
    read = read_arguments(arguments, version)
    journal = TrtexecLog(report, read.has("--verbose"))
    board, _ = with_overlay_board(NetworkOptions(platform=platform, software=software, overlays=overlays))  # type: ignore[arg-type]
    platform, rules = board.platform, version if board.software is None else _rules(board.software)
    execution = _Execution(read, SimulatedBoard(version, platform, rules, board.overlays), journal, progress)
    ignored: list[IgnoredOption] = []
    if read.has("--help") or not arguments:
        for line in help_lines(version):
            journal.add(PLAIN, line)
    else:
        refuse_conflicts(read, version)
        for line in given_option_lines(read):
            journal.info(line)
        journal.info("=== Device Information ===")
        journal.info(f"Selected Device: {platform or 'default board'}, simulated on this host's CPU")
        journal.info(f"TensorRT version: {version_text(version)}, simulated by dryfit")
        for one in board.overlays:
            journal.info(f"Overlay: {one.label}")
        ignored = [
            IgnoredOption(name, reason)
            for name in read.values
            if (reason := TRTEXEC_OPTIONS[name].effect_problem(version))
        ]
        for option in ignored:
            journal.warning(f"{option.option} has no effect: {option.reason}")
        execution.run()
    times = execution.times
    measured = () if times is None else times.measured
    return ExecTrtexecAnswer(
        arguments=list(arguments),
        tensorrt=version_text(version),
        platform=platform or "",
        software=version_text(rules),
        overlays=[one.label for one in board.overlays],
        engine=read.text("--saveEngine") or read.text("--loadEngine"),
        engine_bytes=execution.size,
        is_loadable=execution.build is not None and execution.build.engine is None,
        ignored=ignored,
        queries=len(measured),
        host_median_milliseconds=statistics.median(one.latency_ms for one in measured) if measured else None,
        estimate="" if execution.estimate is None else execution.estimate.latency,
        files=execution.files,
        outputs={} if times is None else times.outputs,
        lines=journal.lines,
    )


def _rules(software: str) -> Version:
    return tuple(int(part) for part in software_version(software, "--software").split("."))
