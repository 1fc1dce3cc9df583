"""Records that plugins hand over: a wrong one is told where it is made."""

from __future__ import annotations

import pytest

from dryfit.errors import PluginError
from dryfit.network.layers.movement import Identity
from dryfit.plugins.contributions import GroupClaim, OnnxOperator, PassContribution, PlacementVote


def nothing(*_arguments):
    return False


WRONG = [
    (
        lambda: PassContribution(3, nothing, before="fold-constants"),
        r"`name` of a PassContribution.*found 3; allowed: str",
    ),
    (
        lambda: PassContribution("mine", "nothing", before="fold-constants"),
        r"`function` of a PassContribution is a function",
    ),
    (lambda: PassContribution("mine", nothing, before=["a"]), r"`before`.*found \['a'\]; allowed: str or None"),
    (
        lambda: PassContribution("mine", nothing),
        r"pass 'mine': .*found before=None, after=None; allowed: one of the two",
    ),
    (lambda: PassContribution("mine", nothing, before="a", after="b"), r"found before='a', after='b'"),
    (lambda: OnnxOperator("Relu", "", nothing), r"operator 'Relu'.*found domain ''; allowed: a domain of your own"),
    (lambda: OnnxOperator("Relu", "ai.onnx", nothing), r"found domain 'ai.onnx'"),
    (
        lambda: OnnxOperator("Bend", "com.acme", nothing, since="2"),
        r"`since` of a OnnxOperator.*found '2'; allowed: int",
    ),
    (lambda: GroupClaim(Identity(), 3), r"`reason` of a GroupClaim.*found 3; allowed: str"),
    (lambda: PlacementVote("GPU", None), r"`reason` of a PlacementVote.*found None; allowed: str"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_a_wrong_value_is_refused_when_the_record_is_made(make, message):
    with pytest.raises(PluginError, match=message):
        make()


def test_right_values_are_taken():
    assert PassContribution("mine", nothing, after="fold-constants").after == "fold-constants"
    assert OnnxOperator("Bend", "com.acme", nothing).since == 1
    assert PlacementVote("GPU", "fast", weight=2).weight == 2
    assert GroupClaim(Identity(), "mine").layer.kind == "identity"
