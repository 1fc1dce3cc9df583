"""The page of the moves over which quantizations and dequantizations go, from the table itself."""

from __future__ import annotations

from collections.abc import Iterable

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.network.layer import LAYER_KINDS
from dryfit.passes.canonical import quantization_passes
from dryfit.passes.quantization.commutation import Commutation, row_of
from dryfit.quantization.rewrites import RewriteAction

_HEAD = """# Moves of quantization

Written by `make docs` from the table by which the optimizer moves Q/DQ layers.

In a network with quantize (Q) and dequantize (DQ) layers each Q moves backward, as early as it can, and each DQ
forward, as late as it can: what is between them is then computed on quantized codes, a quarter of the bytes or less. A
layer is moved over where it commutes: `Q(layer(x)) == layer(Q(x))`, or `layer(DQ(x)) == DQ(layer(x))`, with one scale
for all its tensors. Q and DQ work on single elements, never fall where their input rises, and keep zero; what the
tables say follows from that.

Results are equal bit for bit, with two exceptions that are no numbers: of a NaN the quantization to INT8 and INT4 makes
the lowest code, so that it no longer wins a maximum that is taken on codes; and in FP8 and FP4 a maximum of zeros may
have the other sign.

"""

_STOPS = """
## What stops a move

* another layer reads the real numbers, or they are an output of the network;
* scales of tensors that a layer joins differ, or those of the quantizations of one tensor do;
* a scale for each index of an axis that does not survive the layer, or for each block: blocks go over transposes only;
* a zero point: no device has one;
* a type or precision that is asked for the layer;
* the layer's own rule for types, or the limits of the device that runs it in real numbers;
* nothing is gained: kernels compute maximum pooling, reductions, concatenations and activations between DQ and Q of
  different scales in one step; a Q before a layer that drops elements has more to do, unless the layer before it can
  give them quantized; and a ReLU belongs to the group of the layer before it.

`dryfit explain --quantization` says of each Q and DQ where it went and what stopped it.

Source: TensorRT 10 developer guide, "Working with Quantized Types": TensorRT Processing of Q/DQ Networks. The proofs
are ours, and are tried: random networks of all these layers give the same bits after every pass.
"""


def moves_page() -> str:
    """The page, in Markdown."""
    own = (kind for kind, layer in LAYER_KINDS.items() if layer.__module__.startswith("dryfit."))
    rows = [row_of(kind) for kind in sorted(own)]
    moved = [row for row in rows if row.commutes]
    goals = [row for row in rows if not row.commutes and row.is_quantizable]
    rest = [row for row in rows if not row.commutes and not row.is_quantizable]
    return (
        _HEAD
        + _passes()
        + "\n## Layers that are moved over\n\n| layer | when | because |\n|---|---|---|\n"
        + "".join(f"| `{row.kind}` | {row.when} | {row.reason} |\n" for row in moved)
        + "\nLayers of these kinds for which *when* does not hold are treated as those of the next table where kernels "
        "compute them between DQ and Q ("
        + _names(row for row in moved if row.is_quantizable)
        + "), and else as those of the last one.\n"
        + "\n## Layers at which DQ and Q are at their goal\n\nThey do not commute, and are computed on codes together "
        "with the DQ before them and the Q after them.\n\n| layer | because |\n|---|---|\n"
        + "".join(f"| `{row.kind}` | {row.reason} |\n" for row in goals)
        + "\n## Layers that are computed in real numbers, or have none\n\n| layer | because |\n|---|---|\n"
        + "".join(f"| `{row.kind}` | {row.reason} |\n" for row in rest)
        + _STOPS
    )


def _passes() -> str:
    names = [one.name for one in quantization_passes()]
    actions = ", ".join(f"*{action.value}*" for action in RewriteAction)
    listed = ", ".join(f"`{name}`" for name in names)
    return f"The passes, in order: {listed}. Each records its rewrites in the journal: {actions}.\n"


def _names(rows: Iterable[Commutation]) -> str:
    return ", ".join(f"`{row.kind}`" for row in rows)
