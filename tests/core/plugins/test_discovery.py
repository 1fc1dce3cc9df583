from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from tests.core.plugins.packages import install

from dryfit.plugins.discovery import TARGETS, installed_entry_points, module_of, normalised, owner_of


def foreign(group: str = TARGETS) -> list[EntryPoint]:
    return [entry for entry in installed_entry_points() if entry.group == group and owner_of(entry).is_foreign]


def test_an_installed_package_is_found_with_its_name_and_version(install_package: Any) -> None:
    install_package("Acme_NPU.tools", {TARGETS: {"acme-npu": "acme:TARGET"}}, {})
    [entry] = foreign()
    owner = owner_of(entry)
    assert (owner.distribution, owner.version, owner.name) == ("acme-npu-tools", "1.2", "acme-npu")
    assert str(owner) == "acme-npu 1.2 (acme-npu-tools)"
    assert owner.package == "acme-npu-tools 1.2"


def test_a_malformed_line_hides_neither_its_package_nor_the_others(install_package: Any) -> None:
    install_package("sound", {TARGETS: {"sound": "sound:TARGET"}}, {})
    install_package("broken", "[dryfit.targets]\n# a comment\nno equals sign\nodd = not a place!\n", {})
    assert {(entry.name, entry.value) for entry in foreign()} == {
        ("sound", "sound:TARGET"),
        ("no equals sign", ""),
        ("odd", "not a place!"),
    }


def test_what_is_no_text_becomes_malformed_lines(install_package: Any) -> None:
    folder = install_package("odd", "", {})
    declared = b"[dryfit.targets]\nsound = sound:TARGET\n\xff\xfe = \xff\n"
    (folder / "odd-1.2.dist-info" / "entry_points.txt").write_bytes(declared)
    assert [(entry.name, module_of(entry.value)) for entry in foreign()] == [("sound", "sound"), ("\ufffd\ufffd", None)]


def test_a_package_without_a_version_or_any_metadata_is_named_all_the_same(install_package: Any) -> None:
    folder = install_package("unversioned", {TARGETS: {"one": "one:TARGET"}}, {}, version=None)
    bare = install(folder, "bare", {TARGETS: {"two": "two:TARGET"}}, {}) / "bare-1.2.dist-info" / "METADATA"
    bare.unlink()
    assert {(owner_of(one).distribution, owner_of(one).version) for one in foreign()} == {
        ("unversioned", ""),
        ("bare", ""),
    }
    assert {str(owner_of(one)) for one in foreign()} == {"one (unversioned)", "two (bare)"}


def test_of_a_package_that_is_on_the_path_twice_the_first_counts(
    install_package: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package("acme", {TARGETS: {"late": "late:TARGET"}}, {})
    (tmp_path / "first").mkdir()
    monkeypatch.syspath_prepend(install(tmp_path / "first", "acme", {TARGETS: {"early": "early:TARGET"}}, {}))
    assert [entry.name for entry in foreign()] == ["early"]


@pytest.mark.parametrize("written", ["Acme-NPU", "acme_npu", "ACME.npu", "acme--npu"])
def test_spellings_of_a_package_are_one_name(written: str) -> None:
    assert normalised(written) == "acme-npu"


@pytest.mark.parametrize(
    ("value", "module"),
    [
        ("acme", "acme"),
        ("acme.npu:TARGET", "acme.npu"),
        ("acme:a.b [extra]", "acme"),
        ("", None),
        ("not a place!", None),
        ("acme:", None),
    ],
)
def test_a_value_names_a_module_or_is_malformed(value: str, module: str | None) -> None:
    assert module_of(value) == module
    # The standard library's own reading is the oracle.
    found = EntryPoint.pattern.match(value)
    assert (found and found["module"]) == module
