"""The page of ONNX operators, from the importer's registry."""

from __future__ import annotations

import inspect

import onnx

from dryfit.onnx.node_meaning import INTEGER_OPERATORS, integer_operator
from dryfit.onnx.registry import NEWEST_OPSET, OLDEST_OPSET, all_importers

_HEAD = f"""# ONNX operators

Generated from the importer's registry by `make docs`; do not edit.

Models of opset {OLDEST_OPSET} to {NEWEST_OPSET} are imported, and older ones where each operator is the same in opset
{OLDEST_OPSET}. "Becomes" names the layers that a node turns into; what is known when the model is imported is computed
then, and becomes no layer. An operator that is not in the table is imported by what an installed package brings for it,
as a layer plugin of its name, or through the function by which ONNX defines it. Strings, sequences, optionals, sparse
tensors and graphs inside nodes are not supported. Operators that compute on quantized integers themselves
({", ".join(sorted(INTEGER_OPERATORS))}, and ONNX Runtime's own) are refused, all of
a model in one error: quantized models are taken in Q/DQ form. Into a network with a
[quantize method](../how-to/compute-as-a-library.md) those that the table has are imported.

| operator | opsets | becomes |
|---|---|---|
"""


def onnx_operators_page() -> str:
    """The page, in Markdown."""
    rows = []
    importers = all_importers()
    for importer, following in zip(importers, [*importers[1:], None], strict=True):
        last = NEWEST_OPSET
        if following is not None and (following.op_type, following.domain) == (importer.op_type, importer.domain):
            last = following.since - 1
        first = max(importer.since, OLDEST_OPSET, _introduced(importer.op_type))
        name = f"{importer.domain}.{importer.op_type}" if importer.domain else importer.op_type
        opsets = "any" if importer.domain else f"{first} to {last}"
        if integer_operator(importer.op_type, importer.domain) is not None:
            opsets = f"{opsets}, with a quantize method"
        summary = (inspect.getdoc(importer.function) or "").splitlines()[0]
        rows.append(f"| {name} | {opsets} | {summary} |")
    return _HEAD + "\n".join(rows) + "\n"


def _introduced(op_type: str) -> int:
    """The opset that brought an operator; 1 for one that the installed onnx does not know."""
    try:
        schema = onnx.defs.get_schema(op_type)
    except onnx.defs.SchemaError:
        return 1
    return min(
        candidate.since_version
        for candidate in onnx.defs.get_all_schemas_with_history()
        if candidate.name == op_type and candidate.domain == schema.domain
    )
