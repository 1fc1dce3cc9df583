"""The shared networks quantized by ONNX Runtime's quantizer and by NNCF, each run by its maker's own runtime.

Both get the pictures that dryfit calibrates with, and answer those that are judged. On processors without dot products
of bytes the INT8 kernels of both runtimes saturate sums of products. So ONNX Runtime is asked for its precise kernels,
and OpenVINO to compute the quantized networks in FP32 (`LP_TRANSFORMS_MODE`), which rounds where the INT8 network does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from measuring.accuracy import Answers, classes, onnxruntime_answers, worst_sqnr
from measuring.accuracy_cases import Array, Pictures

PER_CHANNEL_OPSET = 13
"""The first opset whose QuantizeLinear has an axis."""


def quantized_answers(
    model: Path, pictures: Pictures, shape: Sequence[int], *, has_classes: bool
) -> Iterator[tuple[str, Answers | str]]:
    """The answers of the network by each quantizer and setting.

    Args:
        model: ONNX, in FP32.
        pictures: to calibrate with and to judge by.
        shape: of the input, with its batch.
        has_classes: whether accuracy control keeps classes, or else the SQNR of the worst output.

    Yields:
        What quantized the network and how, and the answers to the judged pictures; a text where it refuses.
    """
    sides: dict[str, Callable[[], Answers]] = {
        f"ONNX Runtime, {method}, {'symmetric' if symmetric else 'asymmetric'}": partial(
            _by_onnxruntime, model, pictures, shape, method, symmetric=symmetric
        )
        for symmetric in (True, False)
        for method in ("MinMax", "Entropy", "Percentile")
    }
    sides["NNCF, default"] = partial(_by_nncf, model, pictures, shape)
    sides["NNCF, full bias correction"] = partial(_by_nncf, model, pictures, shape, fast_bias_correction=False)
    sides["NNCF, accuracy control"] = partial(_by_nncf_with_control, model, pictures, shape, has_classes=has_classes)
    for name, answers in sides.items():
        try:
            yield name, answers()
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001  whatever another's quantizer refuses a network with is its answer
            yield name, f"refused: {type(error).__name__}: {error}"


# ONNX Runtime ---------------------------------------------------------------------------------------------------------


def _by_onnxruntime(model: Path, pictures: Pictures, shape: Sequence[int], method: str, *, symmetric: bool) -> Answers:
    from onnxruntime import quantization

    with TemporaryDirectory() as folder:
        fixed, prepared, quantized = (Path(folder, name) for name in ("fixed.onnx", "prepared.onnx", "quantized.onnx"))
        onnx.save(_with_per_channel_opset(model, shape), fixed)
        quantization.quant_pre_process(fixed, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(
            prepared,
            quantized,
            _Reader(onnx.load(fixed).graph.input[0].name, pictures.calibration),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            calibrate_method=quantization.CalibrationMethod[method],
            extra_options={"ActivationSymmetric": symmetric},
        )
        return onnxruntime_answers(quantized, pictures)


def _with_per_channel_opset(model: Path, shape: Sequence[int]) -> onnx.ModelProto:
    proto = onnx.load(model)
    for dimension, size in zip(proto.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        dimension.dim_value = size
    opset = next(one.version for one in proto.opset_import if not one.domain)
    return proto if opset >= PER_CHANNEL_OPSET else version_converter.convert_version(proto, PER_CHANNEL_OPSET)


class _Reader:
    """Pictures as ONNX Runtime's calibration reads them."""

    def __init__(self, name: str, pictures: Sequence[Array]) -> None:
        self._pictures = iter([{name: picture} for picture in pictures])

    def get_next(self) -> Mapping[str, Array] | None:
        """The next one; None after the last."""
        return next(self._pictures, None)


# NNCF -----------------------------------------------------------------------------------------------------------------


def _by_nncf(model: Path, pictures: Pictures, shape: Sequence[int], *, fast_bias_correction: bool = True) -> Answers:
    import nncf

    network = _openvino_model(model, shape)
    data = nncf.Dataset(pictures.calibration)
    quantized = nncf.quantize(
        network, data, subset_size=len(pictures.calibration), fast_bias_correction=fast_bias_correction
    )
    return _openvino_answers(quantized, pictures, model)


def _by_nncf_with_control(model: Path, pictures: Pictures, shape: Sequence[int], *, has_classes: bool) -> Answers:
    """Layers go back to FP32 until enough is kept of the FP32 network's answers to the calibration pictures."""
    import nncf

    network = _openvino_model(model, shape)
    count = len(pictures.calibration)
    reference = _openvino_answers(network, Pictures([], pictures.calibration), model)

    def validated(compiled: Any, data: Any) -> tuple[float, None]:
        found = _answers_of(compiled, list(data), model)
        if has_classes:
            return float((classes(found) == classes(reference)).mean()), None
        return min(worst_sqnr(reference, found), UNCHANGED_DB), None

    data = nncf.Dataset(pictures.calibration)
    drop = 1 - ENOUGH_CLASSES if has_classes else UNCHANGED_DB - ENOUGH_DB
    quantized = nncf.quantize_with_accuracy_control(network, data, data, validated, max_drop=drop, subset_size=count)
    return _openvino_answers(quantized, pictures, model)


UNCHANGED_DB = 60.0
"""What an FP32 network is said to reach against itself, where the true SQNR is infinite."""

ENOUGH_DB, ENOUGH_CLASSES = 18.0, 0.97
"""What accuracy control has to keep: the SQNR of the worst output in dB, or the share of the pictures' classes."""


def _openvino_model(model: Path, shape: Sequence[int]) -> Any:
    import openvino

    network = openvino.Core().read_model(model)
    network.reshape(list(shape))
    return network


def _openvino_answers(network: Any, pictures: Pictures, model: Path) -> Answers:
    import openvino

    settings = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": False}
    return _answers_of(openvino.Core().compile_model(network, "CPU", settings), pictures.judged, model)


def _answers_of(compiled: Any, pictures: Sequence[Array], model: Path) -> Answers:
    """By the names of the model's outputs, whose order is kept: NNCF leaves other names to some."""
    names = [one.name for one in onnx.load(model).graph.output]
    runs = [compiled(picture) for picture in pictures]
    return {name: np.concatenate([run[index] for run in runs]) for index, name in enumerate(names)}
