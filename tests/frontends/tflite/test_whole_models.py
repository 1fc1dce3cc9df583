"""Whole quantized models: LiteRT's reference results bit for bit, and those of its default delegate."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.tflite.running import outputs_of
from tests.frontends.tflite.whole_models import MODELS, keyword_spotting
from tests.tflite_models import litert_outputs

from dryfit.answers.asked import asked

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install dryfit[dev]")

FOLDER = os.environ.get("DRYFIT_TFLITE_MODELS", "")
"""A folder of published models, which are not part of the repository; docs/how-to/tflite-models.md names some."""
FILES = sorted(Path(FOLDER).rglob("*.tflite")) if FOLDER else []


def drawn(shape, dtype, seed):
    """Random values: all codes, or numbers from -1 to 1."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


EXAMPLE = Path(__file__).parents[3] / "examples" / "tflite" / "words.tflite"


def test_the_example_is_the_architecture_of_keyword_spotting_with_fewer_channels():
    data, _ = keyword_spotting(width=8)
    assert EXAMPLE.read_bytes() == data


LARGEST = "visual wake words"
WITH_NIGHTLY = [pytest.param(task, marks=[pytest.mark.nightly] if task == LARGEST else []) for task in MODELS]


@pytest.mark.parametrize("task", MODELS)
def test_a_quantized_model_gives_the_codes_of_the_reference_kernels(task):
    data, shape = MODELS[task]()
    for seed in range(1 if task == LARGEST else 2):
        values = drawn(shape, "int8", seed)
        (found,), (expected,) = outputs_of(data, values), litert_outputs(data, [values])
        assert len(np.unique(expected)) > 1
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("task", ["image classification"])
def test_an_unsigned_model_gives_the_codes_of_the_reference_kernels(task):
    data, shape = MODELS[task]("uint8")
    values = drawn(shape, "uint8", 3)
    np.testing.assert_array_equal(outputs_of(data, values)[0], litert_outputs(data, [values])[0])


@pytest.mark.parametrize("task", WITH_NIGHTLY)
def test_a_model_of_16_bits_gives_the_codes_of_the_reference_kernels(task):
    data, shape = MODELS[task]("int16")
    values = drawn(shape, "int16", 6)
    (found,), (expected,) = outputs_of(data, values), litert_outputs(data, [values])
    assert found.dtype == expected.dtype == np.int16
    assert len(np.unique(expected)) > 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("task", WITH_NIGHTLY)
def test_a_quantized_model_gives_the_codes_of_the_default_delegate(task):
    data, shape = MODELS[task]()
    values = drawn(shape, "int8", 4)
    found = outputs_of(data, values, quantize_method="tflite-xnnpack")[0]
    np.testing.assert_array_equal(found, litert_outputs(data, [values], is_reference=False)[0])


def test_each_operator_of_a_quantized_model_is_computed_by_the_method():
    for make in MODELS.values():
        data, _ = make()
        subject = asked(data, None, {})
        assert subject.assumed[0] == "--quantize-method tflite"
        assert subject.network.quantize_method == "tflite"


@pytest.mark.skipif(not FILES, reason="no published models: set DRYFIT_TFLITE_MODELS to a folder of them")
@pytest.mark.parametrize("path", FILES or [Path("none")], ids=lambda path: path.stem)
@pytest.mark.parametrize("method", ["tflite", "tflite-xnnpack"])
def test_a_published_model_gives_what_litert_gives(path, method):
    subject = asked(path, None, {})
    values = [drawn(tensor.shape, tensor.dtype.numpy, 5) for tensor in subject.network.inputs]
    is_quantized = subject.network.quantize_method == "tflite"
    found = outputs_of(path, *values, **({"quantize_method": method} if is_quantized else {"device": "CPU"}))
    expected = litert_outputs(path.read_bytes(), values, is_reference=method == "tflite")
    for one, other in zip(found, expected, strict=True):
        if is_quantized:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
