"""Declarations with one fault each, to put in the place of the sound ones."""

import attrs
import numpy as np
from tests.core.testing.acme_npu import FALL_BACK, LIMITS, MANUAL

from dryfit.network.data_types import DataType
from dryfit.target.checks import Between, check
from dryfit.target.cost import CostEstimate
from dryfit.target.formats import TensorFormat
from dryfit.target.limits import Finding, rule, rules


@attrs.frozen
class OneOff:
    """A constraint that is one off from its words."""

    text: str = "1 to 7"
    passing: tuple = (1, 7)
    failing: tuple = (0, 8)

    def holds(self, value):
        return 1 <= value < 7


class Wordless(Between):
    """A constraint without words."""

    text = ""


@check("extents")
def tells_no_value(question):
    """Tensors have at most three channels."""
    channels = [question.spec(tensor).shape[1] for tensor in question.inputs if len(question.spec(tensor).shape) > 1]
    return Finding("", "") if max(channels, default=0) > 3 else None


def limits_with(*checks):
    """The sound table with more rules on convolutions."""
    more = rules("convolution", *(rule(f"more{i}", one, source=MANUAL, remedy="Go") for i, one in enumerate(checks)))
    return attrs.evolve(LIMITS, rules=[*LIMITS.rules, *more])


class PacksTheNeighbours(TensorFormat):
    """Packs as many elements as the array has, from where it begins."""

    def pack(self, array, family=""):
        dense = np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))
        return super().pack(dense.reshape(array.shape), family)


class UnpacksPadding(TensorFormat):
    """Adds the last element of a line, which is padding, to the first."""

    def unpack(self, memory, shape, family=""):
        tensor = super().unpack(memory, shape, family)
        if memory.ndim and memory.shape[-1] > shape[-1] and tensor.size:
            tensor[..., 0] += memory[..., -1]
        return tensor


class UnpacksShifted(TensorFormat):
    """Begins one element late."""

    def unpack(self, memory, shape, family=""):
        return super().unpack(np.roll(memory, -1), shape, family)


def format_of(cls):
    """A format of such a class."""
    return cls("OWN", [DataType.HALF], line_alignment_bytes={"": 64}, source=MANUAL)


def cost_of_nothing(question):
    return CostEstimate(1.0, 0, 0, "a guess", MANUAL)


def cost_without_source(question):
    return CostEstimate(1.0, 1, 0, "a guess", "")


def cost_below_zero(question):
    return CostEstimate(-1.0, 1, 0, "a guess", MANUAL)


@check("layer")
def always_finds(question):
    """Whatever."""
    return Finding(question.layer.kind, "none")


def promoting_limits(dtype):
    """The sound table with a note that every layer is computed in a type."""
    note = rule("promoted", always_finds, source=MANUAL, remedy=FALL_BACK, severity="note", promotes_to=dtype)
    return attrs.evolve(LIMITS, rules=[*LIMITS.rules, *rules((), note)])
