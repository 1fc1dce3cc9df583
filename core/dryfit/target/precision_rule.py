"""The rule of every device with limits that a layer must be computed in a type that the device supports.

It is derived from `Target.precisions` and not declared by the target, so no target can omit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from dryfit.errors import DryfitError
from dryfit.network.data_types import EXCHANGED_TYPES, STAND_IN_TYPES, DataType
from dryfit.target.checks import either
from dryfit.target.question import Finding, Question
from dryfit.target.rule import LimitRule

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.layers.plugin import Plugin

_FLAGS = {
    DataType.HALF: "FP16",
    DataType.BF16: "BF16",
    DataType.INT8: "INT8 with a dynamic range for every tensor of the layer",
}
"""Types that a builder flag asks for, and what the user sets."""
_STATE_TYPES = "Declare the types that the plugin computes in: `formats` of `layer_plugin`, or `format_combinations`"


def precision_rule(device: str, precisions: Sequence[DataType], source: str) -> LimitRule:
    """Return the precision rule of a device, with the id `<device>.precision`.

    Args:
        device: name of the device.
        precisions: supported computation types.
        source: document that lists them.
    """
    allowed = ", ".join(_ordered(precisions))

    def check(question: Question) -> Finding | None:
        if _is_computed_in(question, precisions):
            foreign = _foreign_plugin_types(question.layer, precisions)
            return Finding(foreign, allowed, remedy=_STATE_TYPES) if foreign else None
        wish = question.layer.precision
        remedy = (
            None
            if wish is None
            else f"Reset the layer's precision, or set it to one of {', '.join(_texts(precisions))}"
        )
        return Finding(question.precision.name, allowed, remedy=remedy)

    return LimitRule(
        id=f"{device.lower()}.precision",
        kinds=frozenset(),
        check=check,
        text=f"the layer must be computed in {either(tuple(_texts(precisions)))}",
        parameter="precision",
        source=source or f"the record of the target {device}: precisions",
        remedy=_remedy(precisions) or "Move the layer to another device",
    )


def _ordered(precisions: Sequence[DataType]) -> list[str]:
    return sorted(precision.name for precision in precisions)


def _texts(precisions: Sequence[DataType]) -> list[str]:
    return sorted(precision.text for precision in precisions)


def _remedy(precisions: Sequence[DataType]) -> str:
    """What the user can do about a layer that asks for no type itself."""
    flags = [text for dtype, text in _FLAGS.items() if dtype in precisions]
    real = [dtype.text for dtype in EXCHANGED_TYPES if dtype in precisions]
    remedies = [
        *([f"Set the flag {', or '.join(flags)}"] if flags else []),
        *([f"a strongly typed network needs casts to {' or '.join(real)} instead"] if real else []),
    ]
    return "; ".join(remedies)


def _is_computed_in(question: Question, precisions: Sequence[DataType]) -> bool:
    """Whether a layer is computed in one of the types, or in none that the list speaks of.

    The list is of types for real numbers and INT8. In a strongly typed network a layer may have no tensor of such a
    type. In the others it may ask for a type that nobody computes in (DOUBLE on a GPU): it then keeps its own.
    """
    layer, asked = question.layer, question.precision
    if asked in precisions:
        return True
    types = {tensor.dtype for tensor in (*question.inputs, *question.outputs)}
    if layer.network is not None and layer.network.is_strongly_typed:
        return asked not in STAND_IN_TYPES or asked not in types
    return asked not in STAND_IN_TYPES and bool(types.intersection(precisions))


def _foreign_plugin_types(layer: Layer, precisions: Sequence[DataType]) -> str:
    """The types of the device that a layer plugin cannot be given, as text; "" where it can.

    A plugin that states no types gets those of the network.
    """
    if layer.kind != "plugin":
        return ""
    # Tables of rules are read without numpy, which layers need.
    from dryfit.network.format_combinations import stated_combinations

    plugin = cast("Plugin", layer)
    specs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
    try:
        combinations = stated_combinations(plugin.implementation(), plugin.complete_fields(), specs)
    except DryfitError:
        return ""  # told when the types are chosen, with what the plugin answered
    if combinations is None:
        stated = [{tensor.dtype for tensor in (*filter(None, layer.inputs), *layer.outputs)}]
    else:
        stated = [{*one.input_types, *one.output_types} for one in combinations]
    foreign = [sorted(one.name for one in {*EXCHANGED_TYPES} & types - {*precisions}) for types in stated]
    fewest = min(foreign, key=len) if foreign else []
    return ", ".join(fewest)
