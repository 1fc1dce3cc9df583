from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from dryfit.plugins import facade, registry
from dryfit.plugins.contributions import PassContribution
from dryfit.plugins.discovery import HOOKS, ONNX_OPERATORS, PASSES
from dryfit.plugins.plugin_registry import PluginRegistry

HEAD = "import dryfit\nfrom dryfit.plugins.contributions import *\n"
LAYER: Any = SimpleNamespace(name="conv1")


def plugins_with(install_package: Any, entry_points: Any = None, **functions: str) -> PluginRegistry:
    """The registry, in which each package has one hook module with one function, given by its text."""
    for package, text in functions.items():
        module = f"{package}_hooks"
        points = {HOOKS: {package: module}, **(entry_points or {}).get(package, {})}
        install_package(package, points, {module: f"{HEAD}@dryfit.hookimpl\n{text}"})
    registry.begin_again(disabled="", selected=",".join(functions))
    return registry


def failures(plugins: PluginRegistry) -> list[tuple[str, str, str]]:
    return [(one.distribution, one.hook, one.message) for one in plugins.failures()]


def test_every_vote_is_heard_and_a_plugin_that_raises_silences_no_other(install_package: Any) -> None:
    plugins = plugins_with(
        install_package,
        acme="def vote_on_placement(layer): return PlacementVote('DLA', f'{layer.name} is cheap')",
        broken="def vote_on_placement(layer): raise ValueError('no opinion today')",
        exits="def vote_on_placement(layer): raise SystemExit(1)",
        silent="def vote_on_placement(): return None",
        wrong="def vote_on_placement(): return 'DLA'",
        zeta="def vote_on_placement(verdicts, layer): return PlacementVote('GPU', str(verdicts), 2.0)",
    )
    votes = facade.placement_votes(LAYER, {"DLA": 1})
    assert [(one.value.device, one.value.reason, one.plugin) for one in votes] == [
        ("DLA", "conv1 is cheap", "acme 1.2 (acme)"),
        ("GPU", "{'DLA': 1}", "zeta 1.2 (zeta)"),
    ]
    expected = [
        ("broken", "vote_on_placement", "ValueError: no opinion today"),
        ("exits", "vote_on_placement", "SystemExit: 1"),
        ("wrong", "vote_on_placement", "The plugin returned the wrong type (found str; allowed: PlacementVote)"),
    ]
    assert failures(plugins) == expected
    # A second question finds the same voices, and tells no failure twice.
    assert facade.placement_votes(LAYER, {"DLA": 1}) == votes
    assert failures(plugins) == expected


def test_an_interruption_inside_a_hook_ends_the_program(install_package: Any) -> None:
    plugins_with(install_package, acme="def vote_on_placement(): raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        facade.placement_votes(LAYER, {})


def test_the_first_claim_wins_and_the_next_are_not_asked(install_package: Any) -> None:
    plugins = plugins_with(
        install_package,
        acme="def claim_quantized_group(group): return None",
        first="def claim_quantized_group(group): return GroupClaim(group, 'mine')",
        later="def claim_quantized_group(group): raise RuntimeError('asked')",
    )
    claim = facade.claim(LAYER)
    assert claim is not None
    assert (claim.value.layer, claim.value.reason, claim.plugin) == (LAYER, "mine", "first 1.2 (first)")
    assert plugins.failures() == []


def test_passes_of_entry_points_and_of_hooks_are_one_list_in_order(install_package: Any) -> None:
    module = {PASSES: {"a-named": "acme_hooks:NAMED", "bad": "acme_hooks:dryfit"}}
    plugins = plugins_with(
        install_package,
        {"acme": module},
        acme="def contribute_passes(): return [PassContribution('hooked', print, after='fold-constants'), 5]\n"
        "NAMED = PassContribution('named', print, before='fold-constants')",
        zeta="def contribute_passes(): return [PassContribution('last', print, after='fold-constants')]",
    )
    found = facade.contributed_passes()
    assert [(one.value.name, one.plugin, one.hook) for one in found] == [
        ("named", "a-named 1.2 (acme)", ""),
        ("hooked", "acme 1.2 (acme)", "contribute_passes"),
        ("last", "zeta 1.2 (zeta)", "contribute_passes"),
    ]
    assert all(isinstance(one.value, PassContribution) for one in found)
    told = "The plugin returned the wrong type (found {}; allowed: PassContribution)"
    assert failures(plugins) == [
        ("acme", "contribute_passes", told.format("int")),
        ("acme", "", told.format("module")),
    ]
    facade.fail(found[-1], "its neighbour does not exist")
    assert failures(plugins)[-1] == ("zeta", "contribute_passes", "its neighbour does not exist")


@pytest.mark.parametrize("given", ["None", "'text'", "5", "(one for one in ())"])
def test_a_registering_hook_returns_a_list(install_package: Any, given: str) -> None:
    plugins = plugins_with(install_package, acme=f"def contribute_passes(): return {given}")
    assert facade.contributed_passes() == []
    [(_, hook, message)] = failures(plugins)
    assert hook == "contribute_passes"
    assert "allowed: a list of records; an empty one for none" in message


def test_only_the_operator_that_is_asked_for_is_loaded(install_package: Any) -> None:
    names = {
        "com.acme::Swish": "acme_hooks:SWISH",
        "com.acme::Other": "acme_gone:OTHER",
        "com.acme::Odd": "acme_hooks:SWISH",
    }
    hooked = "[OnnxOperator('Swish', 'com.acme', print, since=2), OnnxOperator('X', 'y', print)]"
    text = f"def register_layers(): return {hooked}\nSWISH = OnnxOperator('Swish', 'com.acme', print)"
    plugins = plugins_with(install_package, {"acme": {ONNX_OPERATORS: names}}, acme=text)
    found = facade.onnx_operators("com.acme", "Swish")
    assert [(one.value.since, one.plugin) for one in found] == [
        (2, "acme 1.2 (acme)"),
        (1, "com.acme::Swish 1.2 (acme)"),
    ]
    assert plugins.failures() == []
    assert [one.value.op_type for one in facade.registered_layers()] == ["Swish", "X", "Swish"]
    names_differ = "found com.acme::Swish in the record, com.acme::Odd by the entry point"
    assert [message for _, _, message in failures(plugins)] == [
        f"The entry point and its operator must have the same name ({names_differ})",
        "ModuleNotFoundError: No module named 'acme_gone'",
    ]


def test_a_registering_hook_is_asked_once(install_package: Any) -> None:
    counting = "    CALLS.append(1)\n    return [OnnxOperator('X', 'y', print)] * len(CALLS)\nCALLS = []"
    plugins_with(install_package, acme=f"def register_layers():\n{counting}")
    assert len(facade.registered_layers()) == len(facade.registered_layers()) == 1


def test_a_command_with_a_name_that_is_taken_is_left_out_and_named(install_package: Any) -> None:
    command = "def register_commands():\n    import click\n    return [{}]"
    made = [f"click.Command({name!r})" for name in ("check", "upload", "flash")]
    plugins = plugins_with(
        install_package,
        acme=command.format(", ".join([made[0], made[1], "click.Command(None)"])),
        zeta=command.format(", ".join([made[1], made[2]])),
    )
    found = facade.commands({"check"})
    assert [(one.value.name, one.plugin) for one in found if one.owner.is_foreign] == [("flash", "zeta 1.2 (zeta)")]
    assert isinstance(found[0].value, click.Command)
    owners = {(one.distribution, one.message) for one in plugins.failures()}
    assert ("zeta", "The command upload is claimed by acme 1.2 (acme) and zeta 1.2 (zeta)") in owners


def test_targets_of_hooks_are_devices_and_a_device_of_an_entry_point_stays_its_own(install_package: Any) -> None:
    body = """
    from dryfit.target.limits import LimitTable
    from dryfit.target.target import Platform, Target
    return [Target(device=name, title='{0}', platforms=[Platform('a', 'a', 'A')], limits_at='{0}_hooks:LIMITS')
            for name in {1}]
"""
    limits = "from dryfit.target.limits import *\nLIMITS = LimitTable('X', [], supported_kinds=frozenset({'lrn'}))"
    plugins = plugins_with(
        install_package,
        acme="def register_targets():" + body.format("acme", ["BOARD_1", "BOARD_2", "GPU"]) + limits,
        zeta="def register_targets():" + body.format("zeta", ["BOARD_2", "BOARD_3"]) + limits,
    )
    assert plugins.target("board-1").title == "acme"
    assert plugins.target_package("BOARD_3") == "zeta 1.2"
    assert list(plugins.targets()) == ["BOARD_1", "BOARD_3", "CPU", "DLA", "GPU"]
    assert plugins.target("GPU").title != "acme"
    both = "The device BOARD_2 is claimed by acme 1.2 (acme) and zeta 1.2 (zeta)"
    assert ("zeta", "register_targets", both) in failures(plugins)


def test_whether_a_hook_is_implemented_is_known_without_calling_it(install_package: Any) -> None:
    plugins = plugins_with(install_package, acme="def vote_on_placement(): raise RuntimeError")
    assert facade.is_implemented("vote_on_placement")
    assert not facade.is_implemented("observe_build")
    assert plugins.failures() == []
