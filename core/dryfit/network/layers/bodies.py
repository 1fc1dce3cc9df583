"""Networks that layers run: their shapes for given inputs, and what must hold for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Graph, Layer
from dryfit.network.tensor import Array, Shape, TensorSpec

DEEPEST_BODIES = 8
"""Bodies inside bodies. Our choice: real models have two or three, and a file can nest them as deeply as it likes."""


def body_specs(body: Graph, given: Sequence[TensorSpec]) -> list[TensorSpec]:
    """Return the specs of a body's outputs for these specs of its inputs.

    Raises:
        NetworkError: A layer of the body does not support these shapes.
    """
    body.refresh_shapes()
    specs = {id(tensor): spec for tensor, spec in zip(body.inputs, given, strict=True)}
    for layer in body.layers:
        outputs = layer.infer_outputs([None if tensor is None else specs[id(tensor)] for tensor in layer.inputs])
        specs.update((id(tensor), spec) for tensor, spec in zip(layer.outputs, outputs, strict=True))
    return [specs[id(tensor)] for tensor in body.outputs]


def body_multiply_accumulates(body: Graph) -> int:
    """Return the multiply-accumulates of one run of a body."""
    tensors = [*body.inputs, *(tensor for layer in body.layers for tensor in layer.outputs)]
    specs: Mapping[str, TensorSpec] = {tensor.name: tensor.spec for tensor in tensors}
    return sum(layer.multiply_accumulates(specs) for layer in body.layers)


def host_only_part(bodies: Sequence[Graph]) -> str:
    """Return why TensorRT does not support a layer of these bodies; empty if it supports all."""
    for body in bodies:
        for layer in body.layers:
            if layer.is_host_only:
                return f"the {layer.kind} layer {layer.name!r} in its body"
            foreign = [tensor for tensor in layer.outputs if not tensor.spec.dtype.is_device_type]
            if foreign:
                return f"a tensor of type {foreign[0].spec.dtype.text} ({foreign[0].name!r}) in its body"
    return ""


def nested_bodies(layer: Layer) -> int:
    """Return how deeply bodies are nested in a layer, counted up to one more than the limit."""
    depth, level = 0, list(layer.bodies)
    while level and depth <= DEEPEST_BODIES:
        depth += 1
        level = [body for one in level for inner in one.layers for body in inner.bodies]
    return depth


def check_depth(layer: Layer) -> None:
    """Refuse bodies that are nested too deeply.

    Raises:
        NetworkError: They are.
    """
    if nested_bodies(layer) > DEEPEST_BODIES:
        raise layer.problem(
            "Loops and conditionals are nested too deeply",
            found=f"more than {DEEPEST_BODIES} levels",
            allowed=f"{DEEPEST_BODIES} levels",
            remedy="Merge nested loops, or move inner ones out",
        )


def check_body_inputs(layer: Layer, body: Graph, given: Sequence[TensorSpec]) -> None:
    """Refuse inputs that do not fit those of a body.

    Raises:
        NetworkError: Their number, ranks or types differ.
    """
    wanted = [tensor.spec for tensor in body.inputs]
    if [(spec.rank, spec.dtype) for spec in wanted] != [(spec.rank, spec.dtype) for spec in given]:
        raise layer.problem(
            f"The inputs must have the ranks and types of the inputs of its body {body.name!r}",
            found=", ".join(f"{spec.dtype.text} {spec.shape}" for spec in given) or "none",
            allowed=", ".join(f"{spec.dtype.text} {spec.shape}" for spec in wanted) or "none",
            remedy="Connect other inputs, or change the body",
        )


def check_condition(layer: Layer, spec: TensorSpec, what: str) -> None:
    """Refuse a condition that is not a truth value.

    Raises:
        NetworkError: It has another type, or more than one element.
    """
    if spec.dtype is not DataType.BOOL or not may_be_single(spec.shape):
        raise layer.problem(
            f"{what} must be one BOOL",
            found=f"{spec.dtype.text} {spec.shape}",
            allowed="BOOL with one element",
            remedy="Add a comparison or a cast layer before it",
        )


def may_be_single(shape: Shape) -> bool:
    """Return whether a tensor of this shape may have exactly one element."""
    return all(extent in (-1, 1) for extent in shape)


def in_common(one: TensorSpec, other: TensorSpec) -> TensorSpec:
    """Return the spec that holds for both; extents in which they differ are -1."""
    shape = tuple(a if a == b else -1 for a, b in zip(one.shape, other.shape, strict=True))
    return TensorSpec(shape, one.dtype)


def first_element(array: Array) -> int:
    """Return a count from an array with one element."""
    return int(np.asarray(array).reshape(-1)[0])
