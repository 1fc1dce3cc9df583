"""The outcome of one quantize or dequantize layer of the user's network, as a record and in words."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from dryfit.attrs_classes import frozen
from dryfit.builder.fusion.groups import FusedGroup
from dryfit.json_names import json_names
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import have_equal_scales, scale_of, scale_text
from dryfit.quantization.rewrites import Rewrite, RewriteAction
from dryfit.short_text import short_name, with_short_names

_LISTED = 3
"""So many names are in the text; the others are in the JSON."""


class QuantizationOutcome(enum.StrEnum):
    """The outcome of a quantize or dequantize layer; the values are the words used in reports."""

    FOLDED = "folded"
    """It was applied to a constant while building."""
    MERGED = "merged"
    """Another one that does the same stands for it."""
    CANCELLED = "cancelled"
    """It and one of the other direction change nothing together."""
    FUSED = "fused"
    """It is part of the steps that it belongs to, and costs nothing of its own."""
    PARTLY = "partly fused"
    """It is part of some steps, and runs for other readers as a step of its own."""
    ALONE = "alone"
    """It is a step of its own."""
    CLAIMED = "claimed"
    """A plugin took it, and what stands beside it, as one layer."""
    OPERATOR = "quantized operator"
    """A quantize method computes it, and what stands beside it, as one layer on codes."""
    REMOVED = "removed"
    """Its result is not used."""
    UNPLACED = "unplaced"
    """The network has layers that unplaced, so that no steps are made."""


@frozen
class TracedQuantization:
    """A quantize or dequantize layer of the user's network.

    Attributes:
        layer: the layer in the user's network.
        outcome: outcome of the layer.
        steps: names of the main layers of the steps that contain the layer, in execution order.
        part: role of the layer in these steps: `input`, `output`, `inside`; "" for none.
        reason: reason for the outcome, in one sentence without its full stop.
        rewrites: changes that the passes made to the layer, in order.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "name kind onnx_nodes tensor type scale granularity outcome steps part reason rewrites"
    )

    layer: Quantize | Dequantize
    outcome: QuantizationOutcome
    steps: tuple[str, ...] = ()
    part: str = ""
    reason: str = ""
    rewrites: tuple[Rewrite, ...] = ()

    @property
    def name(self) -> str:
        """Name of the quantize or dequantize layer."""
        return self.layer.name

    @property
    def kind(self) -> str:
        """`quantize` or `dequantize`."""
        return self.layer.kind

    @property
    def onnx_nodes(self) -> Sequence[str]:
        """Names of the ONNX nodes that the layer was imported from."""
        return list(self.layer.onnx_nodes)

    @property
    def tensor(self) -> str | None:
        """The layer's floating-point tensor."""
        real = self._ends[0]
        return None if real is None else real.name

    @property
    def type(self) -> str | None:
        """Type on the quantized side."""
        narrow = self._ends[1]
        return None if narrow is None else narrow.dtype.name

    @property
    def scale(self) -> float | None:
        """Scale of the layer; null if there are several, or if it is computed."""
        source = self.layer.inputs[1]
        value = None if source is None else source.spec.value
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    @property
    def granularity(self) -> str:
        """Which elements share a scale: `per tensor`, `64 along axis 0`, `blocks of 1x32`."""
        scale = self.layer.inputs[1]
        size = 1 if scale is None else abs(math.prod(scale.shape))
        if self.layer.block_shape:
            return f"blocks of {'x'.join(map(str, self.layer.block_shape))}"
        if scale is not None and len(scale.shape) > 1 and size > 1:
            return f"{'x'.join(map(str, scale.shape))} blocks"
        return f"{size} along axis {self.layer.axis}" if size > 1 else "per tensor"

    @property
    def _ends(self) -> tuple[Tensor | None, Tensor | None]:
        """Return the floating-point tensor and the code tensor of the layer."""
        source, result = self.layer.inputs[0], self.layer.outputs[0]
        return (source, result) if isinstance(self.layer, Quantize) else (result, source)

    @property
    def path_text(self) -> str:
        """The path of the layer in words: what it moved past, and what it is part of, or why it remains."""
        moved = [name for step in self.rewrites if step.action is RewriteAction.MOVED for name in step.over]
        where = [f"moved over {_names(moved)}"] if moved else []
        if self.outcome in _JOINT:
            where.append(f"{self.outcome} {_JOINT[self.outcome]} {_names(self.steps)}")
        elif self.steps:
            where.append(f"{self.part} of {_names(self.steps)}")
        if self.outcome is not QuantizationOutcome.FUSED:
            where.append(with_short_names(f"{self.reason[:1].lower()}{self.reason[1:]}"))
        return "; ".join(where)


_JOINT = {
    QuantizationOutcome.FOLDED: "into",
    QuantizationOutcome.MERGED: "into",
    QuantizationOutcome.CANCELLED: "with",
    QuantizationOutcome.CLAIMED: "by",
}
"""What stands between an outcome and the names after it."""


def _names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    rest = f" and {len(unique) - _LISTED} more" if len(unique) > _LISTED else ""
    return ", ".join(map(short_name, unique[:_LISTED])) + rest


# What stands against a fusion -----------------------------------------------------------------------------------------


class Obstacles:
    """Finds what keeps layers from being fused."""

    def __init__(self, groups: Sequence[FusedGroup]) -> None:
        self._steps: dict[str, list[FusedGroup]] = {}
        for fused in groups:
            for layer in fused.group.layers:
                self._steps.setdefault(layer.name, []).append(fused)

    def reason(self, layer: Layer) -> str:
        """Return the first obstacle, in one sentence without its full stop."""
        found = _of_scale(layer) or next(self._behind(layer) if isinstance(layer, Dequantize) else self._before(layer))
        return f"{found[:1].upper()}{found[1:]}"

    # Dequantizations: what reads them -----------------------------------------------------------------------------

    def _behind(self, layer: Layer) -> Iterator[str]:
        real = layer.outputs[0]
        if real.is_network_output:
            yield f"the caller gets {real.name!r} in floating point"
        for reader in _readers(real):
            if not any(one in self._steps.get(layer.name, ()) for one in self._steps.get(reader.name, ())):
                yield self._reader(layer, reader)
            elif isinstance(reader, Quantize):
                yield _rescaling(layer, reader)
        yield "nothing reads it"

    def _reader(self, layer: Layer, reader: Layer) -> str:
        """Return why a reader does not absorb the dequantization."""
        apart = self._apart(layer, reader)
        if apart:
            return apart
        beside = [tensor for tensor in _data(reader) if not isinstance(tensor.producer, Dequantize)]
        if beside:
            return f"{reader.name!r} also reads {beside[0].name!r} in floating point"
        if reader.sums_products and getattr(reader, "kernel", None) is not None:
            return f"the weights of {reader.name!r} are not quantized"
        others = [one for one in _readers(reader.outputs[0]) if not isinstance(one, Quantize)]
        if not reader.sums_products and (others or reader.outputs[0].is_network_output):
            return f"no quantization follows {reader.name!r}, so its output is floating point"
        return self._no_form(reader)

    # Quantizations: what comes before them ------------------------------------------------------------------------

    def _before(self, layer: Layer) -> Iterator[str]:
        real = layer.inputs[0]
        before = None if real is None else real.producer
        if real is None or before is None:
            name = "its input" if real is None else repr(real.name)
            yield f"the caller gives {name} in floating point"
            return
        if isinstance(before, Dequantize):
            yield _rescaling(before, layer)
        if before.kind == "constant":
            yield f"it quantizes the constant {real.name!r}"
        apart = self._apart(before, layer)
        if apart:
            yield apart
        yield from self._other_readers(layer, real)
        beside = [tensor for tensor in _data(before) if not isinstance(tensor.producer, Dequantize)]
        if beside:
            yield f"{before.name!r} is computed in floating point, as is its input {beside[0].name!r}"
        if before.sums_products and getattr(before, "kernel", None) is not None:
            yield f"{before.name!r} is computed in floating point, because its weights are not quantized"
        yield self._no_form(before)

    def _other_readers(self, layer: Layer, real: Tensor) -> Iterator[str]:
        """Return the other readers of the floating-point values that the layer quantizes."""
        if real.is_network_output:
            yield f"the caller also gets {real.name!r} in floating point"
        for other in _readers(real):
            if other is layer:
                continue
            if not isinstance(other, Quantize):
                yield f"{other.name!r} also reads {real.name!r} in floating point"
            elif not have_equal_scales(layer, other):
                yield f"{_scales(layer, other)}, which quantize the same tensor"

    # Both ---------------------------------------------------------------------------------------------------------

    def _apart(self, first: Layer, second: Layer) -> str:
        """Return in words whether two neighbors are on different devices or in different segments; "" if not."""
        steps = [self._steps.get(one.name, [])[:1] for one in (first, second)]
        if not all(steps):
            return ""
        places = [one[0].place for one in steps]
        if places[0].device != places[1].device:
            return f"{first.name!r} is on {places[0].device}, and {second.name!r} on {places[1].device}"
        if places[0].segment != places[1].segment:
            return f"{first.name!r} and {second.name!r} are in two segments of {places[0].device}"
        return ""

    def _no_form(self, layer: Layer) -> str:
        """Return why the layer is computed in floating point although its neighbors would allow quantization."""
        steps = self._steps.get(layer.name, ())
        if not steps:
            return f"{layer.name!r} ({layer.kind}) does not run as a step of its own"
        kernel, device = steps[0].kernel.name, steps[0].place.device
        return f"no kernel of {device} fuses {layer.name!r} ({layer.kind}) with it: {kernel} computes in floating point"


def _of_scale(layer: Layer) -> str:
    """Return why no step can absorb the layer because of its own scale; "" if one can."""
    source, scale = layer.inputs[0], scale_of(layer)
    if len(layer.inputs) > 2 and layer.inputs[2] is not None:
        return "it has a zero point"
    if scale is None:
        return "its scale is computed while the network runs"
    if scale.size > 1 and not (source is not None and source.is_constant):
        return f"it has {scale.size} scales; activations have one"
    return ""


def _rescaling(dequantize: Layer, quantize: Layer) -> str:
    if have_equal_scales(dequantize, quantize):
        types = f"{_quantized_type(dequantize)} to {_quantized_type(quantize)}"
        return f"{dequantize.name!r} and {quantize.name!r} convert {types}"
    return f"{_scales(dequantize, quantize)}, so codes are rescaled between them"


def _scales(one: Layer, other: Layer) -> str:
    return f"the scales of {one.name!r} ({scale_text(one)}) and {other.name!r} ({scale_text(other)}) differ"


def _quantized_type(layer: Layer) -> str:
    source = layer.inputs[0]
    tensor = source if isinstance(layer, Dequantize) and source is not None else layer.outputs[0]
    return tensor.dtype.name


def _data(layer: Layer) -> list[Tensor]:
    """Return the non-constant floating-point inputs of a layer; for a weighted layer without the bias."""
    inputs = layer.inputs[:2] if layer.sums_products else layer.inputs
    return [
        tensor
        for tensor in inputs
        if tensor is not None and tensor.dtype.is_floating_point and tensor.spec.value is None
    ]


def _readers(tensor: Tensor) -> Iterator[Layer]:
    yield from dict.fromkeys(reader for reader, _ in tensor.consumers)
