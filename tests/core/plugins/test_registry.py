import subprocess
import sys
from importlib.metadata import Distribution, EntryPoint

import pytest

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.registry import LAYERS, TARGETS, PluginRegistry

MODULES = {
    "acme_targets": """
from dryfit.target.target import Platform, Target

ACME = Target(device="ACME_NPU", title="Acme", platforms=[Platform("one", "one", "Acme One")])
SECOND_GPU = Target(device="GPU", title="Another", platforms=[Platform("other", "other", "Other")])
NO_PLATFORM = Target(device="EMPTY", title="Empty", platforms=[])
LOWER_CASE = Target(device="acme", title="Lower", platforms=[Platform("one", "one", "One")])
NOT_A_TARGET = "a string"
""",
    "acme_broken": "raise RuntimeError('the board is on fire')",
    "acme_exits": "raise SystemExit(3)",
    "acme_lacks": "",
}


@pytest.fixture(autouse=True)
def _acme_modules(tmp_path, monkeypatch):
    """A stranger's modules, on the path."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


class FakeDistribution(Distribution):
    """A package that is not installed."""

    def __init__(self, name, version):
        self._name, self._version = name, version

    @property
    def metadata(self):
        return {"Name": self._name, "Version": self._version}

    @property
    def version(self):
        return self._version

    def read_text(self, filename):
        return None

    def locate_file(self, path):
        return path


def entry(name, value, distribution="acme", version="1.2", group=TARGETS):
    made = EntryPoint(name, value, group)
    vars(made)["dist"] = FakeDistribution(distribution, version)
    return made


def own(name):
    return entry(name, f"dryfit_{name}:TARGET", "dryfit", "0.1.0")


def registry_of(*entries, disabled=""):
    reads = []

    def read(group):
        reads.append(group)
        return [one for one in entries if one.group == group]

    made = PluginRegistry(read, disabled)
    made.reads = reads
    return made


def test_the_targets_of_the_house_are_found_by_device():
    assert list(registry.targets()) == sorted(registry.targets())
    assert {"CPU", "DLA", "GPU"} <= set(registry.targets())
    assert registry.target("dla") is registry.target("DLA")
    assert registry.host().device == "CPU"
    assert [one for one in registry.failures() if one.distribution == "dryfit"] == []


def test_an_unknown_device_names_those_that_exist_and_the_closest():
    with pytest.raises(UnknownNameError, match="There is no device named 'DAL'") as error:
        registry_of(own("dla"), own("cpu")).target("DAL")
    assert error.value.known == ["CPU", "DLA"]
    assert error.value.remedy == "Did you mean 'DLA'?"


def test_nothing_is_read_before_it_is_asked_for():
    made = registry_of(own("cpu"))
    assert made.reads == []
    made.targets()
    made.targets()
    assert made.reads == [TARGETS]


def test_a_strangers_target_stands_beside_the_others():
    made = registry_of(own("cpu"), entry("acme", "acme_targets:ACME"))
    assert made.target("acme_npu").title == "Acme"
    assert made.active() == ["acme 1.2 (acme)", "cpu 0.1.0 (dryfit)"]
    assert made.failures() == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("acme_broken:TARGET", "RuntimeError: the board is on fire"),
        ("acme_exits:TARGET", "SystemExit: 3"),
        ("acme_lacks:TARGET", "AttributeError"),
        ("acme_missing:TARGET", "ModuleNotFoundError"),
        ("acme_targets:NOT_A_TARGET", "names no target (found str"),
        ("acme_targets:NO_PLATFORM", "has no platform"),
        ("acme_targets:LOWER_CASE", "upper case (found 'acme')"),
    ],
)
def test_a_broken_plugin_stops_nobody_and_is_remembered(value, message):
    made = registry_of(own("cpu"), own("dla"), entry("acme", value))
    assert list(made.targets()) == ["CPU", "DLA"]
    [failure] = made.failures()
    assert (failure.group, failure.name, failure.distribution, failure.version) == (TARGETS, "acme", "acme", "1.2")
    assert message in failure.message
    assert "Traceback" in failure.traceback
    assert made.active() == ["cpu 0.1.0 (dryfit)", "dla 0.1.0 (dryfit)"]


def test_asking_for_the_device_of_a_broken_plugin_says_what_is_broken():
    made = registry_of(own("cpu"), entry("acme", "acme_broken:TARGET"))
    with pytest.raises(PluginError, match="could not be loaded") as error:
        made.target("ACME")
    assert error.value.where == "acme 1.2"
    assert "the board is on fire" in error.value.found


def test_a_device_that_two_packages_claim_is_refused_with_both_names():
    made = registry_of(own("cpu"), own("gpu"), entry("other", "acme_targets:SECOND_GPU"))
    assert list(made.targets()) == ["CPU"]
    with pytest.raises(PluginError, match="claimed by more than one package") as error:
        made.target("gpu")
    assert error.value.found == "gpu 0.1.0 (dryfit), other 1.2 (acme)"
    assert [one.name for one in made.failures()] == ["gpu", "other"]
    # Switched off, the second leaves the device to the first.
    assert registry_of(own("gpu"), entry("other", "acme_targets:SECOND_GPU"), disabled="other").target("gpu").title


@pytest.mark.parametrize(
    ("disabled", "devices"),
    [
        ("", ["ACME_NPU", "CPU", "DLA"]),
        ("acme", ["CPU", "DLA"]),
        (" dla , Acme-Tools ", ["CPU"]),
        ("*", ["CPU", "DLA"]),
    ],
)
def test_plugins_are_switched_off_by_name_or_distribution(disabled, devices):
    made = registry_of(own("cpu"), own("dla"), entry("acme", "acme_targets:ACME", "acme-tools"), disabled=disabled)
    assert list(made.targets()) == devices


def test_a_plugin_that_is_switched_off_is_never_imported():
    made = registry_of(own("cpu"), entry("acme", "acme_missing:TARGET"), disabled="acme")
    assert list(made.targets()) == ["CPU"]
    assert made.failures() == []


def test_the_environment_switches_plugins_off():
    code = "from dryfit.plugins.registry import targets, active_plugins; print(list(targets()), len(active_plugins()))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"DRYFIT_DISABLE_PLUGINS": "dla"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DLA" not in found.stdout
    assert "GPU" in found.stdout


def test_without_the_cpu_target_there_is_no_host():
    with pytest.raises(PluginError, match="No installed target can run on this machine"):
        registry_of(own("gpu")).host()


def test_entry_points_of_other_groups_are_named_but_not_loaded():
    made = registry_of(own("cpu"), entry("Foo", "acme_missing:PLUGIN", group=LAYERS))
    assert made.active() == ["Foo 1.2 (acme)", "cpu 0.1.0 (dryfit)"]
    assert made.failures() == []
