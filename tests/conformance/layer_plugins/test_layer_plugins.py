"""The layer plugins that come with dryfit pass the kit that every layer plugin is held to."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
from tests.conformance.layer_plugins.one_node import by_onnx, by_runtime

from dryfit.network.data_types import DataType
from dryfit.network.plugin_table import get_plugin
from dryfit.testing.layer_plugin_conformance import LayerPluginConformance

RANDOM = np.random.default_rng(7)


def plugin(name: str) -> Any:
    return get_plugin((name, "1", ""), "this test")


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


class TestBitCast(LayerPluginConformance):
    plugin = plugin("BitCast")
    examples = [
        ({"to_type": "INT32"}, [numbers(2, 3)]),
        ({"to_type": "UINT16"}, [numbers(5, dtype=ml_dtypes.bfloat16)]),
        ({"to_type": "DOUBLE"}, [np.arange(-3, 3)]),
        ({"to_type": "INT8"}, [np.arange(256).astype(np.uint8).reshape(4, 64)]),
    ]
    wrong_fields = [{"to_type": "INT8"}, {"to_type": "NO_TYPE"}]

    def oracle(self, fields, inputs):
        width = inputs[0].dtype.itemsize
        codes = [int.from_bytes(element.tobytes(), sys.byteorder) for element in inputs[0].reshape(-1)]
        data = b"".join(code.to_bytes(width, sys.byteorder) for code in codes)
        return [np.frombuffer(data, DataType.parse(fields["to_type"]).numpy).reshape(inputs[0].shape)]


class TestDeformableConvolution(LayerPluginConformance):
    plugin = plugin("DeformConv")
    examples = [
        ({}, [numbers(1, 2, 5, 6), numbers(3, 2, 2, 2), numbers(1, 8, 4, 5)]),
        (
            {"group": 2, "offset_group": 2, "strides": (2, 1), "pads": (1, 0, 1, 2), "dilations": (1, 2)},
            [numbers(2, 4, 8, 9), numbers(6, 2, 3, 3), numbers(2, 36, 4, 7), numbers(6), numbers(2, 18, 4, 7)],
        ),
    ]
    tolerances = {DataType.FLOAT: 1e-5}

    def oracle(self, fields, inputs):
        kernel = list(inputs[1].shape[2:])
        attributes = {name: value for name, value in fields.items() if name != "kernel_shape"}
        return by_onnx("DeformConv", inputs, kernel_shape=kernel, **attributes)


class TestDeterminant(LayerPluginConformance):
    plugin = plugin("Det")
    examples = [
        ({}, [numbers(3, 3)]),
        ({}, [numbers(2, 3, 4, 4)]),
        ({}, [numbers(5, 2, 2, dtype=np.float16)]),
        ({}, [numbers(2, 3, 3, dtype=np.float64)]),
    ]

    def oracle(self, fields, inputs):
        x = inputs[0]
        flat = [_determinant(matrix) for matrix in x.reshape(-1, *x.shape[-2:])]
        return [np.array(flat, np.float64).reshape(x.shape[:-2])]


def _determinant(matrix: Any) -> float:
    """The sum over all permutations, in exact arithmetic."""
    exact = [[Fraction(float(element)) for element in row] for row in matrix]
    total = Fraction(0)
    for order in permutations(range(len(exact))):
        swaps = sum(order[i] > order[j] for j in range(len(order)) for i in range(j))
        product = Fraction((-1) ** swaps)
        for row, column in enumerate(order):
            product *= exact[row][column]
        total += product
    return float(total)


class TestLpPooling(LayerPluginConformance):
    plugin = plugin("LpPool")
    examples = [
        (
            {"kernel": (3, 2), "strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0)},
            [numbers(1, 2, 7, 8)],
        ),
        (
            {"p": 3, "kernel": (2, 2), "strides": (2, 1), "dilations": (1, 2), "before": (1, 0), "after": (0, 1)},
            [numbers(2, 3, 6, 7, dtype=np.float16)],
        ),
    ]
    wrong_fields = [{**examples[0][0], "p": 0}]

    def oracle(self, fields, inputs):
        return by_runtime(
            "LpPool",
            inputs,
            p=fields["p"],
            kernel_shape=fields["kernel"],
            strides=fields["strides"],
            dilations=fields["dilations"],
            pads=[*fields["before"], *fields["after"]],
        )


REGIONS = np.array([[0, 0, 9, 9], [3, 2, 8, 17], [5, 5, 5.5, 5.2]], np.float32)


class TestRegionAlign(LayerPluginConformance):
    plugin = plugin("RoiAlign")
    examples = [
        (
            {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": ratio, "spatial_scale": 0.5},
            [np.abs(numbers(2, 3, 9, 8)), REGIONS, np.array([0, 1, 1])],
        )
        for mode, ratio in (("avg", 0), ("max", 2))
    ]
    tolerances = {DataType.FLOAT: 1e-5}

    def oracle(self, fields, inputs):
        return by_runtime("RoiAlign", inputs, opset=16, **fields)


X = RANDOM.integers(0, 3, (4, 6)).astype(np.float32)
X[2], X[:, 5] = X[0], X[:, 1]


class TestUnique(LayerPluginConformance):
    plugin = plugin("Unique")
    examples = [({}, [X]), ({"sorted": 0}, [X]), ({"axis": 1}, [X]), ({"sorted": 0, "axis": -2}, [X])]
    wrong_fields = [{"axis": 2}]

    def oracle(self, fields, inputs):
        return by_runtime("Unique", inputs, outputs=4, **fields)
