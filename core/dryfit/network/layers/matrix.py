"""Products of matrices or vectors over broadcast batch axes, and einsum."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, Specs, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Shape, Tensor, TensorSpec


class MatrixOperation(enum.Enum):
    """How an operand is used in the product; TensorRT's `MatrixOperation`."""

    NONE = "none"
    TRANSPOSE = "transpose"
    VECTOR = "vector"


@layer_kind("matrix_multiply")
class MatrixMultiply(Layer):
    """`op0(input 0) @ op1(input 1)`.

    The last two axes are a matrix; with VECTOR, the last axis is a vector and has no axis in the output. The preceding
    axes are batch axes: both inputs must have the same number of them, and extents of 1 broadcast.

    Attributes:
        op0, op1: operation on each operand.

    Source: TensorRT `IMatrixMultiplyLayer`.
    """

    sums_products = True
    inputs_of_one_type = ALL_INPUTS

    op0: MatrixOperation = MatrixOperation.NONE
    op1: MatrixOperation = MatrixOperation.NONE

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[*batch, rows of input 0, columns of input 1]` without a vector's axis, in the inputs' type."""
        x, y = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not y.dtype or x.dtype is DataType.BOOL:
            raise self.problem(
                "Both inputs must have the same numeric type",
                found=f"{x.dtype.text} and {y.dtype.text}",
                remedy="Add a cast layer",
            )
        batch0, rows, inner0 = self._split(x.shape, self.op0, 0)
        batch1, columns, inner1 = self._split(y.shape, self.op1, 1)
        if -1 not in (inner0, inner1) and inner0 != inner1:
            raise self.problem(
                "The contracted dimensions must be equal",
                found=f"{x.shape} {self.op0.name} and {y.shape} {self.op1.name}",
                remedy="Transpose or reshape one of the inputs",
            )
        batch = broadcast_shapes(self, batch0, batch1)
        return [TensorSpec((*batch, *rows, *columns), x.dtype)]

    def _split(self, shape: Shape, op: MatrixOperation, index: int) -> tuple[Shape, Shape, int]:
        """(batch axes, the axis that stays, if any, the extent summed over) of an operand."""
        needed = 1 if op is MatrixOperation.VECTOR else 2
        if len(shape) < needed:
            raise self.problem(
                f"Input {index} has too few axes for {op.name}",
                found=shape,
                allowed=f"rank {needed} or more",
                remedy="Add a shuffle layer that adds axes",
            )
        if op is MatrixOperation.VECTOR:
            return shape[:-1], (), shape[-1]
        rows, columns = shape[-2:]
        # The inner axis is the columns of the first operand and the rows of the second; transposing swaps them.
        if (index == 0) == (op is MatrixOperation.NONE):
            return shape[:-2], (rows,), columns
        return shape[:-2], (columns,), rows

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates: each output element sums over the shared axis."""
        shared = -2 if self.op0 is MatrixOperation.TRANSPOSE else -1
        return specs[self.outputs[0].name].least_elements * max(specs[self.connected_input(0).name].shape[shared], 1)


_ELLIPSIS = "..."


@layer_kind("einsum")
class Einsum(Layer):
    """`equation` applied to the inputs, such as `bij,bjk->bik`.

    Letters that are not in the output are summed over. Without `->`, the output has the letters that occur once, in
    alphabetical order, after the axes of an ellipsis. An ellipsis denotes broadcast axes (host only).

    Attributes:
        equation: letters per input, separated by commas; then `->` and the letters of the output.

    Source: TensorRT `IEinsumLayer`; ONNX `Einsum`.
    """

    needs_real_numbers = True
    inputs_of_one_type = ALL_INPUTS

    equation: str

    @property
    def is_host_only(self) -> bool:
        """Whether it uses an ellipsis, which TensorRT lacks."""
        return _ELLIPSIS in self.equation

    def terms(self) -> tuple[list[str], str]:
        """Return (letters of each input, letters of the output); the latter are derived if the equation omits them.

        Raises:
            NetworkError: The equation is malformed.
        """
        left, arrow, right = self.equation.replace(" ", "").partition("->")
        inputs = left.split(",")
        if not arrow:
            letters = left.replace(_ELLIPSIS, "").replace(",", "")
            once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
            right = (_ELLIPSIS if _ELLIPSIS in left else "") + "".join(once)
        for term in (*inputs, right):
            letters = term.replace(_ELLIPSIS, "", 1)
            if any(not (letter.isascii() and letter.isalpha()) for letter in letters):
                raise self.problem(
                    "An einsum equation must consist of letters, commas, `...` and at most one `->`",
                    found=self.equation,
                    remedy="Fix `equation`",
                )
        outputs = right.replace(_ELLIPSIS, "")
        if len(set(outputs)) != len(outputs) or not set(outputs) <= set(left):
            raise self.problem(
                "Every output letter must occur once in the output and in an input",
                found=self.equation,
                remedy="Fix `equation`",
            )
        if _ELLIPSIS in right and _ELLIPSIS not in left:
            raise self.problem(
                "The output must not have an ellipsis unless an input has one",
                found=self.equation,
                remedy="Fix `equation`",
            )
        return inputs, right

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the extents of the output's letters, with the type of the inputs."""
        specs = [self.required(inputs, index) for index in range(len(inputs))]
        terms, output = self.terms()
        if len(terms) != len(specs) or not specs:
            raise self.problem(
                "The equation must have one term per input",
                found=f"{self.equation!r} for {len(specs)} inputs",
                remedy="Fix `equation`",
            )
        if len({spec.dtype for spec in specs}) != 1 or specs[0].dtype is DataType.BOOL:
            raise self.problem(
                "All inputs must have the same numeric type",
                found=", ".join(spec.dtype.text for spec in specs),
                remedy="Add a cast layer",
            )
        extents: dict[str, int] = {}
        broadcast: list[int] = []
        for term, spec in zip(terms, specs, strict=True):
            shape = self._named_extents(term, spec.shape, extents)
            broadcast = self._merged(broadcast, shape, term)
        shape_out: list[int] = []
        before, ellipsis, after = output.partition(_ELLIPSIS)
        shape_out += [extents[letter] for letter in before]
        shape_out += broadcast if ellipsis else []
        shape_out += [extents[letter] for letter in after]
        return [TensorSpec(tuple(shape_out), specs[0].dtype)]

    def _named_extents(self, term: str, shape: Shape, extents: dict[str, int]) -> list[int]:
        """Note the extents of a term's letters; returns the extents that its ellipsis stands for."""
        before, ellipsis, after = term.partition(_ELLIPSIS)
        named = len(before) + len(after)
        if len(shape) < named or (not ellipsis and len(shape) != named):
            raise self.problem(
                f"The term {term!r} must have one letter per axis of its input",
                found=shape,
                allowed=f"rank {named}",
                remedy="Fix `equation`, or reshape the input",
            )
        end = len(shape) - len(after)
        for letter, extent in (*zip(before, shape, strict=False), *zip(after, shape[end:], strict=True)):
            known = extents.get(letter, extent)
            if -1 not in (known, extent) and known != extent and 1 not in (known, extent):
                raise self.problem(
                    f"All dimensions named {letter!r} must be equal",
                    found=f"{known} and {extent}",
                    remedy="Fix `equation`, or reshape the inputs",
                )
            extents[letter] = _broadcast(known, extent)
        return list(shape[len(before) : end])

    def _merged(self, left: Sequence[int], right: Sequence[int], term: str) -> list[int]:
        """Two lists of extents, broadcast from the right as numpy does."""
        rank = max(len(left), len(right))
        merged = []
        left, right = [1] * (rank - len(left)) + list(left), [1] * (rank - len(right)) + list(right)
        for a, b in zip(left, right, strict=True):
            if a != b and not {a, b} & {1, -1}:
                raise self.problem(
                    f"The ellipsis of {term!r} must broadcast with that of the other terms",
                    found=f"{a} and {b}",
                    remedy="Fix `equation`, or reshape the inputs",
                )
            merged.append(_broadcast(a, b))
        return merged

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the number of label combinations; an ellipsis counts with the axes of the longest operand."""
        extents: dict[str, int] = {}
        ellipsis = 1
        for index, labels in enumerate(self.equation.replace(" ", "").split("->")[0].split(",")):
            before, dots, after = labels.partition("...")
            shape = [max(extent, 1) for extent in specs[self.connected_input(index).name].shape]
            middle = len(shape) - len(before) - len(after)
            if dots:
                ellipsis = max(ellipsis, math.prod(shape[len(before) : len(before) + middle]))
            named = [*shape[: len(before)], *shape[len(before) + middle :]]
            for label, extent in zip(before + after, named, strict=True):
                extents[label] = max(extents.get(label, 1), extent)
        return math.prod(extents.values()) * ellipsis


def _broadcast(left: int, right: int) -> int:
    """The extent that two extents broadcast to; -1 is dynamic."""
    return right if left == 1 or (left == -1 and right > 1) else left


class AddMatrix:
    """The builder methods of matrix products."""

    def add_matrix_multiply(
        self: LayerOwner, input0: Tensor, op0: MatrixOperation, input1: Tensor, op1: MatrixOperation
    ) -> MatrixMultiply:
        """Add a matrix multiply layer; TensorRT's `add_matrix_multiply`."""
        return self.add_layer(MatrixMultiply(op0=op0, op1=op1), [input0, input1])

    def add_einsum(self: LayerOwner, inputs: Sequence[Tensor], equation: str) -> Einsum:
        """Add an einsum layer; TensorRT's `add_einsum`."""
        return self.add_layer(Einsum(equation=equation), list(inputs))
