"""Two devices whose costs are stated, so that tests can add them up by hand or try every placement.

`ACME_FAST` runs all but ELU, in the times of `FAST` and an overhead for each segment; `ACME_PLAIN` runs everything, in
the times of `PLAIN`. On both a ReLU behind a convolution takes nothing. A tensor that crosses their border is copied.
"""

from __future__ import annotations

ENTRY_POINTS = {"acme-fast": "acme_costs:FAST_TARGET", "acme-plain": "acme_costs:PLAIN_TARGET"}

MODULE = """
import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.target.checks import one_of, parameter
from dryfit.target.cost import CostEstimate, Energy, StepCost
from dryfit.target.formats import TensorFormat
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, SegmentRules, Target

FAST_FORMATS = {{DataType.FLOAT: (TensorFormat("FAST8", [DataType.FLOAT], channels_vector=8, source="Acme manual"),)}}
KINDS = frozenset({{"convolution", "activation", "elementwise", "pooling"}})
SETTINGS = {settings!r}
FAST = {{"convolution": 10.0, "activation": 3.0, "elementwise": 4.0, "pooling": 5.0}}
PLAIN = {{"convolution": 30.0, "activation": 2.0, "elementwise": 6.0, "pooling": 7.0}}

RULE = rule("activation.type", parameter("activation_type", one_of("RELU")), source="Acme manual", remedy="Leave it")
FAST_LIMITS = LimitTable("ACME_FAST", [*rules("activation", RULE)], supported_kinds=KINDS)
PLAIN_LIMITS = LimitTable("ACME_PLAIN", [], supported_kinds=KINDS)
POOLS = (
    MemoryPool("ACME_WEIGHTS", {{"": SETTINGS["pool"]}}, "weights", per="segment", source="Acme manual"),
)


def follows(layer, layers):
    source = layer.inputs[0].producer
    return (
        layer.kind == "activation"
        and source is not None
        and source.kind == "convolution"
        and any(source is one for one in layers)
        and len(layer.inputs[0].consumers) == 1
        and not layer.inputs[0].is_network_output
    )


def steps(question, times):
    found = []
    for layer in question.layers:
        if follows(layer, question.layers):
            for step in found:
                if step[0][-1] == layer.inputs[0].producer.name:
                    step[0].append(layer.name)
        else:
            # Names tell layers of one kind apart: c3 takes a little more than c1.
            extra = sum(map(ord, layer.name)) % 7 / 4
            found.append(([layer.name], times[layer.kind] + extra))
    return found


def estimate(question, times, overhead, watts, is_lower_bound=False, unit="joules"):
    found = steps(question, times)
    microseconds = overhead + sum(time for _, time in found)
    return CostEstimate(
        microseconds=microseconds,
        bytes_moved=0,
        macs=sum(layer.multiply_accumulates(question.specs) for layer in question.layers),
        basis="a stated time for each kind",
        source="Acme manual",
        energy=None if watts is None else Energy(microseconds * watts, "stated watts", "Acme manual", unit),
        steps=[StepCost(SETTINGS["names"] or names, time, 0, 0, 0, 0, 0) for names, time in found if SETTINGS["steps"]],
        is_lower_bound=is_lower_bound,
    )


def fast_cost(question):
    return estimate(question, FAST, SETTINGS["overhead"], SETTINGS["watts"])


def plain_cost(question):
    return estimate(question, PLAIN, 0.0, 3.0, SETTINGS["bound"], SETTINGS["unit"])


def transfer(question):
    drawn = Energy(0.5, "a stated energy", "Acme manual")
    return CostEstimate(SETTINGS["copy"], question.bytes_moved, 0, "a stated time", "Acme manual", energy=drawn)


RULES = SegmentRules(max_segments={{(1, 0): SETTINGS["segments"]}}, cuts_to_fit=False, source="Acme manual")
FAST_TARGET = Target(
    "ACME_FAST",
    "Acme, fast",
    [Platform("board", "one", "Acme board", cores=SETTINGS["cores"])],
    software_versions=[(1, 0)],
    limits_at="acme_costs:FAST_LIMITS",
    input_formats_at="acme_costs:FAST_FORMATS",
    output_formats_at="acme_costs:FAST_FORMATS",
    memory_pools_at="acme_costs:POOLS",
    estimate_cost_at="acme_costs:fast_cost" if SETTINGS["estimates"] else None,
    estimate_transfer_at="acme_costs:transfer",
    segment_rules=RULES,
)
PLAIN_TARGET = Target(
    "ACME_PLAIN",
    "Acme, plain",
    [Platform("board", "one", "Acme board")],
    limits_at="acme_costs:PLAIN_LIMITS",
    estimate_cost_at="acme_costs:plain_cost",
)
"""

DEFAULTS = {
    "copy": 6.0,
    "overhead": 2.0,
    "segments": 16,
    "pool": None,
    "watts": 2.0,
    "unit": "joules",
    "cores": 1,
    "steps": True,
    "estimates": True,
    "names": (),
    "bound": False,
}


def module(**settings):
    """The text of the package, with some of the settings changed."""
    return MODULE.format(settings={**DEFAULTS, **settings})
