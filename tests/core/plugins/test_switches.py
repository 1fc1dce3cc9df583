from __future__ import annotations

import pytest

from dryfit.plugins.discovery import TARGETS, PluginOwner, PluginSwitches, switching_off

OWN = PluginOwner("dryfit", "0.1.0", TARGETS, "dla")
FOREIGN = PluginOwner("acme-tools", "1.2", TARGETS, "acme-npu")


@pytest.mark.parametrize(
    ("disabled", "selected", "own", "foreign"),
    [
        ("", None, "", ""),
        ("acme-npu", None, "", "DRYFIT_DISABLE_PLUGINS=acme-npu"),
        (" dla , Acme_Tools ", None, "DRYFIT_DISABLE_PLUGINS=dla", "DRYFIT_DISABLE_PLUGINS=acme-tools"),
        ("*", None, "", "--no-plugins or DRYFIT_DISABLE_PLUGINS=*"),
        ("", "", "", "DRYFIT_LOAD_PLUGINS="),
        ("", "other", "", "DRYFIT_LOAD_PLUGINS=other"),
        ("", "ACME_NPU", "", ""),
        ("", "other,acme-tools", "", ""),
        ("acme-npu", "acme-npu", "", "DRYFIT_DISABLE_PLUGINS=acme-npu"),
    ],
)
def test_the_variables_say_what_is_off_and_by_what(
    disabled: str, selected: str | None, own: str, foreign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRYFIT_LOAD_PLUGINS", raising=False)
    switches = PluginSwitches.from_texts(disabled, selected)
    assert (switches.reason(OWN), switches.reason(FOREIGN)) == (own, foreign)


def test_without_texts_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYFIT_DISABLE_PLUGINS", "dla")
    monkeypatch.setenv("DRYFIT_LOAD_PLUGINS", "")
    switches = PluginSwitches.from_texts()
    assert switches.reason(OWN) == "DRYFIT_DISABLE_PLUGINS=dla"
    assert switches.reason(FOREIGN) == "DRYFIT_LOAD_PLUGINS="


@pytest.mark.parametrize("owner", [OWN, FOREIGN, PluginOwner("acme-tools", "1.2", TARGETS, "dla")])
def test_switching_a_plugin_off_touches_no_other_package(owner: PluginOwner) -> None:
    word = switching_off(owner).removeprefix("DRYFIT_DISABLE_PLUGINS=")
    off = [one for one in (OWN, FOREIGN) if PluginSwitches.from_texts(word).reason(one)]
    assert {one.distribution for one in off} == {owner.distribution}


def test_words_that_name_nothing_that_is_installed_are_told() -> None:
    switches = PluginSwitches.from_texts("dla, dlaa,*", "acme-tools,Acme_Npu,nobody")
    assert switches.idle_words([OWN, FOREIGN]) == {
        "DRYFIT_DISABLE_PLUGINS": ["dlaa"],
        "DRYFIT_LOAD_PLUGINS": ["nobody"],
    }
    assert PluginSwitches.from_texts("dla", "").idle_words([OWN, FOREIGN]) == {}
