"""Shared models are pruned to 2:4: what changes in the file, and that another runtime takes the copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dryfit.cli.main import main

PRUNED = {"mobilenetv2-fp32.onnx": 25, "squeezenet1.1-int8-qdq-sym.onnx": 10}
"""File to how many of its convolutions have 64 input channels or more, and a number of maps that allows sparsity."""


@pytest.fixture(scope="module", params=PRUNED)
def models(
    request: pytest.FixtureRequest, shared_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[onnx.ModelProto, onnx.ModelProto, Path]:
    """A model, its pruned copy, and the copy's file."""
    path = tmp_path_factory.mktemp("pruned") / request.param
    source = shared_models / request.param
    shape = () if onnx.load(str(source)).graph.input[0].type.tensor_type.shape.dim[0].dim_value else _one_image(source)
    with pytest.raises(SystemExit) as end:
        main(["sparsity", "prune", str(source), "-o", str(path), *shape])
    assert end.value.code == 0
    return onnx.load(str(source)), onnx.load(str(path)), path


def _one_image(path: Path) -> tuple[str, str]:
    (info,) = onnx.load(str(path)).graph.input
    extents = [one.dim_value or 1 for one in info.type.tensor_type.shape.dim]
    return "--shape", f"{info.name}={'x'.join(map(str, extents))}"


def initializers(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}


def test_in_each_group_the_largest_stay_as_they_were(
    models: tuple[onnx.ModelProto, onnx.ModelProto, Path],
) -> None:
    before, after = initializers(models[0]), initializers(models[1])
    changed = [name for name in before if not np.array_equal(before[name], after[name])]
    assert len(changed) == PRUNED[models[2].name]
    for name in changed:
        old, new = (_groups(one[name]) for one in (before, after))
        kept = new != 0
        assert (kept.sum(-1) <= 2).all()
        np.testing.assert_array_equal(new[kept], old[kept])
        sizes = np.abs(old)
        np.testing.assert_array_equal(np.sort(sizes, -1)[..., 2:].sum(-1), np.abs(new).sum(-1))


def _groups(weights: np.ndarray) -> np.ndarray:
    """`[K, R, S, groups, 4]` of `[K, C, R, S]`, wide enough for the magnitude of -128."""
    moved = np.moveaxis(weights, 1, -1).astype(np.float64)
    assert moved.shape[-1] % 4 == 0
    return moved.reshape(*moved.shape[:-1], -1, 4)


def test_nothing_else_of_the_model_changes(models: tuple[onnx.ModelProto, onnx.ModelProto, Path]) -> None:
    before, after = initializers(models[0]), initializers(models[1])
    same = onnx.ModelProto()
    same.CopyFrom(models[1])
    for old, new in zip(models[0].graph.initializer, same.graph.initializer, strict=True):
        if not np.array_equal(before[old.name], after[old.name]):
            new.CopyFrom(old)
    assert same.SerializeToString() == models[0].SerializeToString()


def test_another_runtime_takes_the_copy(models: tuple[onnx.ModelProto, onnx.ModelProto, Path]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(models[2]), options, providers=["CPUExecutionProvider"])
    (info,) = session.get_inputs()
    shape = [extent if isinstance(extent, int) else 1 for extent in info.shape]
    (found, *_) = session.run(None, {info.name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)})
    assert np.isfinite(found).all()
    assert len(np.unique(found)) > 2
