"""What `check` says that a model needs of a DLA's memory pools is what its engine needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.building import Builder, assess
from dryfit.onnx.importer import network_from_onnx

MODELS = ("mnist-8", "mnist_resnet_qat_qdq", "resnet20_cifar10", "yunet_n_320")


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_an_assessment_tells_the_pools_of_the_engine(shared_models: Path, model: str, int8: bool) -> None:
    network = network_from_onnx(shared_models / f"{model}.onnx")
    is_explicit = any(layer.kind == "quantize" for layer in network.layers)
    config = BuilderConfig()
    config.default_device_type = DeviceType.DLA
    config.builder_optimization_level = 0
    config.set_flag(BuilderFlag.FP16)
    config.allow_gpu_fallback(True)
    if int8:
        config.set_flag(BuilderFlag.INT8)
        for tensor in () if is_explicit else network.tensors:
            tensor.dynamic_range = (-4.0, 4.0)
    for tensor in network.inputs:
        if -1 in tensor.shape:
            shape = tuple(1 if extent < 0 else extent for extent in tensor.shape)
            profile = Builder().create_optimization_profile()
            profile.set_shape(tensor.name, shape, shape, shape)
            config.add_optimization_profile(profile)
    assessed = [one.pools for one in assess(network, config).segments]
    assert [one.pools for one in Builder().build_plan(network, config).segments] == assessed
    assert any(pools for pools in assessed)
