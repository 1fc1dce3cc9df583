"""What calibrators are measured with: ResNet-50 with its normalizations folded, and pictures made of noise."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from measuring.models import NETWORKS, Array, images_of, model_folder, with_weights

MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
"""Of ImageNet's channels."""
SIZE = 224


def calibration_model() -> Path:
    """The file of onnx's bundled ResNet-50 with random weights, its normalizations folded into the convolutions."""
    source = NETWORKS["resnet50"]
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    path = model_folder(source) / f"calibration-{digest}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(without_normalizations(with_weights(onnx.load(source))).SerializeToString())
    return path


def input_name(path: Path) -> str:
    """The name of a model's image."""
    return str(images_of(onnx.load(path))[0].name)


def without_normalizations(network: onnx.ModelProto) -> onnx.ModelProto:
    """The network with each batch normalization folded into the convolution before it."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in network.graph.initializer}
    producers = {node.output[0]: node for node in network.graph.node}
    kept = []
    for node in network.graph.node:
        if node.op_type != "BatchNormalization":
            kept.append(node)
            continue
        convolution = producers[node.input[0]]
        scale, shift, mean, variance = (arrays[name].astype(np.float64) for name in node.input[1:])
        epsilon = next((one.f for one in node.attribute if one.name == "epsilon"), 1e-5)
        factor = scale / np.sqrt(variance + epsilon)
        weights = arrays[convolution.input[1]]
        bias = arrays[convolution.input[2]] if len(convolution.input) > 2 else 0.0
        names = [f"{node.output[0]}.weights", f"{node.output[0]}.bias"]
        folded = [weights * factor[:, None, None, None], (bias - mean) * factor + shift]
        for name, array in zip(names, folded, strict=True):
            network.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
        del convolution.input[1:]
        convolution.input.extend(names)
        convolution.output[0] = node.output[0]
    del network.graph.node[:]
    network.graph.node.extend(kept)
    used = {name for node in kept for name in node.input}
    weights_left = [tensor for tensor in network.graph.initializer if tensor.name in used]
    del network.graph.initializer[:]
    network.graph.initializer.extend(weights_left)
    del network.graph.value_info[:]
    return network


def pictures(count: int) -> Iterator[Array]:
    """`float32[1, 3, 224, 224]`, one after another: noise whose spectrum falls with the frequency."""
    frequencies = np.hypot(np.fft.fftfreq(SIZE)[:, None], np.fft.rfftfreq(SIZE)[None, :])
    fall = 1.0 / np.maximum(frequencies, 1.0 / SIZE)
    for seed in range(count):
        noise = np.random.default_rng(seed).standard_normal((3, SIZE, SIZE))
        smooth = np.fft.irfft2(np.fft.rfft2(noise) * fall, s=(SIZE, SIZE))
        smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min())
        pixels = np.round(smooth * 255.0).astype(np.float32) / np.float32(255.0)
        yield ((pixels - MEAN[:, None, None]) / DEVIATION[:, None, None])[None]
