"""Compare where a model runs on several devices, and at what estimated cost: `dryfit.compare_devices`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from dryfit.answers.asked import Model, loaded_model
from dryfit.answers.builder_config import unused_overlay_notes
from dryfit.answers.check import CheckAnswer, check
from dryfit.answers.estimate import EstimateAnswer, estimate
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.text import Answer, Block, Entries, Line, Table, overlay_lines
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, DryfitError, UnknownNameError
from dryfit.plugins import registry
from dryfit.short_text import count_text
from dryfit.target.overlays import Overlay

HERE = "yes"
"""What a table says of an operator that runs on the device as a whole."""
_SEGMENT = "segment"
"""Stands for a rule where a layer moved with its segment."""


@frozen
class DeviceSide:
    """What a device makes of a model, with the host for what it does not run.

    Attributes:
        name: the side as requested.
        device: name of the device.
        platform: name of the platform.
        software: software version; empty if the device has a single rule set.
        fallback: device for what this one rejects; None for the host itself.
        can_be_built: whether a build would succeed.
        operators: number of operators of the model that run on the device as a whole.
        segments: number of segments on the device.
        latency_microseconds: estimated latency with fallback and copies; None if a target does not estimate time.
        error_factor: error of the latency, as a factor up or down; None if unknown.
        latency_text: latency to two digits, with its error.
        basis: how the device's own part was estimated; "" without an estimate.
        no_estimate: why there is no estimate; "" if there is one.
        refusals: errors that a build would raise.
    """

    name: str
    device: str
    platform: str
    software: str
    fallback: str | None
    can_be_built: bool
    operators: Count
    segments: Count
    latency_microseconds: Amount | None
    error_factor: float | None
    latency_text: str
    basis: str
    no_estimate: str
    refusals: Sequence[str]


@frozen
class OperatorOnDevices:
    """An operator of the model on each device.

    Attributes:
        operator: name of the operator: the model's, or the layer's if it comes from no file.
        rules: side to the ids of the rules that keep the operator, or a part of it, off the device; empty if it runs
            there.
        messages: side to the message of each of them.
    """

    operator: str
    rules: Mapping[str, Sequence[str]]
    messages: Mapping[str, Sequence[str]]

    @property
    def differs(self) -> bool:
        """Whether some of the devices run it, and others do not."""
        return len({bool(found) for found in self.rules.values()}) > 1


@frozen(repr=False)
class CompareDevicesAnswer(Answer):
    """One model on several devices: which operators run where, the reasons, and estimated costs. Nothing is run.

    Attributes:
        model: path of the model, or name of the network.
        note: states that every time is an estimate.
        overlays: active overlays, each with its author, its board and a digest.
        sides: devices in the requested order.
        operators: operators in network order.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.compare_devices("digits.onnx", ["dla", "cpu"], precision="fp16")
        >>> [side.operators for side in answer.sides]
        [9, 13]
    """

    COMMAND: ClassVar[str] = "compare --against, without samples"

    model: str
    note: str
    overlays: Sequence[str]
    sides: Sequence[DeviceSide]
    operators: Sequence[OperatorOnDevices]
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return a table of the devices, one of the operators that not all run, and the reasons."""
        count = len(self.operators)
        yield Line(f"{self.model} on {', '.join(one.name for one in self.sides)}: {count_text(count, 'operator')}")
        yield Line(self.note)
        yield from overlay_lines(self.overlays)
        columns = ["device", "platform", "operators on it", "segments", "rest on", "latency", "builds"]
        rows = [
            (
                one.name,
                " ".join(filter(None, [one.platform, one.software])),
                f"{one.operators} of {count}",
                one.segments,
                one.fallback or "-",
                one.latency_text or "-",
                "yes" if one.can_be_built else "no",
            )
            for one in self.sides
        ]
        yield Table("Devices", columns, rows)
        yield Entries("Estimated by", [(one.name, one.basis, "") for one in self.sides if one.basis])
        yield Entries("Without an estimate", [(one.name, one.no_estimate, "") for one in self.sides if one.no_estimate])
        names = [one.name for one in self.sides]
        shown = [one for one in self.operators if verbose or any(one.rules.values())]
        if shown:
            cells = [(one.operator, *(", ".join(one.rules[name]) or HERE for name in names)) for one in shown]
            yield Table("Operators" if verbose else "Operators that not all devices run", ["operator", *names], cells)
        elif count:
            yield Line("All devices run all operators")
        found = [
            ((name, rule), message)
            for one in self.operators
            for name in names
            for rule, message in zip(one.rules[name], one.messages[name], strict=True)
        ]
        reasons = dict(reversed(found))  # of each rule the message of the first operator
        yield Entries("Why", [(f"{name}: {rule}", message, "") for (name, rule), message in sorted(reasons.items())])
        yield Entries("Not built", [(one.name, error, "") for one in self.sides for error in one.refusals])

    def summary_line(self) -> str:
        """Return how many operators each device runs."""
        return ", ".join(f"{one.operators} of {len(self.operators)} on {one.name}" for one in self.sides)


def compare_devices(model: Model, devices: Sequence[str], **options: Unpack[Options]) -> CompareDevicesAnswer:
    """Compare where the operators of a model run on several devices, and what that is estimated to cost.

    Each device is asked alone, with the host as its fallback. Nothing is built or run.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        devices: devices, such as `dla`, or each with a platform or a software version: `dla@orin-nx-16`, `dla@8.6`.
        options: keyword arguments named like the options of `dryfit compare`, without `device`, `platform` and
            `software`, which are those of each side.

    Raises:
        ConfigError: The options conflict, or a device is named twice.
        UnknownNameError: A device or platform does not exist.
        OnnxImportError: The model is corrupt or has unsupported operators.

    Example:
        >>> answer = dryfit.compare_devices("digits.onnx", ["dla@orin", "dla@xavier"], precision="fp16")
        >>> answer.summary_line()
        '9 of 13 on dla@orin, 9 of 13 on dla@xavier'
    """
    names = [name.lower() for name in devices]
    if not names or len(set(names)) != len(names):
        raise ConfigError(
            "Each device must be listed once",
            found=", ".join(devices),
            remedy="List at least one device, each only once",
        )
    given = [name for name in ("device", "platform", "software") if options.get(name)]
    if given:
        raise ConfigError(
            "--device, --platform and --software must be part of a compared side",
            found=", ".join(f"--{name}" for name in given),
            remedy="Add them to the side: `--against dla@orin-nx-16,cpu`",
        )
    loaded, others = loaded_model(model, options)
    given_overlays = NetworkOptions.said({"overlays": others.pop("overlays", ())}).overlays
    asked = [_side_options(name, others, given_overlays) for name in names]
    placed = [check(loaded, **one) for one in asked]
    operators = _operators(names, placed)
    sides = [
        _side(name, placement, _estimate(loaded, one), operators)
        for name, placement, one in zip(names, placed, asked, strict=True)
    ]
    overlays = list(dict.fromkeys(label for one in placed for label in one.overlays))
    notes = list(dict.fromkeys(note for one in placed for note in one.notes))
    notes += unused_overlay_notes(given_overlays, overlays)
    note = "All times are estimates by formula."
    return CompareDevicesAnswer(placed[0].model, note, overlays, sides, operators, notes)


def _side_options(name: str, options: Mapping[str, Any], overlays: Iterable[Overlay]) -> Options:
    """The options of one side: `device`, `device@platform` or `device@version`."""
    device, _, variant = name.partition("@")
    target = registry.target(device)
    found: dict[str, Any] = {**options, "device": target.device}
    # An overlay is of a board, which the host and devices that it does not correct need not be.
    found["overlays"] = [one for one in overlays if target.device in one.devices]
    if not target.segment_rules.is_host and not options.get("fallback"):
        found["fallback"] = registry.host().device
    if variant:
        try:
            found["platform"] = target.platform(variant).name
        except UnknownNameError:
            if not variant[0].isdigit():
                raise
            found["software"] = variant
    return found  # type: ignore[return-value]


def _estimate(model: Model, options: Options) -> EstimateAnswer | str:
    """The estimate, or why there is none."""
    try:
        return estimate(model, **options)
    except DryfitError as error:
        return str(error)


def _side(
    name: str, placement: CheckAnswer, cost: EstimateAnswer | str, operators: Sequence[OperatorOnDevices]
) -> DeviceSide:
    network = None if isinstance(cost, str) else cost.network
    segments = () if isinstance(cost, str) else cost.segments
    own = next((one.basis for one in segments if one.device == placement.device), "")
    return DeviceSide(
        name=name,
        device=placement.device,
        platform=placement.platform,
        software=placement.software,
        fallback=None if placement.fallback == placement.device else placement.fallback,
        can_be_built=not placement.refusals,
        operators=sum(not one.rules[name] for one in operators),
        segments=placement.summary.segments_by_device.get(placement.device, 0),
        latency_microseconds=None if network is None else network.latency_microseconds,
        error_factor=None if network is None else network.latency_error_factor,
        latency_text="" if network is None or network.latency_microseconds is None else network.latency_text,
        basis=own or "",
        no_estimate=cost if isinstance(cost, str) else "",
        refusals=list(placement.refusals),
    )


def _operators(names: Sequence[str], placed: Sequence[CheckAnswer]) -> list[OperatorOnDevices]:
    """The operators of all sides by name; layers that a side's passes make or remove belong to their operators."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, placement in zip(names, placed, strict=True):
        for layer in placement.layers:
            for operator in layer.onnx_nodes or (layer.name,):
                of_operator = found.setdefault(operator, {}).setdefault(name, {})
                if layer.device == placement.device or layer.is_host_work:
                    continue
                violations = layer.violations(placement.device)
                for one in violations:
                    of_operator.setdefault(one.rule, one.message)
                if not violations:
                    of_operator.setdefault(_SEGMENT, layer.cause)
    return [
        OperatorOnDevices(
            operator,
            {name: list(sides.get(name, ())) for name in names},
            {name: list(sides.get(name, {}).values()) for name in names},
        )
        for operator, sides in found.items()
    ]
