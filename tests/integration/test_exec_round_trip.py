"""`dryfit export trtexec` and then `dryfit exec` give the engine that `dryfit build` gives, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import onnx
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.build import build
from dryfit.answers.trtexec.run import exec_trtexec
from dryfit.errors import DryfitError, PlacementError
from dryfit.onnx.parser import network_from_onnx

CONFIGURATIONS = 200
SAMPLE = 10
"""Random configurations of all runs; `--thorough` runs the others too."""

MODELS = (
    *("clothing_mobilenetv2_fp32", "clothing_mobilenetv2_int8-qdq-sym", "mnist-8", "mnist_denoise_deconv_in_fp32"),
    *(
        "mnist_lrn_fp32",
        "mnist_resnet_qat_qdq",
        "mnist_vit_fp32",
        "mobilenetv2-fp32",
        "mobilenetv2-int8-qdq-asym-tflite",
    ),
    *("resnet20_cifar10", "squeezenet1.1-fp16-opset7", "squeezenet1.1-fp32", "squeezenet1.1-int8-qdq-sym"),
    *("super-resolution-10", "yolox_nano_416", "yunet_n_320"),
)
QUICK_MODELS = ("mnist-8", "mnist_lrn_fp32", "mnist_resnet_qat_qdq")

DLA = {"device": "DLA", "fallback": "GPU", "use_dla_core": 0, "precision_constraints": "prefer"}
DEVICES: dict[str, dict[str, Any]] = {
    "gpu-fp32": {"device": "GPU"},
    "gpu-fp16": {"device": "GPU", "precision": "fp16"},
    "dla-fp16": {**DLA, "precision": "fp16"},
    "dla-int8-8.6": {**DLA, "precision": "fp16,int8", "software": "8.6", "platform": "orin-nx-16"},
}


def api_of(software: str) -> str:
    return "8.6" if software.startswith("8.") else "10.16"


def cache_of(path: str, file: Path, seed: int = 0) -> None:
    """Write scales of all tensors of a model."""
    rng = random.Random(seed)  # noqa: S311  no secret
    names = [tensor.name for tensor in network_from_onnx(path).tensors]
    lines = [f"{name}: {rng.choice(('3c010a14', '3d010a14', '3b8f5c29'))}\n" for name in names if ":" not in name]
    file.write_text("TRT-8600-EntropyCalibration2\n" + "".join(lines), encoding="utf-8")


def shapes_of(path: str) -> dict[str, Any]:
    """A profile of one shape for each dynamic input."""
    found = {}
    for tensor in network_from_onnx(path).inputs:
        if -1 in tensor.shape:
            found[tensor.name] = (tuple(abs(extent) for extent in tensor.shape),) * 3
    return found


def execute(path: str, options: dict[str, Any], tensorrt: str | None = None) -> list[str]:
    """Build the engine of trtexec's line for some options; returns the line."""
    exported = dryfit.export_trtexec(
        path, save_engine="executed.engine", scales="exported.cache", tensorrt=tensorrt, **options
    )
    assert exported.command is not None
    exec_trtexec(
        exported.command[1:],
        api=api_of(exported.tensorrt),
        platform=options.get("platform"),
        software=exported.tensorrt if options["device"] == "DLA" else None,
    )
    return list(exported.command)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        pytest.param(name, device, marks=() if name in QUICK_MODELS and device != "gpu-fp32" else pytest.mark.nightly)
        for name in MODELS
        for device in DEVICES
    ],
)
def test_the_line_for_a_published_model_builds_the_same_engine(
    shared_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, device: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(shared_models / f"{name}.onnx")
    options = {**DEVICES[device], **({"shape": shapes} if (shapes := shapes_of(path)) else {})}
    if "int8" in device and "qdq" not in name:
        cache_of(path, tmp_path / "model.cache")
        options["calibration_cache"] = "model.cache"
    try:
        build(path, "built.engine", **options)
    except PlacementError:  # neither DLA nor GPU computes with zero points
        assert name == "mobilenetv2-int8-qdq-asym-tflite"
        with pytest.raises(PlacementError):
            execute(path, options)
        return
    line = execute(path, options)
    assert Path("built.engine").read_bytes() == Path("executed.engine").read_bytes(), line


# Random configurations ------------------------------------------------------------------------------------------------

LAYERS = ("stem conv", "stem/relu", "left:conv", "right=conv", "join", "pool", "tail", "softmax")


def branched_model(batch: str) -> onnx.ModelProto:
    """Two branches that meet, and a softmax, with names that a shell and a list have to carry."""
    found = model(
        "a = Conv<pads = [1, 1, 1, 1]>(x, v) b = Relu(a) c = Conv(b, w) d = Conv(b, u) e = Concat<axis = 1>(c, d) "
        "f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e) g = Sigmoid(f) y = Softmax<axis = 1>(g)",
        inputs=f"float[{batch},4,8,8] x",
        outputs=f"float[{batch},32,4,4] y",
        weights={"v": numbers(8, 4, 3, 3), "w": numbers(16, 8, 1, 1), "u": numbers(16, 8, 1, 1)},
    )
    for node, name in zip(found.graph.node, LAYERS, strict=True):
        node.name = name
    return found


def random_options(rng: random.Random, *, is_dynamic: bool) -> dict[str, Any]:
    """Options of a build that a line of trtexec can express without adding to them."""
    on_dla = rng.random() < 0.6
    types = ["fp16", *(["int8"] if rng.random() < 0.4 else [])]
    software = rng.choice(["8.5", "8.6", "10.0", "10.3", "10.16"])
    options: dict[str, Any] = {"device": "DLA" if on_dla else "GPU"}
    if not on_dla:
        types = rng.choice([[], types, ["bf16"], ["int8"]])
        options["tensorrt"] = rng.choice(["8.6", "10.3", "10.16"]) if "bf16" not in types else "10.3"
    if types:
        options["precision"] = ",".join(types)
    if "int8" in types:
        options["calibration_cache"] = "model.cache"
    if on_dla:
        options |= {"fallback": "GPU", "software": software, "use_dla_core": rng.choice([0, 1])}
        options["platform"] = rng.choice(["agx-orin-64", "orin-nx-16"])
        options["precision_constraints"] = rng.choice(["prefer", "obey"])
        if rng.random() < 0.4:
            options["mem_pool_size"] = rng.choice(["dlaSRAM:0.5", "dlaLocalDRAM:512,dlaGlobalDRAM:256", "workspace:64"])
    elif rng.random() < 0.5:
        options["precision_constraints"] = rng.choice(["prefer", "obey"])
    if "precision_constraints" in options and rng.random() < 0.5:
        chosen = rng.sample(LAYERS, rng.randint(1, 3))
        options["layer_precisions"] = ",".join(f"onnx:{name}:{rng.choice(['fp32', *types])}" for name in chosen)
    if on_dla and software != "8.5" and rng.random() < 0.5:
        chosen = rng.sample(LAYERS, rng.randint(1, 3))
        options["layer_device_types"] = ",".join(f"onnx:{name}:{rng.choice(['GPU', 'DLA'])}" for name in chosen)
    if rng.random() < 0.3:
        options["input_io_formats"] = rng.choice(["fp16:chw", "fp32:chw", "fp16:chw16"])
    if rng.random() < 0.3:
        options["output_io_formats"] = rng.choice(["fp16:chw", "fp32:chw"])
    if rng.random() < 0.3:
        options["sparsity"] = "enable"
    if rng.random() < 0.3:
        options["no_tf32"] = True
    if is_dynamic:
        extents = sorted(rng.choices(range(1, 5), k=3)) if not on_dla else [rng.randint(1, 4)] * 3
        options["shape"] = {"x": tuple((extent, 4, 8, 8) for extent in extents)}
    return options


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < SAMPLE else pytest.mark.nightly) for seed in range(CONFIGURATIONS)]
)
def test_the_line_for_a_random_configuration_builds_the_same_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)  # noqa: S311  no secret
    is_dynamic = rng.random() < 0.5
    onnx.save(branched_model("N" if is_dynamic else "2"), "a model.onnx")
    cache_of("a model.onnx", tmp_path / "model.cache", seed)
    while True:  # some configurations have no engine
        options = random_options(rng, is_dynamic=is_dynamic)
        tensorrt = options.pop("tensorrt", None)
        try:
            build("a model.onnx", "built.engine", **options)
        except DryfitError:
            continue
        break
    line = execute("a model.onnx", options, tensorrt)
    assert Path("built.engine").read_bytes() == Path("executed.engine").read_bytes(), (options, line)
