"""Both ways lead back: the same scales from implicit to Q/DQ and back, the same codes the other way round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.onnx.models import model, numbers
from tests.core.onnx.translation.quantized_models import (
    NOWHERE,
    constant,
    explicit_of,
    int8_config,
    named,
    pair,
    scalars,
    with_ranges,
)

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.translation.agreement import Agreement, compare_engines
from dryfit.onnx.translation.carried_scales import UnequalScales
from dryfit.onnx.translation.implicit_model import ImplicitModel, ImplicitPolicy, implicit_model, write_implicit_files
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_cache import parse
from dryfit.quantization.calibration_stream import CalibrationAlgoType

STEPS = ("conv", "relu", "pool", "add", "concat", "transpose", "average", "branch")


@st.composite
def networks(draw: st.DrawFn, steps: tuple[str, ...] = STEPS) -> tuple[onnx.ModelProto, dict[str, float]]:
    """A random FP32 network of four channels, or eight behind a concatenation, and ranges of its tensors."""
    lines, weights, values, channels = ["t0 = Conv(x, w0)"], {"w0": numbers(4, 3, 1, 1)}, ["t0"], {"t0": 4}
    for index, step in enumerate(draw(st.lists(st.sampled_from(steps), min_size=1, max_size=6)), 1):
        last, name = values[-1], f"t{index}"
        other = draw(st.sampled_from([value for value in values if channels[value] == channels[last]]))
        count = channels[last]
        match step:
            case "conv":
                weights[f"w{index}"] = numbers(4, count, 1, 1, seed=index)
                lines.append(f"{name} = Conv({last}, w{index})")
                count = 4
            case "relu":
                lines.append(f"{name} = Relu({last})")
            case "pool":
                lines.append(f"{name} = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>({last})")
            case "average":
                lines.append(f"{name} = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>({last})")
            case "add":
                lines.append(f"{name} = Add({last}, {other})")
            case "concat" if count == 4:
                lines.append(f"{name} = Concat<axis = 1>({last}, {other})")
                count = 8
            case "branch":
                lines.append(f"{name} = Relu({values[len(values) // 2]})")
                count = channels[values[len(values) // 2]]
            case _:
                lines.append(f"{name} = Transpose<perm = [0, 1, 3, 2]>({last})")
        values.append(name)
        channels[name] = count
    weights["we"] = numbers(4, channels[values[-1]], 1, 1, seed=99)
    lines.append(f"y = Conv({values[-1]}, we)")
    parsed = model(" ".join(lines), inputs="float[1,3,5,5] x", outputs="float[1,4,5,5] y", weights=weights)
    thresholds = {name: draw(st.sampled_from([3.0, 7.5, 12.7])) for name in ("x", *values, "y")}
    return named(parsed), thresholds


def agreement_of(translated: ImplicitModel, explicit: onnx.ModelProto) -> Agreement:
    """How well the engines of an implicit and an explicit model agree on one sample."""
    config = BuilderConfig()
    config.builder_optimization_level = 0
    engines = (
        Builder().build_engine(translated.network, int8_config()),
        Builder().build_engine(network_from_onnx(explicit), config),
    )
    shape = tuple(translated.network.inputs[0].shape)
    return compare_engines(*engines, translated.compared, [{"x": numbers(*shape, seed=7)}])


@settings(max_examples=25)
@given(case=networks())
def test_scales_come_back_from_a_q_dq_model_bit_for_bit(case: tuple[onnx.ModelProto, dict[str, float]]) -> None:
    parsed, thresholds = case
    first = explicit_of(parsed, with_ranges(parsed, thresholds))
    policy = ImplicitPolicy(UnequalScales.KEEP, rounds_all=True)
    back = implicit_model(first.model, NOWHERE, policy)
    stated = {name: one.scale for name, one in back.carried.entries.items() if one.stated or one.scale}
    assert {name: stated[name] for name in first.scales} == first.scales
    again = explicit_of(back.model, back.network)
    returned = implicit_model(again.model, NOWHERE, policy)
    assert {name: returned.carried.entries[name].scale for name in again.scales} == again.scales


@settings(max_examples=8)
@given(case=networks(("conv", "relu", "add")))
def test_a_translated_network_computes_the_codes_of_its_q_dq_model(
    case: tuple[onnx.ModelProto, dict[str, float]],
) -> None:
    parsed, thresholds = case
    explicit = explicit_of(parsed, with_ranges(parsed, thresholds)).model
    policy = ImplicitPolicy(UnequalScales.KEEP, rounds_all=True)
    found = agreement_of(implicit_model(explicit, NOWHERE, policy), explicit)
    assert found.largest_codes <= 1
    assert found.different <= max(1, found.codes // 200)


@pytest.mark.parametrize("rounds_all", [False, True])
def test_a_rounding_inside_a_step_is_kept_only_where_it_is_asked_for(rounds_all: bool) -> None:
    explicit = named(
        model(
            f"{pair('x', 'xq', 's')} w = DequantizeLinear<axis = 0>(c, ws, wz) a = Conv(xq, w) {pair('a', 'aq', 't')} "
            f"b = Relu(aq) {pair('b', 'bq', 'u')} y = Conv(bq, w)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={
                **scalars(s=0.05, t=0.5, u=0.25),
                "c": np.random.default_rng(0).integers(-127, 128, (4, 4, 1, 1)).astype(np.int8),
                "ws": np.full(4, 0.01, np.float32),
                "wz": np.zeros(4, np.int8),
            },
        )
    )
    translated = implicit_model(explicit, NOWHERE, ImplicitPolicy(rounds_all=rounds_all))
    found = agreement_of(translated, explicit)
    (rectified,) = [one for one in found.tensors if one.tensor == "b"]
    assert (rectified.different == 0) is rounds_all
    assert [one.layer for one in translated.layers if one.output_type is not None] == (
        ["Conv_a", "Relu_b"] if rounds_all else ["Relu_b"]
    )


def test_the_codes_of_weights_come_back() -> None:
    codes = np.random.default_rng(0).integers(-126, 127, (4, 4, 1, 1)).astype(np.int8)
    codes[:, 0] = 127
    explicit = named(
        model(
            f"{pair('x', 'xq', 's')} w = DequantizeLinear<axis = 0>(c, ws, wz) a = Conv(xq, w) {pair('a', 'aq', 't')} "
            "y = Conv(aq, w)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={
                **scalars(s=0.05, t=0.5),
                "c": codes,
                "ws": np.float32([0.013, 0.1, 1 / 3, 7e-3]),
                "wz": np.zeros(4, np.int8),
            },
        )
    )
    translated = implicit_model(explicit, NOWHERE, ImplicitPolicy(rounds_all=True))
    again = explicit_of(translated.model, translated.network).model
    np.testing.assert_array_equal(constant(again, "w_quantized"), codes)
    np.testing.assert_allclose(constant(again, "w_scale"), constant(explicit, "ws"), rtol=2e-7)


def test_a_layer_whose_output_stays_real_is_computed_in_real_numbers_and_told() -> None:
    explicit = named(
        model(
            f"{pair('x', 'xq', 's')} w = DequantizeLinear<axis = 0>(c, ws, wz) y = Conv(xq, w)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={
                **scalars(s=0.05),
                "c": np.full((4, 4, 1, 1), 127, np.int8),
                "ws": np.full(4, 0.01, np.float32),
                "wz": np.zeros(4, np.int8),
            },
        )
    )
    translated = implicit_model(explicit, NOWHERE)
    assert [(one.layer, one.precision.name, list(one.missing)) for one in translated.layers] == [
        ("Conv_y", "FLOAT", ["y"])
    ]
    with pytest.raises(Exception, match="layer 'Conv_y': 'y'"):
        implicit_model(explicit, NOWHERE, ImplicitPolicy(is_strict=True))


def test_what_a_convolution_adds_unrounded_may_get_the_scale_1(tmp_path: Path) -> None:
    explicit = named(
        model(
            f"{pair('x', 'xq', 's')} w = DequantizeLinear<axis = 0>(c, ws, wz) a = Conv(xq, w) b = Add(a, xq) "
            f"{pair('b', 'bq', 't')} y = Relu(bq)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={
                **scalars(s=0.05, t=0.5),
                "c": np.full((4, 4, 1, 1), 127, np.int8),
                "ws": np.full(4, 0.01, np.float32),
                "wz": np.zeros(4, np.int8),
            },
        )
    )
    translated = implicit_model(explicit, NOWHERE)
    assert translated.unit_scaled == ["a"]
    # The sum ends its step, since the model rounds it: behind it there is no scale.
    assert [(one.precision.name, one.output_type) for one in translated.layers] == [
        ("INT8", None),
        ("INT8", DataType.INT8),
        ("FLOAT", None),
    ]
    header = CacheHeader(CalibrationAlgoType.ENTROPY_CALIBRATION_2, (8, 6, 0))
    for unit_scales, expected in ((False, None), (True, 1.0)):
        write_implicit_files(translated, tmp_path, "net", header, NOWHERE, tmp_path, unit_scales=unit_scales)
        scales = parse((tmp_path / "net_precision_config_calib.cache").read_bytes()).scales
        assert scales.get("a") == expected
        assert "a:" not in (tmp_path / "net_ranges.txt").read_text()
