"""Plugins vote on placement: sums decide, votes without effect are told once, and nobody is asked in vain."""

import pytest
from tests.core.builder.networks import chain, dla_config

from dryfit.builder.placement import assign
from dryfit.builder.placement.assign import assign_devices
from dryfit.building import Builder, assess
from dryfit.plugins import registry
from dryfit.plugins.contributions import BuildObserver

VOTER = """
from dryfit import hookimpl
from dryfit.plugins.contributions import PlacementVote

@hookimpl
def vote_on_placement(layer):
    if layer.name in {layers}:
        return PlacementVote({device!r}, {reason!r}, {weight})
"""


def voter(device, *layers, weight=1, reason="it is quicker there"):
    return VOTER.format(device=device, layers=layers, reason=reason, weight=weight)


def test_a_layer_goes_to_the_fallback_device_where_the_votes_want_it(install):
    install("acme", voter("gpu", "c0", weight=2))
    assignment = assign_devices(chain("c", "r"), dla_config(), {})
    assert assignment.devices == {"c0": "GPU", "r1": "DLA"}
    assert assignment.causes == {
        "c0": "the fallback device, elected with 2 to 0 votes: "
        "acme 1.0 (acme) for GPU with weight 2, it is quicker there",
        "r1": "the default device",
    }
    assert assignment.verdicts["c0"]["DLA"].supported
    assert assignment.warnings == []


def test_the_larger_sum_wins_whoever_votes(install):
    install("acme", voter("GPU", "c0", "r1", weight=2))
    install("boards", voter("DLA", "c0", "r1", weight=1.5, reason="keep it\n together"))
    install("colors", voter("DLA", "c0", weight=1))
    assignment = assign_devices(chain("c", "r"), dla_config(), {})
    assert assignment.devices == {"c0": "DLA", "r1": "GPU"}
    assert assignment.causes["c0"] == (
        "the default device, elected with 2.5 to 2 votes: acme 1.0 (acme) for GPU with weight 2, it is quicker there; "
        "boards 1.0 (boards) for DLA with weight 1.5, keep it together; "
        "colors 1.0 (colors) for DLA with weight 1, it is quicker there"
    )


def test_equal_sums_leave_the_layer_on_the_default_device(install):
    install("acme", voter("GPU", "c0"))
    install("boards", voter("DLA", "c0"))
    assignment = assign_devices(chain("c"), dla_config(), {})
    assert assignment.devices == {"c0": "DLA"}
    assert assignment.causes["c0"].startswith("the default device, a tie: acme 1.0 (acme) for GPU with weight 1")


@pytest.mark.parametrize(
    ("device", "weight", "why"),
    [
        ("CPU", 1, "it is neither the default nor the fallback device (DLA, GPU)"),
        ("DLA", 1, "it does not support these layers"),
        ("GPU", "float('nan')", "the weight nan must be a finite number"),
        ("GPU", "'much'", "the weight 'much' must be a finite number"),
    ],
)
def test_votes_without_effect_are_told_once_with_the_reason(install, device, weight, why):
    install("acme", voter(device, *(f"e{i}" for i in range(6)), weight=weight))
    without = assign_devices(chain(*"eeeeee"), dla_config(), {})
    assert without.devices == {f"e{i}": "GPU" for i in range(6)}
    assert without.warnings[-1] == (
        f"acme 1.0 (acme) voted for {device} without effect, since {why}: 'e0', 'e1', 'e2', 'e3' and 2 more"
    )
    assert sum("voted" in warning for warning in without.warnings) == 1


def test_a_layer_with_one_place_to_go_has_its_verdict_as_cause(install):
    install("acme", voter("GPU", "e0"))
    assignment = assign_devices(chain("e"), dla_config(), {})
    assert assignment.causes["e0"] == str(assignment.verdicts["e0"]["DLA"])


@pytest.mark.parametrize(("fallback", "own"), [(False, {}), (True, {"c0": "DLA"})])
def test_nobody_votes_without_fallback_or_on_a_layer_with_a_device_of_its_own(install, fallback, own):
    install("acme", voter("GPU", "c0"))
    assert assign_devices(chain("c"), dla_config(fallback), own).devices == {"c0": "DLA"}


def test_the_fallback_device_is_asked_about_a_layer_that_stays_only_where_somebody_votes(install, monkeypatch):
    asked = []
    monkeypatch.setattr(
        assign,
        "verdicts_of",
        lambda device, *a, verdicts_of=assign.verdicts_of: (
            lambda layer: asked.append((layer.name, device)) or verdicts_of(device, *a)(layer)
        ),
    )
    assign_devices(chain("c"), dla_config(), {})
    assert asked == [("c0", "DLA")]
    install("acme", voter("GPU", "c0"))
    assign_devices(chain("c"), dla_config(), {})
    assert asked[1:] == [("c0", "DLA"), ("c0", "GPU")]


def test_a_vote_that_raises_is_recorded_and_the_others_count(install):
    install("acme", "from dryfit import hookimpl\n@hookimpl\ndef vote_on_placement(layer, verdicts):\n    1 / 0\n")
    install("boards", voter("GPU", "c0"))
    assert assign_devices(chain("c", "r"), dla_config(), {}).devices == {"c0": "GPU", "r1": "DLA"}
    (failure,) = registry.failures()
    assert (failure.name, failure.hook) == ("acme", "vote_on_placement")
    assert "ZeroDivisionError" in failure.message
    assert "1 / 0" in failure.traceback


def test_voters_see_the_verdicts_of_both_devices(install):
    install(
        "acme",
        """
        from dryfit import hookimpl
        from dryfit.plugins.contributions import PlacementVote

        @hookimpl
        def vote_on_placement(layer, verdicts):
            return PlacementVote("GPU", " ".join(f"{name}: {verdict.supported}" for name, verdict in verdicts.items()))
        """,
    )
    assert "DLA: True GPU: True" in assign_devices(chain("c"), dla_config(), {}).causes["c0"]


def test_the_verdicts_that_votes_ask_for_are_told_to_observers_once(install):
    install("acme", voter("GPU", "c0"))

    class Recorder(BuildObserver):
        def __init__(self):
            self.told = []

        def verdict_given(self, verdict):
            self.told.append((verdict.layer, verdict.device))

    recorder = Recorder()
    assign_devices(chain("c", "e"), dla_config(), {}, recorder)
    assert recorder.told == [("c0", "DLA"), ("c0", "GPU"), ("e1", "DLA"), ("e1", "GPU")]


def test_what_was_voted_is_assessed_and_built_alike(install):
    install("acme", voter("GPU", "r1"))
    network = chain("c", "r", "c")
    assessment, plan = assess(network, dla_config()), Builder().build_plan(network, dla_config())
    assert [layer.device for layer in assessment.layers] == ["DLA", "GPU", "DLA"]
    assert plan.layers == assessment.layers
    assert [segment.device for segment in plan.segments] == ["DLA", "GPU", "DLA"]
