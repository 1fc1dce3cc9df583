"""A model made ready for translation: functions written out, no name twice, an opset in which Q/DQ have an axis."""

from __future__ import annotations

import onnx
from onnx import ModelProto, inliner, version_converter

from dryfit.errors import OnnxImportError

LEAST_OPSET = 13
"""The first in which Q/DQ have an axis. Source: ONNX, QuantizeLinear."""


def prepared_model(model: ModelProto, least: int = LEAST_OPSET) -> ModelProto:
    """The model itself, or a copy as `inlined` and `with_opset` make it.

    Raises:
        OnnxImportError: ONNX's converter cannot raise the opset.
    """
    return with_opset(inlined(model), least)


def inlined(model: ModelProto) -> ModelProto:
    """The model itself, or where it brings functions or nodes of one name a copy.

    Functions are put in the places of their calls. Layers are told apart by the names of their nodes, so that of
    several nodes of one name all but the first get a number.
    """
    written_out = inliner.inline_local_functions(model) if model.functions else model
    names = [node.name for node in written_out.graph.node if node.name]
    if len(set(names)) == len(names):
        return written_out
    copy = ModelProto()
    copy.CopyFrom(written_out)
    taken, used = set(names), set[str]()
    for node in copy.graph.node:
        number, name = 0, node.name
        while name and name in used:
            number += 1
            name = f"{node.name}_{number}" if f"{node.name}_{number}" not in taken else name
        used.add(name)
        node.name = name
    return copy


def with_opset(model: ModelProto, least: int = LEAST_OPSET) -> ModelProto:
    """The model itself, or where its opset is older a copy in a newer one.

    Raises:
        OnnxImportError: ONNX's converter cannot raise the opset.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions or versions[0] >= least:
        return model
    try:
        raised = version_converter.convert_version(model, least)
    except Exception as error:  # the converter is C++ and raises what it likes
        raise OnnxImportError(
            "The model's opset cannot be raised",
            where=f"graph {model.graph.name!r}",
            found=f"opset {versions[0]}: {error}",
            allowed=f"opset {least} or newer: QuantizeLinear has no axis before",
            remedy="Export the model anew in a newer opset",
        ) from error
    # What a model of this opset has at least. Source: ONNX, versioning.
    raised.ir_version = max(raised.ir_version, onnx.IR_VERSION_2020_5_8)
    constants = {tensor.name for tensor in raised.graph.initializer}
    inputs = [info for info in raised.graph.input if info.name not in constants]
    del raised.graph.input[:]
    raised.graph.input.extend(inputs)
    return raised
