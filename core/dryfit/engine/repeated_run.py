"""A run like the one before: what need not be asked again when inputs have the same types and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.batch_slices import SlicedEngine
from dryfit.engine.binding import BoundEngine
from dryfit.engine.plan import Plan
from dryfit.network.tensor import Shape
from dryfit.target.kernels import Array


# A small network runs for some ten microseconds. What a run asks in general takes nine of Python's where the processor
# has just done the same, and up to forty where it has not: a tenth of a small transformer's time, and a third of a
# network for digits.
@frozen(eq=False)
class RepeatedRun:
    """A run of which everything but the contents of the inputs is known.

    Attributes:
        plan: plan that it runs.
        bound: engine bound to the shapes of the inputs.
        inputs: name, type and shape of each input.
        outputs: names of the outputs.
    """

    plan: Plan
    bound: BoundEngine | SlicedEngine
    inputs: Sequence[tuple[str, np.dtype[np.generic], Shape]]
    outputs: Sequence[str]

    def fits(self, given: object) -> TypeGuard[dict[str, Array]]:
        """Return whether these are numpy arrays by name, of the inputs' types and shapes."""
        if type(given) is not dict or len(given) != len(self.inputs):
            return False
        for name, dtype, shape in self.inputs:
            array = given.get(name)
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                return False
        return True

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the engine once, and return new arrays by output name."""
        found = self.bound.run(inputs, None)
        return {name: found[name].copy("C") for name in self.outputs}
