"""TensorRT 7.1 to 8.1 on Xavier: what their headers and their builders' reports say."""

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import activation as add_activation
from tests.core.builder.networks import convolution as add_convolution
from tests.core.builder.networks import dla_config, elu, image_network
from tests.targets.dla.questions import (
    activation,
    concatenation,
    convolution,
    deconvolution,
    elementwise,
    fully_connected,
    lrn,
    parametric_relu,
    pooling,
    resize,
    scale,
    shuffle,
    softmax,
    unary,
    verdict,
    violated,
    window,
)

from dryfit.building import Builder
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingMode

XAVIER = {"platform": "xavier"}


@pytest.mark.parametrize("software", ["7.1", "7.1.3", "8.0"])
@pytest.mark.parametrize(
    "layer",
    [
        convolution(),
        convolution(kernel=(32, 32), pre_padding=(31, 31)),
        convolution((1, 8192, 4, 4), kernel=(1, 1), maps=8192),
        convolution(stride_nd=(8, 8), dilation_nd=(32, 32), shape=(1, 4, 80, 80)),
        fully_connected(),
        deconvolution(kernel=(3, 3), stride_nd=(2, 2)),
        pooling(window=(8, 8)),
        pooling(kind="AVERAGE"),
        activation("RELU"),
        activation("SIGMOID"),
        activation("TANH"),
        activation("CLIP", beta=6.0),
        elementwise("SUM"),
        elementwise("PROD"),
        elementwise("MAX"),
        elementwise("MIN"),
        concatenation(),
        scale(),
        lrn(),
    ],
    ids=lambda layer: getattr(layer, "kind", str(layer)),
)
def test_what_the_headers_of_7_1_have_is_taken(layer, software):
    assert violated(layer, software=software, **XAVIER) == []


@pytest.mark.parametrize("software", ["7.1", "8.0"])
@pytest.mark.parametrize(
    ("layer", "rules"),
    [
        (elementwise("SUB"), ["elementwise.operation_8_1"]),
        (activation("LEAKY_RELU", alpha=0.1), ["activation.type_8_1"]),
        (resize(), ["resize.software"]),
        (parametric_relu(), ["parametric_relu.software"]),
        (unary(), ["unary.software"]),
        (shuffle(first=(0, 2, 1, 3)), ["shuffle.software"]),
        (window(), ["slice.software"]),
        (convolution(kernel=(33, 33), shape=(1, 4, 64, 64)), ["convolution.kernel"]),
        (pooling(kind="AVERAGE", pre_padding=(1, 1)), ["pooling.count_includes_padding"]),
    ],
    ids=lambda one: getattr(one, "kind", None),
)
def test_what_came_later_is_refused(layer, rules, software):
    assert violated(layer, software=software, **XAVIER) == rules


def test_softmax_is_refused_on_every_xavier():
    assert "softmax.platform" in " ".join(violated(softmax(), software="7.1", **XAVIER))


@pytest.mark.parametrize(("software", "largest"), [("7.1", 32), ("8.0", 4096)])
def test_the_largest_batch_of_7_is_32(software, largest):
    assert violated(activation(shape=(largest, 4, 4, 4)), software=software, **XAVIER) == []
    found = verdict(activation(shape=(largest + 1, 4, 4, 4)), software=software, **XAVIER).violations
    assert {one.rule.partition("_")[0] for one in found} == {"dla.batch"}
    assert {one.fidelity for one in found} == ({"inferred"} if software == "7.1" else {"documented"})


def test_large_square_deconvolutions_were_switched_off_with_8_2():
    layer = deconvolution(kernel=(24, 24))
    assert violated(layer, software="7.1", **XAVIER) == []
    assert "deconvolution.square_kernel" in violated(layer, software="8.2", **XAVIER)


@pytest.mark.parametrize(("software", "rules"), [("7.1", ["formats.before_8_0"]), ("8.0", [])])
def test_planar_and_pixel_formats_came_with_8_0(software, rules):
    layer = convolution((1, 4, 16, 16))
    layer.inputs[0].allowed_formats = frozenset({"DLA_LINEAR"})
    assert violated(layer, software=software, **XAVIER) == rules
    layer.inputs[0].allowed_formats = frozenset({"DLA_LINEAR", "CHW16"})
    assert violated(layer, software=software, **XAVIER) == []


def test_a_network_is_built_and_computed_as_software_7_1_has_it():
    network, x = image_network((1, 8, 6, 6))
    for index in range(10):
        x = elu(
            network,
            add_activation(network, add_convolution(network, x, f"c{index}", seed=index), f"r{index}"),
            f"e{index}",
        )
    network.mark_output(x)
    config = dla_config()
    config.set_platform("DLA", "xavier")
    config.set_software("DLA", "7.1")
    loadables = {run.device for run in designed(network, config).partition.runs}
    assert loadables == {"DLA", "GPU"}
    assert sum(run.device == "DLA" for run in designed(network, config).partition.runs) == 8
    image = np.full((1, 8, 6, 6), 1e-4, np.float32)
    (y,) = Builder().build_engine(network, config).create_execution_context().run({"x": image}).values()
    assert np.isfinite(y).all()


def test_int8_rounds_as_in_8():
    arithmetic = registry.target("DLA").arithmetic
    modes = {one.rounding_for((7, 1)) for name, one in arithmetic.items() if name.name == "INT8"}
    assert modes == {RoundingMode.HALF_AWAY_FROM_ZERO}
