"""The page of TFLite operators, from the importer's registry."""

from __future__ import annotations

import inspect

from dryfit_tflite.registry import operator_functions

_HEAD = """# TFLite operators

Generated from the importer's registry by `make docs`; do not edit.

A [TFLite model](../how-to/tflite-models.md) is imported operator by operator. "Becomes" names the layers that an
operator turns into; what is known when the model is imported is computed then, and becomes no layer. An operator on
quantized tensors has a dequantize layer for each input and a quantize layer for its output, except where it only moves
values: then it moves the codes. Activations that are fused to an operator become activation layers behind it.

Models have one subgraph. Custom operators, variable and sparse tensors, and types that networks do not have (strings,
complex numbers, resources) are not supported: all reasons of a model are in one error, with the operators' numbers.

| operator | becomes |
|---|---|
"""


def tflite_operators_page() -> str:
    """The page, in Markdown."""
    rows = []
    for name, function in operator_functions().items():
        summary = (inspect.getdoc(function) or "").splitlines()[0]
        rows.append(f"| {name} | {summary} |")
    return _HEAD + "\n".join(rows) + "\n"
