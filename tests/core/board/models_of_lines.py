"""Small models that are put in the place of those of published command lines."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper
from tests.core.board.trtexec_lines import Facts, PublicLine
from tests.core.onnx.models import numbers

from dryfit.board.trtexec_arguments import arguments_of
from dryfit.network.tensor import Shape

PICTURE = (1, 3, 16, 16)
"""The shape of an input about which a line says nothing."""

_TYPES = {"int32": TensorProto.INT32, "int64": TensorProto.INT64}


def words_of(line: PublicLine) -> list[str]:
    """The line's options, as a shell gives them to the program."""
    return arguments_of(string.Template(line.command).safe_substitute(line.variables))


def shapes_of(facts: Facts) -> dict[str, tuple[Shape, Shape, Shape]]:
    """Least, best and largest shape of each input that the line names."""
    found = {}
    for name, text in facts.shapes.items():
        given = [tuple(int(extent) for extent in one.split("x")) for one in text.split()]
        found[name] = (given[0], given[len(given) // 2], given[-1])
    return found


def named_layers(facts: Facts) -> list[str]:
    """Names of layers that the lists of the line mean, where 0 fills the place of a star."""
    listed = (*facts.layer_types, *facts.layer_outputs, *facts.layer_devices)
    return list(dict.fromkeys(name.replace("*", "0") for name in listed if name != "*"))


def model_of(facts: Facts) -> onnx.ModelProto:
    """A model with the line's inputs and layers, dynamic where its shapes differ, and in the batch.

    Each input has an output of its own, after two convolutions where it is a picture: in INT8, the builder leaves the
    layers before an output in FP32.
    """
    shapes = shapes_of(facts) or dict.fromkeys(facts.feeds or ["input"], (PICTURE,) * 3)
    words = [entry.partition(":")[0] for entry in facts.inputs.split(",")]
    graph = _Graph()
    for index, (name, (least, best, largest)) in enumerate(shapes.items()):
        extents = [
            f"d{index}_{axis}" if (axis == 0 and facts.shapes) or low != high else extent
            for axis, (low, extent, high) in enumerate(zip(least, best, largest, strict=True))
        ]
        dtype = _TYPES.get(words[index % len(words)], TensorProto.FLOAT)
        graph.add_chain(name, dtype, extents, named_layers(facts) if index == 0 else [])
    return graph.model()


def inputs_of(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, np.ndarray]]:
    """Values for the inputs of a model at these shapes."""
    for info in model.graph.input:
        shape = shapes.get(info.name, PICTURE)
        yield info.name, numbers(*shape).astype(helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))


class _Graph:
    """Nodes, weights, inputs and outputs of a model that is being made."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add_chain(self, name: str, dtype: int, extents: list[str | int], layers: list[str]) -> None:
        """Add an input, what computes on it, and its output."""
        index = len(self.inputs)
        self.inputs.append(helper.make_tensor_value_info(name, dtype, extents))
        value = name
        if dtype != TensorProto.FLOAT:
            value = self._add("Cast", value, f"cast_{index}", to=TensorProto.FLOAT)
        if len(extents) == 4 and isinstance(extents[1], int):
            for step, channels in (("first", extents[1]), ("second", 8)):
                name = f"{step}_{index}"
                self.weights.append(onnx.numpy_helper.from_array(numbers(8, channels, 1, 1), f"weight {name}"))
                value = self._add("Relu", self._add("Conv", value, name, f"weight {name}"), f"{name} relu")
            extents = [extents[0], 8, *extents[2:]]
        for layer in layers:
            value = self._add("Relu", value, layer)
        self.nodes.append(helper.make_node("Relu", [value], [f"output_{index}"], f"last_{index}"))
        self.outputs.append(helper.make_tensor_value_info(f"output_{index}", TensorProto.FLOAT, extents))

    def _add(self, kind: str, value: str, name: str, *more: str, **attributes: int) -> str:
        self.nodes.append(helper.make_node(kind, [value, *more], [f"{name} value"], name, **attributes))
        return f"{name} value"

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        graph = helper.make_graph(self.nodes, "line", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


# Lines that run in a folder of a test ---------------------------------------------------------------------------------


FILE_OPTIONS = frozenset(
    {
        *("--onnx", "--saveEngine", "--loadEngine", "--calib", "--timingCacheFile"),
        *("--exportTimes", "--exportOutput", "--exportProfile", "--exportLayerInfo"),
    }
)
SHAPES = frozenset({"--minShapes", "--optShapes", "--maxShapes", "--shapes"})
SHORT = {"--warmUp": "0", "--duration": "0", "--idleTime": "0", "--iterations": "2"}
"""What takes the place of the times and numbers of runs of a line, so that a test takes no minutes."""

LARGEST_EXTENT = 16


def local(path: str) -> str:
    """A path of a line, inside the folder of the test."""
    return "/".join(part for part in path.split("/") if part not in ("", ".", ".."))


def small(shape: Shape, most: int) -> Shape:
    """A shape whose extents are no larger than the most that a test has."""
    return tuple(min(extent, most) for extent in shape)


def _fitted_shapes(text: str, most: int) -> str:
    entries = (entry.rpartition(":") for entry in text.split(","))
    return ",".join(
        f"{name}{colon}{'x'.join(map(str, small(tuple(int(one) for one in shape.split('x')), most)))}"
        if colon
        else shape
        for name, colon, shape in entries
    )


def fitted_words(line: PublicLine, most: int = LARGEST_EXTENT) -> list[str]:
    """The line's options with files in the current folder, small shapes and few runs; all else as it is written."""
    found = []
    for word in words_of(line):
        option, equals, value = word.partition("=")
        if option in FILE_OPTIONS and equals:
            value = local(value)
        elif option in SHAPES:
            value = _fitted_shapes(value, most)
        elif option == "--loadInputs":
            name, _, path = value.rpartition(":")
            value = f"{name}:{local(path)}"
        elif option in SHORT:
            continue
        found.append(f"{option}{equals}{value}")
    return [*found, *(f"{option}={value}" for option, value in SHORT.items())]


def fitted_facts(facts: Facts, most: int = LARGEST_EXTENT) -> Facts:
    """The facts of a line after it was fitted."""
    shapes = {
        name: " ".join("x".join(map(str, small(shape, most))) for shape in triple)
        for name, triple in shapes_of(facts).items()
    }
    runs_at = {
        name: "x".join(map(str, small(tuple(int(one) for one in text.split("x")), most)))
        for name, text in facts.runs_at.items()
    }
    return attrs.evolve(facts, shapes=shapes, runs_at=runs_at)
