"""What an engine file keeps for refits: it comes back as it was, and lies about it are refused."""

from __future__ import annotations

import functools
import tracemalloc

import numpy as np
import pytest
from tests.core.builder.refittable_networks import SCALES, built, float_network, quantized_network, weights
from tests.core.engine.forged_files import forged, split

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine import engine_file
from dryfit.engine.engine import Engine
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import is_stand_in, stand_in


@functools.cache
def whole():
    return built(float_network(weights(1)), BuilderFlag.REFIT).serialize()


@functools.cache
def stripped():
    return built(float_network(weights(1)), BuilderFlag.STRIP_PLAN).serialize()


@functools.cache
def quantized():
    return built(quantized_network(weights(1), scales=SCALES), BuilderFlag.REFIT).serialize()


@pytest.mark.parametrize("file", [whole, stripped, quantized])
def test_a_file_gives_back_the_bytes_that_it_has(file):
    assert engine_file.serialize(engine_file.load(file())) == file()


def test_an_array_that_the_engine_has_anyway_is_not_written_twice():
    _, manifest, _ = split(whole())
    names = manifest["refit"]["network_arrays"]
    assert names["addend.weights"] == manifest["network_arrays"]["addend.weights"]
    assert names["conv.kernel"] == "refit/conv.kernel"


def test_an_engine_that_cannot_be_refitted_keeps_nothing_for_it():
    _, manifest, _ = split(built(float_network(weights(1))).serialize())
    assert manifest["refit"] is None
    assert not any(name.startswith("refit/") for name in manifest["arrays_left_out"])
    assert not any(entry["name"].startswith("refit/") for entry in manifest["arrays"])


def test_of_weights_that_kernels_packed_an_engine_keeps_type_and_shape():
    _, manifest, _ = split(built(float_network(weights(1))).serialize())
    assert manifest["arrays_left_out"]["network/conv.kernel"] == {"dtype": "FLOAT", "shape": [8, 4, 3, 3]}
    assert "network/conv.kernel" not in {entry["name"] for entry in manifest["arrays"]}


def test_a_kernel_that_does_not_pack_what_is_left_out_is_refused():
    data = built(float_network(weights(1))).serialize()
    lie = forged(data, lambda manifest: manifest["operations"][0].update(kernel="cpu.reference"))
    with pytest.raises(
        EngineFileError, match=r"An engine must only leave out parameters that its kernel packs.*'kernel' of layer"
    ):
        Engine.load(lie).create_execution_context(1)


def test_a_stripped_file_has_no_arrays_of_weights():
    _, manifest, _ = split(stripped())
    assert [entry["name"] for entry in manifest["arrays"]] == []
    assert "refit/conv.kernel" in manifest["arrays_left_out"]


def test_a_stand_in_has_type_and_shape_and_no_memory():
    array = stand_in(DataType.FP8, (1000, 1000))
    assert (array.dtype, array.shape, array.strides) == (DataType.FP8.numpy, (1000, 1000), (0, 0))
    assert is_stand_in(array)
    assert is_stand_in(array.reshape(-1)[3:4])
    assert not is_stand_in(np.ones((2, 2), DataType.FP8.numpy))


def change_weights(**changes):
    return lambda manifest: manifest["refit"]["weights"][0].update(changes)


def change_place(**changes):
    return lambda manifest: manifest["refit"]["weights"][0]["places"][0].update(changes)


def leave_out_packed_weights(manifest):
    """Claim that packed weights were left out."""
    name = next(one["weights"]["panels"] for one in manifest["operations"] if "panels" in one["weights"])
    manifest["arrays_left_out"][name] = {"dtype": "FLOAT", "shape": [1]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_weights(name="conv BIAS"), "Names of refittable weights must be unique"),
        (change_weights(shape=[9]), "The network must have the weights that the engine lists as refittable"),
        (change_weights(shape=[2**40, 2**40]), "The network must have the weights that the engine lists as refittable"),
        (change_weights(dtype="HALF"), "found 288 of FP32; allowed: 288 of FP16"),
        (change_weights(dtype="REAL"), "'REAL' is not one of"),
        (change_weights(places=[]), "Refittable weights must have a place in the network"),
        (change_place(layer="gone"), "layer 'gone'"),
        (change_place(role="SCALE"), "found none"),
        (change_place(role=0), "str expected, int found"),
        (lambda m: m["refit"]["weights"][1].update(places=m["refit"]["weights"][0]["places"]), "must have the weights"),
        (lambda m: m["refit"].pop("comparisons"), "without comparisons"),
        (lambda m: m["refit"].update(more=1), "with more"),
        (lambda m: m["refit"].update(equal_scales=[[1]]), "str expected"),
        (lambda m: m["refit"]["network_arrays"].update({"conv.kernel": "nothing"}), "no array 'nothing'"),
        (lambda m: m["refit"]["network_arrays"].pop("conv.kernel"), "no array with this name"),
        (lambda m: m["refit"]["network"]["layers"][0].update(kind="exec"), "Unknown layer kind"),
        (lambda m: m["refit"]["network"].update(flags=1 << 9), "Not a mask of creation flags"),
        (leave_out_packed_weights, "'panels' of engine layer"),
        (lambda m: m.pop("arrays_left_out"), "without arrays_left_out"),
    ],
)
def test_lies_about_refits_are_refused(change, words):
    with pytest.raises(EngineFileError) as caught:
        engine_file.load(forged(whole(), change))
    assert words in str(caught.value)


def change_stand_in(name, **changes):
    return lambda manifest: manifest["arrays_left_out"][name].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_stand_in("refit/conv.kernel", shape=[-1]), "shape is invalid"),
        (change_stand_in("refit/conv.kernel", shape=[1] * 40), "shape is invalid"),
        (change_stand_in("refit/conv.kernel", shape=[2**40]), "shape is invalid"),
        (change_stand_in("refit/conv.kernel", shape=[0, 2**40]), "shape is invalid"),
        (change_stand_in("refit/conv.kernel", dtype="INT32", shape=[2**24]), "shape is invalid"),
        (change_stand_in("refit/conv.kernel", dtype="INT64"), "Arrays of this type must not be left out"),
        (change_stand_in("refit/conv.kernel", dtype="BOOL"), "Arrays of this type must not be left out"),
        (change_stand_in("refit/conv.kernel", shape=[8, 4, 3, 2]), "kernel has the wrong shape"),
        (lambda m: m["arrays_left_out"].pop("refit/conv.kernel"), "no array 'refit/conv.kernel'"),
        (lambda m: m["refit"].update(is_stripped=False), "Only a stripped engine may leave out arrays"),
    ],
)
def test_lies_about_what_is_left_out_are_refused_before_memory_is_taken(change, words):
    data = forged(stripped(), change)
    tracemalloc.start()
    with pytest.raises(EngineFileError) as caught:
        engine_file.load(data)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["settings"].update(flags=["WARP"]),
        lambda m: m["settings"].update(default_device_type="TPU"),
        lambda m: m["operations"][0].update(kernel="cpu.gone"),
        lambda m: m["operations"][0].update(kernel="cpu.softmax"),
        lambda m: m["refit"]["network"]["layers"].pop(),
        lambda m: m["refit"]["network"]["layers"][2].update(name="other"),
        lambda m: m["refit"].update(equal_scales=[["x_scale_out", "left_scale_out"], []]),
        lambda m: m["refit"]["comparisons"].append({"pass_name": "p", "layer": "l", "scales": ["gone", "x"]}),
    ],
)
def test_a_refit_of_a_forged_engine_ends_well_or_with_an_error_of_ours(change):
    data = forged(quantized(), change)
    try:
        engine = Engine.load(data)
        Refitter(engine).refit_cuda_engine()
    except DryfitError:
        return
    engine.create_execution_context(1).run({"x": np.zeros((1, 4, 8, 8), np.float32)})
