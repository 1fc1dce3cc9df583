"""The engine explorer's own script builds and profiles an engine with the `trtexec` that dryfit puts on PATH."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dryfit_tensorrt.running import environment_of
from dryfit_tensorrt.settings import Settings


@pytest.mark.shared
def test_the_script_builds_and_profiles_an_engine(shared: Path, digits_model: Path, tmp_path: Path) -> None:
    folder = shared / "clients" / "trex"
    if not folder.is_dir():
        pytest.skip("needs the engine explorer in ../shared")
    pandas = pytest.importorskip("pandas")
    if int(pandas.__version__.partition(".")[0]) >= 3:
        pytest.skip("the engine explorer needs pandas 2")
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "pynvml.py").touch()  # imported for the clocks of a GPU, which the script does not set
    environment = environment_of(Settings())
    places = (environment["PYTHONPATH"], str(folder), str(tmp_path / "stub"), str(Path(pandas.__file__).parents[1]))
    environment |= {"PYTHONPATH": ":".join(places), "PYTHONDONTWRITEBYTECODE": "1"}
    script = folder / "utils" / "process_engine.py"
    said = ["shapes=image:1x1x8x8", "warmUp=0", "duration=0", "iterations=5"]
    done = subprocess.run(
        [sys.executable, str(script), "-b", "-p", str(digits_model), "out", *said],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    log = "".join(one.read_text() for one in (tmp_path / "out").glob("*.log"))
    assert "Successfully profiled the engine." in done.stdout, done.stdout + done.stderr + log
    engine = tmp_path / "out" / "digits.onnx.engine"
    facts = {
        part: json.loads(Path(f"{engine}.{part}.json").read_text())
        for part in ("graph", "profile", "timing", "build.metadata", "profile.metadata")
    }
    summary = facts["profile.metadata"]["performance_summary"]
    assert len(facts["timing"]) == 5
    assert min(one["latencyMs"] for one in facts["timing"]) == pytest.approx(summary["Latency"][0], rel=1e-4)
    names = [one["name"] for one in facts["profile"] if len(one) in (4, 5)]
    assert names == [layer["Name"] for layer in facts["graph"]["Layers"]]
    assert facts["profile"][0] == {"count": 5}
    assert facts["profile.metadata"]["inference_options"]["iterations"] == "5"
    assert facts["build.metadata"]["build_options"]["profilingVerbosity"] == "detailed"
