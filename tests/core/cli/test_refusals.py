"""A check tells each refusal of the build, in its words: over networks that are refused for many reasons."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SHAPE = (1, 8, 6, 6)


def model(nodes, shape=SHAPE, weights=None):
    """A model of these nodes from `x` to `y`."""
    weights = {"w": np.full((8, 8, 3, 3), 0.01, np.float32)} if weights is None else weights
    graph = helper.make_graph(
        nodes,
        "refused",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made


def node(kind, source, target, *more, **attributes):
    return helper.make_node(kind, [source, *more], [target], name=f"{target}_{kind.lower()}", **attributes)


def convolution(source, target):
    return node("Conv", source, target, "w", pads=(1, 1, 1, 1))


PLAIN = [convolution("x", "a"), node("Relu", "a", "y")]
REFUSED_LAYER = [convolution("x", "a"), node("Elu", "a", "b"), convolution("b", "y")]
ELU = r"activation_type must be one of RELU, [^(]*\(found ELU\)"

DLA = ("--device", "DLA", "--precision", "fp16", "--fallback", "none")
ALONE = (*DLA, "--standalone")
CHW16 = ("--input-io-formats", "fp16:chw16", "--output-io-formats", "fp16:chw16")

QUESTIONS = {
    "no formats are stated": (model(PLAIN), ALONE),
    "an input has a format that the DLA only reads from cameras": (
        model(PLAIN),
        (*ALONE, "--input-io-formats", "fp16:dla_linear", "--output-io-formats", "fp16:dla_hwc4"),
    ),
    "a format does not exist": (model(PLAIN), (*ALONE, *CHW16[:3], "fp16:chw99")),
    "a type is none of the device": (model(PLAIN), (*ALONE, "--input-io-formats", "fp32:chw", *CHW16[2:])),
    "fallback and no DIRECT_IO": (
        model(PLAIN),
        (*DLA, "--engine-capability", "dla_standalone", "--fallback", "GPU", *CHW16),
    ),
    "the default device writes no loadables": (model(PLAIN), ("--device", "GPU", "--standalone", *CHW16)),
    "a layer is elsewhere": (model(PLAIN), (*ALONE, *CHW16, "--layer-device-types", "a_conv:GPU")),
    "the batch is open": (model(PLAIN, ("n", 8, 6, 6)), (*ALONE, *CHW16, "--shape", "x=1x8x6x6:2x8x6x6:4x8x6x6")),
    "the device refuses a layer": (model(REFUSED_LAYER), (*ALONE, *CHW16)),
    "copies would stand around it": (
        model(PLAIN),
        (*DLA, "--precision", "fp16,int8", "--assume-scales", "--standalone", *CHW16),
    ),
    "no layer has a place": (model(REFUSED_LAYER), DLA),
    "borders need copies that nobody makes": (model(PLAIN), DLA),
    "borders need copies that may not be made": (
        model(PLAIN),
        (*DLA, "--fallback", "GPU", "--direct-io", "--input-io-formats", "fp32:chw"),
    ),
    "a pool is too small": (model(PLAIN), (*DLA, "--mem-pool-size", "dlaGlobalDRAM:0.004")),
    "Tensors of INT8 layers must have scales; assume_scales is for assessment only": (
        model(PLAIN),
        ("--device", "DLA", "--precision", "int8,fp16", "--assume-scales", "--fallback", "GPU"),
    ),
    "Q/DQ beside a flag for implicit quantization": (
        model(
            [
                node("QuantizeLinear", "x", "q", "s", "zero"),
                node("DequantizeLinear", "q", "y", "s", "zero"),
            ],
            weights={"s": np.float32(0.1), "zero": np.int8(0)},
        ),
        ("--layer-precisions", "y_dequantizelinear:int8", "--precision", "int8"),
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_check_tells_what_the_build_refuses_in_the_same_words(dryfit_command, tmp_path, question):
    made, options = QUESTIONS[question]
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    built = dryfit_command("build", path, "-o", tmp_path / "out", *options)
    checked = dryfit_command("check", path, *options, "--json")
    assert built.code == 2
    assert not (tmp_path / "out").exists()
    for rule in re.findall(r"\[([a-z_]+(?:\.[a-z_0-9]+)+)[];]", built.err):
        assert dryfit_command("explain-rule", rule).code == 0
    if checked.code == 2:  # what the config alone decides ends both
        assert told(checked.err) == told(built.err)
        return
    refusals = checked.json["refusals"]
    assert refusals
    assert all(told(refusal) in told(built.err) for refusal in refusals)
    if len(refusals) == 1:
        assert told(built.err).endswith(told(refusals[0]))
    text = told(dryfit_command("check", path, *options).out)
    assert all(told(refusal) in text or begins_as_told_above(refusal, text) for refusal in refusals)
    assert "the build would fail" in dryfit_command("check", path, *options, "--quiet").out
    assert dryfit_command("check", path, *options, "--fail-on", "refusals").code == 1


def test_a_check_tells_no_refusal_of_what_is_built(dryfit_command, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(PLAIN), path)
    for options in ((*ALONE, *CHW16), (*DLA, "--fallback", "GPU"), ()):
        assert dryfit_command("check", path, *options, "--json").json["refusals"] == []
        assert dryfit_command("build", path, "-o", tmp_path / "out", *options).code == 0


def test_layers_that_a_check_lists_as_refused_are_only_counted_below(dryfit_command, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(REFUSED_LAYER), path)
    text = told(dryfit_command("check", path, *DLA).out)
    assert len(re.findall(ELU, text)) == 1
    assert "1 layer cannot run on DLA and fallback is disabled: see above. Add --fallback GPU" in text


def test_layers_of_other_devices_that_no_list_has_are_told_below(dryfit_command, tmp_path):
    """The lists speak of the GPU; the layer that has no place was put on the DLA."""
    path = tmp_path / "model.onnx"
    onnx.save(model(REFUSED_LAYER), path)
    options = ("--device", "GPU", "--precision", "fp16", "--layer-device-types", "b_elu:DLA")
    assert re.search(ELU, told(dryfit_command("check", path, *options).out))


def test_a_check_of_a_standalone_loadable_shows_its_layers_and_what_is_missing(dryfit_command, tmp_path):
    """All at once: the rule on formats, the layer that the DLA refuses, and where the others go."""
    path = tmp_path / "model.onnx"
    onnx.save(model(REFUSED_LAYER), path)
    ended = dryfit_command("check", path, *ALONE)
    assert ended.code == 0
    assert "Segments" in ended.out
    assert re.search(ELU, ended.out)
    assert "[standalone.formats]" in ended.out
    assert "2 on DLA, 1 unplaced" in ended.out
    assert ended.out.count("needs one from") == 0
    assert dryfit_command("check", path, *ALONE, "--fail-on", "refusals").code == 1


def begins_as_told_above(refusal, text):
    """Whether an error is told by its beginning, as the lists before it have the rest."""
    beginning, is_placement, _ = told(refusal).partition(" (found")
    return bool(is_placement) and f"{beginning}: see above" in text


def told(text):
    """A text without what a terminal may do to its spaces."""
    return " ".join(text.split())
