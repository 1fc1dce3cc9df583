"""Boards that are drawn at random: dryfit with another overlay gives the verdicts and latencies that a board would.

A board is an overlay: some rules off, some limits moved, other parameters of the cost model. Its verdicts on the probes
of a kit are those of the target with the overlay; its latencies are the estimates with the overlay's parameters, off by
3 % at random. What is learnt from both is compared with the overlay. Nothing of this is a measurement.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dryfit
from dryfit.answers.asked import asked, quiet_log
from dryfit.answers.board.gpu_layers import StepTimes
from dryfit.answers.network_cost import network_cost
from dryfit.board.kit.probes import Candidate, candidates, network_of
from dryfit.board.learned_cost import LearnedCost, Measurement, learn_cost
from dryfit.board.learned_rules import LearnedRules, SeenLayer, Shape, learn_rules, looks_of, shape_of
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.building import design_for_assessment
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.overlays import FittedParameter, Overlay, RuleChange, numbers, overlaid
from dryfit.target.question import Question
from dryfit.target.rule import LimitRule

PLATFORM, SOFTWARE = "orin-nx-16", "10.3"
PRECISIONS = ("fp16", "fp16,int8")
NOISE = 0.03
"""Standard deviation of a latency, relative to it."""
CHANGES = (3, 7)
"""Least and largest number of rules in which a board differs."""
PARAMETERS, COPIES = (0.6, 1.7), (0.02, 0.1)
"""Least and largest factor of a cost parameter, and of those of copies: public profiles show copies of 7 to 85 us
(NVIDIA/TensorRT issue 3143), where the documented parameters of orin-nx-16 make 750 us of each."""
OF_COPIES = ("copy_seconds", "handover_seconds")


@attrs.frozen(eq=False)
class Probe:
    """A layer that boards give verdicts on.

    Attributes:
        place: its name and the precisions of its build.
        question: the layer as the rules see it.
    """

    place: str
    question: Question


def designed(
    model: onnx.ModelProto | dryfit.Network, precision: str, device: str = "DLA"
) -> tuple[Network, BuilderConfig, Design]:
    """A model with its decisions on the documented board."""
    options: dict[str, Any] = {"platform": PLATFORM, "precision": precision, "device": device}
    if device == "DLA":
        options |= {"software": SOFTWARE, "fallback": "GPU"}
    subject = asked(model, None, {**options, "assume_scales": "int8" in precision}, needs_shapes=False)
    with quiet_log():
        return subject.network, subject.config, design_for_assessment(subject.network, subject.config)


@functools.cache
def probes(precision: str) -> Sequence[Probe]:
    """The layers of the kit's probes, built with these types."""
    return list(_probes(precision))


def _probes(precision: str) -> Iterator[Probe]:
    together = [one for one in candidates() if not one.is_alone]
    yield from probes_of([together, *([one] for one in candidates() if one.is_alone)], precision)


def probes_of(groups: Iterable[Sequence[Candidate]], precision: str) -> Iterator[Probe]:
    """The layers of groups of candidates, each group a network."""
    target = registry.target("DLA")
    for group in groups:
        _, config, design = designed(network_of(group), precision)
        question = config.questions(target, design.specs)
        names = {one.name for one in group}
        for layer in design.network.layers:
            node = next((name for name in layer.onnx_nodes if name in names), None)
            if node is not None and (layer.name == node or node not in {one.name for one in design.network.layers}):
                yield Probe(f"{precision}/{layer.name}", question(layer))


@functools.cache
def drawable(precisions: Sequence[str]) -> Mapping[str, LimitRule]:
    """The rules that a board may have otherwise here: those that a probe violates alone."""
    table = registry.target("DLA").limits
    assert table is not None
    found: dict[str, LimitRule] = {}
    for one in (probe for precision in precisions for probe in probes(precision)):
        violated = [look.rule for look in looks_of(table, [one.question]) if not look.holds]
        # Versions and families are no layers' doing.
        if len(violated) == 1 and violated[0].parameter not in ("software version", "platform family"):
            found[violated[0].id] = violated[0]
    return dict(sorted(found.items()))


@functools.cache
def seen_values(rule_id: str) -> Sequence[Any]:
    """The values of a rule's parameter that a probe has, for rules with listed values."""
    table = registry.target("DLA").limits
    assert table is not None
    looks = [look for one in probes("fp16") for look in looks_of(table, [one.question]) if look.rule.id == rule_id]
    return sorted({value for look in looks for value in look.values}, key=str)


def drawn_board(seed: int, precisions: Sequence[str] = PRECISIONS) -> Overlay:
    """A board: rules off, limits moved, other cost parameters."""
    random = np.random.default_rng(seed)
    count = int(random.integers(*CHANGES))
    known_rules = drawable(tuple(precisions))
    rules = list(random.choice(list(known_rules), count, replace=False))
    parameters = registry.target("DLA").cost_parameters[PLATFORM]
    known = numbers(parameters)
    drawn = {
        name: FittedParameter(
            round(known[name] * factor) if isinstance(known[name], int) else float(known[name] * factor)
        )
        for name in type(parameters).LEARNABLE
        if (factor := float(np.exp(random.uniform(*np.log(COPIES if name in OF_COPIES else PARAMETERS)))))
    }
    changes = {rule: _drawn_change(known_rules[rule], random) for rule in sorted(rules)}
    return Overlay(f"board-{seed}", PLATFORM, SOFTWARE, rules=changes, cost={"dla": drawn, "gpu": drawn_gpu(seed)})


def drawn_gpu(seed: int) -> Mapping[str, FittedParameter]:
    """Cost parameters of a board's GPU: a share of the published peaks, and a longer launch."""
    random = np.random.default_rng(seed + 2000)
    parameters = registry.target("GPU").cost_parameters[PLATFORM]
    known = numbers(parameters)
    bounds = {name: (1.0, 3.0) if name == "launch_seconds" else (0.3, 0.9) for name in type(parameters).LEARNABLE}
    return {name: FittedParameter(known[name] * float(random.uniform(*ends))) for name, ends in bounds.items()}


def _drawn_change(rule: LimitRule, random: np.random.Generator) -> RuleChange:
    shape, limits = shape_of(rule), rule.limits
    if shape is Shape.PLAIN or shape is Shape.GAP or random.random() < 0.3:
        return RuleChange(enabled=False)
    if shape is Shape.LIST:
        declared = list(limits["values"])
        others = [one for one in seen_values(rule.id) if one not in declared]
        present = [one for one in declared if one in seen_values(rule.id)]
        if others and (len(declared) < 2 or not present or random.random() < 0.5):
            return RuleChange(limits={"values": (*declared, others[int(random.integers(len(others)))])})
        if len(declared) < 2 or not present:
            return RuleChange(enabled=False)
        lost = present[int(random.integers(len(present)))]
        return RuleChange(limits={"values": tuple(one for one in declared if one != lost)})
    name = "high" if "high" in limits else next(iter(limits))
    known = int(limits[name])
    if name == "low":
        return RuleChange(limits={name: known - 1})
    moved = known + int(random.choice([-1, 1])) * int(random.integers(1, max(2, known // 2)))
    return RuleChange(limits={name: max(moved, int(limits.get("low", 0)) + 1)})


def verdicts(board: Overlay, precisions: Sequence[str] = PRECISIONS) -> Iterator[SeenLayer]:
    """What the board says of each probe."""
    return verdicts_on(board, (probe for precision in precisions for probe in probes(precision)))


def verdicts_on(board: Overlay, asked_about: Iterable[Probe]) -> Iterator[SeenLayer]:
    """What the board says of some probes."""
    target = overlaid(registry.target("DLA"), (board,))
    for one in asked_about:
        asked_there = attrs.evolve(one.question, verdict=target.verdict)
        yield SeenLayer(one.place, [one.question], target.verdict(asked_there).supported)


def learned_rules(board: Overlay, precisions: Sequence[str] = PRECISIONS) -> LearnedRules:
    """What is learnt of a board's verdicts."""
    table = registry.target("DLA").limits
    assert table is not None
    return learn_rules(table, verdicts(board, precisions))


# Latencies ------------------------------------------------------------------------------------------------------------


@functools.cache
def timed_designs(device: str = "DLA") -> Sequence[tuple[str, Design]]:
    """Networks of convolutions in many sizes, in both precisions."""
    found = []
    for index, (channels, side, depth, window) in enumerate(SIZES):
        for precision in PRECISIONS:
            _, _, design = designed(chain_of_convolutions(channels, side, depth, window), precision, device)
            found.append((f"chain-{index}-{precision}", design))
    return found


SIZES = (
    (16, 16, 1, 1),
    (64, 56, 2, 3),
    (128, 28, 4, 3),
    (256, 14, 6, 3),
    (512, 7, 3, 3),
    (32, 112, 2, 5),
    (96, 64, 8, 1),
    (256, 56, 2, 1),
    (64, 128, 3, 3),
    (16, 8, 12, 3),
)
"""Channels, height and width, number of convolutions, window."""


def chain_of_convolutions(channels: int, side: int, depth: int, window: int) -> dryfit.Network:
    """A network of convolutions of one size, one behind the other, with activations."""
    network = dryfit.Network(f"chain of {depth}")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, channels, side, side))
    for index in range(depth):
        kernel = np.full((channels, channels, window, window), 0.01, np.float32)
        layer = network.add_convolution_nd(x, channels, (window, window), kernel, None)
        layer.padding_nd = (window // 2, window // 2)
        layer.name = f"conv{index}"
        x = network.add_activation(layer.get_output(0), dryfit.ActivationType.RELU).get_output(0)
    network.mark_output(x)
    return network


def chain_model(channels: int, side: int, depth: int, window: int) -> onnx.ModelProto:
    """The same network as an ONNX model."""
    shape, constants, nodes = [1, channels, side, side], [], []
    for index in range(depth):
        kernel = np.full((channels, channels, window, window), 0.01, np.float32)
        constants.append(numpy_helper.from_array(kernel, f"w{index}"))
        pads = [window // 2] * 4
        nodes.append(
            helper.make_node("Conv", [f"x{index}", f"w{index}"], [f"c{index}"], name=f"conv{index}", pads=pads)
        )
        nodes.append(helper.make_node("Relu", [f"c{index}"], [f"x{index + 1}"], name=f"relu{index}"))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x0", f"x{depth}")]
    graph = helper.make_graph(nodes, f"chain of {depth}", values[:1], values[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def measurements(board: Overlay, seed: int, device: str = "DLA") -> list[Measurement]:
    """Latencies on a board, off at random: of the DLA's segments, or of the GPU's steps."""
    random = np.random.default_rng(seed + 1000)
    record = overlaid(registry.target(device), (board,)).cost_parameters[PLATFORM]
    found = []
    for name, design in timed_designs(device):
        for segment in network_cost(design).segments:
            times, steps = StepTimes(design, segment), () if segment.estimate is None else segment.estimate.steps
            alone = [functools.partial(times.of, [index]) for index in range(len(steps))]
            for index, estimate in enumerate([times.whole] if device == "DLA" else alone):
                latency = estimate(record) * float(np.exp(random.normal(0.0, NOISE)))
                precision = "INT8" if "int8" in name else "FP16"
                found.append(Measurement(f"{name}/{segment.index}.{index}", name, latency, estimate, precision))
    return found


def learned_cost(board: Overlay, seed: int, device: str = "DLA") -> LearnedCost | None:
    """What is learnt of a board's latencies."""
    return learn_cost(registry.target(device).cost_parameters[PLATFORM], measurements(board, seed, device))
