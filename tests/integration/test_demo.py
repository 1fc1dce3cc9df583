"""The digits example: what `make demo` shows, and that its training still trains."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

if find_spec("sklearn") is None:  # only the scripts import it: that takes each worker a seventh of its collection
    pytest.skip("the digits come with scikit-learn, which is not installed", allow_module_level=True)


def run_script(path: Path, *arguments: object) -> str:
    command = [sys.executable, path, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("platform", ["agx-orin-64", pytest.param("xavier", marks=pytest.mark.nightly)])
def test_the_demo_shows_reasons_segments_precisions_and_accuracies_near_the_reference(
    repository: Path, platform: str
) -> None:
    printed = run_script(repository / "examples/digits/demo.py", "--platform", platform)
    assert re.search(r"elu2: activation_type must be one of RELU, [^(]*\(found ELU\)", printed)
    assert "Simulated: " in printed
    for title in ("Layers\n", "Segments\n", "Reformats\n", "Precisions\n"):
        assert title in printed
    assert "Calibrated on 500 images by entropy2: 15 scales of 15 tensors." in printed
    assert re.search(r"\n  conv3 +DLA +INT8 ", printed)
    rows = {
        name: tuple(map(float, re.search(rf"\n  {name} +([\d.]+)% +([\d.]+)% +(\S+)", printed).groups()))
        for name in ("FP32 reference", "FP16 DLA", "INT8 GPU", "INT8 DLA")
    }
    reference = rows["FP32 reference"][0]
    assert reference >= 97
    for right, agreement, _ in rows.values():
        assert abs(right - reference) <= 0.6  # two images of 360
        assert agreement >= 99.4
    # Narrower types lie further from the reference: an INT8 engine that did not would not be one.
    assert 0 < rows["FP16 DLA"][2] < rows["INT8 GPU"][2]
    assert rows["FP16 DLA"][2] < rows["INT8 DLA"][2]
    if platform == "agx-orin-64":
        readme = (repository / "README.md").read_text(encoding="utf-8")
        told = re.findall(r"\n(  (?:FP|INT).*%)", printed[printed.index("Accuracy on") :])
        assert len(told) == len(rows)
        assert all(line in readme for line in told)


def test_the_committed_model_is_small_and_good(repository: Path, digits_model: Path) -> None:
    assert digits_model.stat().st_size < 300_000
    onnx.checker.check_model(onnx.load(digits_model), full_check=True)
    code = "from digits_data import train_and_test; import numpy, sys; numpy.savez(sys.argv[1], *train_and_test()[1])"
    folder = repository / "examples" / "digits"
    place = repository / ".cache" / "test-split.npz"
    place.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", code, place], cwd=folder, check=True)
    split = np.load(place)
    images, labels = split["arr_0"], split["arr_1"]
    assert len(labels) == 360
    session = onnxruntime.InferenceSession(digits_model, providers=["CPUExecutionProvider"])
    assert (session.run(None, {"image": images})[0].argmax(axis=1) == labels).mean() >= 0.97


def test_the_training_learns_and_writes_what_it_learned(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "digits.onnx"
    printed = run_script(repository / "examples/digits/train.py", "--epochs", 2, "--output", path)
    accuracy = float(re.search(r"test accuracy: ([\d.]+)%", printed).group(1))
    assert accuracy > 80
    onnx.checker.check_model(onnx.load(path), full_check=True)
