"""Why a quantize or dequantize layer is a step of its own: what stands around it that it cannot be joined to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dryfit.builder.fusion.groups import FusedGroup
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import have_equal_scales, scale_of, scale_text


class Obstacles:
    """Tells what keeps layers alone.

    Args:
        groups: the steps of the engine.
    """

    def __init__(self, groups: Sequence[FusedGroup]) -> None:
        self._steps: dict[str, list[FusedGroup]] = {}
        for fused in groups:
            for layer in fused.group.layers:
                self._steps.setdefault(layer.name, []).append(fused)

    def reason(self, layer: Layer) -> str:
        """The first of all obstacles, in one sentence without its full stop.

        Args:
            layer: a quantize or dequantize layer of the engine's network that no step takes in.
        """
        found = _of_scale(layer) or next(self._behind(layer) if isinstance(layer, Dequantize) else self._before(layer))
        return f"{found[:1].upper()}{found[1:]}"

    # Dequantizations: what reads them -----------------------------------------------------------------------------

    def _behind(self, layer: Layer) -> Iterator[str]:
        real = layer.outputs[0]
        if real.is_network_output:
            yield f"the caller gets {real.name!r} in real numbers"
        for reader in _readers(real):
            if not any(one in self._steps.get(layer.name, ()) for one in self._steps.get(reader.name, ())):
                yield self._reader(layer, reader)
            elif isinstance(reader, Quantize):
                yield _rescaling(layer, reader)
        yield "nothing reads it"

    def _reader(self, layer: Layer, reader: Layer) -> str:
        """Why one reader does not take the dequantization in."""
        apart = self._apart(layer, reader)
        if apart:
            return apart
        beside = [tensor for tensor in _data(reader) if not isinstance(tensor.producer, Dequantize)]
        if beside:
            return f"{beside[0].name!r} arrives at {reader.name!r} in real numbers beside it"
        if reader.sums_products and getattr(reader, "kernel", None) is not None:
            return f"the weights of {reader.name!r} are not quantized"
        others = [one for one in _readers(reader.outputs[0]) if not isinstance(one, Quantize)]
        if not reader.sums_products and (others or reader.outputs[0].is_network_output):
            return f"there is no quantization behind {reader.name!r}, and without one it gives real numbers"
        return self._no_form(reader)

    # Quantizations: what comes before them ------------------------------------------------------------------------

    def _before(self, layer: Layer) -> Iterator[str]:
        real = layer.inputs[0]
        before = None if real is None else real.producer
        if real is None or before is None:
            name = "its input" if real is None else repr(real.name)
            yield f"the caller gives {name} in real numbers"
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
            yield f"{before.name!r} is computed in real numbers: so is what it reads, {beside[0].name!r}"
        if before.sums_products and getattr(before, "kernel", None) is not None:
            yield f"{before.name!r} is computed in real numbers: its weights are not quantized"
        yield self._no_form(before)

    def _other_readers(self, layer: Layer, real: Tensor) -> Iterator[str]:
        """What else needs the real numbers that the layer quantizes."""
        if real.is_network_output:
            yield f"the caller gets {real.name!r} in real numbers too"
        for other in _readers(real):
            if other is layer:
                continue
            if not isinstance(other, Quantize):
                yield f"{other.name!r} reads {real.name!r} in real numbers too"
            elif not have_equal_scales(layer, other):
                yield f"{_scales(layer, other)}, which quantize the same tensor"

    # Both ---------------------------------------------------------------------------------------------------------

    def _apart(self, first: Layer, second: Layer) -> str:
        """Whether two neighbours are on different devices or in different segments, in words; "" where not."""
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
        """The layer is computed in real numbers, though what stands around it would let it be quantized."""
        steps = self._steps.get(layer.name, ())
        if not steps:
            return f"{layer.name!r} ({layer.kind}) is no step of its own"
        kernel, device = steps[0].kernel.name, steps[0].place.device
        return f"no kernel of {device} takes {layer.name!r} ({layer.kind}) with it: {kernel} computes on real numbers"


def _of_scale(layer: Layer) -> str:
    """What makes the layer itself one that no step takes in; "" for nothing."""
    source, scale = layer.inputs[0], scale_of(layer)
    if len(layer.inputs) > 2 and layer.inputs[2] is not None:
        return "it has a zero point"
    if scale is None:
        return "its scale is computed while the network runs"
    if scale.size > 1 and not (source is not None and source.is_constant):
        return f"it has {scale.size} scales, and activations have one"
    return ""


def _rescaling(dequantize: Layer, quantize: Layer) -> str:
    if have_equal_scales(dequantize, quantize):
        types = f"{_quantized_type(dequantize)} to {_quantized_type(quantize)}"
        return f"{dequantize.name!r} and {quantize.name!r} convert {types}"
    return f"{_scales(dequantize, quantize)}, so that codes are rescaled between them"


def _scales(one: Layer, other: Layer) -> str:
    return f"the scales of {one.name!r} ({scale_text(one)}) and {other.name!r} ({scale_text(other)}) differ"


def _quantized_type(layer: Layer) -> str:
    source = layer.inputs[0]
    tensor = source if isinstance(layer, Dequantize) and source is not None else layer.outputs[0]
    return tensor.dtype.name


def _data(layer: Layer) -> list[Tensor]:
    """The tensors in real numbers that a layer reads and that are no constants; of a weighted one without the bias."""
    inputs = layer.inputs[:2] if layer.sums_products else layer.inputs
    return [
        tensor
        for tensor in inputs
        if tensor is not None and tensor.dtype.is_floating_point and tensor.spec.value is None
    ]


def _readers(tensor: Tensor) -> Iterator[Layer]:
    yield from dict.fromkeys(reader for reader, _ in tensor.consumers)
