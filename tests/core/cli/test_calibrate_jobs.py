"""`dryfit calibrate --jobs`: the bytes of one process, also after Ctrl-C and failures."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit.calibration.jobs import threads_per_job
from dryfit.target import machine_code

COUNT = 40

SAMPLES = """
import os, pathlib, time
import numpy as np
from dryfit.plugins import registry

folder = pathlib.Path(os.environ["SAMPLES_FOLDER"])
(folder / f"switches {os.getpid()}").write_text(",".join(registry.switches.disabled))

class Samples:
    '''Of the second half none is given before the file "go" is there.'''

    def __len__(self):
        return 40

    def __getitem__(self, number):
        (folder / f"reached {number}").touch()
        while number >= 16 and not (folder / "go").exists():
            time.sleep(0.01)
        if number == 20 and (folder / "deadly").exists():
            (folder / "deadly").unlink()
            os.kill(os.getpid(), 9)
        if number == 35 and (folder / "bad").exists():
            raise ValueError("unreadable")
        return {"image": np.random.default_rng(number).standard_normal((1, 2, 6, 6)).astype(np.float32)}
"""


@pytest.fixture
def model(tmp_path):
    """A convolution and a ReLU."""
    kernel = np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["image", "w"], ["conv"]), helper.make_node("Relu", ["conv"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])],
        [numpy_helper.from_array(kernel, "w")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def samples(tmp_path, monkeypatch):
    """A user's function, and the folder in which it looks whether it may go on."""
    (tmp_path / "slow_samples.py").write_text(SAMPLES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SAMPLES_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return "slow_samples:Samples"


def test_jobs_change_no_byte(model, tmp_path, dryfit_command):
    data = tmp_path / "samples.npy"
    np.save(data, np.random.default_rng(1).standard_normal((COUNT, 2, 6, 6)).astype(np.float32))
    for jobs in (1, 2):
        files = ["--state", tmp_path / f"{jobs}.state", "-o", tmp_path / f"{jobs}.cache"]
        ended = dryfit_command("calibrate", model, "--data", data, "--jobs", jobs, *files)
        assert ended.code == 0
        assert ended.err.startswith("40 images in ")
    for kind in ("state", "cache"):
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_ctrl_c_keeps_what_processes_have_finished(model, samples, tmp_path, dryfit_command):
    """The key reaches every process of the terminal, as here the whole group."""
    cache = tmp_path / "small.cache"
    arguments = ["calibrate", model, "--data", samples, "-o", cache]
    call = [sys.executable, "-c", "from dryfit.cli.main import main; main()", *arguments, "--jobs", "2"]
    running = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # The third shard begins when one of the first two has ended, which can only be the first.
    until((tmp_path / "reached 32").exists)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 2
    assert f"Stopped.\n16 of 40 samples were seen. They are kept in {cache}.state; add --resume to go on." in told
    assert not cache.exists()

    (tmp_path / "go").touch()
    assert dryfit_command(*arguments, "--jobs", 1, "--resume").code == 0
    assert not (tmp_path / "small.cache.state").exists()
    other = tmp_path / "other.cache"
    assert dryfit_command("calibrate", model, "--data", samples, "-o", other).code == 0
    assert cache.read_bytes() == other.read_bytes()


def test_a_failure_keeps_what_processes_have_finished(model, samples, tmp_path, dryfit_command):
    (tmp_path / "go").touch()
    (tmp_path / "bad").touch()
    state = tmp_path / "small.state"
    arguments = ["calibrate", model, "--data", samples, "--state", state, "--resume"]
    ended = dryfit_command(*arguments, "--jobs", 2)
    assert ended.code == 2
    assert f"They are kept in {state}; add --resume to go on" in ended.err
    assert "shard 3 of 3, samples '32' to '39'" in ended.err
    assert "ValueError: unreadable" in ended.err
    (tmp_path / "bad").unlink()
    again = dryfit_command(*arguments, "--jobs", 1, "--json").json
    assert (again["samples"], again["run"]["samples_before"]) == (COUNT, COUNT - again["run"]["images"])
    assert again["run"]["samples_before"] >= 16


def test_a_process_that_dies_is_told_and_changes_no_byte(model, samples, tmp_path, dryfit_command):
    (tmp_path / "go").touch()
    states = [tmp_path / "1.state", tmp_path / "2.state"]
    dryfit_command("calibrate", model, "--data", samples, "--state", states[0])
    (tmp_path / "deadly").touch()
    ended = dryfit_command("calibrate", model, "--data", samples, "--state", states[1], "--jobs", 2)
    assert ended.code == 0
    assert "A worker process died; its work was repeated: shard 2 of 3, samples '16' to '31'" in ended.err
    assert states[0].read_bytes() == states[1].read_bytes()


@pytest.mark.parametrize(
    ("option", "expected"), [("--no-plugins", {"*"}), pytest.param("--debug", {""}, marks=pytest.mark.nightly)]
)
def test_processes_know_no_more_plugins_than_the_command(model, samples, tmp_path, option, expected):
    (tmp_path / "go").touch()
    call = [sys.executable, "-c", "from dryfit.cli.main import main; main()", option, "calibrate", model]
    subprocess.run([*call, "--data", samples, "--jobs", "2"], check=True, capture_output=True, timeout=120)
    assert {path.read_text() for path in tmp_path.glob("switches *")} == expected


def test_processes_share_the_cpus(monkeypatch):
    monkeypatch.setattr(machine_code, "usable_processors", lambda: 6)
    assert [threads_per_job(jobs) for jobs in (1, 2, 4, 6, 12)] == [6, 3, 1, 1, 1]


def until(is_true, seconds=60.0):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)
