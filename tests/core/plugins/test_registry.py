from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest
from tests.core.plugins.packages import target_module

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.discovery import CALIBRATORS, HOOKS, LAYERS, TARGETS, owner_of
from dryfit.plugins.plugin_registry import PluginRegistry


def installed(**switches: str) -> PluginRegistry:
    return PluginRegistry(**{"disabled": "", **switches})


def foreign_failures(plugins: PluginRegistry) -> dict[str, str]:
    return {str(one.owner): one.message for one in plugins.failures() if one.owner.is_foreign}


def test_the_targets_of_the_house_are_found_by_device() -> None:
    assert list(registry.targets()) == sorted(registry.targets())
    assert {"CPU", "DLA", "GPU"} <= set(registry.targets())
    assert registry.target("dla") is registry.target("DLA")
    assert registry.host().device == "CPU"
    assert [one for one in registry.failures() if one.distribution == "dryfit"] == []


def test_an_unknown_device_names_those_that_exist_and_the_closest() -> None:
    with pytest.raises(UnknownNameError, match="Unknown device: 'DAL'") as error:
        installed(selected="").target("DAL")
    assert error.value.known == ["CPU", "DLA", "GPU"]
    assert error.value.remedy == "Did you mean 'DLA'?"


def test_a_malformed_line_is_no_device(install_package: Any) -> None:
    install_package("odd", "[dryfit.targets]\nno equals sign\n= odd:TARGET\nodd = not a place!\n", {})
    plugins = installed(selected="odd")
    assert plugins.device_names() == ["CPU", "DLA", "GPU"]
    assert list(plugins.targets()) == ["CPU", "DLA", "GPU"]
    assert len(foreign_failures(plugins)) == 3


def test_packages_are_read_once_and_not_before_they_are_asked_for() -> None:
    reads: list[int] = []

    def read() -> list[EntryPoint]:
        reads.append(1)
        return [EntryPoint("cpu", "dryfit_cpu:TARGET", TARGETS)]

    plugins = PluginRegistry(read, "")
    assert not reads
    plugins.host()
    assert plugins.entry(CALIBRATORS, "acme") is None
    assert reads == [1]


def test_a_strangers_target_stands_beside_the_others(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    plugins = installed()
    for spelling in ("ACME_NPU", "acme_npu", "acme-npu"):
        assert plugins.target(spelling).title == "Acme"
    assert "ACME_NPU" in plugins.targets()
    assert "acme-npu 1.2 (acme)" in plugins.active_plugins()
    assert plugins.target_package("acme-npu") == "acme 1.2"
    assert plugins.failures() == []


def test_a_lookup_by_name_imports_no_other_package(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    install_package("aaa", {TARGETS: {"aaa": "aaa:TARGET"}}, {"aaa": "raise RuntimeError('imported')"})
    plugins = installed()
    assert plugins.target("DLA").device == "DLA"
    assert plugins.target("ACME_NPU").device == "ACME_NPU"
    assert plugins.host().device == "CPU"
    assert plugins.device_names() == ["AAA", "ACME_NPU", "CPU", "DLA", "GPU"]
    assert next(plugins.targets_in_turn()).device == "CPU"
    assert (plugins.failures(), "aaa" in sys.modules) == ([], False)
    assert list(plugins.targets()) == ["ACME_NPU", "CPU", "DLA", "GPU"]
    assert foreign_failures(plugins) == {"aaa 1.2 (aaa)": "RuntimeError: imported"}


def test_what_a_target_leaves_out_is_the_hosts(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    plugins = installed()
    target, host = plugins.target("ACME_NPU"), plugins.host()
    assert target.input_formats == host.input_formats
    assert target.arithmetic == host.arithmetic
    assert target.precisions == host.precisions
    assert target.limits is not host.limits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TARGET = 'a string'", "The entry point must name a target (found str; allowed: a Target record)"),
        ("TARGET = Target(device='acme_npu', title='', platforms=[ONE])", "A device name must be in upper case"),
        (
            "TARGET = Target(device='ACME_NPU', title='', platforms=[])",
            "The target ACME_NPU must have at least one platform",
        ),
        (
            "TARGET = Target(device='OTHER', title='', platforms=[ONE], limits_at='acme:FULL')",
            "different devices (found OTHER in the record, ACME_NPU by the entry point; allowed: one name)",
        ),
        (
            "TARGET = Target(device='ACME_NPU', title='', platforms=[ONE])",
            "The target ACME_NPU declares no limit rules (found no `limits_at`)",
        ),
        (
            "TARGET = Target(device='ACME_NPU', title='', platforms=[ONE], limits_at='acme:EMPTY')",
            "The target ACME_NPU declares no limit rules (found an empty table)",
        ),
        (
            "TARGET = Target(device='ACME_NPU', title='', platforms=[ONE], limits_at='acme_gone:LIMITS')",
            "ModuleNotFoundError: No module named 'acme_gone'",
        ),
    ],
)
def test_a_target_that_cannot_be_used_stops_nobody_and_says_why(install_package: Any, text: str, message: str) -> None:
    head = """
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target
ONE = Platform("one", "one", "One")
FULL, EMPTY = LimitTable("OTHER", [], supported_kinds=frozenset({"lrn"})), LimitTable("ACME_NPU", [])
"""
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": head + text})
    plugins = installed()
    assert list(plugins.targets()) == ["CPU", "DLA", "GPU"]
    [(owner, told)] = foreign_failures(plugins).items()
    assert owner == "acme-npu 1.2 (acme)"
    assert message in told
    with pytest.raises(PluginError, match="The plugin of the device ACME_NPU could not be loaded") as error:
        plugins.target("acme-npu")
    assert error.value.where == "acme 1.2"
    assert error.value.found == told
    assert "dryfit plugins doctor" in error.value.remedy
    assert plugins.find_target("acme-npu") is None


def test_a_device_that_two_packages_claim_is_nobodys_and_both_are_named(install_package: Any) -> None:
    for name in ("acme", "emca"):
        install_package(name, {TARGETS: {"acme-npu" if name == "acme" else "ACME_NPU": f"{name}:TARGET"}}, {})
    plugins = installed()
    with pytest.raises(PluginError, match=r"The name ACME_NPU .* is registered by more than one package") as error:
        plugins.target("acme-npu")
    assert error.value.found == "ACME_NPU 1.2 (emca), acme-npu 1.2 (acme)"
    assert list(plugins.targets()) == ["CPU", "DLA", "GPU"]
    both = "The device ACME_NPU is claimed by ACME_NPU 1.2 (emca) and acme-npu 1.2 (acme)"
    assert foreign_failures(plugins) == {"ACME_NPU 1.2 (emca)": both, "acme-npu 1.2 (acme)": both}
    assert not {"acme-npu 1.2 (acme)", "ACME_NPU 1.2 (emca)"} & set(plugins.active_plugins())


def test_switched_off_a_second_package_leaves_the_device_to_the_first(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    install_package("emca", {TARGETS: {"acme-npu": "emca:TARGET"}}, {})
    assert installed(disabled="emca").target("ACME_NPU").title == "Acme"


def test_nobody_takes_a_device_from_dryfit(install_package: Any) -> None:
    install_package("acme", {TARGETS: {"cpu": "acme:TARGET", "GPU": "acme:TARGET"}}, target_module("acme", "GPU"))
    plugins = installed()
    assert plugins.host().title == "This machine's processor"
    assert plugins.target("GPU").title != "Acme"
    assert list(plugins.targets()) == ["CPU", "DLA", "GPU"]
    assert foreign_failures(plugins) == {
        "GPU 1.2 (acme)": "The device GPU is claimed by GPU 1.2 (acme) and gpu 0.1.0 (dryfit); dryfit's own is used",
        "cpu 1.2 (acme)": "The device CPU is claimed by cpu 1.2 (acme) and cpu 0.1.0 (dryfit); dryfit's own is used",
    }


@pytest.mark.parametrize(
    ("switches", "by"),
    [
        ({"disabled": "acme-npu"}, "DRYFIT_DISABLE_PLUGINS=acme-npu"),
        ({"disabled": "*"}, "--no-plugins or DRYFIT_DISABLE_PLUGINS=*"),
        ({"selected": "other"}, "DRYFIT_LOAD_PLUGINS=other"),
    ],
)
def test_a_plugin_that_is_switched_off_is_never_imported_and_says_so_when_it_is_asked_for(
    install_package: Any, switches: dict[str, str], by: str
) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    plugins = installed(**switches)
    assert list(plugins.targets()) == ["CPU", "DLA", "GPU"]
    assert "acme-npu 1.2 (acme)" not in plugins.active_plugins()
    with pytest.raises(PluginError, match=r"The plugin acme-npu 1.2 \(acme\) is disabled") as error:
        plugins.target("ACME_NPU")
    assert error.value.found == by
    assert (plugins.failures(), "acme" in sys.modules) == ([], False)


def test_the_environment_switches_plugins_off() -> None:
    code = "from dryfit.plugins import registry; print(list(registry.targets()))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"DRYFIT_DISABLE_PLUGINS": "dla"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DLA" not in found.stdout
    assert "GPU" in found.stdout


def test_without_the_cpu_target_there_is_no_host() -> None:
    with pytest.raises(PluginError, match="No installed target runs on this machine"):
        installed(disabled="cpu", selected="").host()


def test_the_active_plugins_do_not_depend_on_what_has_been_loaded(install_package: Any) -> None:
    install_package(
        "acme",
        {
            TARGETS: {"acme-npu": "acme_broken:TARGET"},
            LAYERS: {"acme::Swish": "acme_broken:SWISH"},
            HOOKS: {"good": "acme_hooks", "bad": "acme_broken"},
        },
        {"acme_broken": "1 / 0", "acme_hooks": "import dryfit\n@dryfit.hookimpl\ndef register_targets(): return []"},
    )
    plugins = installed()
    before = plugins.active_plugins()
    assert [one for one in before if "acme" in one] == [
        "acme-npu 1.2 (acme)",
        "acme::Swish 1.2 (acme)",
        "good 1.2 (acme)",
    ]
    assert before == sorted(before)
    plugins.targets()
    assert plugins.active_plugins() == before


def test_names_that_are_looked_up_in_any_case_are_claimed_in_any_case(install_package: Any) -> None:
    install_package("acme", {CALIBRATORS: {"Fraction": "acme:ONE"}}, {"acme": "ONE = 1"})
    plugins = installed()
    entry = plugins.entry(CALIBRATORS, "FRACTION")
    assert entry is not None
    assert plugins.require(entry, lambda loaded: loaded, "It cannot be used") == 1
    assert plugins.entry(CALIBRATORS, "other") is None
    install_package("emca", {CALIBRATORS: {"fraction": "emca:ONE"}}, {})
    with pytest.raises(PluginError, match="is registered by more than one package"):
        installed().entry(CALIBRATORS, "fraction")


def test_the_first_failure_of_a_plugin_is_kept() -> None:
    plugins = PluginRegistry(list, "")
    entry = EntryPoint("acme", "acme:TARGET", TARGETS)
    vars(entry)["dist"] = SimpleNamespace(name="acme", version="1.2")
    plugins.fail(entry, "first\nwith more lines")
    plugins.fail(entry, "second")
    plugins.fail(owner_of(entry), "of a hook", hook="observe_run")
    assert [(one.hook, one.message) for one in plugins.failures()] == [("", "first"), ("observe_run", "of a hook")]
    assert str(plugins.failures()[1]) == "acme 1.2 (acme) in dryfit.targets: hook observe_run: of a hook"


def test_switching_foreign_plugins_off_leaves_those_of_dryfit(
    install_package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package("acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry(disabled="")))
    assert "ACME_NPU" in registry.device_names()
    registry.switch_off_foreign()
    assert registry.device_names() == ["CPU", "DLA", "GPU"]
    monkeypatch.setenv("DRYFIT_DISABLE_PLUGINS", "gpu")
    registry.switch_off_foreign()
    assert registry.device_names() == ["CPU", "DLA"]
    assert registry.find_target("ACME_NPU") is None


def test_another_process_has_a_registry_of_its_own() -> None:
    assert pickle.loads(pickle.dumps(registry)) is registry  # noqa: S301  what was dumped just now
    assert pickle.loads(pickle.dumps(registry.switch_off_foreign)).__self__ is registry  # noqa: S301  what was dumped just now
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(PluginRegistry())
