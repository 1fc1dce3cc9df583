"""One network on three devices: DLA by default, ACME_NPU for what it was made for, the GPU for the rest.

`python three_devices.py [ENGINE]` prints where each layer runs and what each device says to it, saves the engine, loads
it again, runs it, and compares the result with the FP32 reference.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dryfit
from dryfit.reference.executor import run_reference

DEVICES = ("DLA", "ACME_NPU", "GPU")


def network() -> dryfit.Network:
    """A convolution, a pooling, a gate with ACME's swish and sigmoid, and a top-k, which no accelerator has."""
    random = np.random.default_rng(0)
    made = dryfit.Network("gate")
    image = made.add_input("image", dryfit.DataType.FLOAT, (1, 3, 16, 16))

    def convolution(x: dryfit.Tensor, channels: int, name: str) -> dryfit.Tensor:
        kernel = random.normal(0, 0.2, (channels, x.shape[1], 3, 3)).astype(np.float32)
        layer = made.add_convolution_nd(x, channels, (3, 3), kernel)
        layer.name, layer.padding_nd = name, (1, 1)
        return layer.get_output(0)

    features = convolution(image, 8, "features")
    layer = made.add_plugin([features], "Swish", {"beta": 1.5}, plugin_namespace="acme")
    layer.name = "swish"
    layer = made.add_activation(convolution(layer.get_output(0), 8, "gate"), dryfit.ActivationType.SIGMOID)
    layer.name = "sigmoid"
    layer = made.add_elementwise(features, layer.get_output(0), dryfit.ElementWiseOperation.PROD)
    layer.name = "product"
    layer = made.add_topk(layer.get_output(0), dryfit.TopKOperation.MAX, 2, 1 << 1)
    layer.name = "strongest"
    made.mark_output(layer.get_output(0))
    return made


def main(path: Path) -> None:
    """Build, tell, save, load, run, compare."""
    made, config = network(), dryfit.BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.set_flag(dryfit.BuilderFlag.GPU_FALLBACK)
    for name in ("swish", "sigmoid"):
        config.set_device_type(made.layer(name), "ACME_NPU")
    engine = dryfit.Builder().build_engine(made, config)
    for placed in engine.plan.layers:
        print(f"{placed.layer} runs on {placed.device}")
        for device in DEVICES:
            verdict = config.can_run_on(made.layer(placed.layer), device)
            print(f"    {device}: {'yes' if verdict else verdict}")
    engine.save(path)
    image = np.random.default_rng(1).normal(size=(1, 3, 16, 16)).astype(np.float32)
    outputs = dryfit.Engine.load(path).create_execution_context().run({"image": image})
    for name, expected in run_reference(made, {"image": image}).items():
        error = np.abs(outputs[name] - expected).max() / np.abs(expected).max()
        print(f"largest error against the FP32 reference: {100 * error:.2f} % of the largest value")
    print("devices:", ", ".join(sorted({segment.device for segment in engine.plan.segments})))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gate.engine"))
