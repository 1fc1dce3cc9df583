"""The memory of real networks: no two tensors that live together overlap, and the peak is near the least possible."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.segments import device_memory
from dryfit.building import Builder
from dryfit.engine.memory_planner import largest_live_set, plan_memory
from dryfit.onnx.parser import network_from_onnx

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# The three that are left out, AlexNet, VGG-19 and ZFNet, are chains of few layers with weights that take long to make.
LIGHT_NETWORKS = (
    "densenet121",
    pytest.param("inception_v1", marks=pytest.mark.nightly),
    "inception_v2",
    pytest.param("resnet50", marks=pytest.mark.nightly),
    pytest.param("shufflenet", marks=pytest.mark.nightly),
    "squeezenet",
)
SHARED_NETWORKS = (
    "mnist-8",
    "mnist_denoise_deconv_in_fp32",
    "mnist_lrn_fp32",
    "mnist_resnet_qat_qdq",
    "mnist_vit_fp32",
    "mobilenetv2-fp32",
    "resnet20_cifar10",
    "squeezenet1.1-fp32",
    "squeezenet1.1-int8-qdq-sym",
    "super-resolution-10",
    "yolox_nano_416",
    "yunet_n_320",
)


def config_for(network, device):
    builder, config = Builder(), BuilderConfig()
    config.default_device_type = device
    if device == "DLA":
        config.set_flag(BuilderFlag.FP16)
        config.allow_gpu_fallback(True)
    profile = builder.create_optimization_profile()
    for tensor in network.inputs:
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, *[tuple(max(extent, 1) for extent in tensor.shape)] * 3)
    if profile:
        config.add_optimization_profile(profile)
    return config


def check(path, device, monkeypatch):
    """Every pool that is planned when the network is built."""
    network = network_from_onnx(path)
    planned = []

    def recording(buffers, alignment=64):
        plan = plan_memory(buffers, alignment)
        planned.append((plan, list(buffers), alignment))
        return plan

    monkeypatch.setattr(device_memory, "plan_memory", recording)
    Builder().build_plan(network, config_for(network, device))
    for plan, buffers, alignment in planned:
        assert plan.total <= 1.05 * largest_live_set(buffers, alignment)
        by_offset = sorted((offset, *buffer) for offset, buffer in zip(plan.offsets, buffers, strict=True) if buffer[0])
        for index, (offset, size, first, last) in enumerate(by_offset):
            for other, _, other_first, other_last in by_offset[index + 1 :]:
                if other >= offset + size:
                    break
                assert last < other_first or other_last < first


@pytest.mark.parametrize("device", ["GPU", "DLA"])
@pytest.mark.parametrize("name", LIGHT_NETWORKS)
def test_the_light_networks_of_onnx_take_little_more_than_their_largest_live_set(name, device, monkeypatch):
    check(LIGHT / f"light_{name}.onnx", device, monkeypatch)


@pytest.mark.parametrize("device", ["GPU", "DLA"])
@pytest.mark.parametrize("name", SHARED_NETWORKS)
def test_real_networks_take_little_more_than_their_largest_live_set(name, device, shared_models, monkeypatch):
    check(shared_models / f"{name}.onnx", device, monkeypatch)
