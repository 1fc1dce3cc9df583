"""Real models with other weights: a refitted engine has the bytes of the engine that is built from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.refit.refitter import Refitter
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.refitter import OnnxParserRefitter


def with_other_weights(path: Path) -> onnx.ModelProto:
    """The model with matrices and kernels that are changed a little; scales stay."""
    model, rng = onnx.load(path), np.random.default_rng(1)
    changed = 0
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.ndim < 2 or array.dtype not in (np.float32, np.int8):
            continue
        if array.dtype == np.float32:
            array = (array * rng.uniform(0.9, 1.1, array.shape)).astype(np.float32)
        else:
            array = np.clip(array.astype(int) + rng.integers(-3, 4, array.shape), -127, 127).astype(np.int8)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        changed += 1
    assert changed > 2
    return model


def built(model: onnx.ModelProto | Path, *flags: BuilderFlag) -> Engine:
    network = network_from_onnx(model)
    config = BuilderConfig()
    config.builder_optimization_level = 0
    for flag in flags:
        config.set_flag(flag)
    for tensor in network.inputs:
        if -1 in tensor.shape:
            profile = OptimizationProfile()
            profile.set_shape(tensor.name, *(tuple(n if e < 0 else e for e in tensor.shape) for n in (1, 2, 4)))
            config.add_optimization_profile(profile)
    return Builder().build_engine(network, config)


@pytest.mark.parametrize("file", ["mnist_resnet_qat_qdq.onnx", "squeezenet1.1-int8-qdq-sym.onnx"])
def test_a_refit_gives_the_bytes_of_a_build(file: str, shared_models: Path) -> None:
    path = shared_models / file
    other = with_other_weights(path)
    fresh = built(other, BuilderFlag.REFIT).serialize()
    engine = built(path, BuilderFlag.REFIT)
    assert engine.serialize() != fresh
    refitter = Refitter(engine)
    assert OnnxParserRefitter(refitter).refit_from_bytes(other.SerializeToString())
    refitter.refit_cuda_engine()
    assert engine.serialize() == fresh
