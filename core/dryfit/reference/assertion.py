"""Assertions: the check of a condition."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.assertion import Assertion, AssertionRecord
from dryfit.network.tensor import Array
from dryfit.reference.registry import reference


@reference(Assertion)
def assertion(layer: Assertion, inputs: Sequence[Array]) -> list[Array]:
    """Nothing, or an ExecutionError where the condition is false."""
    AssertionRecord(layer.name, layer.message, layer.connected_input(0).name).check(inputs[0])
    return []
