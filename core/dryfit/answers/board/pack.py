"""Pack a kit that builds and measures models on a board: `dryfit.board_pack` and `dryfit board pack`."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack, cast

import attrs
import onnx

from dryfit.answers.anonymous import anonymous, foreign_operators
from dryfit.answers.anonymous_weights import without_weights
from dryfit.answers.asked import Model, form_of, format_of, model_source, quiet_log
from dryfit.answers.board.learn import board_learn, open_limit_text
from dryfit.answers.board.narrowing import NarrowedLimit, Narrowing, narrowing_probes
from dryfit.answers.board.outputs import inputs_of
from dryfit.answers.board.probes import ProbeNetwork, ProbeSet, probe_networks
from dryfit.answers.board_exports import Exports
from dryfit.answers.builder_config import listed_layers
from dryfit.answers.defaults import has_scales
from dryfit.answers.exported_config import config_for_board
from dryfit.answers.json_data import Amount, Count
from dryfit.answers.log_comparison import DLA
from dryfit.answers.network_cost import network_cost
from dryfit.answers.options import NetworkOptions, Options, shape_text
from dryfit.answers.text import Answer, Block, Entries, Line, Table, bytes_text, overlay_lines
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.board.board_build import BoardFiles
from dryfit.board.kit.manifest import (
    FORMAT,
    MODEL,
    PROBE,
    VERSION,
    KitBuild,
    KitLine,
    KitManifest,
    KitOption,
    sha256,
)
from dryfit.board.kit.writing import kit_bytes
from dryfit.board.trtexec_options import TRTEXEC_OPTIONS
from dryfit.board.versions import FIRST_REFUSED, OLDEST
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import design_for_assessment
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.network import Network
from dryfit.onnx.model_file import SharedModel
from dryfit.plugins import registry
from dryfit.plugins.model_importers import DEFAULT_FORMAT
from dryfit.short_text import count_text
from dryfit.version import __version__

MEASURED_SECONDS = 5.0
"""How long each model is measured: our choice; trtexec's default is 3 s."""
WARM_UP_MILLISECONDS = 500
SECONDS_PER_LAYER = 0.3
"""How long a build takes for a layer, before one on the board has ended. Source: 14.7 s for fcn-resnet18, which has
some 50 layers, on AGX Orin with a DLA (dusty-nv/jetson-inference issue 1838)."""
LINE_VERSIONS = ((8, 0), (8, 4), (8, 6), (10, 0))
"""The first versions of trtexec with other words for the same build; 8.0 has those of 8.2."""
_ADDED = (
    ("--verbose", "", False),
    ("--profilingVerbosity", "detailed", False),
    ("--exportLayerInfo", "{build}/layers.json", False),
    ("--exportTimes", "{build}/times.json", True),
    ("--exportProfile", "{build}/profile.json", True),
    ("--exportOutput", "{build}/output.json", True),
    ("--separateProfileRun", "", True),
    ("--warmUp", str(WARM_UP_MILLISECONDS), True),
    ("--duration", f"{MEASURED_SECONDS:g}", True),
)
"""Options that are added to each line: name, value, and whether it is for measured builds."""
_SKIPPING = ("--skipInference", "--buildOnly")
_OWN = ("platform", "software", "power_mode", "overlays")
_NOT_IN_KITS = ("placement", "quantize_method", "engine_capability", "standalone", "example_inputs")


@frozen
class PackedBuild:
    """A build of the kit.

    Attributes:
        build: id of the build.
        title: what it is.
        layers: number of layers.
        bytes: size of the model.
        tensorrt: TensorRT versions for which the kit has a command line.
        is_measured: whether runs are measured.
        estimated_microseconds: estimated latency; None if a device has no estimate.
    """

    build: str
    title: str
    layers: Count
    bytes: Count
    tensorrt: Sequence[str]
    is_measured: bool
    estimated_microseconds: Amount | None


@frozen
class ProbeSummary:
    """What the probes of a kit decide.

    Attributes:
        asked: `inferred` for rules that are not documented, or `all`.
        rules: number of these rules that apply to the board.
        decided: rules that a build of the probes decides.
        undecided: the others, with the reason.
        builds: number of builds of the probes.
        layers: number of layers that are probed.
    """

    asked: str
    rules: Count
    decided: Sequence[str]
    undecided: Mapping[str, str]
    builds: Count
    layers: Count


@frozen(repr=False)
class BoardPackAnswer(Answer):
    """A kit that was written.

    Attributes:
        kit: path of the kit; "" if it was not written.
        bytes: size of the kit.
        platform: board for which it is.
        overlays: active overlays, each with its author, its board and a digest.
        is_anonymous: whether names and weights were replaced.
        builds: the builds.
        probes: what the probes decide; None without probes.
        narrowed: limits that the board has elsewhere, with the values that are tried of each; of `after` alone.
        seconds: estimated duration on the board.
        contents: what the results will contain.
        notes: what was assumed or left out.
    """

    COMMAND: ClassVar[str] = "board pack"

    kit: str
    bytes: Count
    platform: str
    overlays: Sequence[str]
    is_anonymous: bool
    builds: Sequence[PackedBuild]
    probes: ProbeSummary | None
    narrowed: Sequence[NarrowedLimit]
    seconds: Amount
    contents: Sequence[str]
    notes: Sequence[str]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        minutes = max(1, round(self.seconds / 60))
        return (
            f"{self.kit}: {count_text(len(self.builds), 'build')}, {bytes_text(self.bytes)}; "
            f"about {minutes} min on the board (estimated)"
        )

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit board pack` prints."""
        yield Line(self.summary_line())
        yield from overlay_lines(self.overlays)
        rows = [
            (one.build, one.title, one.layers, bytes_text(one.bytes), ", ".join(one.tensorrt)) for one in self.builds
        ]
        yield Table("Builds", ["build", "what", "layers", "model", "TensorRT"], rows)
        if self.probes is not None:
            size = f"{count_text(self.probes.layers, 'layer')} in {count_text(self.probes.builds, 'build')}"
            rules = f"{len(self.probes.decided)} of {count_text(self.probes.rules, 'rule')} ({self.probes.asked})"
            yield Line(f"Probes: {size} decide {rules}")
            if verbose:
                yield Line(f"Decided: {', '.join(self.probes.decided)}")
            yield Entries("Not decided", [(rule, why, "") for rule, why in self.probes.undecided.items()])
        if self.narrowed:
            columns = ["rule", "limit", "ran", "refused", "values tried", "left, at most", "note"]
            limits = [
                (one.rule, one.limit, f"{one.taken:g}", _or_dash(one.refused), one.values, _or_dash(one.left), one.note)
                for one in self.narrowed
            ]
            yield Table("Limits that the board has elsewhere", columns, limits)
        yield Line("The results will contain:")
        yield from (Line(f"  * {line}") for line in self.contents)
        yield from (Line(f"Note: {note}.") for note in self.notes)
        yield Line("On the board: unpack the kit, then `sh run.sh`; its README has the details")


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def board_pack(
    models: Model | Sequence[Model] = (),
    *,
    output: str | os.PathLike[str],
    probes: str | None = None,
    after: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    kit: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    anonymously: bool = False,
    **options: Unpack[Options],
) -> BoardPackAnswer:
    """Write a kit that builds models on a board with trtexec, measures them, and packs the results.

    Args:
        models: one or several models: paths or ONNX models. May be empty with `probes`.
        output: path of the kit, a zip archive.
        probes: `inferred` to add generated networks that decide the rules that no document states, `all` for all rules;
            None for none.
        after: results of earlier probes on the board: adds networks with values between those that the board took and
            those that it refused, where it has a limit elsewhere. Platform and version are those of the results.
        kit: path of the earlier kit, or several; None for results of probes alone.
        anonymously: whether to number layers and tensors, and to replace weights by random ones of the same ranges.
        options: keyword arguments named like the options of `dryfit board pack`; `platform` is required.

    Raises:
        ConfigError: The options conflict, trtexec cannot express the build, or the kit cannot be written.
        OnnxImportError: A model is corrupt or has unsupported operators.
        UnknownNameError: A platform or option value does not exist.

    Example:
        >>> answer = dryfit.board_pack("digits.onnx", platform="orin-nx-16", output="kit.zip")
        >>> [one.build for one in answer.builds]
        ['digits']
    """
    given: dict[str, Any] = dict(options)
    narrowing = _narrowing(after, kit, given)
    platform = _platform(given)
    listed = [models] if isinstance(models, str | bytes | os.PathLike | onnx.ModelProto | Network) else list(models)
    if not listed and probes is None and narrowing is None:
        raise ConfigError("A kit must have models or probes", where="models", remedy="Name models, or add --probes")
    packed = _Kit(platform, given)
    for model in listed:
        if anonymously:
            packed.add_anonymous(model)
        else:
            packed.add(model, given, MODEL)
    summary = None
    if probes is not None:
        chosen = probe_networks(platform, given.get("software"), probes)
        packed.add_probes(chosen.networks)
        summary = _summary(chosen)
    if narrowing is not None:
        packed.add_probes(narrowing.networks)
    has_probes = any(one.purpose == PROBE for one in packed.builds)
    contents = _contents(is_anonymous=anonymously, has_models=bool(listed), has_probes=has_probes)
    manifest = KitManifest(
        format=FORMAT,
        version=VERSION,
        dryfit=__version__,
        platform=platform,
        is_anonymous=anonymously,
        measured_seconds=MEASURED_SECONDS,
        seconds_per_layer=SECONDS_PER_LAYER,
        contents=contents,
        options=_added_options(),
        builds=packed.builds,
    )
    data = kit_bytes(manifest, packed.data)
    try:
        write_atomically(output, [data])
    except OSError as error:
        raise ConfigError(
            "The kit cannot be written",
            where=os.fspath(output),
            found=error.strerror or error,
            remedy="Choose an existing, writable folder with enough free space",
        ) from error
    runs = sum(MEASURED_SECONDS for one in packed.builds if one.inputs)
    return BoardPackAnswer(
        kit=os.fspath(output),
        bytes=len(data),
        platform=platform,
        overlays=packed.overlays,
        is_anonymous=anonymously,
        builds=[_packed(one, len(packed.data[one.model])) for one in packed.builds],
        probes=summary,
        narrowed=() if narrowing is None else narrowing.limits,
        seconds=runs + SECONDS_PER_LAYER * sum(one.layers for one in packed.builds),
        contents=contents,
        notes=packed.notes,
    )


def _platform(given: Mapping[str, Any]) -> str:
    """Return the board of the kit.

    Raises:
        ConfigError: None is given, it has no DLA, or an option cannot be used in a kit.
        UnknownNameError: It does not exist.
    """
    if not given.get("platform"):
        raise ConfigError(
            "A kit requires a board", where="--platform", remedy="Specify one, such as --platform orin-nx-16"
        )
    platform = registry.target(DLA).platform(given["platform"])
    if not platform.cores:
        raise ConfigError("The board has no DLA", where="--platform", found=platform.name, remedy="Name another board")
    refused = [name for name in _NOT_IN_KITS if given.get(name)]
    if refused:
        raise ConfigError(
            "These options cannot be used in a kit",
            found=", ".join(f"--{name.replace('_', '-')}" for name in refused),
            remedy="Assign layers with --layer-device-types",
        )
    return platform.name


def _narrowing(
    after: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    kit: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    given: dict[str, Any],
) -> Narrowing | None:
    """Return the probes that earlier results ask for, and set platform and version in the options; None without any.

    Raises:
        ConfigError: The results are damaged, of another board than the options, or there is nothing to narrow.
        UnknownNameError: dryfit does not know the board.
        OSError: A file cannot be read.
    """
    results = [after] if isinstance(after, str | os.PathLike) else list(after)
    if not results:
        return None
    learned = board_learn(results, kit=kit)
    target = registry.target(DLA)
    named = given.get("platform")
    if named and target.platform(named).name != learned.platform:
        raise ConfigError(
            "The results are of another board",
            where="--after",
            found=learned.platform,
            allowed=target.platform(named).name,
            remedy="Leave out --platform",
        )
    if not learned.open_limits:
        raise ConfigError(
            "No limit lies between two tried values, so there is nothing to narrow",
            where="--after",
            found=learned.summary_line(),
            remedy="Use the overlay as it is: dryfit board learn",
        )
    given["platform"], given["software"] = learned.platform, learned.software
    found = narrowing_probes(learned.overlay, learned.open_limits, learned.platform, learned.software)
    if not found.networks:
        raise ConfigError(
            "No probe has a value between those that were tried",
            where="--after",
            found="; ".join(f"{one.rule}: {open_limit_text(one)}" for one in learned.open_limits),
            remedy="Use the overlay as it is (dryfit board learn), or pack a model of yours that has such a value",
        )
    return found


def _added_options() -> list[KitOption]:
    found = []
    for name, value, needs_inputs in _ADDED:
        versions = TRTEXEC_OPTIONS[name].versions
        # trtexec 8.0 and 8.2 have the same options; its help decides where it lists them.
        since = (8, 0) if versions.since == OLDEST else versions.since
        found.append(KitOption(name, value, since, versions.until, needs_inputs))
    return found


def _packed(build: KitBuild, size: int) -> PackedBuild:
    versions = [
        f"{_dotted(one.since)}{'+' if one.until is None else f' to {_dotted(one.until)}'}" for one in build.lines
    ]
    return PackedBuild(
        build.id, build.title, build.layers, size, versions, bool(build.inputs), build.estimated_microseconds
    )


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _summary(chosen: ProbeSet) -> ProbeSummary:
    return ProbeSummary(
        asked=chosen.asked,
        rules=len(chosen.decided) + len(chosen.undecided),
        decided=list(chosen.decided),
        undecided=dict(chosen.undecided),
        builds=len(chosen.networks),
        layers=sum(one.layers for one in chosen.networks),
    )


def _contents(*, is_anonymous: bool, has_models: bool, has_probes: bool) -> list[str]:
    """Return what the results contain, in sentences."""
    own = "numbers in the place of names" if is_anonymous else "with the names of your layers, tensors and model files"
    own += "" if is_anonymous else ", and what these files say of their producer"
    models = f"{own}; models and weights are not among them" if has_models else "no model of yours is in this kit"
    return [
        "kit.json: the builds of this kit, with their command lines, inputs and options",
        "board.json: model of the board, Jetson Linux, kernel, TensorRT, memory, power mode and its limits, clocks",
        "nothing else about the board: no serial number, host name, user or address",
        "for each build: trtexec's verbose log with dates, from which users' folders and the GPU's UUID are removed",
        f"for each build: the layers of the engine, and their times ({models})",
        "for each build: the outputs of one run, on inputs that the kit generates",
        *(["the generated networks of the probes"] if has_probes else []),
    ]


class _Kit:
    """Collects the builds of a kit.

    Attributes:
        builds: the builds.
        data: models and scales by path.
        notes: what was assumed or left out.
        overlays: overlays with which the builds were estimated.
    """

    def __init__(self, platform: str, given: Mapping[str, Any]) -> None:
        self._platform, self._given = platform, given
        self.builds: list[KitBuild] = []
        self.data: dict[str, bytes] = {}
        self.notes: list[str] = []
        self.overlays: list[str] = []

    def add_anonymous(self, model: Model) -> None:
        """Add a model without its names and weights. Raises what `board_pack` raises."""
        source, _ = _onnx_source(model)
        loaded = source if isinstance(source, onnx.ModelProto) else _loaded(source)
        with anonymous(loaded, self._given) as (found, options):
            renamed, name = cast("onnx.ModelProto", found), f"model-{len(self.builds) + 1}"
            self.add(without_weights(renamed), options, MODEL, name=name)
        foreign = foreign_operators(renamed)
        if foreign:
            self.notes.append(
                f"{name} keeps names and attributes of operators that ONNX does not define: {', '.join(foreign)}"
            )

    def add_probes(self, networks: Sequence[ProbeNetwork]) -> None:
        """Add generated networks."""
        first = 1 + sum(one.purpose == PROBE for one in self.builds)
        for number, one in enumerate(networks, first):
            options = {"platform": self._platform, "software": self._given.get("software"), **one.options}
            self.add(one.model, options, PROBE, name=f"probe-{number}", title=one.title)

    def add(
        self, model: Model, options: Mapping[str, Any], purpose: str, *, name: str | None = None, title: str = ""
    ) -> None:
        """Add a model. Raises what `board_pack` raises."""
        source, said = _onnx_source(model)
        stem = Path(said).stem if isinstance(source, Path) else said
        build_id = self._new_id(name or stem)
        data = source if isinstance(source, bytes) else _model_bytes(source)
        file = f"models/{build_id}.onnx"
        subject = config_for_board(source, None, self._with_scales(build_id, {**options, "platform": self._platform}))
        if subject.options is None or subject.config.default_device_type != DLA:
            raise ConfigError("A kit is for the DLA", where="--device", remedy="Leave out --device")
        self.overlays += [label for label in subject.config.overlay_labels if label not in self.overlays]
        scales = f"scales/{build_id}.cache"
        lines, cache = self._lines(subject.network, subject.config, file, scales)
        if cache is not None:
            self.data[scales] = cache
        shapes = _shapes(subject.config)
        inputs = inputs_of(subject.network, shapes, f"inputs/{build_id}")
        if inputs is None:
            self.notes.append(f"{build_id} is built and not measured: its inputs cannot be generated")
        self.data[file] = data
        self.builds.append(
            KitBuild(
                id=build_id,
                title=title or _title(subject.options),
                purpose=purpose,
                model=file,
                model_sha256=sha256(data),
                options=_kit_options(subject.options, scales if cache is not None else None),
                lines=lines if inputs is None else [_measuring(one) for one in lines],
                inputs=inputs or (),
                layers=sum(one.kind != "constant" for one in subject.network.layers),
                estimated_microseconds=_estimate(subject.network, subject.config),
            )
        )

    def _with_scales(self, build_id: str, options: dict[str, Any]) -> dict[str, Any]:
        """Return options for which INT8 has scales, as trtexec invents ranges where it gets none."""
        said = NetworkOptions.said(options)
        if "int8" not in said.precision or has_scales(said):
            return options
        self.notes.append(f"{build_id} has no scales: trtexec invents ranges, so outputs have no meaning")
        return {**options, "assume_scales": True}

    def _new_id(self, name: str) -> str:
        short = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "model"
        taken = {one.id for one in self.builds}
        numbered = (f"{short}-{number}" for number in itertools.count(2))
        return next(one for one in itertools.chain([short], numbered) if one not in taken)

    def _lines(
        self, network: Network, config: BuilderConfig, file: str, scales: str
    ) -> tuple[list[KitLine], bytes | None]:
        """Return the command lines by version, and the calibration cache that they read."""
        first, last = registry.target(DLA).platform(self._platform).software
        versions = [one for one in LINE_VERSIONS if last is None or one <= last]
        if first is not None:
            versions = [
                max((one for one in versions if one <= first), default=versions[0]),
                *(v for v in versions if v > first),
            ]
        lines: list[KitLine] = []
        cache, problems = None, []
        ends: Iterable[tuple[int, ...]] = [*versions[1:], FIRST_REFUSED]
        for since, until in zip(versions, ends, strict=True):
            try:
                with quiet_log():
                    found = Exports.of(
                        network,
                        config,
                        max(since, OLDEST),
                        BoardFiles(file, "", scales),
                        with_line=True,
                        with_script=False,
                    )
            except ConfigError as error:
                problems.append(error)
                continue
            if found.line is None:
                continue
            own = found.build.calibration_cache
            cache = cache if own is None else own.to_bytes()
            lines.append(KitLine(since, until, list(found.line.arguments)))
        if not lines:
            raise problems[0]
        return _joined(lines), cache


def _joined(lines: Sequence[KitLine]) -> list[KitLine]:
    """Return the lines with equal neighbours as one."""
    found: list[KitLine] = []
    for one in lines:
        if found and found[-1].until == one.since and list(found[-1].arguments) == list(one.arguments):
            found[-1] = attrs.evolve(found[-1], until=one.until)
        else:
            found.append(one)
    return found


def _measuring(line: KitLine) -> KitLine:
    return attrs.evolve(line, arguments=[word for word in line.arguments if word not in _SKIPPING])


def _shapes(config: BuilderConfig) -> dict[str, Sequence[int]]:
    """Return the shapes that trtexec runs: the optimum of the first profile."""
    if not config.num_optimization_profiles:
        return {}
    profile: OptimizationProfile = config.get_optimization_profile(0)
    return {name: triple[1] for name, triple in profile.shapes.items()}


def _title(options: NetworkOptions) -> str:
    fallback = options.fallback_device
    return f"{'+'.join(options.precision) or 'fp32'} on DLA{f' with fallback to {fallback}' if fallback else ''}"


def _kit_options(options: NetworkOptions, scales: str | None) -> dict[str, Any]:
    """Return the options of a build without board and version, as plain data."""
    found: dict[str, Any] = {}
    for field in attrs.fields(NetworkOptions):
        value = getattr(options, field.name)
        if field.name in (*_OWN, *_NOT_IN_KITS, "calibration_cache", "ranges") or value in (None, "", (), {}, False):
            continue
        if field.name in ("shape", "shape_values"):
            value = {name: ":".join(map(shape_text, shapes)) for name, shapes in value.items()}
        if field.name in ("layer_precisions", "layer_output_types"):
            value = listed_layers(value, field.name)[0]
        found[field.name] = list(value) if isinstance(value, tuple) else value
    if scales is not None:
        found["calibration_cache"] = scales
    return found


def _estimate(network: Network, config: BuilderConfig) -> float | None:
    """Return the estimated latency; None if there is none, or the model cannot be placed."""
    with quiet_log(), contextlib.suppress(DryfitError):
        design = design_for_assessment(network, config)
        if design.is_whole:
            return network_cost(design).latency_microseconds
    return None


def _onnx_source(model: Model) -> tuple[str | os.PathLike[str] | bytes | onnx.ModelProto, str]:
    """Return an ONNX model and its name.

    Raises:
        ConfigError: It is another model: trtexec reads ONNX files.
    """
    source, _, said = model_source(model)
    if isinstance(source, Network) or format_of(source) != DEFAULT_FORMAT:
        found = form_of(source)
        raise ConfigError("A kit needs ONNX models", where="models", found=found, remedy="Pass the model as ONNX")
    return source.whole() if isinstance(source, SharedModel) else source, said


def _loaded(source: str | os.PathLike[str] | bytes) -> onnx.ModelProto:
    return onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)


def _model_bytes(source: str | os.PathLike[str] | onnx.ModelProto) -> bytes:
    """Return a model as one file, with its external data inside.

    Raises:
        ConfigError: It has 2 GiB or more.
    """
    if not isinstance(source, onnx.ModelProto):
        bare = onnx.load(source, load_external_data=False)
        if not any(one.data_location == onnx.TensorProto.EXTERNAL for one in bare.graph.initializer):
            return Path(source).read_bytes()
        source = onnx.load(source)
    try:
        data: bytes = source.SerializeToString(deterministic=True)
    except ValueError as error:
        raise ConfigError(
            "The model is too large for a kit",
            where="models",
            found=str(error),
            allowed="less than 2 GiB",
            remedy="Copy the model to the board, and build it with the command line from `dryfit export trtexec`",
        ) from error
    return data
