"""New packages from the templates: their names, their files, and that their own tests pass as they are."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.core.plugins.packages import install

from dryfit.cli.main import main
from dryfit.cli.new_package import KINDS, package_names, rendered_files, write_package
from dryfit.errors import ConfigError
from dryfit.plugins import API_LEVEL

NAMES = {"target": "Acme_NPU", "layer": "acme-hard-swish", "calibrator": "acme.share"}
"""Kind to a name for a package, each written in another way."""


def dryfit(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["plugins", "new", *map(str, arguments)])
    return stopped.value.code


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def made(kind, folder):
    """The folder of a new package, and what its `pyproject.toml` says."""
    assert dryfit(kind, NAMES[kind], "--directory", folder) == 0
    (package,) = folder.iterdir()
    return package, tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        ("target", "rule or limit or kind or kernel_of_7 or platform"),
        pytest.param(
            "target", "", marks=pytest.mark.nightly
        ),  # builds take time; a sound target of the tests passes all
        ("layer", ""),
        ("calibrator", ""),
    ],
)
def test_the_tests_of_a_new_package_pass(kind, chosen, tmp_path):
    package, project = made(kind, tmp_path / "new")
    facts = project["project"]
    site = install(tmp_path / "site", facts["name"], facts["entry-points"], {}, facts["version"])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen],
        cwd=package,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package / "src"), str(site)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_new_target_may_start_as_a_copy_of_another(tmp_path):
    assert dryfit("target", "acme-core", "--like", "dla", "--directory", tmp_path) == 0
    package = tmp_path / "acme-core"
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"] == {"dryfit.targets": {"acme-core": "acme_core:TARGET"}}
    record = (package / "src/acme_core/__init__.py").read_text(encoding="utf-8")
    assert 'device="ACME_CORE"' in record
    assert "acme_core.limits" in record
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    assert not any("dryfit_dla" in text for text in texts)
    tests = (package / "tests/test_acme_core.py").read_text(encoding="utf-8")
    assert tests.endswith("class TestTarget(TargetConformance):\n    target = TARGET\n")
    assert "import pytest" not in tests  # the test of the template's own limit is left out
    assert "ACME_CORE_MANAGED_SRAM" in (package / "src/acme_core/formats.py").read_text(encoding="utf-8")
    assert dryfit("layer", "acme-other", "--like", "dla", "--directory", tmp_path) == 2
    assert dryfit("target", "acme-other", "--like", "mars", "--directory", tmp_path) != 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_is_clean_and_short(kind, tmp_path):
    package, _ = made(kind, tmp_path)
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    rules = "A,ARG,B,C4,E,F,I,N,PIE,PT,RET,RUF,SIM,UP,W"
    for command in (["check", "--no-cache", "--select", rules], ["format", "--no-cache", "--check"]):
        done = subprocess.run([ruff, *command, "."], cwd=package, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py"))
    assert lines < 100


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_template_is_left_and_the_entry_point_names_the_module(kind, tmp_path):
    package, project = made(kind, tmp_path)
    for path in package.rglob("*"):
        assert "MODULE" not in path.name
        assert path.is_dir() or not {"{{", "}}"} & set(path.read_text(encoding="utf-8").split())
    ((group, entries),) = project["project"]["entry-points"].items()
    ((name, value),) = entries.items()
    expected = {
        "target": ("dryfit.targets", "acme-npu", "acme_npu:TARGET"),
        "layer": ("dryfit.layers", "acme::HardSwish", "acme_hard_swish:layer"),
        "calibrator": ("dryfit.calibrators", "acme-share", "acme_share:CALIBRATOR"),
    }
    assert (group, name, value) == expected[kind]


def test_a_new_target_states_its_level_and_speaks_of_quantized_models():
    files = rendered_files("target", package_names("target", NAMES["target"]))
    assert f"DRYFIT_API_LEVEL = {API_LEVEL}" in files["src/acme_npu/__init__.py"]
    assert '"quantize" and "dequantize"' in files["src/acme_npu/limits.py"]


def test_the_command_tells_the_files_and_what_comes_next(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dryfit("layer", "acme-swish") == 0
    told, _, commands = capsys.readouterr().out.partition("\nNext:\n")
    assert told.splitlines() == [
        "A new package acme-swish with the module acme_swish:",
        *(f"  acme-swish/{path}" for path in files_below(tmp_path / "acme-swish")),
    ]
    assert [line.split()[:2] for line in commands.splitlines()] == [
        ["pip", "install"],
        ["dryfit", "plugins"],
        ["pytest", "acme-swish"],
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3d-npu", "Invalid package name.*'3d-npu'.*Try 'd-npu'"),
        ("acme npu", "'acme npu'.*Try 'acme-npu'"),
        ("-acme", "'-acme'.*a letter first"),
        ("acme-", "'acme-'"),
        ("../acme", "'../acme'.*Try 'acme'"),
        ("käse", "'käse'"),
        ("class", "'class'.*no word of Python"),
        ("", "found ''"),
        ("json", "A module with this name already exists .*'json'"),
        ("Dryfit-CPU", "A module with this name already exists .*'dryfit_cpu'"),
    ],
)
def test_a_name_that_no_package_can_have_is_refused(name, message):
    with pytest.raises(ConfigError, match=message):
        package_names("layer", name)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("target", "gpu", "A device with this name is already installed .*GPU"),
        ("calibrator", "minmax", "installed .*minmax"),
    ],
)
def test_a_name_that_a_plugin_has_already_is_refused(kind, name, message):
    with pytest.raises(ConfigError, match=message):
        package_names(kind, name)


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "acme-share").mkdir()
    (tmp_path / "acme-share" / "precious.txt").write_text("mine")
    assert dryfit("calibrator", "acme-share", "--directory", tmp_path) == 2
    assert "The folder must not exist yet (found" in capsys.readouterr().err
    assert files_below(tmp_path) == ["acme-share/precious.txt"]


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_left(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_package(tmp_path / "acme", {"a": "text", "a/b": "a file below a file"})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="The folder cannot be created"):
        write_package(tmp_path / "file" / "acme", {})


def test_an_unknown_kind_is_refused_with_those_that_exist(capsys):
    assert dryfit("kernel", "acme") == 2
    assert "'target', 'layer', 'calibrator'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_name_gives_the_same_files(kind):
    names = package_names(kind, NAMES[kind])
    assert rendered_files(kind, names) == rendered_files(kind, names)
    assert list(rendered_files(kind, names))[:2] == ["README.md", "pyproject.toml"]
