"""Overlays: what a board showed of a device, as data that corrects the device's record.

A target declares what documents say. An overlay says what one board with one software version did: rules that its
builder does not have, limits that it sets elsewhere, rules that it was seen to obey, and parameters of the cost model
that were fitted to its latencies. A target with overlays is another frozen record, so that whoever asks it need not
know of them. Nothing in an overlay runs.

`dryfit.target.overlay_file` reads and writes overlays.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.target.limits import LimitTable
    from dryfit.target.rule import LimitRule
    from dryfit.target.target import Target

SCHEMA = 1
"""The version of the layout of an overlay's file. A file of another version is refused."""

LimitValue = int | float | str | bool | tuple[int | float | str | bool, ...]
"""A limit of a rule: a number, a word, or several."""


@frozen
class RuleChange:
    """How a board's rule differs from the documented one.

    Attributes:
        enabled: whether the board has the rule at all.
        limits: limit to its value on the board, such as `high` to 31.
        layers: number of layers that show it.
        reason: what they show, in one sentence without its full stop.
    """

    enabled: bool = True
    limits: Mapping[str, LimitValue] = attrs.field(factory=dict)
    layers: int = 0
    reason: str = ""

    @property
    def text(self) -> str:
        """The change in words: `off`, or `high = 31`."""
        return ", ".join(f"{name} = {limit_text(value)}" for name, value in self.limits.items()) or (
            "on" if self.enabled else "off"
        )


@frozen
class FittedParameter:
    """A parameter of a cost model, fitted to latencies of a board.

    Attributes:
        value: in the unit of the model.
        error: standard error of the value, relative to it; None where it was not found.
        measurements: number of latencies that it was fitted to.
    """

    value: float
    error: float | None = None
    measurements: int = 0


@frozen
class Confirmation:
    """A rule that a board was seen to obey.

    Attributes:
        layers: number of layers whose place shows it.
    """

    layers: int


@frozen(eq=False)
class Overlay:
    """Corrections of installed targets for one board; two overlays are the same if their texts are.

    Attributes:
        name: short name, shown wherever the overlay is active.
        platform: the board, such as `orin-nx-16`.
        software: TensorRT version, such as `10.3`; "" where the corrections hold for all.
        author: who made it.
        made: when.
        source: what was built and measured, in one sentence without its full stop.
        rules: rule id to what differs.
        cost: device to parameters of its cost model, by name.
        confirmed: rule id to the layers that confirm it.
        origin: file or package that the overlay was read from; "" for none.
    """

    name: str
    platform: str
    software: str = ""
    author: str = ""
    made: dt.date | None = None
    source: str = ""
    rules: Mapping[str, RuleChange] = attrs.field(factory=dict)
    cost: Mapping[str, Mapping[str, FittedParameter]] = attrs.field(factory=dict)
    confirmed: Mapping[str, Confirmation] = attrs.field(factory=dict)
    origin: str = ""

    @property
    def devices(self) -> set[str]:
        """The devices that it corrects."""
        return {*map(device_of, (*self.rules, *self.confirmed)), *(device.upper() for device in self.cost)}

    @property
    def board_text(self) -> str:
        """The board and the version in words: `orin-nx-16, TensorRT 10.3`."""
        return f"{self.platform}, TensorRT {self.software}" if self.software else self.platform

    @property
    def where(self) -> str:
        """The overlay in messages: its file or package, else its name."""
        return f"overlay {self.origin or self.name}"

    @property
    def label(self) -> str:
        """The overlay as answers name it: who made it, its board, and a digest of its contents."""
        counts = {
            "changed rule": len(self.rules),
            "cost parameter": sum(map(len, self.cost.values())),
            "confirmed rule": len(self.confirmed),
        }
        parts = [count_text(count, what) for what, count in counts.items() if count] or ["no corrections"]
        digest = hashlib.sha256(overlay_text(attrs.evolve(self, made=None, author="")).encode()).hexdigest()[:12]
        by = f" by {self.author}" if self.author else ""
        return f"{self.name}{by} ({self.board_text}: {', '.join(parts)}; sha256 {digest})"

    def holds_for_software(self, software: tuple[int, ...]) -> bool:
        """Return whether it holds for a software version: 10.3 for 10.3.0 too."""
        if not self.software or not software:
            return True
        own = tuple(int(part) for part in self.software.split("."))
        shorter = min(len(own), len(software))
        return own[:shorter] == software[:shorter]


def limit_text(value: LimitValue) -> str:
    """Return a limit as an overlay's file has it: `31`, `"8.6.12"`, `[3, 5]`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(limit_text, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)


def device_of(rule_id: str) -> str:
    """Return the device of a rule: `DLA` for `dla.convolution.kernel`."""
    return rule_id.partition(".")[0].upper()


def overlay_text(overlay: Overlay) -> str:
    """Return the overlay as the text of its file."""
    head = {
        "schema": str(SCHEMA),
        "name": limit_text(overlay.name),
        "platform": limit_text(overlay.platform),
        "software": limit_text(overlay.software) if overlay.software else "",
        "author": limit_text(overlay.author) if overlay.author else "",
        "made": "" if overlay.made is None else overlay.made.isoformat(),
        "source": limit_text(overlay.source) if overlay.source else "",
    }
    lines = [f"{key} = {value}" for key, value in head.items() if value]
    for rule_id, change in sorted(overlay.rules.items()):
        lines += ["", f"[rules.{limit_text(rule_id)}]"]
        lines += [] if change.enabled else ["enabled = false"]
        if change.limits:
            limits = ", ".join(f"{name} = {limit_text(value)}" for name, value in sorted(change.limits.items()))
            lines.append(f"limits = {{ {limits} }}")
        lines += [f"layers = {change.layers}"] if change.layers else []
        lines += [f"reason = {limit_text(change.reason)}"] if change.reason else []
    for device, parameters in sorted(overlay.cost.items()):
        lines += ["", f"[cost.{device}]"]
        for name, one in sorted(parameters.items()):
            error = "" if one.error is None else f", error = {one.error:.3g}"
            counted = f", measurements = {one.measurements}" if one.measurements else ""
            lines.append(f"{limit_text(name) if '.' in name else name} = {{ value = {one.value!r}{error}{counted} }}")
    if overlay.confirmed:
        lines += ["", "[confirmed]"]
        confirmed = sorted(overlay.confirmed.items())
        lines += [f"{limit_text(rule_id)} = {{ layers = {one.layers} }}" for rule_id, one in confirmed]
    return "\n".join(lines) + "\n"


# Several overlays -----------------------------------------------------------------------------------------------------


def require_agreement(overlays: Sequence[Overlay]) -> None:
    """Reject overlays that contradict each other.

    Raises:
        ConfigError: Two of them say different things of one rule or parameter. The message names all of these, with
            where each comes from.
    """
    said: dict[str, tuple[Overlay, str]] = {}
    found: list[str] = []
    for overlay in overlays:
        for subject, text in _statements(overlay):
            first, other = said.setdefault(subject, (overlay, text))
            if other != text:
                found.append(f"{subject}: {other} in {_cited(first)}, {text} in {_cited(overlay)}")
    if found:
        raise ConfigError(
            "Overlays contradict each other" if len(overlays) > 1 else "The overlay contradicts itself",
            where=" and ".join(dict.fromkeys(one.where for one in overlays)),
            found="; ".join(found),
            remedy="Leave one of them out, or remove the entry that is wrong from its file",
        )


def _cited(overlay: Overlay) -> str:
    by = f" by {overlay.author}" if overlay.author else ""
    return f"{overlay.name}{by} ({overlay.source or overlay.board_text})"


def _statements(overlay: Overlay) -> Iterator[tuple[str, str]]:
    """What an overlay says, each as (subject, text): two texts of one subject are a contradiction."""
    for rule_id, change in overlay.rules.items():
        yield f"rule {rule_id}", "on" if change.enabled else "off"
        for name, value in change.limits.items():
            yield f"limit {name} of {rule_id}", limit_text(value)
            yield f"rule {rule_id} as documented", "not so"
        if not change.enabled:
            yield f"rule {rule_id} as documented", "not so"
    for rule_id in overlay.confirmed:
        yield f"rule {rule_id} as documented", "confirmed"
    for device, parameters in overlay.cost.items():
        for name, parameter in parameters.items():
            yield f"cost parameter {name} of {device.upper()}", f"{float(parameter.value)!r}"


# A target with overlays -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def overlaid(target: Target, overlays: tuple[Overlay, ...]) -> Target:
    """Return a target with overlays applied: another record with other limits and cost parameters.

    Args:
        target: as its package declares it.
        overlays: all of the platform and version that will be asked about.

    Raises:
        ConfigError: Overlays contradict each other, or a value does not fit its rule or parameter.
        UnknownNameError: The target has no such rule, limit or cost parameter; the message names the closest one.
    """
    require_agreement(overlays)
    for overlay in overlays:
        require_known(overlay, target)
    return attrs.evolve(target, overlays=overlays)


def require_known(overlay: Overlay, target: Target) -> None:
    """Reject what an overlay says of a target's rules and parameters that the target does not have.

    Raises:
        UnknownNameError: The target has no such rule, limit or cost parameter.
        ConfigError: A value does not fit, or the rule follows from other declarations, which an overlay cannot change.
    """
    table = target.limits
    if table is not None:
        known = {one.id: one for one in table.all_rules}
        own = [one for one in (*overlay.rules, *overlay.confirmed) if device_of(one) == target.device]
        for rule_id in own:
            if rule_id not in known:
                told = f"{len(known)} rules, which `dryfit targets show {target.device}` lists"
                raise UnknownNameError(f"{target.device} rule", rule_id, known, where=overlay.where, told=told)
        changed = {rule_id: change for rule_id, change in overlay.rules.items() if rule_id in known}
        for rule_id, change in changed.items():
            if known[rule_id] not in table.rules:
                raise ConfigError(
                    "An overlay cannot change this rule, which follows from other declarations of the target",
                    where=overlay.where,
                    found=rule_id,
                    allowed="rules of the limit table",
                    remedy="Remove it from the overlay",
                )
            try:
                known[rule_id].with_limits(change.limits)
            except UnknownNameError as error:
                raise UnknownNameError(
                    f"limit of {rule_id}", next(iter(change.limits)), known[rule_id].limits, where=overlay.where
                ) from error
    for parameters in _of_device(overlay, target.device):
        records = target.cost_parameters
        name = target.platform(overlay.platform).name
        if name not in records:
            raise ConfigError(
                f"The cost model of {target.device} has no parameters for this platform",
                where=overlay.where,
                found=name,
                allowed=", ".join(records) or "none",
                remedy="Remove the cost parameters from the overlay",
            )
        with_numbers(records[name], {one: found.value for one, found in parameters.items()}, overlay.where)


def _of_device(overlay: Overlay, device: str) -> list[Mapping[str, FittedParameter]]:
    return [parameters for name, parameters in overlay.cost.items() if name.upper() == device]


@functools.lru_cache(maxsize=64)
def overlaid_limits(table: LimitTable, overlays: tuple[Overlay, ...]) -> LimitTable:
    """Return a table with the rules that overlays leave on, their limits moved, and their fidelity raised."""
    rules = [_changed(one, overlays) for one in table.rules if _is_on(one.id, overlays)]
    return attrs.evolve(table, rules=rules)


def _is_on(rule_id: str, overlays: Iterable[Overlay]) -> bool:
    return all(overlay.rules[rule_id].enabled for overlay in overlays if rule_id in overlay.rules)


def _changed(rule: LimitRule, overlays: Iterable[Overlay]) -> LimitRule:
    """A rule as boards have it. Its source then says which board showed it."""
    for overlay in overlays:
        change, confirmation = overlay.rules.get(rule.id), overlay.confirmed.get(rule.id)
        if change is not None and change.limits:
            seen = change.reason or (f"seen in {count_text(change.layers, 'layer')}" if change.layers else "")
            told = "; ".join(filter(None, (overlay.source, seen)))
            seen_by = f"overlay {overlay.name} for {overlay.board_text}{f': {told}' if told else ''}"
            source = f"{seen_by}; otherwise in {rule.source}"
            rule = attrs.evolve(rule.with_limits(change.limits), source=source, fidelity="confirmed")
        if confirmation is not None:
            layers = count_text(confirmation.layers, "layer")
            source = f"{rule.source}; confirmed by {layers} on {overlay.board_text} (overlay {overlay.name})"
            rule = attrs.evolve(rule, source=source, fidelity="confirmed")
    return rule


def overlaid_parameters(records: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    """Return the cost parameters of a target by platform, with the values of its overlays."""
    found = dict(records)
    for overlay in target.overlays:
        for parameters in _of_device(overlay, target.device):
            name = target.platform(overlay.platform).name
            record = with_numbers(found[name], {key: one.value for key, one in parameters.items()}, overlay.where)
            told = f"{', '.join(parameters)} from overlay {overlay.name}"
            if isinstance(getattr(record, "source", None), str):
                seen = f": {overlay.source}" if overlay.source else ""
                record = attrs.evolve(record, source=f"{told}{seen}; all else {record.source}")
            found[name] = record
    return found


# Numbers of a record by name ------------------------------------------------------------------------------------------


def numbers(record: Any) -> dict[str, int | float]:
    """Return the numbers of a record of parameters by name: fields, and those of nested records and mappings.

    Example:
        >>> from dryfit_dla.cost.parameters import PARAMETERS
        >>> [name for name in numbers(PARAMETERS["agx-orin-64"]) if name.startswith("rates.INT8")][0]
        'rates.INT8.macs_per_cycle'
    """
    found: dict[str, int | float] = {}
    for name, value in _parts(record):
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
        else:
            found.update({f"{name}.{inner}": number for inner, number in numbers(value).items()})
    return found


def _parts(value: Any) -> list[tuple[str, Any]]:
    if attrs.has(type(value)):
        return [(field.name, getattr(value, field.name)) for field in attrs.fields(type(value))]
    return [(_key(key), held) for key, held in value.items()] if isinstance(value, Mapping) else []


def _key(key: object) -> str:
    return key.text if isinstance(key, DataType) else str(key)


def with_numbers(record: Any, values: Mapping[str, float], where: str = "cost parameters") -> Any:
    """Return a record of parameters with other numbers, by name as in `numbers`.

    Args:
        record: of a target's cost model.
        values: name to number.
        where: who asks for it, for messages.

    Raises:
        UnknownNameError: The record has no number of this name.
        ConfigError: A number is negative or not finite, or not whole where the record counts.
    """
    known = numbers(record)
    for name, value in values.items():
        if name not in known:
            raise UnknownNameError("cost parameter", name, known, where=where)
        is_count = isinstance(known[name], int)
        if not math.isfinite(value) or value < 0 or (is_count and value != int(value)):
            raise ConfigError(
                "The cost parameter has an invalid value",
                where=where,
                found=f"{name} = {value:g}",
                allowed="a whole number, at least 0" if is_count else "a finite number, at least 0",
                remedy="Fix it, or remove it from the overlay",
            )
    return _replaced(record, values)


def _replaced(value: Any, values: Mapping[str, float]) -> Any:
    changed: dict[str, Any] = {}
    for name, held in _parts(value):
        if name in values:
            changed[name] = int(values[name]) if isinstance(held, int) else float(values[name])
            continue
        inner = {key.removeprefix(f"{name}."): one for key, one in values.items() if key.startswith(f"{name}.")}
        if inner:
            changed[name] = _replaced(held, inner)
    if isinstance(value, Mapping):
        return {key: changed.get(_key(key), held) for key, held in value.items()}
    return attrs.evolve(value, **changed)


def with_parameters(function: Callable[..., Any], records: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return a cost function that is asked with these parameters of the question's platform."""

    def asked(question: Any) -> Any:
        if question.parameters is not None:
            return function(question)
        return function(attrs.evolve(question, parameters=records.get(question.platform.name)))

    return asked
