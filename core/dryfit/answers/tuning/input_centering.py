"""Centering of inputs: pictures from 0 up are stored on both sides of zero, so that INT8 holds each of 256 levels.

INT8 has no zero point, so that pixels from 0 to 255 get 128 codes: every other level is lost before the first layer.
Lowered by 128, they are the codes -128 to 127. So are pixels less a mean per channel, with a shift per channel. The
first convolution cannot take the shift back by its bias alone if it has padding, whose zeros are zeros of the unshifted
input. So the shift is a convolution itself: of one weight 1 per channel, with the padding of the reader and the bias
-128. Its padding gives 0 - 128, as it has to be, and the reader needs none. It runs in FP16, which holds the levels
exactly, and has one multiply-accumulate per value. A DLA has no layer that pads otherwise, and its convolutions must
have a kernel larger than their padding: zeros around the weight 1, and as much more padding, compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, NodeProto, TensorProto

from dryfit.answers.tuning.centering import absorb_shift, is_unpadded
from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import Extents, ModelGraph, attribute, node_name
from dryfit.onnx.external_data import ExternalData

LEAST_SAVING = 0.15
"""Share by which an INT8 step must become smaller. Our choice: less is not worth a layer. Pixels less the means of
ImageNet, -124 to 151, save 16 %, and then are multiples of the step."""
CODES = 255
"""Steps between the codes -128 and 127."""


@frozen(eq=False)
class InputCentering:
    """A model with centered inputs.

    Attributes:
        model: the new model.
        layers: names of the layers that shift, which have to stay in FP16.
        ranges: end of the range by name of each shifted tensor: code 127 is the largest value, -128 the least.
    """

    model: ModelProto
    layers: frozenset[str]
    ranges: Mapping[str, float]


def center_inputs(
    model: ModelProto,
    external: ExternalData,
    ends: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    pads_below_kernel: bool = False,
) -> InputCentering:
    """Shift the inputs that only convolutions read, where their INT8 step becomes smaller by `LEAST_SAVING`.

    Args:
        model: the model; it is not modified.
        external: location of its external data.
        ends: smallest and largest value of each input, or of each of its channels, float[C].
        pads_below_kernel: whether the kernels that shift are made larger than their padding.
    """
    graph = ModelGraph(model, external)
    layers: list[str] = []
    ranges: dict[str, float] = {}
    for name, (low, high) in ends.items():
        readers = graph.consumers(name)
        shape = graph.shape(name)
        if not shape or len(shape) < 3 or not shape[1] or not _can_absorb(graph, name, readers):
            continue
        channels = shape[1]
        lowest, highest = (np.broadcast_to(np.asarray(end, np.float64), (channels,)) for end in (low, high))
        step = float((highest - lowest).max()) / CODES
        largest = max(np.abs(lowest).max(), np.abs(highest).max())
        if not 0 < step * 127 <= (1 - LEAST_SAVING) * largest:
            continue
        # Codes that a channel does not need are left on both sides; its values stay multiples of the step.
        unused = np.floor((CODES - np.rint((highest - lowest) / step)) / 2)
        shift = lowest + (128 - unused) * step
        dtype = np.float16 if graph.data_type(name) == TensorProto.FLOAT16 else np.float32
        rank = len(shape) - 2
        pads = np.array(attribute(readers[0], "pads") or [0] * (2 * rank))
        before, after = (
            pads[:rank],
            np.minimum(pads[rank:], _padding_that_is_read(graph, readers, shape[2:], pads[:rank])),
        )
        pads = np.concatenate([before, after])
        # A tap reads what it did if the padding before it grows with its index.
        more = (after, before) if pads_below_kernel else (0 * after, 0 * before)
        kernel = np.zeros((channels, 1, *(more[0] + more[1] + 1)), dtype)
        kernel[(slice(None), 0, *more[0])] = 1
        weights = graph.add_constant(f"{name}_shift_weights", kernel)
        bias = graph.add_constant(f"{name}_shift_bias", (-shift).astype(dtype))
        pads = (pads + np.concatenate(more)).tolist()
        node = graph.new_node("Conv", [name, weights, bias], name=f"{name}_shift", group=channels, pads=pads)
        graph.insert(node)
        for reader in readers:
            absorb_shift(graph, reader, shift)
            _read_unpadded(reader, node.output[0])
        graph.changed()
        layers.append(node_name(node))
        ranges[node.output[0]] = 127 * step
    return InputCentering(graph.model(), frozenset(layers), ranges)


def _padding_that_is_read(graph: ModelGraph, readers: list[NodeProto], extents: Extents, before: Array) -> ArrayLike:
    """Return how much of the padding behind an input its readers reach: those with strides may not reach its end."""
    reached = np.zeros(len(before), np.int64)
    for node in readers:
        weights, output = graph.constant(node.input[1]), graph.shape(node.output[0])
        if weights is None or output is None or None in (*extents, *output[2:]):
            return np.iinfo(np.int64).max
        taps = (np.array(weights.shape[2:]) - 1) * np.array(attribute(node, "dilations") or 1)
        last = (np.array(output[2:]) - 1) * np.array(attribute(node, "strides") or 1) + taps
        reached = np.maximum(reached, last + 1 - np.array(extents) - before)
    return np.maximum(reached, 0)


def _can_absorb(graph: ModelGraph, name: str, readers: list[NodeProto]) -> bool:
    """Return whether all readers of an input are convolutions with known weights and the same padding."""
    is_float = graph.data_type(name) in (TensorProto.FLOAT, TensorProto.FLOAT16)
    for node in readers:
        has_weights = node.op_type == "Conv" and len(node.input) > 1 and graph.constant(node.input[1]) is not None
        is_explicit = is_unpadded(node) or attribute(node, "auto_pad", "NOTSET") == "NOTSET"
        is_data = name == node.input[0] and name not in list(node.input)[1:]
        if not has_weights or graph.bias(node) is None or not is_explicit or not is_data:
            return False
    pads = [attribute(node, "pads", []) for node in readers]
    return is_float and bool(readers) and not graph.is_output(name) and all(one == pads[0] for one in pads)


def _read_unpadded(node: NodeProto, name: str) -> None:
    node.input[0] = name
    kept = [one for one in node.attribute if one.name not in ("pads", "auto_pad")]
    del node.attribute[:]
    node.attribute.extend(kept)
