"""Saving and loading: what is saved is what is loaded, in one file that other tools can open."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import attrs
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit import atomic_file
from dryfit.engine import engine_file
from dryfit.engine.plan import Plan
from dryfit.engine.records import record_to_plain
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.serialization import network_to_dict
from dryfit.network.weights import Weights

PROFILE = {"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}


def plan_with(weights: dict[str, np.ndarray]):
    return plan_of(relu_network(), weights={"relu": weights})


def test_a_loaded_plan_is_the_saved_plan(tmp_path):
    plan = plan_of(convolution_network(), groups=[("conv", "relu")], profiles=[PROFILE])
    engine_file.save(plan, tmp_path / "a.engine")
    loaded = engine_file.load(tmp_path / "a.engine")
    for field in attrs.fields(Plan):
        if field.name not in ("network", "operations"):
            assert record_to_plain(getattr(loaded, field.name)) == record_to_plain(getattr(plan, field.name))
    assert [(o.name, o.layers, o.kernel) for o in loaded.operations] == [
        ("conv + relu", ("conv", "relu"), "cpu.reference")
    ]
    assert network_to_dict(loaded.network)[0] == network_to_dict(plan.network)[0]
    np.testing.assert_array_equal(loaded.network.layer("conv").kernel, plan.network.layer("conv").kernel)


def test_the_same_plan_gives_the_same_bytes_in_a_file_in_memory_and_after_loading(tmp_path):
    plan = plan_of(convolution_network(), profiles=[PROFILE])
    engine_file.save(plan, tmp_path / "a.engine")
    data = engine_file.serialize(plan)
    assert (tmp_path / "a.engine").read_bytes() == data
    assert engine_file.serialize(plan_of(convolution_network(), profiles=[PROFILE])) == data
    assert engine_file.serialize(engine_file.load(data)) == data


def test_the_same_plan_gives_the_same_bytes_in_another_process():
    script = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from dryfit.engine import engine_file
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network
print(hashlib.sha256(engine_file.serialize(plan_of(convolution_network()))).hexdigest())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parents[3])],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_plain_safetensors_reader_opens_the_file(tmp_path):
    plan = plan_of(convolution_network())
    engine_file.save(plan, tmp_path / "a.engine")
    read = safetensors.numpy.load_file(tmp_path / "a.engine")
    np.testing.assert_array_equal(read["network/conv.kernel"], plan.network.layer("conv").kernel)
    with safetensors.safe_open(tmp_path / "a.engine", framework="np") as file:
        assert file.metadata()["format"] == "dryfit-engine"
    assert set(safetensors.numpy.load(engine_file.serialize(plan))) == set(read)


def test_arrays_start_at_cache_lines(tmp_path):
    weights = {
        "a": np.arange(3, dtype=np.int8),
        "b": np.arange(5.0),
        "c": np.zeros((0, 4), np.float32),
        "d": np.float32([7]),
    }
    engine_file.save(plan_with(weights), tmp_path / "a.engine")
    for source in (tmp_path / "a.engine", (tmp_path / "a.engine").read_bytes()):
        loaded = engine_file.load(source).operations[0].weights
        assert [array.ctypes.data % 64 for name, array in loaded.items() if name != "c"] == [0, 0, 0]


@pytest.mark.parametrize("dtype", list(DataType), ids=lambda dtype: dtype.name)
def test_every_data_type_comes_back_bit_by_bit(dtype):
    values = np.arange(-8, 8) if dtype is not DataType.BOOL else np.arange(16) % 2
    array = values.astype(np.float32).astype(dtype.numpy).reshape(2, 8)
    data = engine_file.serialize(plan_with({"w": array, "scalar": array[0, 0].reshape(())}))
    loaded = engine_file.load(data).operations[0].weights
    assert loaded["w"].dtype == dtype.numpy
    assert loaded["w"].shape == (2, 8)
    assert loaded["scalar"].shape == ()
    assert loaded["w"].tobytes() == array.tobytes()
    assert set(safetensors.numpy.load(data)) >= {"operations/0/w", "operations/0/scalar"}


@given(
    arrays_of.arrays(
        st.sampled_from([np.float32, np.float16, np.int8, np.int64, np.bool_]),
        arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    )
)
def test_any_array_comes_back_bit_by_bit_whatever_its_strides(array):
    loaded = engine_file.load(
        engine_file.serialize(plan_with({"w": array.T, "v": array[..., ::-1] if array.ndim else array}))
    )
    assert loaded.operations[0].weights["w"].tobytes() == np.ascontiguousarray(array.T).tobytes()
    assert loaded.operations[0].weights["w"].shape == array.T.shape
    assert loaded.operations[0].weights["v"].shape == array.shape


def test_big_endian_arrays_are_saved_little_endian():
    loaded = engine_file.load(engine_file.serialize(plan_with({"w": np.arange(4, dtype=">f4")})))
    np.testing.assert_array_equal(loaded.operations[0].weights["w"], np.arange(4, dtype=np.float32))
    assert loaded.operations[0].weights["w"].dtype == np.dtype("<f4")


def test_weights_of_a_file_stay_in_the_file(tmp_path):
    engine_file.save(plan_with({"w": np.arange(100_000, dtype=np.float32)}), tmp_path / "a.engine")
    weights = engine_file.load(tmp_path / "a.engine").operations[0].weights["w"]
    maps = Path("/proc/self/maps")
    if maps.exists():
        place = next(line for line in maps.read_text().splitlines() if "a.engine" in line).split()[0]
        start, end = (int(address, 16) for address in place.split("-"))
        assert start <= weights.ctypes.data < end
    assert not weights.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 1


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux to tell what memory a file takes")
@pytest.mark.parametrize("size", [2**24, 2**24 + 12345])
def test_a_loaded_file_takes_memory_only_where_it_is_read(tmp_path, size):
    weights = np.random.default_rng(0).integers(-128, 128, size).astype(np.int8)
    engine_file.save(plan_with({"weights": weights}), tmp_path / "engine")
    loaded = engine_file.load(tmp_path / "engine").operations[0].weights["weights"]
    assert resident_bytes(tmp_path / "engine") < size / 4
    assert np.array_equal(loaded, weights)
    assert resident_bytes(tmp_path / "engine") > size / 2


def resident_bytes(path: Path) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    found, is_it = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):
            is_it = line.endswith(str(path))
        elif is_it and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


def test_changing_the_bytes_after_loading_changes_nothing():
    data = bytearray(engine_file.serialize(plan_with({"w": np.arange(8, dtype=np.float32)})))
    plan = engine_file.load(data)
    data[-64:] = bytes(64)
    np.testing.assert_array_equal(plan.operations[0].weights["w"], np.arange(8, dtype=np.float32))


def test_bytes_may_come_in_any_buffer():
    data = engine_file.serialize(plan_with({}))
    for source in (data, bytearray(data), memoryview(b"." + data)[1:], np.frombuffer(data, np.uint8)):
        assert engine_file.load(source).network.name == "relu only"
    for source in (memoryview(data)[::2], 7, None):
        with pytest.raises(EngineFileError, match="a path or from contiguous bytes"):
            engine_file.load(source)


def test_saving_over_a_loaded_engine_leaves_it_as_it_was(tmp_path):
    path = tmp_path / "a.engine"
    engine_file.save(plan_with({"w": np.full(1000, 1.0)}), path)
    loaded = engine_file.load(path)
    engine_file.save(plan_with({"w": np.full(1000, 2.0)}), path)
    assert set(loaded.operations[0].weights["w"]) == {1.0}
    assert set(engine_file.load(path).operations[0].weights["w"]) == {2.0}


def test_a_failed_save_leaves_nothing_behind_and_the_old_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.engine"
    engine_file.save(plan_with({}), path)
    before = path.read_bytes()

    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_file.os, "fsync", no_space)
    with pytest.raises(EngineFileError, match=r"cannot be written \(found No space left on device\)"):
        engine_file.save(plan_with({"w": np.zeros(100)}), path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.engine"]


def test_a_plan_that_no_file_can_hold_is_refused_before_a_file_is_made(tmp_path):
    plan = plan_of(relu_network(), settings={"threshold": object()})
    with pytest.raises(EngineFileError, match="The plan must consist of plain data"):
        engine_file.save(plan, tmp_path / "a.engine")
    with pytest.raises(EngineFileError, match="The plan must consist of plain data"):
        engine_file.serialize(plan_of(relu_network(), settings={"threshold": float("inf")}))
    with pytest.raises(EngineFileError, match="letters, digits"):
        engine_file.save(plan_with({"a b": np.zeros(1)}), tmp_path / "a.engine")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(
        EngineFileError, match=r"nowhere.*No such file or directory.*Choose an existing, writable folder"
    ):
        engine_file.save(plan_with({}), tmp_path / "nowhere" / "a.engine")


def test_names_that_no_file_can_hold_are_numbered():
    network = convolution_network()
    network.rename_layer(network.layer("conv"), "Conv \ud800 /日本")
    loaded = engine_file.load(engine_file.serialize(plan_of(network)))
    assert loaded.network.layers[0].name == "Conv \ud800 /日本"
    np.testing.assert_array_equal(loaded.network.layers[0].kernel, network.layers[0].kernel)


def test_several_threads_can_save_to_one_path(tmp_path):
    plans = [plan_with({"w": np.full(1000, float(value))}) for value in range(4)]
    threads = [threading.Thread(target=engine_file.save, args=(plan, tmp_path / "a.engine")) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(engine_file.load(tmp_path / "a.engine").operations[0].weights["w"])) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.engine"]


@pytest.mark.parametrize("dtype", [DataType.INT4, DataType.FP4, DataType.UINT2], ids=lambda dtype: dtype.name)
def test_elements_below_a_byte_are_packed_in_the_file(dtype, tmp_path):
    values = np.random.default_rng(0).integers(0, 2, (7, 3)).astype(np.float32).astype(dtype.numpy)
    plan = plan_with({"codes": values})
    engine_file.save(plan, tmp_path / "a.engine")
    (loaded,) = [operation.weights["codes"] for operation in engine_file.load(tmp_path / "a.engine").operations]
    assert (loaded.dtype, loaded.shape, loaded.flags.writeable) == (values.dtype, (7, 3), False)
    np.testing.assert_array_equal(loaded.view(np.uint8), values.view(np.uint8))
    with safetensors.safe_open(tmp_path / "a.engine", "numpy") as file:
        stored = file.get_tensor("operations/0/codes")
    assert stored.tobytes() == Weights(values).tobytes()
    assert stored.size == dtype.bytes_of(21)
    assert engine_file.serialize(engine_file.load(tmp_path / "a.engine")) == (tmp_path / "a.engine").read_bytes()
