"""`dryfit.answers.run`: what a run gives a script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dryfit.answers.build import build
from dryfit.answers.run import RunAnswer, run
from dryfit.errors import ConfigError

SHAPE = {"shape": {"image": (1, 1, 8, 8)}}


def test_arrays_files_a_model_and_its_engine_give_the_same_values(digits_model: Path, tmp_path: Path) -> None:
    picture = np.random.default_rng(3).random((1, 1, 8, 8), np.float32)
    np.save(tmp_path / "picture.npy", picture)
    build(digits_model, tmp_path / "digits.engine", **SHAPE)
    answers = [
        run(onnx.load(digits_model), {"image": picture}, **SHAPE),
        run(digits_model, [f"image={tmp_path / 'picture.npy'}"], **SHAPE),
        run(tmp_path / "digits.engine", {"image": picture}),
    ]
    first, *others = [one.output("probabilities") for one in answers]
    assert first.shape == (1, 10)
    assert all(np.array_equal(first, one) for one in others)
    assert answers[0].assumed[0].startswith("--device")
    assert answers[2].assumed == ()
    assert answers[0].to_dict()["outputs"] == [
        {"name": "probabilities", "shape": [1, 10], "type": "float32", "file": None}
    ]


def test_times_of_layers_are_taken_only_where_they_are_asked_for(digits_model: Path, tmp_path: Path) -> None:
    build(digits_model, tmp_path / "digits.engine", **SHAPE)
    answer = run(tmp_path / "digits.engine", random=1, repeat=3, profile=True)
    assert isinstance(answer, RunAnswer)
    assert answer.runs == 3
    assert answer.host_milliseconds_by_layer
    assert "Host latency" in str(answer)
    assert repr(answer).endswith("(3 runs, including warm-up)>")
    plain = run(tmp_path / "digits.engine", random=1)
    assert plain.host_milliseconds_by_layer is None
    assert plain.host_latency_milliseconds is None  # the only run warms up
    p50, p99 = (answer.host_latency_milliseconds or {}).values()
    assert 0 < p50 <= p99
    assert f"p50 {p50:.3g} ms, p99 {p99:.3g} ms (3 runs" in answer.summary_line()
    by_layer = answer.host_p99_milliseconds_by_layer or {}
    assert all(by_layer[name] >= ms > 0 for name, ms in answer.host_milliseconds_by_layer.items())
    assert "Host latency" not in str(plain)


def test_what_is_built_takes_no_options(digits_model: Path, tmp_path: Path) -> None:
    build(digits_model, tmp_path / "digits.engine", **SHAPE)
    with pytest.raises(ConfigError, match="cannot be changed"):
        run(tmp_path / "digits.engine", random=1, precision="fp16")
