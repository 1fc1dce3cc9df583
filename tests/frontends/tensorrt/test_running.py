"""Programs run with dryfit's modules under the names that they import, in their own processes and in no other."""

import importlib
import importlib.util
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from dryfit.errors import ConfigError, UnknownNameError
from dryfit_tensorrt import imports
from dryfit_tensorrt.commands import tensorrt
from dryfit_tensorrt.running import PROGRAMS, STARTUP, command_of, environment_of, shell_lines
from dryfit_tensorrt.settings import API_LEVELS, API_NAMES, VARIABLES, Settings, api_level
from dryfit_tensorrt.trtexec import exec_arguments

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(level.module) is None for level in API_LEVELS),
    reason="a module of a version is missing",
)

LEVELS = [pytest.param(level, id=level.name) for level in API_LEVELS]


def python(code: str, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run(tmp_path: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "dryfit_tensorrt", *options, str(script), "--an-option", "word"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


@pytest.mark.parametrize("name", API_NAMES)
def test_versions_have_names(name):
    assert api_level(name).version.startswith(name.partition(".")[0])


@pytest.mark.parametrize("name", ["9", "8.5", "10.3", "latest", ""])
def test_another_version_is_refused_with_those_that_exist(name):
    with pytest.raises(UnknownNameError, match=r"allowed: 8\.6, 10\.16 or 11\.1"):
        api_level(name)


def test_settings_come_back_from_the_environment():
    settings = Settings("11", "agx-orin-64", "10.3")
    assert settings.api.name == "11.1"
    assert Settings.from_environment(settings.environment()) == settings
    assert Settings.from_environment({}) == Settings() == Settings("10.16")


@pytest.mark.parametrize("level", LEVELS)
def test_a_program_imports_the_module_of_the_version(level, tmp_path):
    code = (
        "import sys, tensorrt, tensorrt as trt, importlib.metadata\n"
        "print(trt.__version__, trt.__name__, importlib.metadata.version('tensorrt'), sys.argv[1:])\n"
        "sys.exit(7)\n"
    )
    done = run(tmp_path, code, "--api", level.name)
    assert done.stdout.strip() == f"{level.version} tensorrt {level.version} ['--an-option', 'word']", done.stderr
    assert done.returncode == 7


def test_the_runtime_packages_cannot_build(tmp_path):
    code = "import tensorrt_lean as a, tensorrt_dispatch as b\nprint(*(hasattr(a, n) for n in ('Runtime', 'Builder')))"
    assert run(tmp_path, code).stdout == "True False\n"


def test_child_processes_inherit_the_modules(tmp_path):
    code = (
        "import subprocess, sys\n"
        "child = 'import tensorrt; print(tensorrt.__version__)'\n"
        "print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)\n"
    )
    assert run(tmp_path, code, "--api", "8.6").stdout.strip() == "8.6.1"


def test_an_installed_tensorrt_is_not_used_and_stderr_says_so(tmp_path):
    (tmp_path / "tensorrt").mkdir()
    (tmp_path / "tensorrt" / "__init__.py").write_text("__version__ = 'real'", encoding="utf-8")
    done = run(tmp_path, "import tensorrt; import tensorrt.tensorrt; print(tensorrt.__version__)")
    assert done.stdout == "10.16.1\n"
    note = f"dryfit: `import tensorrt` uses dryfit's module for TensorRT 10.16.1, not {tmp_path}"
    assert [line for line in done.stderr.splitlines() if "dryfit:" in line] == [f"{note}/tensorrt/__init__.py"]


def test_no_other_process_is_affected():
    assert importlib.util.find_spec("tensorrt") is None
    with pytest.raises(PackageNotFoundError):
        version("tensorrt")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRYFIT_TENSORRT")}
    assert python("import tensorrt", clean).returncode == 1


def test_the_names_can_be_removed_again():
    names = imports.install()
    try:
        assert imports.install() is names
        assert sys.meta_path.count(names) == 1
        assert importlib.util.find_spec("tensorrt").origin == "dryfit"
        assert version("TensorRT") == Settings.from_environment().api.version
    finally:
        imports.uninstall()
    assert names not in sys.meta_path
    assert importlib.util.find_spec("tensorrt") is None


def test_a_process_can_install_the_names_with_settings(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    try:
        imports.install(Settings("8.6", "orin-nx"))
        assert Settings.from_environment() == Settings("8.6", "orin-nx")
        assert importlib.import_module("tensorrt").__version__ == "8.6.1"
    finally:
        imports.uninstall()
    assert "tensorrt" not in sys.modules


def test_installers_see_no_distribution(tmp_path):
    names = imports.install()
    try:
        from importlib.metadata import distributions

        assert any(one.name == "tensorrt" for one in distributions())
        assert not [one for one in distributions(path=[str(tmp_path)]) if one.name == "tensorrt"]
    finally:
        imports.uninstall()
    assert names


def test_a_sitecustomize_of_the_user_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')", encoding="utf-8")
    environment = environment_of(Settings(), dict(os.environ) | {"PYTHONPATH": str(tmp_path)})
    done = python("import sitecustomize, sys; print(sitecustomize.__file__, *sys.path)", environment)
    lines = done.stdout.splitlines()
    assert lines[0] == "mine"
    assert lines[1].startswith(str(tmp_path / "sitecustomize.py"))
    assert str(STARTUP) not in lines[1]
    assert not done.stderr


def test_an_error_of_the_users_sitecustomize_is_still_reported(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module", encoding="utf-8")
    environment = environment_of(Settings(), dict(os.environ) | {"PYTHONPATH": str(tmp_path)})
    done = python("print('runs')", environment)
    assert done.stdout == "runs\n"
    assert "no_such_module" in done.stderr


def test_a_start_imports_neither_dryfit_nor_numpy():
    done = python("import sys; print(*sys.modules)", environment_of(Settings()))
    assert {"dryfit_tensorrt", "dryfit_tensorrt.imports"} <= {*done.stdout.split()}
    assert not {"dryfit", "numpy", "attrs", "ctypes", "pathlib", "typing_extensions", "importlib.metadata"} & {
        *done.stdout.split()
    }


def test_a_python_without_dryfit_says_so_at_the_import():
    code = f"""
import sys
sys.modules["start"] = sys
sys.path = [place for place in sys.path if "site-packages" not in place]
source = open({str(STARTUP / "sitecustomize.py")!r}).read()
exec(compile(source, "sitecustomize.py", "exec"), {{"__name__": "start", "__file__": ""}})
print("runs")
import tensorrt
"""
    done = python(code, environment_of(Settings()), "-I", "-S")
    assert done.stdout == "runs\n", done.stderr
    assert "This shell simulates TensorRT with dryfit, and dryfit is not installed for" in done.stderr


def test_the_lines_for_a_shell_set_it_up_and_undo_it(tmp_path):
    settings = Settings("8.6", "agx-orin-64")
    before = {"PYTHONPATH": f"/a b{os.pathsep}/c"}
    on = shell_lines(settings, before)
    show = "import tensorrt, os; print(tensorrt.__version__, os.environ['DRYFIT_TENSORRT_PLATFORM'])"
    script = "\n".join([*on, f'{sys.executable} -c "{show}"', 'echo "$PYTHONPATH"'])
    done = subprocess.run(["/bin/sh", "-c", script], env=before, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["8.6.1 agx-orin-64", f"{STARTUP}{os.pathsep}/a b{os.pathsep}/c"], done.stderr
    off = shell_lines(None, {"PYTHONPATH": f"{STARTUP}{os.pathsep}/a b"})
    assert off[-1] == "export PYTHONPATH='/a b'"
    assert shell_lines(None, {"PYTHONPATH": str(STARTUP)})[-1] == "unset PYTHONPATH"
    assert "unset DRYFIT_TENSORRT_API" in off
    assert shell_lines(None, {"PATH": f"{PROGRAMS}{os.pathsep}/bin"})[-2] == "export PATH=/bin"


def test_trtexec_of_such_a_shell_is_dryfits_for_its_version_and_board(tmp_path):
    before = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    script = "\n".join([*shell_lines(Settings("8.6", "agx-orin-64"), before), "trtexec --onnx=no.onnx --workspace=64"])
    done = subprocess.run(["/bin/sh", "-c", script], env=before, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "&&&& RUNNING TensorRT.trtexec [dryfit " in done.stdout
    assert "Selected Device: agx-orin-64" in done.stdout
    assert "TensorRT version: 8.6" in done.stdout
    assert "The model does not exist" in done.stderr
    assert command_of(["trtexec", "-h"])[0] == str(PROGRAMS / "trtexec")


def test_the_options_of_trtexec_come_after_those_of_the_environment():
    assert exec_arguments(Settings("11", None, "10.3"), ["--fp16"]) == [
        *("exec", "--api", "11.1", "--software", "10.3", "--", "--fp16")
    ]


def test_setting_up_twice_adds_the_folder_once():
    once = environment_of(Settings("8.6"), {"PYTHONPATH": "/x"})
    assert environment_of(Settings("11"), once)["PYTHONPATH"] == once["PYTHONPATH"] == f"{STARTUP}{os.pathsep}/x"


def test_programs_become_commands_of_this_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("", encoding="utf-8")
    assert command_of(["script.py", "-x"]) == [sys.executable, "script.py", "-x"]
    assert command_of(["python", "script.py"]) == [sys.executable, "script.py"]
    assert command_of(["python3", "-m", "json"]) == [sys.executable, "-m", "json"]
    assert command_of(["-m", "json.tool"]) == [sys.executable, "-m", "json.tool"]
    assert command_of(["pytest", "-q"])[0] == str(Path(sys.executable).parent / "pytest")
    with pytest.raises(ConfigError, match=r"Unknown program \(found 'polygrafy'"):
        command_of(["polygrafy", "run"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--api", "9", "x.py"], "Unknown TensorRT API version: '9' (allowed: 8.6, 10.16 or 11.1)"),
        (["run", "--api", "10"], "Missing argument"),
        (["env", "--api", "8"], "Unknown TensorRT API version: '8'"),
    ],
)
def test_wrong_options_are_refused(arguments, words):
    done = CliRunner().invoke(tensorrt, arguments)
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--platform", "moon"], "Unknown GPU platform: 'moon'"),
        (["--software", "10.3", "--platform", "generic"], "Unknown DLA platform: 'generic'"),
        (["--platform", "agx-orin-64", "--software", "99"], "99"),
    ],
)
def test_boards_and_software_are_checked_before_the_program_starts(arguments, words, tmp_path):
    done = run(tmp_path, "print('ran')", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not done.stdout


def test_the_commands_are_listed_among_those_of_dryfit():
    done = subprocess.run(
        [sys.executable, "-m", "dryfit.cli.main", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    help_text = CliRunner().invoke(tensorrt, ["--help"]).output
    assert "run" in help_text
    assert "env" in help_text
