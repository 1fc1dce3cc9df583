"""Order of nodes, and functions: those that a model brings, and those that ONNX defines operators by."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx
from onnx import FunctionProto, NodeProto, TypeProto

from dryfit.onnx.problems import NodeRefusedError
from dryfit.onnx.tensors import DATA_TYPES, NodeInput

LARGEST_NODE_COUNT = 500_000
"""Nodes after functions are put in their callers' places. Our choice: a small file can nest functions so that the
count doubles at every level."""


def sorted_nodes(nodes: Sequence[NodeProto], known: Collection[str]) -> list[tuple[int, NodeProto]]:
    """(position, node) in an order in which values are produced before they are used, the model's where it can be.

    Nodes of a cycle come last.
    """
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for output in node.output:
            producers.setdefault(output, index)
    reads = [(*node.input, *(names_from_outside(node) - set(node.output))) for node in nodes]
    if all(producers.get(value, -1) < index or value in known for index, read in enumerate(reads) for value in read):
        return list(enumerate(nodes))
    waiting: list[int] = []
    consumers: dict[int, list[int]] = {}
    for index, read in enumerate(reads):
        sources = {producers[value] for value in read if value in producers and value not in known}
        waiting.append(len(sources))
        for source in sources:
            consumers.setdefault(source, []).append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for consumer in consumers.get(index, ()):
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, consumer)
    cyclic = [index for index, count in enumerate(waiting) if count]
    return [(index, nodes[index]) for index in (*order, *cyclic)]


def names_from_outside(node: NodeProto) -> set[str]:
    """The values that the subgraphs of a node read from the graph around it."""
    names: set[str] = set()
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            read = {info.name for info in graph.output}
            own = {info.name for info in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                read.update(inner.input, names_from_outside(inner))
                own.update(inner.output)
            names |= read - own
    return names


def nodes_written_out(nodes: Sequence[NodeProto], functions: Mapping[tuple[str, str], FunctionProto], most: int) -> int:
    """How many nodes a graph has once functions stand in their callers' places, found without putting them there.

    Args:
        nodes: of the graph.
        functions: of the model, by domain and name.
        most: where counting ends: a larger count, and that of functions that call each other in a circle, is
            `most + 1`.
    """
    counts: dict[tuple[str, str], int] = {}
    for first in functions:
        waiting, is_open = [first], set()
        while waiting:
            key = waiting[-1]
            calls = [(node.domain, node.op_type) for node in functions[key].node]
            inner = [call for call in calls if call in functions]
            missing = [call for call in inner if call not in counts]
            if key in counts:
                waiting.pop()
            elif key in is_open or not missing:
                # What is still missing after the functions inside were counted is a caller of this one: a circle.
                counts[key] = min(len(calls) + sum(counts.get(call, most + 1) for call in inner), most + 1)
            else:
                is_open.add(key)
                waiting += missing
    return min(sum(1 + counts.get((node.domain, node.op_type), 0) for node in nodes), most + 1)


def too_many_nodes() -> NodeRefusedError:
    """The refusal of a graph that is larger than `LARGEST_NODE_COUNT`."""
    return NodeRefusedError(
        "The graph has too many nodes",
        found=f"more than {LARGEST_NODE_COUNT} with functions expanded, or a function that calls itself",
        remedy="Expand fewer functions, or remove the recursion",
    )


def bound_body(function: FunctionProto, call: NodeProto, absent: Collection[str]) -> list[NodeProto]:
    """The nodes of a function with the attributes of one call put in, and absent inputs left out."""
    given = {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}
    body = []
    for node in function.node:
        bound = NodeProto()
        bound.CopyFrom(node)
        del bound.attribute[:]
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                bound.attribute.add().CopyFrom(attribute)
            elif attribute.ref_attr_name in given:
                copied = bound.attribute.add()
                copied.CopyFrom(given[attribute.ref_attr_name])
                copied.name = attribute.name
        for index, value in enumerate(bound.input):
            if value in absent:
                bound.input[index] = ""
        body.append(bound)
    return body


def is_unchanged(op_type: str, older: int, newer: int) -> bool:
    """Whether an operator of ONNX's own set is the same in two versions of the set; true for unknown operators."""
    try:
        versions = [onnx.defs.get_schema(op_type, opset).since_version for opset in (older, newer)]
    except onnx.defs.SchemaError:
        return True
    return versions[0] == versions[1]


def function_of(node: NodeProto, domain: str, opset: int, inputs: Sequence[NodeInput | None]) -> FunctionProto | None:
    """The function by which ONNX defines an operator, or None."""
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    versions = [version for version in schema.function_opset_versions if version <= opset]
    if versions:
        return _function(schema, schema.get_function_with_opset_version(versions[-1]))
    versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
    if versions and all(operand is not None or not name for operand, name in zip(inputs, node.input, strict=True)):
        types = [_type_of(operand).SerializeToString() for operand in inputs]
        data = schema.get_context_dependent_function_with_opset_version(versions[-1], node.SerializeToString(), types)
        return _function(schema, data)
    return None


def _function(schema: Any, data: bytes) -> FunctionProto:
    """The function that ONNX hands out as bytes, with the operator's defaults, which stand in its schema only."""
    function: FunctionProto = FunctionProto.FromString(data)
    defaults = [attribute.default_value for attribute in schema.attributes.values() if attribute.default_value.name]
    function.attribute_proto.extend(defaults)
    return function


def _type_of(operand: NodeInput | None) -> TypeProto:
    kind = TypeProto()
    if operand is not None:
        numbers = {dtype: number for number, dtype in DATA_TYPES.items()}
        kind.tensor_type.elem_type = numbers[operand.dtype]
        for extent in operand.shape:
            dim = kind.tensor_type.shape.dim.add()
            if extent >= 0:
                dim.dim_value = extent
    return kind
