"""Which layers of a segment the DLA runs as one, for the cost model, and what each such step reads and writes.

Behind the multipliers comes a pipe that scales, adds a second tensor and activates, with no way through the memory in
between. Pooling and all other kinds are steps of their own.

Source: nvdla/hw, the units of the design (a convolution feeds the single-point processor); TensorRT 10 developer
guide, Working with DLA: a DLA loadable is compiled from fused layers. Orin's own fusions are not published.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.target.cost import CostQuestion
from dryfit.target.layer_steps import LayerStep, StepRules, data_inputs, layer_steps
from dryfit_dla.cost.formula import CostStep, FeatureMap, Kernels
from dryfit_dla.cost.parameters import CostParameters


def kernels_of(layer: Layer, question: CostQuestion, *, is_image: bool = False) -> Kernels:
    """The work of one layer that sums products; other kinds than convolutions run as convolutions of 1x1.

    Args:
        layer: of a multiplying kind.
        question: has its tensors' shapes.
        is_image: whether its input is an image in DLA_HWC4.
    """
    first: Any = layer
    given, made = question.specs[layer.connected_input(0).name].shape, question.specs[layer.outputs[0].name].shape
    is_sparse = layer.name in question.sparse_layers
    if layer.kind in ("convolution", "deconvolution"):
        # A deconvolution applies its kernels at each position of the input, a convolution at each of the output.
        shape = made if layer.kind == "convolution" else given
        height, width = (1, 1, *first.kernel_size_nd)[-2:]
        return Kernels(
            height=height,
            width=width,
            channels=given[1],
            maps=made[1],
            groups=first.num_groups,
            positions=shape[0] * math.prod(shape[2:]),
            is_image=is_image,
            is_sparse=is_sparse,
        )
    maps = made[-1] if layer.kind == "matrix_multiply" else first.num_output_channels
    positions = math.prod(made) // max(maps, 1)
    channels = layer.multiply_accumulates(question.specs) // max(positions * maps, 1)
    return Kernels(1, 1, channels, maps, 1, positions, is_sparse=is_sparse)


BEHIND_MULTIPLIERS = frozenset({"activation", "elementwise", "parametric_relu", "scale"})
"""Kinds that run in the pipe behind the multipliers."""

_CONSTANT_BYTES = 4
"""Of an element of a constant that is no kernel: FP19 in 4 bytes (TensorRT 10 developer guide, DLA memory pools)."""


def steps_of(question: CostQuestion, parameters: CostParameters) -> list[CostStep]:
    """The steps of a segment, in execution order."""
    rules = StepRules(
        leads=lambda layer: layer.sums_products,
        follows=lambda layer: layer.kind in BEHIND_MULTIPLIERS,
        is_free=lambda layer: _is_free(layer, question, parameters),
    )
    inside = {id(layer) for layer in question.layers}
    return [_step(found, question, inside) for found in layer_steps(question.layers, rules)]


def _step(found: LayerStep, question: CostQuestion, inside: Container[int]) -> CostStep:
    first, last = found.layers[0], found.layers[-1]
    is_image = first.kind == "convolution" and _is_image(first, question, inside)
    return CostStep(
        layers=tuple(layer.name for layer in found.layers),
        precision=precision_of(first, question),
        inputs=[
            _feature_map(layer, tensor, question, is_image=is_image and layer is first)
            for layer, tensor in found.inputs
        ],
        outputs=[_feature_map(last, tensor, question) for tensor in found.outputs],
        kernels=kernels_of(first, question, is_image=is_image) if first.sums_products else None,
        constant_bytes=sum(
            _CONSTANT_BYTES * math.prod(question.specs[tensor.name].shape)
            for layer in found.layers
            if layer.kind == "elementwise"
            for tensor in layer.connected_inputs
            if tensor.is_constant
        ),
    )


def precision_of(layer: Layer, question: CostQuestion) -> DataType:
    """INT8 or HALF: the layer's own where it is known, else INT8 where one of its tensors is kept so."""
    known = question.precisions.get(layer.name)
    if known is None:
        types = {question.specs[tensor.name].dtype for tensor in (*data_inputs(layer), *layer.outputs)}
        known = DataType.INT8 if DataType.INT8 in types else DataType.HALF
    return known if known is DataType.INT8 else DataType.HALF


def _is_free(layer: Layer, question: CostQuestion, parameters: CostParameters) -> bool:
    """Whether a layer moves nothing: parts that are written where the whole lies, or a vector seen in another shape."""
    if layer.kind not in ("concatenation", "shuffle"):
        return False
    shapes = [question.specs[tensor.name].shape for tensor in data_inputs(layer)]
    if layer.kind == "concatenation":
        block = parameters.rates[precision_of(layer, question)].feature_block
        return all(len(shape) >= 3 and shape[-3] % block == 0 for shape in shapes[:-1])
    return all(len(shape) >= 3 and math.prod(shape[-2:]) == 1 for shape in shapes)


def _is_image(layer: Layer, question: CostQuestion, inside: Container[int]) -> bool:
    """Whether a convolution reads a picture of at most four channels that no layer inside of the segment makes."""
    source = data_inputs(layer)[0]
    shape = question.specs[source.name].shape
    return len(shape) >= 3 and shape[-3] in (1, 3, 4) and id(source.producer) not in inside


def _feature_map(layer: Layer, tensor: Tensor, question: CostQuestion, *, is_image: bool = False) -> FeatureMap:
    """A tensor as the DLA keeps it: the last three axes are C, H and W, and C the last of a vector."""
    spec = question.specs[tensor.name]
    shape = spec.shape if len(spec.shape) >= 3 else (*spec.shape, 1, 1)
    dtype = spec.dtype if spec.dtype in (DataType.INT8, DataType.HALF) else precision_of(layer, question)
    return FeatureMap(math.prod(shape[:-3]), shape[-3], math.prod(shape[-2:]), dtype, is_image)
