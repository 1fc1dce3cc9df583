from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dryfit.plugins import hookspecs
from dryfit.plugins.discovery import HOOKS
from dryfit.plugins.hook_modules import HOOK_NAMES
from dryfit.plugins.plugin_registry import PluginRegistry

MARKED = "import dryfit\n@dryfit.hookimpl\n"


def plugins_with(install_package: Any, text: str, value: str = "acme_hooks") -> PluginRegistry:
    install_package("acme", {HOOKS: {"acme": value}}, {"acme_hooks": text})
    return PluginRegistry(disabled="", selected="acme")


def test_there_are_at_most_eight_hooks_and_each_says_what_a_maker_needs() -> None:
    assert len(HOOK_NAMES) <= 8
    for name in HOOK_NAMES:
        text = inspect.getdoc(getattr(hookspecs, name)) or ""
        for part in ("When: ", "Returns: ", "Answers: ", "Implemented by: "):
            assert f"\n{part}" in text, (name, part)
        for parameter, one in inspect.signature(getattr(hookspecs, name)).parameters.items():
            assert f"\n    {parameter}: " in text, (name, parameter)
            assert one.annotation is not inspect.Parameter.empty


def test_implementations_are_asked_in_the_order_of_package_and_name(install_package: Any) -> None:
    text = MARKED + "def contribute_passes(): return []"
    install_package("zeta", {HOOKS: {"a": "zeta_a"}}, {"zeta_a": text})
    install_package("acme", {HOOKS: {"b": "acme_b", "a": "acme_a"}}, {"acme_b": text, "acme_a": text})
    plugins = PluginRegistry(disabled="", selected="acme,zeta")
    found = plugins.hooks.implementations("contribute_passes")
    assert [str(one.owner) for one in found] == ["a 1.2 (acme)", "b 1.2 (acme)", "a 1.2 (zeta)"]
    assert plugins.failures() == []


def test_modules_are_not_loaded_before_a_hook_is_called(install_package: Any) -> None:
    plugins = plugins_with(install_package, "raise RuntimeError('imported')")
    plugins.target("DLA")
    assert plugins.failures() == []
    assert plugins.hooks.implementations("observe_run") == []
    assert [one.message for one in plugins.failures()] == ["RuntimeError: imported"]


def test_a_second_thread_waits_until_all_modules_are_loaded(install_package: Any) -> None:
    text = "import time, dryfit\ntime.sleep(0.3)\n@dryfit.hookimpl\ndef contribute_passes(): return []"
    plugins = plugins_with(install_package, text)
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(plugins.hooks.implementations, ["contribute_passes"] * 4)]
    assert [[str(one.owner) for one in each] for each in found] == [["acme 1.2 (acme)"]] * 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            MARKED + "def vote_on_placment(layer): ...",
            "dryfit has no hook vote_on_placment; did you mean vote_on_placement?",
        ),
        (MARKED + "def xyz(): ...", f"dryfit has no hook xyz; hooks are {', '.join(HOOK_NAMES)}"),
        (
            MARKED + "def vote_on_placement(layer, budget): ...",
            "the hook vote_on_placement has no argument budget; it has layer, verdicts",
        ),
        (MARKED + "def register_targets(board): ...", "the hook register_targets has no argument board; it has none"),
        (
            "import dryfit\n@dryfit.hookimpl(wrapper=True)\ndef register_targets():\n    return (yield)",
            "register_targets is marked as a wrapper; dryfit calls each implementation on its own",
        ),
        ("def helper(): ...", "no function of the module acme_hooks is marked with @dryfit.hookimpl"),
        (
            "def register_targets(): return []",
            "no function of the module acme_hooks is marked with @dryfit.hookimpl; register_targets lacks the mark",
        ),
    ],
)
def test_a_module_that_does_not_fit_the_hooks_is_left_out_as_a_whole(
    install_package: Any, text: str, message: str
) -> None:
    sound = "\nimport dryfit\n@dryfit.hookimpl\ndef contribute_passes(): return []" if "import dryfit" in text else ""
    plugins = plugins_with(install_package, text + sound)
    assert plugins.hooks.implementations("contribute_passes") == []
    [failure] = plugins.failures()
    assert message in failure.message
    assert str(failure.owner) == "acme 1.2 (acme)"
    assert plugins.hooks.failed == {failure.owner}


def test_an_entry_point_that_names_no_module_is_a_failure(install_package: Any) -> None:
    plugins = plugins_with(install_package, "hooks = 1", "acme_hooks:hooks")
    assert plugins.hooks.implementations("observe_run") == []
    assert plugins.failures()[0].message.startswith("The entry point must name a module with hooks (found int")
