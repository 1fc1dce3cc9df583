"""Cut, changed and hostile files: refused with an error that says why, before memory is committed."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from tests.frontends.tflite.whole_models import keyword_spotting
from tests.tflite_models import TfliteModel

import dryfit
from dryfit.errors import DryfitError, ModelImportError
from dryfit.plugins.contributions import ImportOptions

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install dryfit[dev]")
importer = pytest.importorskip("dryfit_tflite.importer", reason="the bindings are not installed: dryfit[tflite]")


def small_model():
    """A convolution, a reshape and a fully connected layer, in some 3 KiB."""
    model = TfliteModel()
    x = model.input("x", (1, 4, 4, 2), "int8", scale=0.1, zero_point=1)
    w = model.constant("w", np.ones((3, 3, 3, 2), np.int8), scale=np.full(3, 0.1, np.float32), axis=0)
    y = model.tensor("y", (1, 4, 4, 3), "int8", scale=0.2)
    model.operator(
        "CONV_2D", [x, w, None], [y], "Conv2DOptions", strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1
    )
    flat, shape = (
        model.tensor("flat", (1, 48), "int8", scale=0.2),
        model.constant("shape", np.asarray([1, 48], np.int32)),
    )
    model.operator("RESHAPE", [y, shape], [flat], "ReshapeOptions", newShape=[1, 48])
    return model.to_bytes([flat])


def imported(data):
    """The network of a file, or None where it is refused as it has to be."""
    try:
        return importer.network_from_tflite(data, ImportOptions(quantize_method=None)).network
    except DryfitError:
        return None


def test_every_cut_file_is_refused():
    data = small_model()
    for size in range(0, len(data), 11):
        with pytest.raises(DryfitError):
            importer.network_from_tflite(data[:size], ImportOptions())


def test_changed_bytes_give_a_network_or_an_error(request):
    data, count = small_model(), 20_000 if request.config.getoption("--thorough") else 400
    random = np.random.default_rng(3)
    for _ in range(count):
        changed = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 5)):
            changed[place] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.integers(256)])
        imported(bytes(changed))


def test_changed_offsets_give_a_network_or_an_error(request):
    data, count = small_model(), 10_000 if request.config.getoption("--thorough") else 300
    random = np.random.default_rng(4)
    for _ in range(count):
        changed = bytearray(data)
        place = int(random.integers(0, len(data) // 4)) * 4
        value = int(random.choice([0, 4, len(data) - 4, len(data), 2**31 - 1, 2**32 - 1, random.integers(2**32)]))
        struct.pack_into("<I", changed, place, value)
        imported(bytes(changed))


def test_a_hostile_file_commits_no_memory():
    data = small_model()
    tracemalloc.start()
    random = np.random.default_rng(5)
    for _ in range(60):
        changed = bytearray(data)
        struct.pack_into("<I", changed, int(random.integers(0, len(data) // 4)) * 4, int(random.integers(2**28, 2**32)))
        imported(bytes(changed))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**25


def test_many_operators_on_the_same_weights_are_bounded():
    model = TfliteModel()
    x = model.input("x", (1, 1, 1, 512))
    w = model.constant("w", np.zeros((512, 1, 1, 512), np.float32))
    for index in range(64):
        y = model.tensor(f"y{index}", (1, 1, 1, 512))
        model.operator(
            "CONV_2D", [x, w, None], [y], "Conv2DOptions", strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1
        )
    with pytest.raises(
        ModelImportError, match=r"The constants of the network would be many times the size of the file"
    ):
        importer.network_from_tflite(model.to_bytes([y]), ImportOptions())


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\0\0\0\0TFL3", b"\x10\0\0\0TFL3" + b"\xff" * 60])
def test_what_is_no_model_is_refused(data):
    with pytest.raises(ModelImportError, match="The file is not a TFLite model, or is damaged"):
        importer.network_from_tflite(data, ImportOptions())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelImportError, match=r"The file cannot be read.*No such file"):
        dryfit.check(tmp_path / "nothing.tflite")


def test_a_whole_model_that_is_cut_is_refused(tmp_path):
    data, _ = keyword_spotting()
    path = tmp_path / "cut.tflite"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelImportError, match="is damaged"):
        dryfit.check(path)
