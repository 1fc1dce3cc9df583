"""A stranger's target whose functions all raise, or some of them: what each command needs of it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

PARTS = (
    "rule",
    "rule_when",
    "quantity",
    "shown",
    "estimate_cost",
    "estimate_transfer",
    "stored_bytes",
    "fusion",
    "kernel_accepts",
    "kernels_module",
    "cost_module",
)
"""What can be made to raise."""

_TEXT = """
from dryfit.network.data_types import DataType
from dryfit.target.checks import Quantity, at_least, check, one_of, parameter
from dryfit.target.cost import CostEstimate
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import kernel
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, Target

BROKEN = {broken!r}


def fail(part, answer):
    if part in BROKEN:
        raise RuntimeError(part + " is broken")
    return answer


@check("anything")
def sound(question):
    '''Everything is allowed.'''
    return fail("rule", None)


@check("anything")
def condition(question):
    '''It is Tuesday.'''
    return fail("rule_when", None)


COUNT = Quantity("inputs", lambda question: fail("quantity", 1), lambda question: fail("shown", "one"))
RULES = rules(
    "activation",
    rule("activation.any", sound, source="Acme, 1"),
    rule("activation.tuesday", parameter("name", at_least("")), source="Acme, 2", when=condition),
    rule("activation.inputs", parameter(COUNT, at_least(2 if "shown" in BROKEN else 1)), source="Acme, 3"),
)
KINDS = frozenset({{"activation", "scale", "convolution", "pooling", "elementwise"}})
LIMITS = LimitTable("ACME_NPU", RULES, supported_kinds=KINDS)
POOLS = (
    MemoryPool("ACME_WEIGHTS", {{"": 1 << 30}}, "weights", per="segment",
               stored_bytes=lambda weights: fail("stored_bytes", weights.computed_bytes)),
    MemoryPool("ACME_SRAM", {{"": 1 << 30}}, "activations", per="segment"),
)
FUSIONS = [Fusion("convolution-scale", ["convolution", "scale"], where=lambda layers: fail("fusion", True))]


@kernel("acme.relu", kinds="activation", data_types="fp32", accepts=lambda group, specs: fail("kernel_accepts", False))
def relu(binding):
    raise AssertionError("nothing accepts this")


KERNELS = [relu]


def estimate(question):
    fail("estimate_cost", None)
    return CostEstimate(5.0, 0, 0, basis="stated", source="Acme, 4")


def transfer(question):
    fail("estimate_transfer", None)
    return CostEstimate(1.0, question.bytes_moved, 0, basis="stated", source="Acme, 4")


TARGET = Target(
    device="ACME_NPU", title="Acme", platforms=[Platform("one", "one", "Acme One")],
    precisions=[DataType.FLOAT],
    limits_at="acme:LIMITS", memory_pools_at="acme:POOLS", fusions_at="acme:FUSIONS",
    kernels_at="no_such_module:KERNELS" if "kernels_module" in BROKEN else "acme:KERNELS",
    estimate_cost_at="no_such_module:estimate" if "cost_module" in BROKEN else "acme:estimate",
    estimate_transfer_at="acme:transfer",
)
"""


def modules(broken: Collection[str]) -> Mapping[str, str]:
    """The package's modules, with some of `PARTS` broken."""
    return {"acme": _TEXT.format(broken=sorted(broken))}
