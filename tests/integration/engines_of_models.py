"""Engines of model files, for tests of what becomes of them."""

from __future__ import annotations

from pathlib import Path

from dryfit.builder.config.builder_config import BuilderFlag, DeviceType
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.onnx.importer import network_from_onnx

LARGEST_BATCH = 100


def build(
    model: Path,
    flags: tuple[BuilderFlag, ...] = (),
    device: str = DeviceType.GPU,
    largest_batch: int = LARGEST_BATCH,
) -> Engine:
    """An engine for batches up to the largest, where the model lets the batch open."""
    builder = Builder()
    network, config = network_from_onnx(model), builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    config.default_device_type = device
    profile = builder.create_optimization_profile()
    for tensor in network.inputs:
        if -1 in tensor.shape:
            shapes = [
                tuple(batch if extent == -1 else extent for extent in tensor.shape) for batch in (1, largest_batch)
            ]
            profile.set_shape(tensor.name, shapes[0], shapes[1], shapes[1])
    if profile:
        config.add_optimization_profile(profile)
    return builder.build_engine(network, config)
