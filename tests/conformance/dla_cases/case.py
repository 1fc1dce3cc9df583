"""A published case: what builders or documents say of a layer, with the rule that has to be named.

Sources, by the word that begins each case's `source`: `guide` is the DLA chapter of the TensorRT developer guide (with
its version), `operators` the table of NVIDIA's Deep-Learning-Accelerator-SW, `log` what builders reported in public
issues (with the version and the board where they are known), `header` TensorRT's headers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto
from tests.conformance.dla_cases.onnx_models import Shape, convolution, model, node

FP16, INT8 = "FP16", "INT8"
IMAGE: Shape = (1, 16, 32, 32)
XAVIER_8_2: dict[str, Any] = {"platform": "xavier", "software": "8.2"}
XAVIER_8_4: dict[str, Any] = {"platform": "xavier", "software": "8.4"}
XAVIER_8_5: dict[str, Any] = {"platform": "xavier", "software": "8.5"}


@attrs.frozen
class Case:
    """One published case.

    Attributes:
        name: says what it is about.
        source: who said it.
        build: makes the model.
        refused: ONNX node to the rule that refuses it.
        runs: ONNX nodes that run on the DLA.
        kind: the layer kind that is spoken of, where a node becomes several; "" for all of them.
        platform, software, precision: what was asked for.
    """

    name: str
    source: str
    build: Callable[[], onnx.ModelProto]
    refused: dict[str, str] = attrs.field(factory=dict)
    runs: Sequence[str] = ()
    platform: str = "orin"
    software: str = "10.3"
    precision: str = FP16
    kind: str = ""


def refused(name: str, source: str, build: Callable[[], onnx.ModelProto], rule: str, **asked: Any) -> Case:
    """The node `y` is refused by a rule."""
    return Case(name, source, build, refused={"y": rule}, **asked)


def runs(name: str, source: str, build: Callable[[], onnx.ModelProto], **asked: Any) -> Case:
    """The node `y` runs on the DLA."""
    return Case(name, source, build, runs=["y"], **asked)


def one(
    operator: str,
    shapes: Sequence[Shape] = (IMAGE,),
    constants: Sequence[np.ndarray] = (),
    *,
    opset: int = 17,
    input_type: int = TensorProto.FLOAT,
    **attributes: Any,
) -> Callable[[], onnx.ModelProto]:
    """A model of one node `y`: its inputs are first tensors of the shapes, then the constants."""
    inputs = {f"x{index}": shape for index, shape in enumerate(shapes)}
    known = {f"c{index}": values for index, values in enumerate(constants)}
    nodes = [node(operator, " ".join([*inputs, *known]), "y", **attributes)]
    return lambda: model(nodes, inputs, known, input_type=input_type, opset=opset)


def one_convolution(
    channels: int, maps: int, kernel: int, extent: tuple[int, int], **others: int
) -> Callable[[], onnx.ModelProto]:
    """A model of one convolution `y`."""
    return lambda: convolution(channels, maps, kernel, extent, **others)


def integers(*values: int) -> np.ndarray:
    """Dimensions, axes or bounds."""
    return np.asarray(values, np.int64)


def scales(spatial: float) -> np.ndarray:
    """The scales of a resize of rank 4, the same for H and W."""
    return np.asarray([1, 1, spatial, spatial], np.float32)
