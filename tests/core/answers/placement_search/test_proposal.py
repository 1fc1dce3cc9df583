"""Proposed placements against every placement there is, each taken through the stages of a build."""

from __future__ import annotations

import itertools
import random

import pytest
from tests.core.answers.placement_search import acme_costs
from tests.core.builder.designs import designed
from tests.core.builder.networks import activation, add, chain, convolution, dla_config, elu, image_network

from dryfit.answers.network_cost import network_cost
from dryfit.answers.placement_search.changes import moved
from dryfit.answers.placement_search.choices import choices_of
from dryfit.answers.placement_search.model import SegmentModel
from dryfit.answers.placement_search.objective import Meter, Objective, value_of
from dryfit.answers.placement_search.proposal import propose_placement
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.errors import ConfigError, PlacementError, PluginError
from dryfit.estimate_text import duration

FAST, PLAIN = "ACME_FAST", "ACME_PLAIN"


@pytest.fixture
def acme(install):
    """`acme(copy=1.0)` installs the two devices with these settings, and returns a config for them."""

    def installed(**settings):
        install("acme_costs", acme_costs.module(**settings), {"dryfit.targets": acme_costs.ENTRY_POINTS})
        return acme_config()

    return installed


def acme_config():
    config = BuilderConfig()
    config.default_device_type = FAST
    config.allow_fallback(PLAIN)
    return config


def random_graph(seed, count):
    """Layers of three kinds, each reading one or two before it; ELU is what only one of the devices has."""
    source = random.Random(seed)  # noqa: S311  drawn, not secret
    network, x = image_network((1, 4, 4, 4))
    tensors = [x]
    for number in range(count):
        read = source.choice(tensors[-3:])
        kind = source.choice("ccraae")
        if kind == "a":
            tensors.append(add(network, read, source.choice(tensors), f"a{number}"))
        elif kind == "c":
            tensors.append(convolution(network, read, f"c{number}", maps=4))
        else:
            tensors.append({"r": activation, "e": elu}[kind](network, read, f"{kind}{number}"))
    for tensor in tensors[1:]:
        if not tensor.consumers:
            network.mark_output(tensor)
    return network


def amount(design, objective):
    """What the objective counts of a design, added up from what the stages of a build say."""
    cost = network_cost(design)
    if objective is Objective.LATENCY:
        return cost.latency_microseconds
    if objective is Objective.THROUGHPUT:
        return max(cost.pipeline_microseconds.values())
    if objective is Objective.ENERGY:
        return sum(one.estimate.energy.amount for one in (*cost.segments, *cost.transfers))
    elsewhere = [layer for run in design.partition.runs if run.device != FAST for layer in run.layers]
    return sum(layer.multiply_accumulates(design.specs) for layer in elsewhere)


def figures(design, objective):
    """What two placements are compared by: the amount, and for coverage the segments."""
    runs = sum(run.device == FAST for run in design.partition.runs)
    return round(amount(design, objective), 6), runs if objective is Objective.DLA_COVERAGE else 0


def design_with(network, devices):
    config = acme_config()
    for name, device in devices.items():
        config.set_device_type(network.layer(name), device)
    return designed(network, config)


def every_design(network):
    """The designs of all placements that the free layers can have."""
    free = [layer.name for layer in network.layers if not layer.name.startswith("e")]
    for chosen in itertools.product([False, True], repeat=len(free)):
        yield design_with(network, {name: PLAIN for name, leaves in zip(free, chosen, strict=True) if leaves})


def least_of_each(network):
    designs = list(every_design(network))
    return {objective: min(figures(design, objective) for design in designs) for objective in Objective}


def proposed(network, config):
    """Of each objective the figures of the proposal, designed anew from its devices alone."""
    found = {objective: propose_placement(network, config, objective) for objective in Objective}
    return {
        objective: figures(design_with(network, proposal.own_devices), objective)
        for objective, proposal in found.items()
    }


@pytest.mark.parametrize("kinds", ["crcrc", "rrecr", "cecrr"])
def test_no_placement_of_a_chain_is_better(acme, kinds):
    config = acme(segments=2)
    network = chain(*kinds)
    assert proposed(network, config) == least_of_each(network)


@pytest.mark.parametrize("seed", range(4))
def test_no_placement_of_a_small_graph_is_better(acme, seed):
    config = acme(overhead=0.0)
    network = random_graph(seed, 5)
    assert proposed(network, config) == least_of_each(network)


@pytest.mark.parametrize("objective", Objective)
def test_the_model_of_segments_reckons_what_a_build_would(acme, objective):
    config = acme(cores=2)
    network = random_graph(3, 8)
    design = designed(network, config)
    choices = choices_of(network, config, design, PLAIN)
    model = SegmentModel(choices, design, config, Meter(objective, [FAST, PLAIN], {FAST: 2, PLAIN: 1}))
    source = random.Random(1)  # noqa: S311
    for _ in range(6):
        devices = tuple(source.choice(options) for options in choices.options)
        built = design_with(network, choices.own_devices(devices))
        assert value_of(model.placed(devices).amounts) == pytest.approx(amount(built, objective))


def int8_config(own):
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    config.set_platform("DLA", "agx-orin-64")
    for layer, device in own.items():
        config.set_device_type(layer, device)
    return config


@pytest.mark.parametrize("objective", [Objective.LATENCY, Objective.THROUGHPUT, Objective.ENERGY])
def test_a_border_through_an_int8_step_is_reckoned_as_a_build_would(objective):
    network = chain(*"crcrcrc")
    design = designed(network, int8_config({}))
    choices = choices_of(network, int8_config({}), design, "GPU")
    model = SegmentModel(
        choices, design, int8_config({}), Meter(objective, ["DLA", "GPU", "CPU"], {"DLA": 2, "GPU": 1})
    )
    source = random.Random(2)  # noqa: S311
    for _ in range(8):
        devices = [source.choice(options) for options in choices.options]
        own = {network.layer(name): device for name, device in choices.own_devices(devices).items()}
        built = amount(designed(network, int8_config(own)), objective)
        assert value_of(model.placed(devices).amounts) == pytest.approx(built)


@pytest.mark.parametrize("settings", [{"segments": 1}, {"pool": 600}, {"steps": False, "cores": 2}], ids=str)
@pytest.mark.parametrize("objective", Objective)
def test_a_proposal_is_never_worse_than_the_build_s_own(acme, objective, settings):
    config = acme(**settings)
    network = random_graph(7, 9)
    proposal = propose_placement(network, config, objective)
    assert proposal.before.value == pytest.approx(amount(designed(network, acme_config()), objective))
    assert proposal.after.value <= proposal.before.value
    assert proposal.after.value == min(option.value for option in proposal.options)
    assert proposal.after.assessment.can_be_built
    assert proposal.after.segments_on(FAST) <= settings.get("segments", 16)


def test_of_segments_that_are_too_many_the_most_useful_stay(acme):
    network = chain("r", "e", "c")
    proposal = propose_placement(network, acme(segments=1), Objective.DLA_COVERAGE)
    before, after = (
        {one.layer: one.device for one in option.assessment.layers} for option in (proposal.before, proposal.after)
    )
    assert before == {"r0": FAST, "e1": PLAIN, "c2": PLAIN}
    assert after == {"r0": PLAIN, "e1": PLAIN, "c2": FAST}
    leaving, staying = proposal.changes
    assert (leaving.layers, leaving.source, leaving.destination) == (["r0"], FAST, PLAIN)
    assert leaving.reason == "with them ACME_FAST has 2 segments, and the limit is 1"
    assert (staying.layers, staying.destination) == (["c2"], FAST)
    assert "it is segment 2 of ACME_FAST, which loads at most 1" in staying.reason


WEIGHTS = 4 * (8 * 8 * 9 + 8)
"""Bytes of one convolution of `chain`."""


@pytest.mark.parametrize(("kinds", "staying", "segments"), [("ccc", 2, 1), ("crcrc", 3, 2)])
def test_of_a_segment_that_is_too_large_a_part_stays(acme, kinds, staying, segments):
    """A ReLU that leaves makes two segments of one, each of which fits; else a convolution has to leave."""
    proposal = propose_placement(chain(*kinds), acme(pool=2 * WEIGHTS), Objective.DLA_COVERAGE)
    assert proposal.before.macs == {PLAIN: 3 * 36 * 8 * 8 * 9}
    assert proposal.after.macs[FAST] == staying * 36 * 8 * 8 * 9
    assert proposal.after.segments_on(FAST) == segments
    kept = [one for one in proposal.after.assessment.segments if one.device == FAST]
    assert all(one.pools["ACME_WEIGHTS"] <= 2 * WEIGHTS for one in kept)
    assert all("does not fit its memory pools" in one.reason for one in proposal.changes if one.source == FAST)


def test_the_reason_of_a_change_is_what_it_would_cost_to_stay(acme):
    network = chain("c", "e", "r", "e", "c")
    proposal = propose_placement(network, acme(copy=20.0, overhead=0.0), Objective.LATENCY)
    (change,) = (one for one in proposal.changes if "r2" in one.layers)
    stays = {name: device for name, device in proposal.own_devices.items() if name not in change.layers}
    without = amount(design_with(network, stays), Objective.LATENCY)
    assert change.value_otherwise == pytest.approx(without)
    assert without > proposal.after.value
    told = f"latency would be an estimated {duration(without)} instead of {duration(proposal.after.value)}"
    assert told in change.reason


def test_the_same_question_has_the_same_answer_and_leaves_the_config_as_it_is(acme):
    config = acme()
    network = random_graph(5, 9)
    config.set_device_type(network.layers[0], FAST)
    given = config.settings(network)
    answers = [propose_placement(network, config, Objective.THROUGHPUT) for _ in range(2)]
    assert answers[0].own_devices == answers[1].own_devices
    assert [one.title for one in answers[0].options] == [one.title for one in answers[1].options]
    assert config.settings(network) == given


def test_a_layer_with_a_device_of_its_own_keeps_it(acme):
    config = acme(copy=100.0)
    network = chain("c", "r", "c")
    config.set_device_type(network.layer("c2"), PLAIN)
    proposal = propose_placement(network, config, Objective.LATENCY)
    assert proposal.own_devices["c2"] == PLAIN
    config.set_device_type(network.layer("c0"), FAST)
    assert propose_placement(network, config, Objective.LATENCY).own_devices["c0"] == FAST


@pytest.mark.parametrize(("kinds", "groups"), [("crc", [[0, 1], [2]]), ("cec", [[2]])])
def test_layers_made_of_one_layer_of_the_user_s_go_together_or_stay(acme, kinds, groups):
    """The second layer stands for a copy of the first, as passes make them; an ELU has one device, so both stay."""
    config = acme()
    network = chain(*kinds)
    design = designed(network, config)
    first, second, _ = (layer.name for layer in network.layers)
    design.canonical.found.rewrites.note_copy(second, first)
    choices = choices_of(network, config, design, PLAIN)
    assert choices.groups == groups
    assert choices.owners[:2] == [first, first]
    tied = SegmentModel(choices, design, config, Meter(Objective.LATENCY, [FAST, PLAIN], {FAST: 1, PLAIN: 1}))
    devices = moved(tied, choices.placed_on(FAST), [1], PLAIN)
    assert devices == ((PLAIN, PLAIN, FAST) if kinds == "crc" else (FAST, PLAIN, FAST))


def test_an_objective_without_an_estimate_is_refused(acme):
    config = acme(watts=None)
    with pytest.raises(ConfigError, match=r"device ACME_FAST \(Acme board\): .* requires energy estimates"):
        propose_placement(chain("c", "r"), config, Objective.ENERGY)
    assert propose_placement(chain("c", "r"), config, Objective.LATENCY).after.cost.latency_microseconds


def test_energies_in_two_units_are_not_compared(acme):
    config = acme(unit="ACME_FAST us of board in MAXN")
    with pytest.raises(ConfigError, match=r"ACME_FAST us of board in MAXN for ACME_PLAIN; joules for ACME_FAST"):
        propose_placement(chain("c", "r", "e"), config, Objective.ENERGY)
    assert propose_placement(chain("c", "r", "e"), config, Objective.LATENCY).after.cost.energy is None


def test_only_coverage_needs_no_estimate_at_all(acme):
    config = acme(estimates=False, segments=1)
    network = chain("r", "e", "c")
    for objective in (Objective.LATENCY, Objective.THROUGHPUT):
        with pytest.raises(ConfigError, match=r"ACME_FAST.*requires time estimates.*--objective dla-coverage"):
            propose_placement(network, config, objective)
    proposal = propose_placement(network, config, Objective.DLA_COVERAGE)
    assert proposal.own_devices == {"r0": PLAIN}
    assert proposal.after.cost.latency_microseconds is None


def test_a_step_of_layers_that_nobody_asked_about_is_the_target_s_mistake(acme):
    config = acme(names=("ghost",))
    with pytest.raises(PluginError, match=r"target ACME_FAST: .*found 'ghost'"):
        propose_placement(random_graph(3, 5), config, Objective.LATENCY)


def test_one_device_alone_leaves_no_choice(acme):
    config = acme()
    config.allow_fallback(None)
    with pytest.raises(ConfigError, match=r"A placement by cost requires two devices.*ACME_FAST and no fallback"):
        propose_placement(chain("c"), config, Objective.LATENCY)


def test_a_layer_that_neither_device_runs_is_told_with_both_verdicts(acme):
    config = acme()
    network, x = image_network()
    network.mark_output(network.add_softmax(x).get_output(0))
    with pytest.raises(PlacementError, match=r"ACME_FAST.*\n.*ACME_PLAIN"):
        propose_placement(network, config, Objective.LATENCY)
