"""Every `Example:` section of a public docstring runs, and gives what it shows. None is skipped.

An example may use, without importing them: `dryfit` and its public names, those of its own module that are public
(`dryfit.testing`, `dryfit.target.STABLE_NAMES`), `np` for numpy, `math`, and what `ready_names` lists. Files that it
writes lie in an empty folder, in which there are a `model.onnx` and a `model.engine` built of it, and the network of
`examples/digits` for a batch of one: `digits.onnx`, eight arrays for it (`images.npy`), what calibration makes of these
(`digits.cache`, `digits.state`, `minmax.cache`), and the model with quantize and dequantize nodes (`digits-qdq.onnx`).
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit
import dryfit.testing
from dryfit.answers.text import Answer
from dryfit.plugins import registry
from dryfit.plugins.calibrators import calibrator
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.target import STABLE_NAMES

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"
_SECTION = re.compile(r"^Examples?:[ ]*\n(?P<body>(?:[ ]{4}.*\n|[ ]*\n)+)", re.MULTILINE)
_PUBLIC = {dryfit: dir(dryfit), dryfit.testing: dir(dryfit.testing)} | {
    importlib.import_module(name): names for name, names in STABLE_NAMES.items()
}
"""Module to its public names."""


def example_of(documented: Any) -> str:
    """The text of the section; "" where there is none."""
    found = _SECTION.search(inspect.cleandoc(documented.__doc__ or "") + "\n")
    return inspect.cleandoc(found["body"]) if found else ""


def methods_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a public class has from dryfit."""
    for name in dir(value) if inspect.isclass(value) else ():
        member = inspect.getattr_static(value, name)
        member = getattr(member, "__func__", getattr(member, "fget", None) or member)
        if not name.startswith("_") and inspect.isfunction(member) and member.__module__.startswith("dryfit"):
            yield name, member


def answers_of(value: Any) -> Iterator[type[Answer]]:
    """The records that a public function returns."""
    if inspect.isfunction(value) and value.__module__.startswith("dryfit.answers."):
        for name in value.__annotations__["return"].split(" | "):
            one = getattr(sys.modules[value.__module__], name, None)
            if inspect.isclass(one) and issubclass(one, Answer):
                yield one


def documented_names() -> dict[str, tuple[ModuleType, Any]]:
    """Where a public name or method is to its module and itself; each once, by its first place."""
    found: dict[str, tuple[ModuleType, Any]] = {}
    seen: set[int] = set()
    for module, names in _PUBLIC.items():
        for name in names:
            value = getattr(module, name)
            # An instance has the docstring of its class, which is listed itself.
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            answers = [(one.__name__, one) for one in answers_of(value)]
            for place, one in [
                (name, value),
                *answers,
                *((f"{name}.{inner}", one) for inner, one in methods_of(value)),
            ]:
                if id(one) not in seen:
                    seen.add(id(one))
                    found[f"{module.__name__}.{place}"] = module, one
    return found


EXAMPLES = {place: found for place, found in documented_names().items() if example_of(found[1])}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model.onnx`, a convolution, a ReLU and a softmax, its engine, and the files of the digits."""
    folder = tmp_path_factory.mktemp("model")
    weights = np.random.default_rng(7).normal(size=(8, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "weights"], ["a"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Softmax", ["b"], ["y"], name="prob", axis=1),
    ]
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, c, 8, 8)) for n, c in (("x", 3), ("y", 8))]
    graph = helper.make_graph(nodes, "model", shapes[:1], shapes[1:], [numpy_helper.from_array(weights, "weights")])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "model.onnx")
    names = ready_names(folder)
    names["builder"].build_engine(names["network"], names["config"]).save(folder / "model.engine")
    digits = onnx.load(DIGITS)
    for value in (*digits.graph.input, *digits.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1  # examples need no shapes then
    onnx.save(digits, folder / "digits.onnx")
    images = np.random.default_rng(7).random((8, 1, 8, 8), dtype=np.float32)
    np.save(folder / "images.npy", images)
    calibrate = partial(dryfit.calibrate, folder / "digits.onnx", folder / "images.npy")
    calibrate(output=folder / "digits.cache", state=folder / "digits.state")
    calibrate(output=folder / "minmax.cache", calibrator="minmax")
    dryfit.translate(
        folder / "digits.onnx", folder / "digits-qdq.onnx", to="qdq", calibration_cache=folder / "digits.cache"
    )
    return folder


def ready_names(folder: Path) -> dict[str, Any]:
    """What an example finds beside public names."""
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.set_flag(dryfit.BuilderFlag.REFIT)
    return {
        "dryfit": dryfit,
        "np": np,
        "math": math,
        "builder": builder,
        "network": dryfit.network_from_onnx(folder / "model.onnx"),
        "config": config,
    }


def names_for(module: ModuleType, folder: Path) -> dict[str, Any]:
    """All that the example of a public name of a module may use."""
    names = {name: getattr(dryfit, name) for name in dir(dryfit)} | ready_names(folder)
    names |= {name: getattr(module, name) for name in _PUBLIC[module]}
    engine = dryfit.Engine.load(folder / "model.engine")
    context = engine.create_execution_context()
    names |= {"engine": engine, "context": context}
    # What a package of a kit's user brings.
    names |= {"TARGET": registry.target("GPU"), "CALIBRATOR": calibrator("minmax"), "METHOD": quantize_method("onnx")}
    names["swish"] = dryfit.layer_plugin("Swish", namespace="acme")(lambda x, *, beta=1.0: x / (1 + np.exp(-beta * x)))
    return names


def problems_of(text: str, names: dict[str, Any], place: str) -> str:
    """What an example does differently from what it shows; "" where nothing."""
    test = doctest.DocTestParser().get_doctest(text, names, place, None, 0)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("place", sorted(EXAMPLES))
def test_an_example_gives_what_it_shows(
    place: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, documented = EXAMPLES[place]
    text = example_of(documented)
    assert ">>> " in text
    assert "+SKIP" not in text, "an example that cannot run is no example"
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert not problems_of(text, names_for(module, tmp_path), place)


def test_an_example_that_gives_something_else_or_raises_is_noticed() -> None:
    assert "Got:\n    42" in problems_of(">>> 6 * 7\n41\n", {}, "wrong")
    assert "NameError" in problems_of(">>> missing.name\n", {}, "raises")
    assert not problems_of(">>> 6 * 7\n42\n", {}, "right")


def test_no_example_is_lost_on_the_way_from_the_docstrings() -> None:
    """Each section that stands in the text of a public docstring is run: the pattern misses none."""
    public = {place: inspect.cleandoc(one.__doc__ or "") for place, (_, one) in documented_names().items()}
    assert {place for place, text in public.items() if re.search(r"Examples?:[ ]*$", text, re.MULTILINE)} == set(
        EXAMPLES
    )
    assert len(EXAMPLES) > 30
