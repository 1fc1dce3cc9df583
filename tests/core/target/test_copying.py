"""Copies between layouts: the host's where it pays, numpy's elsewhere, the same bits by both."""

import numpy as np
import pytest

from dryfit.network import installed_packages
from dryfit.network.installed_packages import InstalledPackages
from dryfit.plugins import registry
from dryfit.target.copying import NATIVE_BYTES, HostCopy, copy_array, host_copy


@pytest.fixture
def no_host(monkeypatch):
    monkeypatch.setattr(host_copy, "_found", [None])


def bits(dtype, shape):
    """All patterns of bits, NaN with payloads among them."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.random.default_rng(count).integers(0, 256, count, np.uint8).view(dtype).reshape(shape)


CASES = [
    (dtype, shape, order)
    for dtype in (np.int8, np.float16, np.float32, np.float64)
    for shape, order in (
        ((2, 2, 32, 9, 33), (0, 1, 3, 4, 2)),
        ((2, 3, 40, 129), (0, 2, 3, 1)),
        ((1, 2, 4, 60, 70), (0, 1, 3, 4, 2)),
        ((3, 17, 600), (2, 0, 1)),
        ((64, 500), (0, 1)),
    )
]


@pytest.mark.parametrize(("dtype", "shape", "order"), CASES)
def test_native_and_numpy_copies_are_the_same_bits(dtype, shape, order, monkeypatch):
    source = bits(dtype, shape)
    assert source.nbytes >= NATIVE_BYTES
    dense = np.ascontiguousarray(source.transpose(order))
    for found in (None, registry.host().copy_array):
        monkeypatch.setattr(host_copy, "_found", [found])
        there = np.zeros([source.shape[axis] for axis in order], dtype)
        copy_array(source, there.transpose(np.argsort(order)))
        assert there.tobytes() == dense.tobytes()
        back = np.zeros(shape, dtype)
        copy_array(there.transpose(np.argsort(order)), back)
        assert back.tobytes() == source.tobytes()


def test_what_lies_between_the_elements_of_the_destination_stays():
    source = bits(np.float16, (3, 64, 200))
    memory = np.full((64, 200, 4), 7, np.float16)
    copy_array(source, np.moveaxis(memory[..., :3], -1, 0))
    np.testing.assert_array_equal(memory[..., 3], 7)
    assert np.ascontiguousarray(np.moveaxis(memory[..., :3], -1, 0)).tobytes() == source.tobytes()


@pytest.mark.parametrize("channels", [1, 3, 5, 30])
def test_what_the_destination_has_more_of_becomes_zero(channels, monkeypatch):
    source = bits(np.int8, (channels, 90, 200))
    expected = np.zeros((91, 224, 32), np.int8)
    expected[:90, :200, :channels] = source.transpose(1, 2, 0)
    for found in (None, registry.host().copy_array):
        monkeypatch.setattr(host_copy, "_found", [found])
        memory = np.full(expected.shape, 7, np.int8)
        copy_array(source, memory.transpose(2, 0, 1))
        np.testing.assert_array_equal(memory, expected)


def test_small_arrays_do_not_wake_the_host(monkeypatch):
    def found():
        raise AssertionError("looked for")

    monkeypatch.setattr(host_copy, "_found", [])
    monkeypatch.setattr(installed_packages, "_find", lambda: InstalledPackages(copy_array=found))
    destination = np.zeros((4, 3))
    copy_array(np.arange(12.0).reshape(3, 4).T, destination)
    assert destination[1].tolist() == [1, 5, 9]


def test_the_host_is_looked_for_once(monkeypatch):
    asked = []

    def find():
        asked.append(1)
        return lambda source, destination: False

    monkeypatch.setattr(installed_packages, "_find", lambda: InstalledPackages(copy_array=find))
    one = HostCopy()
    assert [one(np.ones(2), np.ones(2)) for _ in range(3)] == [False] * 3
    assert asked == [1]


def test_without_a_host_numpy_copies(no_host):
    source = bits(np.int8, (32, 5000))
    destination = np.zeros((5000, 32), np.int8)
    copy_array(source, destination.T)
    np.testing.assert_array_equal(destination, source.T)
