"""One ONNX node, computed by those whose results the layer plugins are held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tests.core.onnx.models import run_runtime


def by_runtime(op_type: str, inputs: Sequence[Any], outputs: int = 1, opset: int = 18, **attributes: Any) -> list[Any]:
    """The outputs as ONNX Runtime computes them, in FP32 where it takes no narrower type."""
    parsed, feeds = _model(op_type, inputs, outputs, opset, attributes)
    return run_runtime(parsed, feeds)


def by_onnx(op_type: str, inputs: Sequence[Any], outputs: int = 1, opset: int = 19, **attributes: Any) -> list[Any]:
    """The outputs as the evaluator of the onnx package computes them."""
    parsed, feeds = _model(op_type, inputs, outputs, opset, attributes)
    return list(ReferenceEvaluator(parsed).run(None, feeds))


def _model(
    op_type: str, inputs: Sequence[Any], outputs: int, opset: int, attributes: Mapping[str, Any]
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    wide = [
        array.astype(np.float32) if array is not None and array.dtype.name in ("float16", "bfloat16") else array
        for array in inputs
    ]
    names = ["" if array is None else f"i{index}" for index, array in enumerate(wide)]
    feeds = {name: array for name, array in zip(names, wide, strict=True) if name}
    results = [f"o{index}" for index in range(outputs)]
    given = {name: value for name, value in attributes.items() if value is not None and value != ()}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **given)],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), feeds
