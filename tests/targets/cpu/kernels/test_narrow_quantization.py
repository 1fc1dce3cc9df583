"""Native quantization to and from INT8, INT4, FP8 and FP4, by any scales, against the references, bit for bit."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, reference_kernel, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, DynamicQuantize, Quantize
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels.narrow_quantization import convert_numbers, quantize_dynamically
from dryfit_cpu.schedule import create_schedule

TYPES = (DataType.INT8, DataType.INT4, DataType.FP8, DataType.FP4)


def codes_of(array):
    """The bytes of narrow elements, else the bits; a NaN is a NaN."""
    if array.itemsize == 1:
        return array.view(np.uint8)
    wide = array.astype(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), wide).view(np.int32)


def assert_like_reference(layer, x, scale, layout="linear", input_layout="linear"):
    """The native kernel gives the reference's bits, for one thread and for three."""
    network = Network()
    data = network.add_input("x", DataType.from_numpy(x.dtype), x.shape)
    scales = network.add_layer(Constant(shape=scale.shape, weights=scale), []).get_output(0)
    network.add_layer(layer, [data, scales])
    array = Guarded.new(x.shape, x.dtype, input_layout).array
    array[...] = x
    feeds = {"x": array, scales.name: scale}
    expected = run_group(network, [layer], feeds, kernel=reference_kernel(), layout=layout)
    for threads in (1, 3):
        actual = run_group(network, [layer], feeds, kernel=convert_numbers, layout=layout, threads=threads)
        np.testing.assert_array_equal(codes_of(actual), codes_of(expected))


def every_tie(to_type):
    """All numbers of a type, what lies half-way between neighbours, and the FP32 numbers beside both."""
    values = np.arange(256, dtype=np.uint8).view(to_type.numpy).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    places = np.concatenate([values, (values[1:] + values[:-1]) / 2]).astype(np.float32)
    beside = [np.nextafter(places, np.float32(end)) for end in (-np.inf, np.inf)]
    special = [np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1e-45, -1e-45, 1e-39, 3e38, -3e38]
    return np.concatenate([places, *beside, np.array(special, np.float32)])


@pytest.mark.parametrize("to_type", TYPES)
@pytest.mark.parametrize("scale", [1.0, 0.0371, 2.0**-5, 1e-38])
def test_ties_and_their_neighbours_go_where_the_reference_has_them(to_type, scale):
    scale = np.array([scale], np.float16 if scale > 1e-30 else ml_dtypes.bfloat16)
    x = every_tie(to_type)
    with np.errstate(over="ignore"):
        assert_like_reference(Quantize(to_type=to_type), x * scale.astype(np.float32), scale)
        assert_like_reference(Quantize(to_type=to_type), (x * scale.astype(np.float32)).astype(np.float16), scale)
        assert_like_reference(Quantize(to_type=to_type), x.astype(ml_dtypes.bfloat16), scale)


@pytest.mark.parametrize("from_type", TYPES)
@pytest.mark.parametrize("to_type", [DataType.FLOAT, DataType.HALF, DataType.BF16])
@pytest.mark.parametrize("scale_type", [DataType.HALF, DataType.BF16, DataType.E8M0])
def test_every_code_is_dequantized_as_the_reference_does(from_type, to_type, scale_type):
    x = np.arange(2**from_type.bits, dtype=np.uint8).view(from_type.numpy)
    for scale in (1.0, 2.0**-7, 0.4375):
        assert_like_reference(Dequantize(to_type=to_type), x, np.array([scale]).astype(scale_type.numpy))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 3])
def test_each_index_of_an_axis_has_its_scale(layout, axis):
    x = np.random.default_rng(1).standard_normal((3, 5, 4, 19)).astype(np.float32) * 3
    scale = np.random.default_rng(2).uniform(0.2, 2, x.shape[axis]).astype(np.float32)
    assert_like_reference(Quantize(to_type=DataType.FP8, axis=axis), x, scale, layout, "strided")
    codes = x.astype(ml_dtypes.float4_e2m1fn)
    assert_like_reference(Dequantize(axis=axis), codes, scale, layout, "channels_last")


@pytest.mark.parametrize("layout", ["linear", "strided"])
@pytest.mark.parametrize(
    ("shape", "scales", "blocks"),
    [
        ((6, 64), (6, 4), ()),
        ((6, 64), (6, 4), (1, 16)),
        ((48, 21), (3, 21), ()),
        ((40, 21), (3, 21), (16, 1)),
        ((2, 32, 5), (2, 4, 5), ()),
        ((2, 3, 40), (2, 3, 5), ()),
        ((33, 1), (3, 1), (16, 1)),
        ((64,), (4,), (16,)),
        ((3, 7), (3, 7), (1, 1)),
    ],
)
def test_each_block_has_its_scale(shape, scales, blocks, layout):
    generator = np.random.default_rng(3)
    scale = generator.uniform(0.2, 2, scales).astype(np.float16)
    x = (generator.standard_normal(shape) * 4).astype(np.float32)
    for to_type in (DataType.INT8, DataType.INT4, DataType.FP4):
        assert_like_reference(Quantize(to_type=to_type, block_shape=blocks), x, scale, layout)
        codes = generator.integers(0, 16, shape).astype(np.uint8).view(to_type.numpy)
        assert_like_reference(Dequantize(block_shape=blocks, to_type=DataType.HALF), codes, scale, layout)


FORMS = {
    "NVFP4": {"to_type": DataType.FP4, "scale_type": DataType.FP8, "block_size": 16},
    "MXFP8": {"to_type": DataType.FP8, "scale_type": DataType.E8M0, "block_size": 32},
}


def quantized_dynamically(layer, x, outer, kernel, layout="linear", threads=1):
    """(data, scales) by a kernel."""
    network = Network()
    inputs, arrays = [network.add_input("x", DataType.from_numpy(x.dtype), x.shape)], {"x": x}
    if outer is not None:
        inputs.append(network.add_layer(Constant(shape=(), weights=np.array(outer, np.float32)), []).get_output(0))
        arrays[inputs[1].name] = np.array(outer, np.float32)
    outputs = network.add_layer(layer, inputs).outputs
    made = {tensor.name: Guarded.new(tensor.shape, tensor.dtype.numpy, layout) for tensor in outputs}
    arrays |= {name: one.array for name, one in made.items()}
    specs = {tensor.name: tensor.spec for tensor in (*inputs, *outputs)}
    group = LayerGroup([layer])
    assert kernel.accepts(group, specs)
    create_schedule([kernel.bind(Binding(group, specs, arrays, {}, np.empty(0, np.uint8), threads))], threads).run()
    assert all(one.is_intact() for one in made.values())
    return [codes_of(one.array.copy()) for one in made.values()]


def assert_dynamic_like_reference(form, x, axis, outer=None, layout="linear"):
    layer = [DynamicQuantize(axis=axis, **FORMS[form]) for _ in range(3)]
    expected = quantized_dynamically(layer[0], x, outer, reference_kernel(), layout)
    for one, threads in ((layer[1], 1), (layer[2], 3)):
        actual = quantized_dynamically(one, x, outer, quantize_dynamically, layout, threads)
        for mine, theirs in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    return expected


def blocks_of_every_kind(size):
    """Blocks of zeros, denormals, infinities, NaN, large and small numbers, and ones whose scales lie at ties."""
    generator = np.random.default_rng(4)
    x = generator.standard_normal((96, size)).astype(np.float32)
    x *= np.exp2(generator.integers(-140, 120, (96, 1))).astype(np.float32)
    x[0], x[1], x[2] = 0.0, -0.0, 1e-45
    x[3, 5], x[4, 0], x[5, 7], x[6, 2] = np.inf, -np.inf, np.nan, 3.4e38
    x[7, 1], x[8] = -3.4e38, 2.0**-126
    x[9] = np.linspace(-6, 6, size)
    x[10:90, 3] = np.sign(x[10:90, 3]) * np.arange(10, 90) / 16 * 6
    x[10:90] = np.clip(x[10:90], -np.abs(x[10:90, 3:4]), np.abs(x[10:90, 3:4]))
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("outer", [1.0, 0.0371, 1e-3])
def test_dynamic_quantization_gives_the_references_codes_and_scales(form, outer, dtype):
    with np.errstate(over="ignore"):
        x = blocks_of_every_kind(FORMS[form]["block_size"] * 2).astype(dtype)
    outer = outer if form == "NVFP4" else None
    assert_dynamic_like_reference(form, x, 1, outer)
    assert_dynamic_like_reference(form, np.ascontiguousarray(x.T), 0, outer)


@pytest.mark.parametrize("layout", ["linear", "strided"])
def test_blocks_may_lie_along_either_of_the_last_two_axes(layout):
    x = np.random.default_rng(5).standard_normal((3, 64, 96)).astype(np.float32)
    for axis in (1, 2):
        assert_dynamic_like_reference("NVFP4", x, axis, 0.01, layout)
        assert_dynamic_like_reference("MXFP8", x, axis, None, layout)


def test_a_scale_follows_the_stated_formula_computed_in_exact_fractions():
    x = np.random.default_rng(6).standard_normal((64, 16)).astype(np.float32)
    outer = np.float32(2.0**-8)  # exact products, so that one rounding is left: the cast of the quotient by 6
    data, scales = assert_dynamic_like_reference("NVFP4", x, 1, outer)
    values = np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    for row, code in zip(x, scales[:, 0], strict=True):
        exact = Fraction(float(np.abs(row).max())) / (6 * Fraction(float(outer)))
        distance = [abs(exact - Fraction(value)) for value in values]
        assert distance[code] == min(distance)
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    for row, scale, codes in zip(x, values[scales[:, 0]], data, strict=True):
        for number, code in zip(row, codes, strict=True):
            ratio = np.abs(np.float64(number / np.float32(scale * outer)))
            nearest = np.flatnonzero(np.abs(magnitudes - ratio) == np.abs(magnitudes - ratio).min())
            assert code & 7 == (nearest[0] if nearest[0] % 2 == 0 else nearest[-1])
            assert bool(code & 8) == bool(number < 0)
