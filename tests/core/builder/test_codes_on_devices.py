from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import image_network, named

from dryfit.builder.canonicalise import CodesOnDevices
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.tensor import TensorSpec
from dryfit.quantization.rewrites import RewriteAction


def config_for(device, fallback=None):
    config = BuilderConfig()
    config.default_device_type = device
    config.set_flag(BuilderFlag.FP16)
    if fallback is not None:
        config.allow_fallback(fallback)
    return config


def answer(config, own_devices, dtype=DataType.INT8, window=(2, 2)):
    network, x = image_network((1, 8, 12, 12))
    layer = network.add_pooling_nd(x, PoolingType.MAX, window)
    network.rename_layer(layer, "pool")
    return CodesOnDevices(config, own_devices)(layer, [TensorSpec(x.shape, dtype)], [x.spec])


@pytest.mark.parametrize("device", ["GPU", "CPU", "DLA"])
def test_a_device_that_takes_the_type_takes_codes(device):
    assert answer(config_for(device), {}) == ""


def test_a_device_that_does_not_take_the_type_says_why():
    found = answer(config_for("DLA", "GPU"), {}, DataType.FP8)
    assert found.startswith("DLA does not support it on quantized codes: ")
    assert "dla.types" in found


def test_a_layers_own_device_is_asked_first():
    assert answer(config_for("GPU"), {}, DataType.FP8) == ""
    assert "DLA" in answer(config_for("GPU"), {"pool": "DLA"}, DataType.FP8)


def test_where_a_layer_falls_back_anyway_the_fallback_device_is_asked():
    """The DLA has no window of 9 rows, on codes or not."""
    assert answer(config_for("DLA", "GPU"), {}, DataType.FP8, window=(9, 1)) == ""


def pooled(network, x):
    scale = network.add_constant((), np.array(0.1, np.float32)).get_output(0)
    codes = named(network.add_quantize(x, scale), "q")
    pool = network.add_pooling_nd(named(network.add_dequantize(codes, scale), "dq"), PoolingType.MAX, (2, 2))
    network.mark_output(named(pool, "pool"))
    network.mark_output(named(network.add_softmax(network.tensor("dq")), "soft"))
    return network


def test_a_design_holds_what_became_of_each_quantization():
    design = designed(pooled(*image_network()), config_for("GPU"))
    assert [
        (step.layer, step.action, step.over) for step in design.canonical.found.rewrites if step.over == ("pool",)
    ] == [("dq", RewriteAction.MOVED, ("pool",))]
    assert design.network.layer("pool").inputs[0].dtype is DataType.INT8


def test_a_copy_runs_on_the_device_that_the_user_chose_for_the_layer():
    network, config = pooled(*image_network()), config_for("GPU")
    config.set_device_type(network.layer("dq"), "CPU")
    design = designed(network, config)
    assert design.assignment.devices["dq after pool"] == "CPU"
