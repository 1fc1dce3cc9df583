"""List, describe and compare the installed devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from dryfit.answers.defaults import with_overlay_board
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import NetworkOptions, OverlaysSaid
from dryfit.answers.text import Answer, Block, Line, Table, bytes_text, overlay_lines, type_text
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.plugins.discovery import TARGETS
from dryfit.plugins.failures import DOCTOR, PluginFailure
from dryfit.target.formats import TensorFormat
from dryfit.target.limits import Rule
from dryfit.target.target import Platform, Target

PLATFORM_PARAMETERS = ("platform family", "software version")
"""What rules look at that has nothing to do with a layer: see `dryfit.target.checks`."""


@frozen
class TargetSummary:
    """A summary of a device.

    Attributes:
        device: name of the device.
        title: title of the device.
        precisions: supported computation types.
        platforms: names of the platforms.
        software_versions: software versions with their own rules; empty if the device has a single rule set.
        simulated: which aspects of the device are simulated; empty for this machine.
    """

    device: str
    title: str
    precisions: Sequence[str]
    platforms: Sequence[str]
    software_versions: Sequence[str]
    simulated: str

    @classmethod
    def of(cls, target: Target) -> TargetSummary:
        """Return the summary of a target."""
        return cls(
            device=target.device,
            title=target.title,
            precisions=[precision.name for precision in target.precisions],
            platforms=[platform.name for platform in target.platforms],
            software_versions=[version_text(version) for version in target.software_versions],
            simulated=target.simulated,
        )


@frozen
class UnusableTarget:
    """A device plugin that cannot be used.

    Attributes:
        name: name of the plugin.
        distribution: package that provides the plugin.
        version: version of the package.
        message: why the plugin cannot be used.
    """

    name: str
    distribution: str
    version: str
    message: str


@frozen(repr=False)
class TargetsAnswer(Answer):
    """The installed devices.

    Attributes:
        targets: installed devices, sorted by name.
        failures: device plugins that cannot be used.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        failed: the failures in the form that `dryfit plugins doctor` uses.
    """

    COMMAND: ClassVar[str] = "targets list"

    targets: Sequence[TargetSummary]
    failures: Sequence[UnusableTarget]
    plugins: Sequence[str]
    failed: Sequence[PluginFailure] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return one line per device."""
        rows = [(one.device, one.title, [*map(type_text, one.precisions)], one.platforms) for one in self.targets]
        yield Table("", ["device", "what it is", "precisions", "platforms"], rows)
        if self.failed:
            yield Table("Unusable", ["plugin", "why"], [(str(one.owner), one.message) for one in self.failed])
            yield Line(f"`{DOCTOR}` shows what to do.")

    def summary_line(self) -> str:
        """Return the names of the devices."""
        return ", ".join(one.device for one in self.targets)


def targets() -> TargetsAnswer:
    """List the installed devices with their platforms, and the device plugins that cannot be used.

    Example:
        >>> print(dryfit.targets().summary_line())
        CPU, DLA, GPU
    """
    found = [TargetSummary.of(target) for target in registry.targets().values()]  # loads them, or notes why not
    failed = [one for one in registry.failures() if one.group == TARGETS or one.hook == "register_targets"]
    return TargetsAnswer(
        targets=found,
        failures=[UnusableTarget(one.name, one.distribution, one.version, one.message) for one in failed],
        plugins=registry.active_plugins(),
        failed=failed,
    )


# One device -----------------------------------------------------------------------------------------------------------


@frozen
class FormatFacts:
    """A tensor format of a device.

    Attributes:
        direction: whether the format applies to inputs or outputs of the device's segments.
        type: type of the elements.
        format: name of the tensor format.
        line_alignment_bytes: alignment of the line length, in bytes; 1 for no alignment.
        source: document and section.
    """

    direction: Literal["input", "output"]
    type: str
    format: str
    line_alignment_bytes: int
    source: str


@frozen
class PoolFacts:
    """A memory pool of a device.

    Attributes:
        name: name of the memory pool.
        holds: contents of the pool.
        default_bytes: default limit in bytes; null without a limit.
        default: default limit as text.
        source: document and section.
    """

    name: str
    holds: str
    default_bytes: Count | None
    default: str
    source: str


@frozen
class ArithmeticFacts:
    """The arithmetic of a device in one computation type.

    Attributes:
        precision: the computation type.
        accumulator: data type of the accumulator.
        rounding: rounding mode of the results.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section.
    """

    precision: str
    accumulator: str
    rounding: str
    fidelity: str
    source: str


@frozen
class FusionFacts:
    """Layers that a device fuses into one.

    Attributes:
        name: name of the fusion.
        kinds: layer kinds in order, joined with +.
        source: document and section.
    """

    name: str
    kinds: str
    source: str


@frozen
class LimitFacts:
    """A rule on the layers of a device.

    Attributes:
        rule: id of the rule.
        kinds: layer kinds that the rule applies to.
        text: what the rule requires, in one sentence.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section.
        refuses_every_layer: whether this platform and version support no layer of these kinds.
    """

    rule: str
    kinds: Sequence[str]
    text: str
    fidelity: str
    source: str
    refuses_every_layer: bool


@frozen(repr=False)
class TargetAnswer(TargetSummary, Answer):
    """The facts about one device, for one platform and software version.

    Attributes:
        platform: name of the platform.
        software: software version whose rules apply; empty if the device has a single rule set.
        platforms_with_software: platforms that support this software version.
        cores: number of cores of the device on the platform.
        overlays: active overlays, each with its board and a digest.
        segment_limit: number of segments that one core can load; null without a limit.
        formats: tensor formats of inputs, then of outputs.
        memory_pools: memory pools with their limits.
        fusions: layers that the device fuses.
        arithmetic: arithmetic by computation type.
        limits: rules that apply to the platform and version.
    """

    COMMAND: ClassVar[str] = "targets show"

    platform: str
    software: str
    platforms_with_software: Sequence[str]
    cores: Count
    overlays: Sequence[str]
    segment_limit: int | None
    formats: Sequence[FormatFacts]
    memory_pools: Sequence[PoolFacts]
    fusions: Sequence[FusionFacts]
    arithmetic: Sequence[ArithmeticFacts]
    limits: Sequence[LimitFacts]
    _target: Target = attrs.field(eq=False)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return tables of platforms, formats, memory pools, fusions, arithmetic and limits."""
        board = self._target.platform(self.platform).title
        yield Line(f"{self.device}: {self.title}, {board}, software {self.software or 'any'}")
        yield Line(f"Simulated: {self.simulated or 'nothing; this is the host'}")
        yield from overlay_lines(self.overlays)
        platforms = [(one.name, one.title, one.cores, one.aliases) for one in self._target.platforms]
        yield Table("Platforms", ["name", "board", "cores", "also called"], platforms)
        tables: list[tuple[str, Sequence[Any], tuple[str, ...]]] = [
            ("Formats", self.formats, ("direction", "type", "format")),
            ("Memory pools", self.memory_pools, ("name", "holds", "default", "source")),
            ("Fusions", self.fusions, ("name", "kinds", "source")),
            ("Arithmetic", self.arithmetic, ("precision", "accumulator", "rounding", "fidelity")),
            ("Limits", self.limits, ("rule", "kinds", "text", "fidelity")),
        ]
        for title, facts, columns in tables:
            if facts:
                yield Table(title, columns, [[_cell(getattr(one, column)) for column in columns] for one in facts])

    def summary_line(self) -> str:
        """Return the device with its platform and version."""
        return f"{self.device}: {self.title}, {self.platform} {self.software}".rstrip()


def describe_target(
    device: str, platform: str | None = None, software: str | None = None, *, overlays: OverlaysSaid = ()
) -> TargetAnswer:
    """Describe one device: platforms, formats, memory pools, arithmetic, limits.

    Args:
        device: name of the device; case-insensitive.
        platform: platform of the device; None for the default.
        software: software version; None for the newest one that the platform supports.
        overlays: what boards showed, as corrections of the limits: overlays, or paths of their files. Without platform
            and software, those of the overlay hold.

    Raises:
        UnknownNameError: The device or platform does not exist.
        ConfigError: The platform does not support the version, or an overlay is for another board.

    Example:
        >>> dryfit.describe_target("DLA", "xavier").software
        '8.5.10'
    """
    board, _ = with_overlay_board(NetworkOptions(platform=platform, software=software, overlays=overlays))  # type: ignore[arg-type]
    from dryfit.builder.config.builder_config import BuilderConfig  # loads numpy, which a list of devices does not need

    config = BuilderConfig()
    config.set_platform(device, board.platform or registry.target(device).platforms[0].name)
    if board.software is not None:
        config.set_software(device, board.software)
    config.overlays = board.overlays
    return _described(config.target(device), config.platform(device), config.software(device))


def device_formats(device: str) -> Mapping[str, TensorFormat]:
    """Return the memory formats of a device's inputs and outputs, by name.

    A layer plugin may name them in its `format_combinations`.

    Raises:
        UnknownNameError: No installed package provides the device.

    Example:
        >>> dryfit.device_formats("DLA")["CHW32"].array_shape((1, 3, 2, 2), dryfit.DataType.INT8)
        (1, 1, 2, 2, 32)
    """
    target = registry.target(device)
    groups = (*target.input_formats.values(), *target.output_formats.values())
    return {one.name: one for formats in groups for one in formats}


def _cell(value: object) -> object:
    return type_text(value) if isinstance(value, str) else value


def _described(target: Target, platform: Platform, software: tuple[int, ...]) -> TargetAnswer:
    formats: list[tuple[Literal["input", "output"], Any]] = [
        ("input", target.input_formats),
        ("output", target.output_formats),
    ]
    rules = [] if target.limits is None else target.limits.all_rules
    return TargetAnswer(
        **attrs.asdict(TargetSummary.of(target), recurse=False),
        platform=platform.name,
        software=version_text(software),
        platforms_with_software=_platforms_with(target, software),
        cores=platform.cores,
        overlays=[one.label for one in target.overlays],
        segment_limit=target.segment_rules.segment_limit(software),
        formats=[
            FormatFacts(
                direction=direction,
                type=dtype.name,
                format=one.name,
                line_alignment_bytes=one.line_alignment_bytes.get(platform.family, one.line_alignment_bytes.get("", 1)),
                source=one.source,
            )
            for direction, table in formats
            for dtype, listed in table.items()
            for one in listed
        ],
        memory_pools=[
            PoolFacts(pool.name, pool.holds, size, "no limit" if size is None else bytes_text(size), pool.source)
            for pool in target.memory_pools
            for size in [pool.default_for(platform.family, platform.name)]
        ],
        fusions=[FusionFacts(one.name, " + ".join(one.kinds), one.source) for one in target.fusions or ()],
        arithmetic=[
            ArithmeticFacts(
                precision.name, one.accumulator.name, one.rounding_for(software).value, one.fidelity, one.source
            )
            for precision, one in target.arithmetic.items()
        ],
        limits=[
            LimitFacts(
                rule=rule.id,
                kinds=sorted(rule.kinds) or ["every kind"],
                text=rule.text,
                fidelity=rule.fidelity,
                source=rule.source,
                refuses_every_layer=_refuses_every_layer(rule, target, platform, software),
            )
            for rule in rules
            if rule.holds_for(platform.family, software)
        ],
        target=target,
    )


def _refuses_every_layer(rule: Rule, target: Target, platform: Platform, software: tuple[int, ...]) -> bool:
    """Return whether a rule depends only on platform or version and is violated, so that it rejects every layer."""
    from dryfit.network.data_types import DataType
    from dryfit.target.question import Question

    if rule.parameter not in PLATFORM_PARAMETERS or rule.when:
        return False
    no_layer: Any = None
    asked = Question(no_layer, DataType.HALF, target.device, platform.name, platform.family, software)
    return rule.check(asked) is not None


def _platforms_with(target: Target, software: tuple[int, ...]) -> list[str]:
    """Return the platforms that support a software version."""
    found = []
    for platform in target.platforms:
        try:
            target.software(version_text(software) or None, platform)
        except ConfigError:
            continue
        found.append(platform.name)
    return found


def version_text(version: tuple[int, ...]) -> str:
    """Format a software version: `10.3`."""
    return ".".join(map(str, version))


# Two variants of one device -------------------------------------------------------------------------------------------


@frozen
class TargetDifference:
    """A fact that differs between two platforms or versions.

    Attributes:
        about: category: `platform`, `segments`, `format`, `pool`, `arithmetic` or `rule`.
        what: name of the property.
        first: value on the first side; `none` if missing.
        second: value on the second side; `none` if missing.
    """

    about: str
    what: str
    first: str
    second: str


@frozen(repr=False)
class TargetDifferences(Answer):
    """The differences between two platforms or versions of a device.

    Attributes:
        device: name of the device.
        first: platform and version of one side.
        second: platform and version of the other.
        differences: properties that differ.
    """

    COMMAND: ClassVar[str] = "targets diff"

    device: str
    first: str
    second: str
    differences: Sequence[TargetDifference]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return one line per difference."""
        if self.differences:
            rows = [(one.what, one.first, one.second) for one in self.differences]
            yield Table(f"{self.device}: {self.first} and {self.second}", ["", self.first, self.second], rows)
        else:
            yield Line(self.summary_line())

    def summary_line(self) -> str:
        """Return the number of differences."""
        if not self.differences:
            return f"{self.device}: no known differences between {self.first} and {self.second}"
        return f"{self.device}: {len(self.differences)} differences between {self.first} and {self.second}"


def compare_targets(first: str, second: str, device: str = "DLA") -> TargetDifferences:
    """Compare two platforms or versions of a device: rules, formats, memory pools, platforms.

    Args:
        first: `orin`, `orin@8.5`, or a device with a version, `dla@10.3`: its first platform that supports the version.
        second: the other side, in the same form.
        device: device for sides that do not name one.

    Raises:
        UnknownNameError: The device or platform does not exist.
        ConfigError: The sides belong to two devices or are the same, or a platform does not support the version.

    Example:
        >>> found = dryfit.compare_targets("orin@8.4", "orin@8.5").differences
        >>> [(one.first, one.second) for one in found if one.about == "segments"]
        [('8', '16')]
    """
    sides = [_side(text, device) for text in (first, second)]
    names = [" ".join(filter(None, [side.platform, side.software])) for side in sides]
    devices = [side.device for side in sides]
    if devices[0] != devices[1]:
        raise ConfigError(
            "Only variants of one device can be compared",
            found=" and ".join(devices),
            remedy="Choose two platforms or versions of the same device",
        )
    if names[0] == names[1]:
        raise ConfigError(
            "The two sides must differ",
            where="targets diff",
            found=names[0],
            remedy="Choose another platform or software version for one side",
        )
    facts = [_flat(side) for side in sides]
    found = [
        TargetDifference(*key, facts[0].get(key, "none"), facts[1].get(key, "none"))
        for key in dict.fromkeys([*facts[0], *facts[1]])
        if facts[0].get(key) != facts[1].get(key)
    ]
    return TargetDifferences(devices[0], names[0], names[1], found)


def _side(text: str, device: str) -> TargetAnswer:
    """Describe `PLATFORM`, `PLATFORM@VERSION` or `DEVICE@VERSION`."""
    name, _, version = text.partition("@")
    target = registry.find_target(name)
    if target is None:
        return describe_target(device, name, version or None)
    for platform in target.platforms:
        try:
            return _described(target, platform, target.software(version or None, platform))
        except ConfigError:
            continue  # another platform may have it
    raise ConfigError(
        f"No platform of {target.device} has this software version",
        found=version,
        allowed=", ".join(map(version_text, target.software_versions)) or "none: the device has one rule set",
        remedy=f"Use one of these versions: `dryfit targets show {target.device}` lists the platforms with each",
    )


def _flat(side: TargetAnswer) -> Mapping[tuple[str, str], str]:
    """Return facts as (category, name) to value, in display order."""
    limit = side.segment_limit
    flat = {
        ("platform", "platforms with this software"): ", ".join(side.platforms_with_software),
        ("platform", "cores"): str(side.cores),
        ("segments", "segments per core"): "no limit" if limit is None else str(limit),
    }
    for one in side.formats:
        aligned = f"lines of a multiple of {one.line_alignment_bytes} bytes" if one.line_alignment_bytes > 1 else "yes"
        flat["format", f"{one.direction} format {one.format} ({type_text(one.type)})"] = aligned
    flat |= {("pool", f"pool {pool.name}"): pool.default for pool in side.memory_pools}
    flat |= {("arithmetic", f"rounding of {one.precision}"): one.rounding for one in side.arithmetic}
    for rule in side.limits:
        never = "not supported: " if rule.refuses_every_layer else ""
        flat["rule", rule.rule] = f"{never}{rule.text}"
    return flat
