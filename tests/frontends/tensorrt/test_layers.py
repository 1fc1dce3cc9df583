"""Every method that adds a layer takes the parameters of the binding by name, and gives a layer of TensorRT's class."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dryfit_tensorrt.behaviour.objects import Base
from dryfit_tensorrt.surface.class_parents import LAYER_CLASSES
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import MAJORS, classes

ONES = np.ones
Make = Callable[["Case"], dict[str, Any]]


class Case:
    """A network with tensors to add layers to."""

    def __init__(self, trt: Any) -> None:
        self.trt = trt
        self.builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
        flags = trt.NetworkDefinitionCreationFlag.__members__
        explicit = 1 << int(flags["EXPLICIT_BATCH"]) if "EXPLICIT_BATCH" in flags else 0
        self.network = self.builder.create_network(explicit)
        self.x = self.network.add_input("x", trt.float32, (1, 4, 8, 8))
        self.kernel = np.full((4, 4, 3, 3), 0.1, np.float32)

    def constant(self, array: Any, dtype: Any = np.float32) -> Any:
        values = np.asarray(array, dtype)
        return self.network.add_constant(values.shape, values).get_output(0)

    def integers(self, array: Any) -> Any:
        return self.constant(array, np.int32)

    def codes(self) -> Any:
        scale = self.constant(0.5)
        kind = () if self.trt.__version__.startswith("8") else (self.trt.int8,)
        return self.network.add_quantize(self.x, scale, *kind).get_output(0)

    def typed(self, **values: Any) -> dict[str, Any]:
        """Parameters with `output_type` where the version has it."""
        if self.trt.__version__.startswith("8"):
            values.pop("output_type")
        return values


CALLS: dict[str, Make] = {
    "add_activation": lambda c: {"input": c.x, "type": c.trt.ActivationType.TANH},
    "add_assertion": lambda c: {"condition": c.constant(True, np.bool_), "message": "holds"},
    "add_cast": lambda c: {"input": c.x, "to_type": c.trt.float16},
    "add_concatenation": lambda c: {"inputs": [c.x, c.x]},
    "add_constant": lambda _: {"shape": (2, 2), "weights": ONES((2, 2), np.float32)},
    "add_convolution": lambda c: {"input": c.x, "num_output_maps": 4, "kernel_shape": (3, 3), "kernel": c.kernel},
    "add_convolution_nd": lambda c: {
        "input": c.x,
        "num_output_maps": 4,
        "kernel_shape": (3, 3),
        "kernel": c.kernel,
        "bias": ONES(4, np.float32),
    },
    "add_cumulative": lambda c: {
        "input": c.x,
        "axis": c.integers(1),
        "op": c.trt.CumulativeOperation.SUM,
        "exclusive": False,
        "reverse": False,
    },
    "add_deconvolution": lambda c: {"input": c.x, "num_output_maps": 4, "kernel_shape": (3, 3), "kernel": c.kernel},
    "add_deconvolution_nd": lambda c: {"input": c.x, "num_output_maps": 4, "kernel_shape": (3, 3), "kernel": c.kernel},
    "add_dequantize": lambda c: c.typed(input=c.codes(), scale=c.constant(0.5), output_type=c.trt.float32),
    "add_dynamic_quantize": lambda c: {
        "input": c.constant(ONES((4, 32))),
        "axis": 1,
        "block_size": 16,
        "output_type": c.trt.fp4,
        "scale_type": c.trt.fp8,
    },
    "add_einsum": lambda c: {"inputs": [c.x, c.x], "equation": "nchw,nchw->nc"},
    "add_elementwise": lambda c: {"input1": c.x, "input2": c.x, "op": c.trt.ElementWiseOperation.SUM},
    "add_fill": lambda c: c.typed(shape=(2, 2), op=c.trt.FillOperation.LINSPACE, output_type=c.trt.float32),
    "add_fully_connected": lambda c: {"input": c.x, "num_outputs": 3, "kernel": ONES((3, 256), np.float32)},
    "add_gather": lambda c: {"input": c.x, "indices": c.integers([0, 1]), "axis": 1},
    "add_gather_v2": lambda c: {"input": c.x, "indices": c.integers([0]), "mode": c.trt.GatherMode.DEFAULT},
    "add_grid_sample": lambda c: {"input": c.x, "grid": c.constant(np.zeros((1, 5, 5, 2)))},
    "add_identity": lambda c: {"input": c.x},
    "add_kv_cache_update": lambda c: {
        "cache": c.constant(np.zeros((1, 2, 8, 4))),
        "update": c.constant(ONES((1, 2, 1, 4))),
        "write_indices": c.integers([0]),
        "cache_mode": c.trt.KVCacheMode.LINEAR,
    },
    "add_lrn": lambda c: {"input": c.x, "window": 5, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
    "add_matrix_multiply": lambda c: {
        "input0": c.x,
        "op0": c.trt.MatrixOperation.NONE,
        "input1": c.x,
        "op1": c.trt.MatrixOperation.TRANSPOSE,
    },
    "add_nms": lambda c: {
        "boxes": c.constant(ONES((1, 6, 4))),
        "scores": c.constant(ONES((1, 6, 2))),
        "max_output_boxes_per_class": c.integers(3),
    },
    "add_non_zero": lambda c: {"input": c.x},
    "add_normalization": lambda c: {
        "input": c.x,
        "scale": c.constant(ONES((1, 4, 1, 1))),
        "bias": c.constant(ONES((1, 4, 1, 1))),
        "axesMask": 0b1100,
    },
    "add_normalization_v2": lambda c: {
        "input": c.x,
        "scale": c.constant(ONES((1, 4, 1, 1))),
        "bias": c.constant(ONES((1, 4, 1, 1))),
        "axesMask": 0b1100,
    },
    "add_one_hot": lambda c: {
        "indices": c.integers([0, 1]),
        "values": c.constant([0, 1]),
        "depth": c.integers(3),
        "axis": -1,
    },
    "add_padding": lambda c: {"input": c.x, "pre_padding": (1, 1), "post_padding": (1, 1)},
    "add_padding_nd": lambda c: {"input": c.x, "pre_padding": (1, 1), "post_padding": (1, 1)},
    "add_parametric_relu": lambda c: {"input": c.x, "slopes": c.constant(np.full((1, 4, 1, 1), 0.1))},
    "add_pooling": lambda c: {"input": c.x, "type": c.trt.PoolingType.MAX, "window_size": (2, 2)},
    "add_pooling_nd": lambda c: {"input": c.x, "type": c.trt.PoolingType.MAX, "window_size": (2, 2)},
    "add_quantize": lambda c: c.typed(input=c.x, scale=c.constant(0.5), output_type=c.trt.int8),
    "add_ragged_softmax": lambda c: {
        "input": c.constant(ONES((2, 3, 4))),
        "bounds": c.integers(np.full((2, 3, 1), 2)),
    },
    "add_reduce": lambda c: {"input": c.x, "op": c.trt.ReduceOperation.SUM, "axes": 0b10, "keep_dims": True},
    "add_resize": lambda c: {"input": c.x},
    "add_reverse_sequence": lambda c: {"input": c.x, "sequence_lens": c.integers([1, 1, 1, 1])},
    "add_rotary_embedding": lambda c: {
        "input": c.x,
        "cos_cache": c.constant(ONES((8, 4))),
        "sin_cache": c.constant(ONES((8, 4))),
        "interleaved": False,
        "rotary_embedding_dim": 0,
    },
    "add_scale": lambda c: {
        "input": c.x,
        "mode": c.trt.ScaleMode.UNIFORM,
        "shift": ONES(1, np.float32),
        "scale": ONES(1, np.float32),
        "power": ONES(1, np.float32),
    },
    "add_scale_nd": lambda c: {
        "input": c.x,
        "mode": c.trt.ScaleMode.CHANNEL,
        "scale": ONES(4, np.float32),
        "channel_axis": 1,
    },
    "add_scatter": lambda c: {
        "data": c.x,
        "indices": c.integers(np.zeros((1, 4, 8, 8))),
        "updates": c.x,
        "mode": c.trt.ScatterMode.ELEMENT,
    },
    "add_select": lambda c: {"condition": c.constant([[[[True]]]], np.bool_), "then_input": c.x, "else_input": c.x},
    "add_shape": lambda c: {"input": c.x},
    "add_shuffle": lambda c: {"input": c.x},
    "add_slice": lambda c: {"input": c.x, "start": (0, 0, 0, 0), "shape": (1, 2, 4, 4), "stride": (1, 1, 2, 2)},
    "add_softmax": lambda c: {"input": c.x},
    "add_squeeze": lambda c: {"input": c.x, "axes": c.integers([0])},
    "add_topk": lambda c: {"input": c.x, "op": c.trt.TopKOperation.MAX, "k": 2, "axes": 0b10},
    "add_unary": lambda c: {"input": c.x, "op": c.trt.UnaryOperation.ABS},
    "add_unsqueeze": lambda c: {"input": c.x, "axes": c.integers([0])},
}
"""Parameters of each method by name. Attention, loops, conditionals and plugins have tests of their own."""

ELSEWHERE = {
    *("add_input", "add_loop", "add_if_conditional", "add_attention", "add_attention_v2", "add_dynamic_quantize_v2"),
    *("add_plugin", "add_plugin_v2", "add_plugin_v3"),
}
PLACES = [
    pytest.param(major, name, id=f"{major}-{name}")
    for major in MAJORS
    for name in classes(major)["INetworkDefinition"]
    if name in CALLS
]


@pytest.mark.parametrize("major", MAJORS)
def test_no_method_is_forgotten(major: int) -> None:
    api = importlib.import_module(f"dryfit_tensorrt.trt{major}").Builder._api
    known = {name for name in classes(major)["INetworkDefinition"] if name.startswith("add_")}
    refused = {name for name in known if api.origins["INetworkDefinition", name] is Origin.REFUSED}
    assert known - refused - ELSEWHERE - set(CALLS) == set()


@pytest.mark.parametrize(("major", "name"), PLACES)
def test_a_layer_is_added_by_the_names_of_the_binding(major: int, name: str) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    case = Case(trt)
    parameters = CALLS[name](case)
    layer = getattr(case.network, name)(**parameters)
    assert isinstance(layer, trt.ILayer), name
    assert isinstance(layer, Base)
    assert type(layer).__name__ == LAYER_CLASSES[case.network[layer._core.index].type.name]
    if name != "add_assertion":
        assert layer.num_outputs >= 1
        assert layer.get_output(0).dtype is not None
    # Every property of the class can be read.
    for member, described in classes(major)[type(layer).__name__].items():
        is_refused = trt.Builder._api.origins[type(layer).__name__, member] is Origin.REFUSED
        if not described.is_method and not is_refused:
            getattr(layer, member)
