"""Trains the digits network with numpy and writes `digits.onnx`.

    python examples/digits/train.py

The network is small on purpose, and has what a network for an accelerator has: convolutions with batch normalization,
pooling, a classifier. Two layers are there because a DLA refuses them, so that the example has reasons to show: an ELU,
and a global average written as ReduceMean.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from digits_data import train_and_test
from onnx import TensorProto, helper, numpy_helper
from training_layers import BatchNormalization, Convolution, Dense, Elu, GlobalAverage, MaxPool, Relu, TrainingLayer

SEED = 2024
BATCH = 32
OPSET = 17


def create_layers(rng: np.random.Generator) -> dict[str, TrainingLayer]:
    """The network's layers in order, by the names that their ONNX nodes get."""
    return {
        "conv1": Convolution(1, 16, rng),
        "norm1": BatchNormalization(16),
        "relu1": Relu(),
        "conv2": Convolution(16, 32, rng),
        "norm2": BatchNormalization(32),
        "elu2": Elu(),
        "pool2": MaxPool(),
        "conv3": Convolution(32, 64, rng),
        "norm3": BatchNormalization(64),
        "relu3": Relu(),
        "average": GlobalAverage(),
        "classifier": Dense(64, 10, rng),
    }


def scores(layers: dict[str, TrainingLayer], images: np.ndarray, training: bool = False) -> np.ndarray:
    """The classifier's outputs `[N, 10]`, before softmax."""
    x = images
    for layer in layers.values():
        layer.training = training
        x = layer.forward(x)
    return x


def train(layers: dict[str, TrainingLayer], images: np.ndarray, labels: np.ndarray, epochs: int, seed: int) -> float:
    """Adam on cross entropy, the step falling to zero as a cosine.

    Each batch is shifted by up to one pixel, around the edge, so that there are nine times as many images.

    Returns:
        The mean loss of the last epoch.
    """
    rng = np.random.default_rng(seed)
    state = {
        (name, key): (np.zeros_like(value), np.zeros_like(value))
        for name, layer in layers.items()
        for key, value in layer.parameters.items()
    }
    batches = len(labels) // BATCH
    step, mean_loss = 0, float("nan")
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        losses = []
        for chosen in np.split(order[: batches * BATCH], batches):
            shift = tuple(rng.integers(-1, 2, 2))
            step += 1
            losses.append(_gradients(layers, np.roll(images[chosen], shift, axis=(2, 3)), labels[chosen]))
            rate = 1.5e-3 * (1 + np.cos(np.pi * step / (epochs * batches)))
            _adam(layers, state, rate, step)
        mean_loss = float(np.mean(losses))
    return mean_loss


def _gradients(layers: dict[str, TrainingLayer], images: np.ndarray, labels: np.ndarray) -> float:
    """The loss; the gradients go into the layers."""
    logits = scores(layers, images, training=True)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(probabilities[rows, labels] + 1e-12).mean()
    probabilities[rows, labels] -= 1
    gradient = (probabilities / len(labels)).astype(np.float32)
    for layer in reversed(layers.values()):
        gradient = layer.backward(gradient)
    return float(loss)


def _adam(layers: dict[str, TrainingLayer], state: dict, rate: float, step: int) -> None:
    """One step of Adam with its published constants."""
    for (name, key), (old_first, old_second) in state.items():
        gradient = layers[name].gradients[key]
        first = 0.9 * old_first + 0.1 * gradient
        second = 0.999 * old_second + 0.001 * gradient**2
        state[name, key] = (first, second)
        update = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        layers[name].parameters[key] -= (rate * update).astype(np.float32)


def onnx_model(layers: dict[str, TrainingLayer]) -> onnx.ModelProto:
    """The trained network as ONNX: image `float32[batch, 1, 8, 8]` to probabilities `float32[batch, 10]`."""
    nodes, weights = [], []

    def weight(name: str, value: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    x = "image"
    for name, layer in layers.items():
        match layer:
            case Convolution():
                x = node("Conv", name, [x, weight(f"{name}.weight", layer.parameters["weight"])], pads=[1, 1, 1, 1])
            case BatchNormalization():
                values = {**layer.parameters, "mean": layer.mean, "variance": layer.variance}
                operands = [weight(f"{name}.{key}", value) for key, value in values.items()]
                x = node("BatchNormalization", name, [x, *operands], epsilon=layer.epsilon)
            case Relu():
                x = node("Relu", name, [x])
            case Elu():
                x = node("Elu", name, [x])
            case MaxPool():
                x = node("MaxPool", name, [x], kernel_shape=[2, 2], strides=[2, 2])
            case GlobalAverage():
                x = node("Flatten", "flatten", [node("ReduceMean", name, [x], axes=[2, 3], keepdims=1)])
            case Dense():
                operands = [weight(f"{name}.{key}", value) for key, value in layer.parameters.items()]
                x = node("Gemm", name, [x, *operands], transB=1)
    nodes.append(helper.make_node("Softmax", [x], ["probabilities"], name="softmax", axis=1))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="dryfit-digits")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    """Train, say how good it got, and write the file."""
    parser = argparse.ArgumentParser(description="Train the digits network and write it as ONNX.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("digits.onnx"))
    arguments = parser.parse_args()

    training, test = train_and_test()
    layers = create_layers(np.random.default_rng(SEED))
    loss = train(layers, training.images, training.labels, arguments.epochs, SEED)
    right = scores(layers, test.images).argmax(axis=1) == test.labels
    arguments.output.write_bytes(onnx_model(layers).SerializeToString())
    print(f"loss of the last epoch: {loss:.4f}")
    print(f"test accuracy: {right.mean():.2%} ({right.sum()} of {len(right)} images)")
    print(f"wrote {arguments.output} ({arguments.output.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
