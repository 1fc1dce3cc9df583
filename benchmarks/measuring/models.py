"""The networks that are measured: where their models come from, and in what forms each side gets them.

ONNX brings the graphs of some without their weights, which then are random; the others are trained networks beside the
repository. Speed does not depend on what the weights are, as long as no value is denormal or infinite.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import numpy_helper

from measuring.quantized_models import quantized_forms

Array = np.ndarray[Any, Any]

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
SHARED = Path(__file__).parents[3] / "shared" / "models"
CALIBRATION_IMAGES = 4

NETWORKS: Mapping[str, Path] = {
    "resnet50": LIGHT / "light_resnet50.onnx",
    "mobilenetv2": SHARED / "mobilenetv2-fp32.onnx",
    "squeezenet": SHARED / "squeezenet1.1-fp32.onnx",
    "densenet121": LIGHT / "light_densenet121.onnx",
    "inception_v2": LIGHT / "light_inception_v2.onnx",
}
"""Name to the file that its graph comes from."""

FORMS = {"fp32": ("fp32",), "int8": ("tensorrt", "s8", "u8", "operators")}
"""Precision to the forms of a model that peers may choose from. dryfit runs the first."""


@attrs.frozen
class Model:
    """A network, ready to be run.

    Attributes:
        name: in `NETWORKS`.
        precision: `fp32` or `int8`.
        input_name: of its only input.
        shape: of the input.
        files: form to the file of the model.
    """

    name: str
    precision: str
    input_name: str
    shape: tuple[int, ...]
    files: Mapping[str, Path]

    def image(self) -> Array:
        """A random input."""
        return np.random.default_rng(1).standard_normal(self.shape).astype(np.float32)

    def macs(self) -> int:
        """Multiply-accumulates of a run, by dryfit's count."""
        import dryfit

        network = dryfit.network_from_onnx(str(next(iter(self.files.values()))))
        specs = {tensor.name: tensor.spec for tensor in network.tensors}
        return sum(layer.multiply_accumulates(specs) for layer in network.layers)


def is_there(name: str) -> bool:
    """Whether the file that a network comes from is there."""
    return NETWORKS[name].is_file()


def model(name: str, precision: str, batch: int) -> Model:
    """A network in all forms of a precision, made where it is not kept from before."""
    source = NETWORKS[name]
    files: dict[str, Path] = {}
    for form in FORMS[precision]:
        files[form] = model_folder(source) / f"{form}-{batch}.onnx"
    if not all(path.is_file() for path in files.values()):
        forms = forms_of(source, precision) if batch == 1 else read(model(name, precision, 1).files)
        for form, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(with_batch(onnx.load_from_string(forms[form]), batch).SerializeToString())
    image = images_of(onnx.load(files[FORMS[precision][0]]))[0]
    return Model(name, precision, image.name, shape_of(image), files)


def forms_of(source: Path, precision: str) -> Mapping[str, bytes]:
    """The forms of a network for one image."""
    network = with_batch(with_weights(onnx.load(source)), 1)
    return {"fp32": network.SerializeToString()} if precision == "fp32" else quantized(network)


def read(files: Mapping[str, Path]) -> Mapping[str, bytes]:
    """What is in files."""
    return {form: path.read_bytes() for form, path in files.items()}


def model_folder(source: Path) -> Path:
    """Where the forms of a network are kept: they depend on its file, on these sources and on the quantizer."""
    digest = hashlib.sha256(importlib.metadata.version("onnxruntime").encode())
    for path in (source, Path(__file__), *map(Path(__file__).with_name, ("quantized_models.py", "tensorrt_form.py"))):
        digest.update(path.read_bytes())
    kept = os.environ.get("DRYFIT_CACHE_DIR") or Path(__file__).parents[2] / ".cache"
    return Path(kept) / "benchmarks" / f"{source.stem}-{digest.hexdigest()[:12]}"


def quantized(network: onnx.ModelProto) -> Mapping[str, bytes]:
    """The INT8 forms, calibrated on random images."""
    image = images_of(network)[0]
    generator = np.random.default_rng(2)
    shape = shape_of(image)
    images = [generator.standard_normal(shape).astype(np.float32) for _ in range(CALIBRATION_IMAGES)]
    return quantized_forms(network, image.name, images)


def images_of(network: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are no weights."""
    weights = {tensor.name for tensor in network.graph.initializer}
    return [tensor for tensor in network.graph.input if tensor.name not in weights]


def shape_of(tensor: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Its static shape."""
    return tuple(extent.dim_value for extent in tensor.type.tensor_type.shape.dim)


# Weights --------------------------------------------------------------------------------------------------------------


def with_weights(network: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The network with random weights in the place of each `ConstantOfShape`; others stay as they are.

    Convolutions are scaled as He et al. do, so that activations keep their size; what a sum adds to its other branch is
    damped.
    """
    generator = np.random.default_rng(seed)
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in network.graph.initializer}
    draw = _Draw(network, generator)
    kept = [node for node in network.graph.node if node.op_type != "ConstantOfShape"]
    for node in network.graph.node:
        if node.op_type == "ConstantOfShape":
            values = draw.weights(node.output[0], tuple(given[node.input[0]]))
            network.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    used = {name for node in kept for name in node.input}
    weights = [tensor for tensor in network.graph.initializer if tensor.name in used]
    # A weight that is an input too could be fed, and ONNX Runtime would not fold it: only the image stays one.
    images = [tensor for tensor in network.graph.input if tensor.name in used - {one.name for one in weights}]
    for field, wanted in (
        (network.graph.node, kept),
        (network.graph.initializer, weights),
        (network.graph.input, images),
    ):
        del field[:]
        field.extend(wanted)
    return network


class _Draw:
    """Random weights by what reads them."""

    def __init__(self, network: onnx.ModelProto, generator: np.random.Generator) -> None:
        self._generator = generator
        self._readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        for node in network.graph.node:
            for position, name in enumerate(node.input):
                self._readers.setdefault(name, []).append((node, position))

    def weights(self, name: str, shape: tuple[int, ...]) -> Array:
        """FP32 weights of a shape."""
        node, position = self._reader(name)
        if len(shape) > 1:
            fan_in = int(np.prod(shape[1:]))
            return (self._generator.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        is_factor = node.op_type == "Mul" or (node.op_type == "BatchNormalization" and position in {1, 4})
        if not is_factor:
            return (self._generator.standard_normal(shape) * 0.1).astype(np.float32)
        low = 0.2 if position == 1 and self._is_branch(node) else 0.8
        return self._generator.uniform(low, low + 0.2, shape).astype(np.float32)

    def _reader(self, name: str) -> tuple[onnx.NodeProto, int]:
        """Who reads a weight, behind what only changes its rank, and as which of its inputs."""
        node, position = self._readers[name][0]
        return self._reader(node.output[0]) if node.op_type == "Unsqueeze" else (node, position)

    def _is_branch(self, node: onnx.NodeProto) -> bool:
        """Whether a normalization's result is the first term of a sum: the branch that has the convolutions."""
        return any(reader.op_type == "Sum" and position == 0 for reader, position in self._readers[node.output[0]])


# Batch ----------------------------------------------------------------------------------------------------------------


def with_batch(network: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """The network for another batch: its inputs and outputs, and where a reshape names the batch."""
    for tensor in (*images_of(network), *network.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_value = batch
    if batch == 1:
        return network
    del network.graph.value_info[:]
    shapes = {node.input[1] for node in network.graph.node if node.op_type == "Reshape"}
    for tensor in network.graph.initializer:
        if tensor.name in shapes:
            shape = numpy_helper.to_array(tensor).copy()
            shape[0] = -1 if -1 not in shape else 0
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    return network
