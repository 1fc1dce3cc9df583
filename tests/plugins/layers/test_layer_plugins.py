"""The layer plugins for ONNX operators, against ONNX Runtime or numpy, through the importer."""

from __future__ import annotations

from importlib.metadata import entry_points

import numpy as np
import pytest
from tests.core.onnx.models import assert_agrees, model, numbers, run, run_runtime

from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.tensor import TensorSpec


@pytest.mark.parametrize("name", ["BitCast", "DeformConv", "Det", "LpPool", "RoiAlign", "Unique"])
def test_a_plugin_is_installed_by_its_operators_name(name: str) -> None:
    (entry,) = entry_points(group="dryfit.layers", name=name)
    assert isinstance(entry.load(), LayerPlugin)


def test_determinants_agree_with_onnx_runtime() -> None:
    parsed = model("y = Det(x)", inputs="float[N,3,4,4] x", outputs="float[?,?] y")
    assert_agrees(parsed, {"x": numbers(2, 3, 4, 4)})


@pytest.mark.parametrize("attributes", ["sorted=1", "sorted=0", "sorted=1, axis=1", "sorted=0, axis=0", "axis=-1"])
def test_unique_agrees_with_onnx_runtime(attributes: str) -> None:
    parsed = model(
        f"y, f, i, c = Unique<{attributes}>(x)",
        inputs="float[N,6] x",
        outputs="float[?] y, int64[?] f, int64[?] i, int64[?] c",
    )
    if "axis" in attributes:
        parsed.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(3).integers(0, 3, (4, 6)).astype(np.float32)
    x[2] = x[0]
    x[:, 5] = x[:, 1]
    assert_agrees(parsed, {"x": x})


@pytest.mark.parametrize(
    "attributes", ["p=1", "p=3, strides=[2,1], pads=[1,0,0,1]", 'auto_pad="SAME_UPPER", strides=[2,2]']
)
def test_lp_pooling_agrees_with_onnx_runtime(attributes: str) -> None:
    parsed = model(
        f"y = LpPool<kernel_shape=[3,2], {attributes}>(x)", inputs="float[1,2,7,8] x", outputs="float[?,?,?,?] y"
    )
    assert_agrees(parsed, {"x": numbers(1, 2, 7, 8)})


def test_lp_pooling_with_dilation_and_rounding_up_agrees_with_onnx_runtime() -> None:
    parsed = model(
        "y = LpPool<kernel_shape=[2,2], dilations=[2,3], strides=[2,2], ceil_mode=1>(x)",
        inputs="float[1,2,7,8] x",
        outputs="float[?,?,?,?] y",
        opset=18,
    )
    assert_agrees(parsed, {"x": numbers(1, 2, 7, 8)})


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
def test_regions_agree_with_onnx_runtime(mode: str, ratio: int, form: str) -> None:
    parsed = model(
        f"""y = RoiAlign<mode="{mode}", output_height=3, output_width=2, sampling_ratio={ratio}, spatial_scale=0.5,
        coordinate_transformation_mode="{form}">(x, r, b)""",
        inputs="float[2,3,9,8] x, float[4,4] r, int64[4] b",
        outputs="float[?,?,?,?] y",
        opset=16,
    )
    regions = np.array([[0, 0, 9, 9], [3, 2, 8, 17], [-4, -3, 30, 25], [5, 5, 5.5, 5.2]], np.float32)
    feeds = {"x": np.abs(numbers(2, 3, 9, 8)), "r": regions, "b": np.array([0, 1, 1, 0])}
    np.testing.assert_allclose(run(parsed, feeds)[0], run_runtime(parsed, feeds)[0], rtol=1e-4, atol=1e-5)


def test_deformable_convolution_without_offsets_is_a_convolution() -> None:
    parsed = model(
        "y = DeformConv<group=2, strides=[2,1], pads=[1,0,1,2], dilations=[1,2]>(x, w, o)",
        inputs="float[2,4,8,9] x, float[6,2,3,3] w, float[2,18,4,7] o",
        outputs="float[?,?,?,?] y",
        opset=19,
    )
    plain = model(
        "y = Conv<group=2, strides=[2,1], pads=[1,0,1,2], dilations=[1,2]>(x, w)",
        inputs="float[2,4,8,9] x, float[6,2,3,3] w",
        outputs="float[?,?,?,?] y",
    )
    feeds = {"x": numbers(2, 4, 8, 9), "w": numbers(6, 2, 3, 3, seed=1)}
    output = run(parsed, {**feeds, "o": np.zeros((2, 18, 4, 7), np.float32)})[0]
    np.testing.assert_allclose(output, run_runtime(plain, feeds)[0], rtol=1e-4, atol=1e-5)


def test_an_offset_of_whole_elements_moves_the_input() -> None:
    parsed = model(
        "y = DeformConv(x, w, o)",
        inputs="float[1,1,5,6] x, float[1,1,1,1] w, float[1,2,5,6] o",
        outputs="float[?,?,?,?] y",
        opset=19,
    )
    x, offset = numbers(1, 1, 5, 6), np.zeros((1, 2, 5, 6), np.float32)
    offset[0, 0], offset[0, 1] = 1, -2  # one row down, two columns left
    output = run(parsed, {"x": x, "w": np.ones((1, 1, 1, 1), np.float32), "o": offset})[0]
    expected = np.zeros_like(x)
    expected[..., :4, 2:] = x[..., 1:, :4]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [(DataType.FLOAT, DataType.INT32), (DataType.BF16, DataType.INT16), (DataType.INT4, DataType.UINT4),
     (DataType.UINT4, DataType.INT4), (DataType.UINT4, DataType.FP4), (DataType.UINT2, DataType.INT2)],
)  # fmt: skip
def test_a_bit_cast_and_its_inverse_give_the_input(source: DataType, target: DataType) -> None:
    plugin = entry_points(group="dryfit.layers")["BitCast"].load()
    x = np.arange(1 << min(source.bits, 8)).astype(np.uint8).view(np.uint8)
    x = x.astype(source.numpy) if source.bits < 8 else np.repeat(x, source.bits // 8).view(source.numpy)
    (cast,) = plugin.enqueue({"to_type": target.name}, [x])
    assert cast.dtype == target.numpy
    (back,) = plugin.enqueue({"to_type": source.name}, [cast])
    np.testing.assert_array_equal(back.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize(
    ("name", "fields", "spec", "reason"),
    [
        ("Det", {}, TensorSpec((3, 4), DataType.FLOAT), r"square \(found 3 x 4\)"),
        ("Det", {}, TensorSpec((4,), DataType.FLOAT), "rank 2 or more"),
        ("Unique", {"axis": 5}, TensorSpec((3, 4), DataType.FLOAT), "axis 5 is out of range for a tensor of rank 2"),
        ("BitCast", {"to_type": "INT8"}, TensorSpec((3,), DataType.FLOAT), "input's width .found 8 bits"),
        ("DeformConv", {}, TensorSpec((3,), DataType.FLOAT), "input, weights and offset are required"),
        ("RoiAlign", {}, TensorSpec((3,), DataType.FLOAT), r"the inputs must be x\[N, C, H, W\]"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_layers_name(
    name: str, fields: dict[str, object], spec: TensorSpec, reason: str
) -> None:
    layer = Plugin(plugin_name=name, fields=fields, name="mine")
    with pytest.raises(DryfitError, match=rf"'mine'.*{reason}"):
        layer.infer_outputs([spec])


@pytest.mark.parametrize("name", ["DeformConv", "LpPool", "RoiAlign"])
def test_integers_are_refused_where_onnx_knows_the_operator_for_real_numbers_only(name: str) -> None:
    """Powers and weighted sums in an integer type would wrap around."""
    picture, weights = TensorSpec((1, 2, 6, 6), DataType.INT8), TensorSpec((2, 2, 3, 3), DataType.INT8)
    others: dict[str, list[TensorSpec]] = {
        "LpPool": [],
        "RoiAlign": [TensorSpec((3, 4), DataType.FLOAT), TensorSpec((3,), DataType.INT64)],
        "DeformConv": [weights, TensorSpec((1, 18, 4, 4), DataType.FLOAT)],
    }
    window = {"kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0)}
    layer = Plugin(plugin_name=name, fields=window if name == "LpPool" else {}, name="mine")
    with pytest.raises(DryfitError, match=r"'mine'.*floating-point type .found INT8"):
        layer.infer_outputs([picture, *others[name]])
