import subprocess
import sys

import pytest
from tests.core.builder.networks import chain, convolution, dla_config, elu, half_network, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder, assess
from dryfit.network.data_types import DataType


def test_an_assessment_tells_where_each_layer_would_run_and_why():
    assessment = assess(chain("c", "e"), dla_config())
    assert [(one.layer, one.kind, one.device, one.precision, one.segment) for one in assessment.layers] == [
        ("c0", "convolution", "DLA", DataType.HALF, 0),
        ("e1", "activation", "GPU", DataType.HALF, 1),
    ]
    assert assessment.layers[0].cause == "the default device"
    assert assessment.layers[1].cause == str(assessment.verdicts["e1"]["DLA"])
    assert assessment.can_be_built
    assert assessment.platforms["DLA"] == "agx-orin-64"
    assert assessment.software["DLA"]


def test_what_would_be_built_is_what_is_built():
    network = chain("c", "r", "e", "c")
    assessment, plan = assess(network, dla_config()), Builder().build_plan(network, dla_config())
    assert plan.layers == assessment.layers
    assert plan.verdicts == assessment.verdicts
    assert plan.reformats == assessment.reformats
    assert plan.warnings == assessment.warnings
    assert plan.segments == assessment.segments


def test_segments_name_what_crosses_their_borders():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(first)
    network.mark_output(elu(network, first, "second"))
    segments = assess(network, dla_config()).segments
    assert [(one.index, one.device, one.inputs, one.outputs) for one in segments] == [
        (0, "DLA", ["x"], ["first"]),
        (1, "GPU", ["first"], ["second"]),
    ]


def test_a_layer_that_can_run_nowhere_is_told_not_raised():
    assessment = assess(chain("c", "e", "c"), dla_config(fallback=False))
    assert [(one.layer, one.device, one.segment) for one in assessment.layers] == [
        ("c0", "DLA", 0),
        ("e1", "", -1),
        ("c2", "DLA", 1),
    ]
    assert [segment.layers for segment in assessment.segments] == [["c0"], ["c2"]]
    assert assessment.refusals == [str(assessment.verdicts["e1"]["DLA"])]
    assert assessment.reformats == []
    assert not assessment.can_be_built


def test_a_border_that_needs_a_copy_which_nobody_can_make_is_told():
    assessment = assess(half_network(), dla_config(fallback=False))
    assert [layer.device for layer in assessment.layers] == ["DLA", "DLA"]
    assert len(assessment.refusals) == 2
    assert "network input 'x'" in assessment.refusals[0]


def test_placement_in_int8_can_be_asked_for_before_calibration():
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    assessment = assess(chain("c", "r"), config)
    assert {layer.precision for layer in assessment.layers} == {DataType.INT8}
    assert assessment.reformats[0].destination == "DLA INT8 CHW32"


def test_a_dynamic_network_without_a_profile_can_be_asked_about():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(convolution(network, x, "c"))
    assessment = assess(network, dla_config())
    assert assessment.layers[0].device == "GPU"
    assert "dynamic" in assessment.warnings[0]


def test_constants_are_nowhere_and_shape_computations_on_the_host():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(named(network.add_shape(x), "shape"))
    (shape,) = assess(network, BuilderConfig()).layers
    assert (shape.device, shape.segment, shape.cause) == ("CPU", -1, "a shape computation")


SCRIPT = """
import sys
import numpy as np
from dryfit.building import assess
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
network = Network()
x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
network.mark_output(network.add_convolution_nd(x, 4, (3, 3), np.ones((4, 4, 3, 3), np.float32)).get_output(0))
config = BuilderConfig()
config.default_device_type = "DLA"
config.set_flag(BuilderFlag.FP16)
config.set_flag(BuilderFlag.GPU_FALLBACK)
assert assess(network, config).can_be_built
print(sorted(name for name in sys.modules if name in ("numba", "llvmlite")))
"""


def test_an_assessment_asks_kernels_and_loads_no_compiler():
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("fallback", [True, False])
def test_the_same_question_has_the_same_answer(fallback):
    network = chain("c", "e", "r", "e")
    assert assess(network, dla_config(fallback)) == assess(network, dla_config(fallback))
