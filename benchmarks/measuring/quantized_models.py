"""Quantized forms of an FP32 model, made by ONNX Runtime's static quantizer, for the INT8 benchmarks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from measuring.tensorrt_form import tensorrt_form

Array = np.ndarray[Any, Any]

_OPSET = 13
"""The first in which a scale may follow an axis."""


class _Images:
    """Feeds of one input, as ONNX Runtime's quantizer asks for them."""

    def __init__(self, name: str, images: list[Array]) -> None:
        self._feeds = iter([{name: image} for image in images])

    def get_next(self) -> dict[str, Array] | None:
        """The next feed; None after the last."""
        return next(self._feeds, None)


def quantized_forms(model: onnx.ModelProto, input_name: str, images: list[Array]) -> dict[str, bytes]:
    """The model with signed symmetric weights, one scale a channel, and activations calibrated on the images.

    `s8` has signed symmetric activations, as devices want them, and is rounded behind every node; `tensorrt` is the
    same with the same scales, without what is rounded inside of layers that run as one. `u8` and `operators` (fused
    QLinear operators instead of Q and DQ) have unsigned activations, which ONNX Runtime is fastest with; their zero
    points take the place of RELU and CLIP, so they too are rounded once a layer.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    _name_additions(model)
    if model.opset_import[0].version < _OPSET:
        model.ir_version = max(model.ir_version, 8)  # before 4, every weight had to be an input too
        model = version_converter.convert_version(model, _OPSET)
    forms = {
        "s8": (QuantFormat.QDQ, QuantType.QInt8),
        "u8": (QuantFormat.QDQ, QuantType.QUInt8),
        "operators": (QuantFormat.QOperator, QuantType.QUInt8),
    }
    with tempfile.TemporaryDirectory() as folder:
        source, prepared = Path(folder) / "source.onnx", Path(folder) / "prepared.onnx"
        onnx.save(model, source)
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        found = {}
        for name, (form, activations) in forms.items():
            target = Path(folder) / f"{name}.onnx"
            quantize_static(
                prepared,
                target,
                _Images(input_name, images),
                quant_format=form,
                per_channel=True,
                activation_type=activations,
                weight_type=QuantType.QInt8,
                extra_options={"ActivationSymmetric": activations is QuantType.QInt8, "WeightSymmetric": True},
            )
            found[name] = target.read_bytes()
    return {"tensorrt": tensorrt_form(onnx.load_from_string(found["s8"])).SerializeToString(), **found}


def _name_additions(model: onnx.ModelProto) -> None:
    """Write the sum of two as an addition: ONNX Runtime's quantizer knows no other, and would leave it in FP32."""
    for node in model.graph.node:
        if node.op_type == "Sum" and len(node.input) == 2:
            node.op_type = "Add"
