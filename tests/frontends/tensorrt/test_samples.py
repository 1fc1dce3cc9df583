"""TensorRT's official samples run unchanged, each for the version that it belongs to.

Downloads are replaced by local files, and packages that only prepare data by stand-ins: a tokenizer, a data set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SAMPLES = {"8.6": "samples-8.6.1", "10.16": "samples-10.16", "11.1": "samples-11.1"}
pytestmark = pytest.mark.shared


def run(api: str, folder: Path, *command: str, stand_ins: Path | None = None) -> str:
    """The output of a sample; a failure shows it."""
    paths = [str(stand_ins)] if stand_ins else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    launcher = [sys.executable, "-m", "dryfit_tensorrt", "--api", api]
    done = subprocess.run(
        [*launcher, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied(shared: Path, api: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(shared / "clients" / SAMPLES[api], tmp_path / "samples"))


@pytest.fixture
def pictures(shared: Path, tmp_path: Path) -> Path:
    """The data folder of the ResNet-50 samples, with another classifier and other pictures."""
    folder = tmp_path / "data" / "resnet50"
    folder.mkdir(parents=True)
    found = sorted((shared / "images" / "clothing").rglob("*.jpg"))
    for name, picture in zip(("binoculars.jpeg", "reflex_camera.jpeg", "tabby_tiger_cat.jpg"), found, strict=False):
        shutil.copy(picture, folder / name)
    shutil.copy(shared / "models" / "mobilenetv2-fp32.onnx", folder / "ResNet50.onnx")
    (folder / "class_labels.txt").write_text("\n".join(f"class {number}" for number in range(1001)))
    return folder


def likeliest_class(model: Path, picture: Path) -> int:
    """What ONNX Runtime takes a picture for, prepared as the samples do it."""
    runtime = pytest.importorskip("onnxruntime")
    images = pytest.importorskip("PIL.Image")
    array = np.asarray(images.open(picture).resize((224, 224), images.LANCZOS)).transpose(2, 0, 1).astype(np.float32)
    session = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: ((array / 255.0 - 0.45) / 0.225)[None].astype(np.float32)}
    return int(np.argmax(session.run(None, feed)[0]))


OLD_PILLOW = "import PIL.Image; PIL.Image.ANTIALIAS = PIL.Image.LANCZOS  # as Pillow 9 had it\n"


@pytest.mark.parametrize("api", ["8.6", pytest.param("10.16", marks=pytest.mark.nightly), "11.1"])
def test_a_classifier_says_what_onnx_runtime_says(api: str, shared: Path, pictures: Path, tmp_path: Path) -> None:
    folder = copied(shared, api, tmp_path) / "introductory_parser_samples"
    starter = folder / "start.py"
    starter.write_text(f"{OLD_PILLOW}import runpy\nrunpy.run_path('onnx_resnet50.py', run_name='__main__')\n")
    text = run(api, folder, "start.py", "-d", str(pictures.parent))
    match = re.search(r"recognized (\S+) as class (\d+)", text)
    assert match is not None, text
    assert int(match[2]) == likeliest_class(pictures / "ResNet50.onnx", Path(match[1]))


@pytest.mark.parametrize("api", ["10.16", pytest.param("11.1", marks=pytest.mark.nightly)])
def test_progress_is_shown_while_an_engine_is_built(api: str, shared: Path, pictures: Path, tmp_path: Path) -> None:
    folder = copied(shared, api, tmp_path) / "simple_progress_monitor"
    text = run(api, folder, "simple_progress_monitor.py", "-d", str(pictures.parent))
    assert re.search(r"\[=+-*\] Building .* \d+/\d+", text)
    assert "recognized" in text


@pytest.mark.parametrize("api", [pytest.param("10.16", marks=pytest.mark.nightly), "11.1"])
def test_an_engine_is_written_to_a_stream(api: str, shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("polygraphy")
    text = run(api, copied(shared, api, tmp_path) / "stream_writer", "build.py")
    assert "Engine deserialized successfully" in text


WORDS = ("a", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", ".", "what", "color", "is", "?")


def question_answering_model() -> onnx.ModelProto:
    """A stand-in for BiDAF with its inputs, mappers, names and tail: it points at the word that its weights prefer."""
    nodes, inputs, mapped_ids = [], [], []
    for number, shape in ((4, ["c", 1]), (5, ["c", 1, 1, 16]), (6, ["q", 1]), (7, ["q", 1, 1, 16])):
        mapped = f"CategoryMapper_{number}"
        strings = WORDS if number in (4, 6) else tuple("abcdefghijklmnopqrstuvwxyz.?")
        inputs.append(helper.make_tensor_value_info(f"text_{number}", TensorProto.STRING, shape))
        mapped_ids.append(helper.make_tensor_value_info(mapped, TensorProto.INT64, shape))
        nodes.append(
            helper.make_node(
                "CategoryMapper",
                [f"text_{number}"],
                [mapped],
                name=mapped,
                cats_strings=list(strings),
                cats_int64s=list(range(len(strings))),
                default_int64=0,
            )
        )
        real, total = f"real_{number}", f"sum_{number}"
        nodes.append(helper.make_node("Cast", [mapped], [real], name=real, to=TensorProto.FLOAT))
        nodes.append(helper.make_node("ReduceSum", [real], [total], name=total, keepdims=0))
    # Scores of the words of the context: a row of W_0 each, times a column that W_0's training would have given.
    nodes += [
        helper.make_node("Gather", ["W_0", "CategoryMapper_4"], ["rows"], name="rows"),  # (c, 1, 4)
        helper.make_node("MatMul", ["rows", "Parameter576_B_0"], ["scores"], name="scores"),  # (c, 1, 1)
        helper.make_node("Reshape", ["scores", "line"], ["one_line"], name="one_line"),  # (1, c)
    ]
    others = ("sum_5", "sum_6", "sum_7")
    last = "sum_4"
    for other in others:
        nodes.append(helper.make_node("Add", [last, other], [f"{last}_{other}"], name=f"{last}_{other}"))
        last = f"{last}_{other}"
    nodes += [
        helper.make_node("Mul", [last, "zero"], ["nothing"], name="nothing"),
        helper.make_node("Add", ["one_line", "nothing"], ["start_scores"], name="start_scores"),
        helper.make_node("ArgMax", ["start_scores"], ["start"], name="start", axis=1, keepdims=0),
        # BiDAF's end: a one-hot maximum picks a position; the sample replaces it by ArgMax and Gather.
        helper.make_node("Hardmax", ["start_scores"], ["hard"], name="hard", axis=1),
        helper.make_node("Cast", ["hard"], ["chosen"], name="chosen", to=TensorProto.BOOL),
        helper.make_node("Reshape", ["chosen", "flat"], ["choice"], name="choice"),
        helper.make_node("Compress", ["positions", "choice"], ["end"], name="end", axis=1),
    ]
    table = np.random.default_rng(0).normal(0, 0.1, (len(WORDS), 4)).astype(np.float32)
    table[WORDS.index("brown")] = 1
    weights = [
        numpy_helper.from_array(table, "W_0"),
        numpy_helper.from_array(np.full((4, 1), 2, np.float32), "Parameter576_B_0"),
        numpy_helper.from_array(np.array([1, -1], np.int64), "line"),
        numpy_helper.from_array(np.array([-1], np.int64), "flat"),
        numpy_helper.from_array(np.array(0, np.float32), "zero"),
        numpy_helper.from_array(np.arange(15, dtype=np.int64)[None], "positions"),
    ]
    outputs = [
        helper.make_tensor_value_info("start", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("end", TensorProto.INT64, [1, 1]),
    ]
    graph = helper.make_graph(nodes, "bidaf", inputs, outputs, weights, value_info=mapped_ids)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


TOKENIZER = '''"""Splits a text into words; a stand-in for a package that downloads its data."""
import re


class data:
    @staticmethod
    def find(name):
        return name


def word_tokenize(text):
    return re.findall(r"\\w+|[^\\w\\s]", text)
'''


@pytest.mark.parametrize(
    ("api", "arguments"),
    [
        pytest.param("8.6", (), marks=pytest.mark.nightly),
        pytest.param("10.16", (), marks=pytest.mark.nightly),
        ("10.16", ("--weights-location", "CPU")),
        pytest.param("10.16", ("--version-compatible",), marks=pytest.mark.nightly),
    ],
)
def test_an_engine_is_refitted(api: str, arguments: tuple[str, ...], shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx_graphsurgeon")
    folder = copied(shared, api, tmp_path) / "engine_refit_onnx_bidaf"
    onnx.save(question_answering_model(), folder / "bidaf-original.onnx")
    stand_ins = tmp_path / "stand_ins"
    stand_ins.mkdir()
    (stand_ins / "nltk.py").write_text(TOKENIZER)
    (stand_ins / "downloader.py").write_text(
        f"def getFilePath(path):\n    return {str(folder / 'bidaf-original.onnx')!r}\n"
    )
    run(api, folder, "prepare_model.py", stand_ins=stand_ins)
    assert "Passed" in run(api, folder, "build_and_refit_engine.py", *arguments, stand_ins=stand_ins)


DATA_SET = '''"""A data set of 28 x 28 pictures: a stand-in for a package that downloads it."""
import numpy as np
import torch
from sklearn.datasets import load_digits


class transforms:
    Compose = staticmethod(lambda steps: steps)
    ToTensor = staticmethod(lambda: None)
    Normalize = staticmethod(lambda mean, deviation: (mean, deviation))


class datasets:
    class MNIST(torch.utils.data.TensorDataset):
        def __init__(self, root, train, transform, download=False):
            digits = load_digits()
            pictures = np.kron(digits.images / 16, np.ones((3, 3)))[:, None]
            pictures = np.pad(pictures, ((0, 0), (0, 0), (2, 2), (2, 2))).astype(np.float32)
            chosen = slice(0, 1500) if train else slice(1500, None)
            super().__init__(torch.from_numpy(pictures[chosen]), torch.from_numpy(digits.target[chosen]))
'''


@pytest.mark.parametrize("api", SAMPLES)
def test_a_network_of_pytorch_is_made_layer_by_layer(api: str, shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = copied(shared, api, tmp_path) / "network_api_pytorch_mnist"
    stand_ins = tmp_path / "stand_ins"
    (stand_ins / "torchvision").mkdir(parents=True)
    (stand_ins / "torchvision" / "__init__.py").write_text(DATA_SET)
    text = run(api, folder, "sample.py", stand_ins=stand_ins)
    assert re.search(r"Test Case: \d+\s+Prediction: \d+", text)
