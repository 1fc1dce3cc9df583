"""Assertions: conditions that every run must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Array, Tensor, TensorSpec


@layer_kind("assertion")
class Assertion(Layer):
    """A condition that must be true in every run; it has no outputs.

    Input 0 is the condition, a BOOL tensor, all elements of which must be true. A condition that is known to be false
    when the network is built fails the build; one that is false in a run fails the run. Its producers are computed on
    their devices, and the host checks the condition after the run, before any output is delivered. The condition must
    not depend on the inside of a loop or conditional.

    Attributes:
        message: text of the error.

    Source: TensorRT `IAssertionLayer`.
    """

    has_fixed_types = True

    message: str

    @property
    def output_count(self) -> int:
        """Number of outputs: 0."""
        return 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return no outputs."""
        condition = self.required(inputs, 0)
        if condition.dtype is not DataType.BOOL:
            raise self.problem(
                "The condition must be BOOL",
                found=condition.dtype.text,
                allowed="BOOL",
                remedy="Add a cast or comparison layer",
            )
        return []


@frozen
class AssertionRecord:
    """A condition that every run of an engine must satisfy.

    Attributes:
        layer: name of the assertion in the user's network.
        message: message of the assertion.
        condition: name of the tensor that must be true, an input or an output of the engine's network.
    """

    layer: str
    message: str
    condition: str

    def check(self, condition: Array) -> None:
        """Check the condition of a run.

        Args:
            condition: contents of the tensor.

        Raises:
            ExecutionError: An element is false.
        """
        failed = condition.size - int(np.count_nonzero(condition))
        if failed:
            raise ExecutionError(
                f"Assertion failed: {self.message}",
                where=f"layer {self.layer!r} (assertion)",
                found=f"{failed} of {condition.size} elements of {self.condition!r} are false",
                remedy="Change the input data so that the condition holds",
            )


class AddAssertion:
    """The builder method of assertions."""

    def add_assertion(self: LayerOwner, condition: Tensor, message: str) -> Assertion:
        """Add a condition that every run must satisfy; TensorRT's `add_assertion`."""
        return self.add_layer(Assertion(message=message), [condition])
