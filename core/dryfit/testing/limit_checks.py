"""Checks of a limit table: every rule is understandable and satisfiable, and random layers get a verdict."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS, Layer
from dryfit.network.network import Network
from dryfit.rule import FIDELITIES
from dryfit.target.checks import FunctionCheck
from dryfit.target.limits import LimitTable, Rule
from dryfit.target.rule import SEVERITIES
from dryfit.target.target import Platform, Target
from dryfit.target.verdict import Verdict
from dryfit.testing.example_layers import add_example
from dryfit.testing.trial_networks import PRECISION_FLAGS

Variant = tuple[Platform, tuple[int, ...]]
"""A platform with a software version."""


def variants(target: Target) -> Iterator[Variant]:
    """Return every platform with each of its software versions, newest first."""
    for platform in target.platforms:
        for version in reversed([*target.software_versions]):
            try:
                yield platform, target.software(".".join(map(str, version)), platform)
            except ConfigError:
                # The platform does not have this version.
                continue
        if not target.software_versions:
            yield platform, ()


def rule_problems(rule: Rule, target: Target, table: LimitTable) -> list[str]:
    """Return what a rule lacks, and whether it can never apply."""
    found = [f"`{name}` is empty" for name in ("id", "text", "parameter", "source") if not getattr(rule, name).strip()]
    if not re.fullmatch(rf"{target.device.lower()}(\.[a-z0-9_]+)+", rule.id):
        found.append(f"the id is not {target.device.lower()}.word.word in lower case")
    if rule.severity not in SEVERITIES:
        found.append(f"the severity {rule.severity!r} is not one of {', '.join(SEVERITIES)}")
    if rule.fidelity not in FIDELITIES:
        found.append(f"the fidelity {rule.fidelity!r} is not one of {', '.join(FIDELITIES)}")
    if not rule.remedy.strip() and rule.severity != "note":
        found.append("`remedy` is empty: write what a user can do (a note needs none)")
    if isinstance(rule.check, FunctionCheck) and not rule.check.text.strip():
        found.append("its check has no text")
    known = set(LAYER_KINDS) if table.supported_kinds is None else set(table.supported_kinds)
    found += [f"it speaks of {kind!r}, a layer kind that the device does not have" for kind in rule.kinds - known]
    if not any(rule.holds_for(platform.family, software) for platform, software in variants(target)):
        found.append("it holds on no platform and software version that the target has")
    foreign = sorted(one.name for one in rule.precisions if one not in target.precisions)
    if foreign and len(foreign) == len(rule.precisions):
        found.append(f"it holds for {', '.join(foreign)} only, which the target does not compute in")
    return [f"{rule.id}: {problem}" for problem in found]


def kind_problems(kind: str, table: LimitTable) -> list[str]:
    """Return the layer kinds that are neither supported nor have a reason in the table or its document."""
    if table.supported_kinds is None or kind in table.supported_kinds:
        return []
    reasons = {**table.unsupported, **table.unmodelled}
    if kind in reasons and not reasons[kind].strip():
        return [f"{kind} is refused without a reason"]
    if kind not in reasons and not table.source.strip():
        return [f"{kind} is refused, and the table names no document (`source`) that lists the layers"]
    return []


def unknown_kind_problems(table: LimitTable) -> list[str]:
    """Return the supported kinds that no layer has."""
    unknown = sorted(set(table.supported_kinds or ()) - set(LAYER_KINDS))
    return [f"{kind!r} is supported, but is not a layer kind" for kind in unknown]


QUANTIZATION = ("quantize", "dequantize")
"""The kinds of layers that a quantized model has around each of the others."""


def undeclared_quantization(target: Target) -> list[str]:
    """Return the kinds of `QUANTIZATION` that the table of a device with INT8 does not mention.

    A quantized model has them around each layer, so it would be split there. A target that omits its precisions
    declares no INT8 of its own.
    """
    table = target.limits
    if table is None or table.supported_kinds is None or DataType.INT8 not in target.precisions:
        return []
    told = {*table.supported_kinds, *table.unsupported, *table.unmodelled}
    return [kind for kind in QUANTIZATION if kind not in told]


def quantization_problems(target: Target) -> list[str]:
    """Return what a table with INT8 omits about quantize and dequantize layers."""
    return [
        f"the target computes in INT8, and its limit table does not mention {kind} layers: a quantized model is cut at "
        f"each of them. Add {kind!r} to `supported_kinds`, or say in `unsupported` why the device does not take it"
        for kind in undeclared_quantization(target)
    ]


def verdict_problems(target: Target, kind: str, *, layers: int, seed: int = 0) -> list[str]:
    """Evaluate random layers of a kind on random platforms, versions and precisions: each must get a verdict."""
    rng = np.random.default_rng(seed)
    known = list(variants(target))
    found: list[str] = []
    for _ in range(layers):
        layer = random_layer(kind, rng)
        for _ in range(4):
            variant = known[int(rng.integers(len(known)))]
            precision = target.precisions[int(rng.integers(len(target.precisions)))]
            found += _answer_problems(target, layer, variant, precision)
    return list(dict.fromkeys(found))


def _answer_problems(target: Target, layer: Layer, variant: Variant, precision: DataType) -> list[str]:
    platform, software = variant
    config = BuilderConfig()
    config.set_platform(target.device, platform.name)
    if software:
        config.set_software(target.device, ".".join(map(str, software)))
    if precision in PRECISION_FLAGS:
        config.set_flag(PRECISION_FLAGS[precision])
    where = f"on {platform.name} {'.'.join(map(str, software))}, {precision.text}, about {layer!r}"
    try:
        verdict = config.can_run_on(layer, target.device)
    except Exception as error:  # noqa: BLE001  whatever a rule raises is what is looked for
        return [f"can_run_on raises {type(error).__name__}: {error}; {where}"]
    failed = [] if target.limits is None else target.limits.failures(config.question(layer, target))
    return [f"{problem}; {where}" for problem in (*failed, *_text_problems(verdict, target, layer))]


def _text_problems(verdict: Verdict, target: Target, layer: Layer) -> Iterator[str]:
    if (verdict.device, verdict.layer) != (target.device, layer.name):
        yield f"the verdict is about {verdict.layer!r} on {verdict.device}"
    for violation in (*verdict.violations, *verdict.warnings, *verdict.notes):
        for name in ("message", "actual", "allowed", "source"):
            if not getattr(violation, name):
                yield f"a violation of {violation.rule} has no {name}"


def random_layer(kind: str, rng: np.random.Generator) -> Layer:
    """Return a valid layer of a kind in its own network, with random shape, type and parameters."""
    layer = None
    while layer is None:
        network = Network(f"one {kind}")
        rank = int(rng.choice([4, 4, 4, 3, 2, 5]))
        shape = (int(rng.choice([1, 2, -1])), int(rng.choice([1, 3, 4, 16])), 16, 16, 16)[:rank]
        dtype = (DataType.FLOAT, DataType.FLOAT, DataType.HALF, DataType.INT32, DataType.BOOL)[int(rng.integers(5))]
        layer = add_example(kind, network, network.add_input("x", dtype, shape), rng)
        if layer is not None and rng.random() < 0.7 and not vary(layer, rng):
            layer = None
    return layer


def vary(layer: Layer, rng: np.random.Generator) -> bool:
    """Change some parameters to random values of their types. Return whether the layer is still valid."""
    try:
        for parameter in layer.parameters():
            if rng.random() < 0.4:
                setattr(layer, parameter.name, _another(getattr(layer, parameter.name), rng))
        if layer.output_count != len(layer.outputs):
            return False  # its outputs were made when it was added: it would have to be added anew
        layer.network.refresh_shapes()
    except DryfitError:
        return False
    return True


def _another(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, enum.Enum):
        members = list(type(value))
        return members[int(rng.integers(len(members)))]
    if isinstance(value, bool):
        return bool(rng.integers(2))
    if isinstance(value, int):
        return int(rng.choice([0, 1, 2, 3, 7, 33, 200]))
    if isinstance(value, float):
        return float(rng.choice([0.0, 0.1, 1.0, -1.0, 300.0]))
    if isinstance(value, tuple):
        return tuple(_another(one, rng) for one in value)
    return value
