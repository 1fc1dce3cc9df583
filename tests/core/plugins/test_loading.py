from __future__ import annotations

import signal
from typing import Any

import pytest

from dryfit.plugins import API_LEVEL, loading
from dryfit.plugins.discovery import TARGETS, owner_of
from dryfit.plugins.plugin_registry import PluginRegistry

ENDLESS = """
    import time
    while True:
        try:
            time.sleep(60)
        except Exception:
            pass
"""


def failure_of(install_package: Any, text: str, value: str = "acme:TARGET", **modules: str) -> Any:
    """What the registry keeps of a package whose module has this text."""
    install_package("acme", {TARGETS: {"acme": value}}, {"acme": text, **modules})
    plugins = PluginRegistry(disabled="", selected="acme")
    [entry] = [one for one in plugins.entries(TARGETS) if owner_of(one).is_foreign]
    assert plugins.load(entry) is None
    return plugins.failure(entry)


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("raise RuntimeError('the board is on fire')", "acme:TARGET", "RuntimeError: the board is on fire"),
        ("raise ImportError('no driver\\nsecond line')", "acme:TARGET", "ImportError: no driver"),
        ("import acme_driver", "acme:TARGET", "ModuleNotFoundError: No module named 'acme_driver'"),
        ("TARGET = (", "acme:TARGET", "SyntaxError: '(' was never closed (acme.py, line 1)"),
        ("raise SystemExit(3)", "acme:TARGET", "it exits while it is imported (SystemExit: 3)"),
        ("import sys; sys.exit()", "acme:TARGET", "it exits while it is imported (SystemExit: )"),
        ("raise GeneratorExit", "acme:TARGET", "GeneratorExit: "),
        ("", "acme:TARGET", "AttributeError: module 'acme' has no attribute 'TARGET'"),
        ("", "acme TARGET", "malformed entry point: 'acme' = 'acme TARGET'"),
        ("DRYFIT_API_LEVEL = 'two'", "acme", "module acme: DRYFIT_API_LEVEL must be a whole number (found 'two')"),
    ],
)
def test_what_a_module_does_wrong_is_told_in_one_line(
    install_package: Any, text: str, value: str, message: str
) -> None:
    failure = failure_of(install_package, text, value)
    assert failure.message == message.strip()
    assert failure.traceback.startswith("Traceback")
    assert failure.remedy
    assert (failure.distribution, failure.version, failure.group, failure.name) == ("acme", "1.2", TARGETS, "acme")


@pytest.mark.parametrize(
    ("module", "value"),
    [("acme", "acme:TARGET"), ("acme_family.__init__", "acme_family.npu:TARGET")],
)
@pytest.mark.parametrize("fails", ["", "from dryfit import something_of_tomorrow"])
def test_a_newer_level_of_the_interface_is_named_also_where_the_import_fails(
    install_package: Any, module: str, value: str, fails: str
) -> None:
    level = f"DRYFIT_API_LEVEL = {API_LEVEL + 1}\n"
    modules = {module: level + (fails if module == "acme" else ""), "acme_family.npu": f"TARGET = 1\n{fails}"}
    install_package("acme", {TARGETS: {"acme": value}}, modules)
    plugins = PluginRegistry(disabled="", selected="acme")
    [entry] = [one for one in plugins.entries(TARGETS) if owner_of(one).is_foreign]
    assert plugins.load(entry) is None
    newer = f"needs dryfit with plugin API level {API_LEVEL + 1}; this one has {API_LEVEL}; upgrade dryfit"
    assert plugins.failure(entry).message == newer
    assert plugins.failure(entry).remedy == "pip install --upgrade dryfit"


def test_the_level_of_this_dryfit_is_taken(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme": "acme:TARGET"}}, {"acme": f"DRYFIT_API_LEVEL = {API_LEVEL}\nTARGET = 5"})
    plugins = PluginRegistry(disabled="")
    [entry] = [one for one in plugins.entries(TARGETS) if owner_of(one).is_foreign]
    assert plugins.load(entry) == 5


def test_an_import_without_end_is_stopped_where_a_time_is_set(
    install_package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_seconds_allowed", 0.2)
    failure = failure_of(install_package, ENDLESS)
    assert failure.message == "its import takes longer than 0.2 s of CPU time, or 1.2 s"
    assert "DRYFIT_PLUGIN_TIMEOUT" in failure.remedy
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_an_interruption_ends_the_program_and_says_what_was_being_loaded(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme": "acme:TARGET"}}, {"acme": "raise KeyboardInterrupt"})
    plugins = PluginRegistry(disabled="")
    [entry] = [one for one in plugins.entries(TARGETS) if owner_of(one).is_foreign]
    with pytest.raises(KeyboardInterrupt) as stopped:
        plugins.load(entry)
    [note] = stopped.value.__notes__
    assert note == "While loading the plugin acme 1.2 (acme). DRYFIT_DISABLE_PLUGINS=acme switches it off."
    assert plugins.failures() == []


def test_what_a_module_prints_while_it_is_loaded_is_no_part_of_an_answer(
    install_package: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    install_package("acme", {TARGETS: {"acme": "acme:TARGET"}}, {"acme": "print('Welcome to Acme')\nTARGET = 1"})
    plugins = PluginRegistry(disabled="")
    [entry] = [one for one in plugins.entries(TARGETS) if owner_of(one).is_foreign]
    assert plugins.load(entry) == 1
    assert capsys.readouterr() == ("", "Welcome to Acme\n")
