"""Functions of one operand, by which several kernels end: activations, and unary operations with a vector form."""

from __future__ import annotations

from dryfit.network.layer import Layer
from dryfit.network.layers.elementwise import Unary, UnaryOperation
from dryfit.target.group import LayerGroup
from dryfit_cpu import codes
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.copying import NO_FUNCTION
from dryfit_cpu.kernels.epilogues import activation_code

_UNARY = {
    UnaryOperation.EXP: codes.EXP,
    UnaryOperation.LOG: codes.LOG,
    UnaryOperation.SQRT: codes.SQRT,
    UnaryOperation.RECIP: codes.RECIP,
    UnaryOperation.ABS: codes.ABS,
    UnaryOperation.NEG: codes.NEG,
    UnaryOperation.FLOOR: codes.FLOOR,
    UnaryOperation.CEIL: codes.CEIL,
    UnaryOperation.ROUND: codes.ROUND,
    UnaryOperation.ERF: codes.ERF,
    UnaryOperation.SIGN: codes.SIGN,
}


def function_code(layer: Layer) -> Function | None:
    """The code of a function; None for another layer, and for a function that has no vector form."""
    if isinstance(layer, Unary):
        return Function(_UNARY[layer.op], 0.0, 0.0) if layer.op in _UNARY else None
    return activation_code(layer)


def can_end_with(group: LayerGroup, layer: Layer) -> bool:
    """Whether a kernel that applies one function to its results can take the layer into the group."""
    return len(group.layers) == 1 and function_code(layer) is not None


def has_known_end(group: LayerGroup) -> bool:
    """Whether a function, or nothing, follows the group's main layer."""
    return len(group.epilogue) <= 1 and all(function_code(layer) is not None for layer in group.epilogue)


def final_function(group: LayerGroup) -> Function:
    """The function at the end of a group."""
    code = NO_FUNCTION
    for layer in group.epilogue:
        code = function_code(layer) or NO_FUNCTION
    return code
