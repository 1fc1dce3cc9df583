from __future__ import annotations

import sys
from typing import Any

from tests.core.plugins.packages import target_module

from dryfit.plugins.discovery import CALIBRATORS, GROUPS, HOOKS, LAYERS, ONNX_OPERATORS, PASSES, TARGETS
from dryfit.plugins.installed_plugins import installed_plugins
from dryfit.plugins.plugin_registry import PluginRegistry

HOOK_TEXT = """
    raise RuntimeError("imported")
    from dryfit import hookimpl
    import dryfit

    @hookimpl
    def observe_run(engine): ...

    @dryfit.hookimpl(trylast=True)
    def contribute_passes(): ...

    def vote_on_placement(): ...
"""


def test_everything_is_listed_with_what_it_brings_and_nothing_is_imported(install_package: Any) -> None:
    install_package(
        "acme",
        {
            TARGETS: {"acme-npu": "acme:TARGET"},
            LAYERS: {"acme::Swish": "acme:SWISH"},
            ONNX_OPERATORS: {"com.acme::Swish": "acme:IMPORT"},
            PASSES: {"widen": "acme:PASS"},
            CALIBRATORS: {"Fraction": "acme:CALIBRATOR"},
            HOOKS: {"acme": "acme.hooks", "gone": "acme.gone"},
        },
        {"acme.__init__": "raise RuntimeError('imported')", "acme.hooks": HOOK_TEXT},
    )
    plugins = PluginRegistry(disabled="")
    listed = installed_plugins(plugins)
    found = {one.name: one.registers for one in listed if one.distribution == "acme"}
    assert found == {
        "acme-npu": "device ACME_NPU",
        "acme::Swish": "layer plugin acme::Swish",
        "com.acme::Swish": "ONNX operator com.acme::Swish",
        "widen": "pass widen",
        "Fraction": "calibrator fraction",
        "acme": "hooks contribute_passes, observe_run",
        "gone": "hooks",
    }
    assert listed == sorted(listed, key=lambda one: one.owner)
    assert {one.state for one in listed} == {"available"}
    assert ("acme" in sys.modules, plugins.failures()) == (False, [])
    assert {one.group for one in listed} <= set(GROUPS)


def test_each_state_is_told_with_its_reason(install_package: Any) -> None:
    install_package(
        "acme", {TARGETS: {"good": "acme:TARGET", "bad": "acme_gone:TARGET"}}, target_module("acme", "GOOD")
    )
    install_package("off", {TARGETS: {"off": "off:TARGET"}}, {})
    install_package("odd", "[dryfit.targets]\nnot an entry point\n", {})
    for name in ("one", "two"):
        install_package(name, {TARGETS: {"same": f"{name}:TARGET"}}, {})
    plugins = PluginRegistry(disabled="off")
    plugins.targets()
    states = {one.name: (one.state, one.reason) for one in installed_plugins(plugins) if one.owner.is_foreign}
    assert states == {
        "good": ("loaded", ""),
        "bad": ("failed", "ModuleNotFoundError: No module named 'acme_gone'"),
        "off": ("disabled", "by DRYFIT_DISABLE_PLUGINS=off"),
        "same": ("duplicate", "SAME is claimed by same 1.2 (one) and same 1.2 (two)"),
        "not an entry point": ("failed", "malformed entry point: 'not an entry point' = ''"),
    }
