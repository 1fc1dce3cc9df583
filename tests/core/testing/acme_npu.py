"""A small sound target, as a third party would write it, and formats and rules to put in the place of its own."""

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.checks import between, check, each, equals, one_of, parameter, platform_is, quantity
from dryfit.target.cost import CostEstimate
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import kernel
from dryfit.target.limits import Finding, LimitTable, rule, rules
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, Target

PLACE = __name__
MANUAL = "Acme manual, 3.2"
FALL_BACK = "Let it run on the CPU"


@quantity("number of inputs")
def number_of_inputs(question):
    return len(question.inputs)


@check("shape")
def is_no_scalar(question):
    """Tensors have axes."""
    scalars = [tensor.name for tensor in question.outputs if not question.spec(tensor).shape]
    return Finding(", ".join(scalars), "one axis or more") if scalars else None


LIMITS = LimitTable(
    "ACME_NPU",
    [
        *rules((), rule("shape", is_no_scalar, source=MANUAL, remedy=FALL_BACK)),
        *rules(
            "convolution",
            rule("convolution.kernel", each("kernel_size_nd", between(1, 7)), source=MANUAL, remedy=FALL_BACK),
            rule("convolution.groups", parameter("num_groups", equals(1)), source=MANUAL, remedy=FALL_BACK),
        ),
        *rules(
            "activation",
            rule(
                "activation.type",
                parameter("activation_type", one_of("RELU", "TANH", "SIGMOID")),
                source=MANUAL,
                remedy=FALL_BACK,
            ),
        ),
        *rules(
            ("pooling", "softmax"),
            rule("second_only", platform_is("second"), source=MANUAL, remedy="Take a board 2", since="2.0"),
        ),
        *rules(
            "concatenation",
            rule("concatenation.inputs", parameter(number_of_inputs, between(1, 9)), source=MANUAL, remedy=FALL_BACK),
        ),
    ],
    supported_kinds=frozenset({"convolution", "activation", "pooling", "softmax", "concatenation", "elementwise"}),
    unsupported={"gather": "it moves no data by index"},
    source=MANUAL,
)

CHW8 = TensorFormat("CHW8", [DataType.HALF], channels_vector=8, source=MANUAL)
LINES = TensorFormat("LINES", [DataType.HALF], line_alignment_bytes={"first": 16, "second": 32, "": 16}, source=MANUAL)
FORMATS = {DataType.HALF: (CHW8, LINES, LINEAR), DataType.FLOAT: (LINEAR,)}
POOLS = (
    MemoryPool("ACME_SRAM", {"second": 1 << 20, "": 1 << 18}, "activations", 4096, power_of_two=True, source=MANUAL),
)
ARITHMETIC = {
    precision: Arithmetic(precision, DataType.FLOAT, "group", RoundingMode.HALF_TO_EVEN, "documented", MANUAL)
    for precision in (DataType.HALF, DataType.FLOAT)
}

FUSIONS = (Fusion("convolution-activation", ["convolution", "activation"], source=MANUAL),)


def is_relu(group, specs):
    return group.main.activation_type is ActivationType.RELU


@kernel("acme.relu", kinds="activation", data_types=["FLOAT", "HALF"], accepts=is_relu)
def relu(binding):
    """A plain numpy function, for arrays of any strides."""
    (x,), (y,) = binding.inputs, binding.outputs
    return lambda: np.maximum(x, 0, out=y)


KERNELS = (relu,)


def estimate_cost(question):
    """A byte a nanosecond."""
    shapes = [question.specs[tensor.name].shape for layer in question.layers for tensor in layer.outputs]
    moved = sum(4 * int(np.prod(shape)) for shape in shapes)
    return CostEstimate(moved / 1000, moved, 0, "results at one byte a nanosecond", MANUAL)


TARGET = Target(
    device="ACME_NPU",
    title="Acme neural processing unit",
    platforms=[
        Platform("board-1", "first", "Acme board 1", software=((1, 0), (2, 0))),
        Platform("board-2", "second", "Acme board 2", cores=2, software=((2, 0), None), aliases=["two"]),
    ],
    software_versions=[(1, 0), (2, 0), (3, 0)],
    precisions=[DataType.HALF, DataType.FLOAT],
    limits_at=f"{PLACE}:LIMITS",
    input_formats_at=f"{PLACE}:FORMATS",
    output_formats_at=f"{PLACE}:FORMATS",
    memory_pools_at=f"{PLACE}:POOLS",
    arithmetic_at=f"{PLACE}:ARITHMETIC",
    fusions_at=f"{PLACE}:FUSIONS",
    kernels_at=f"{PLACE}:KERNELS",
    estimate_cost_at=f"{PLACE}:estimate_cost",
    simulated="placement and limits of an Acme NPU",
)

BARE = Target("ACME_BARE", "Acme, undeclared", [Platform("one", "one", "One")], simulated="nothing yet")
"""A target that declares nothing that it need not."""


class Overlapping(TensorFormat):
    """A format whose `pack` loses the last element."""

    def pack(self, array, family=""):
        memory = super().pack(array, family)
        memory.reshape(-1)[-1:] = 0
        return memory


class Transposed(TensorFormat):
    """A format whose strides are those of another order."""

    def strides(self, shape, dtype, family=""):
        return tuple(reversed(super().strides(shape, dtype, family)))


class Small(TensorFormat):
    """A format that forgets to count its padding."""

    def size_bytes(self, shape, dtype, family=""):
        return dtype.bytes_of(int(np.prod(shape)))


@check("anything")
def raises(question):
    """Whatever."""
    return question.layer.no_such_attribute


def with_rule(**changes):
    """The limit table with its second rule changed."""
    table = list(LIMITS.rules)
    table[1] = attrs.evolve(table[1], **changes)
    return attrs.evolve(LIMITS, rules=table)
