"""Weights are found in what was packed of them, by where their elements went."""

import numpy as np
import pytest

from dryfit.answers.comparison.packed_places import KnownPlaces, Slot, unpack_places
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import FullyConnected

SHAPE = (40, 300)
"""More elements than a digit of FP16, or of INT8, has values."""


class Packing:
    """Packs the kernel of a layer by moving its elements, and counts how often."""

    def __init__(self, seed, rounded_to=None, dtype=np.float32):
        self.layer = FullyConnected(name="layer", num_output_channels=SHAPE[0], kernel=np.zeros(SHAPE, dtype))
        self.order = np.random.default_rng(seed).permutation(SHAPE[0] * SHAPE[1])
        self.rounded_to = rounded_to
        self.calls = 0

    def slot(self):
        return Slot(self.layer, "kernel", DataType.from_numpy(self.layer.kernel.dtype), SHAPE)

    def __call__(self):
        self.calls += 1
        kernel = self.layer.kernel
        if self.rounded_to is not None:
            with np.errstate(over="ignore"):
                kernel = kernel.astype(self.rounded_to).astype(kernel.dtype)
        filled = np.zeros(self.order.size + 20, kernel.dtype)
        filled[7 : 7 + self.order.size] = kernel.reshape(-1)[self.order]
        return {"panels": filled.reshape(-1, 10), "lengths": np.array([self.order.size], np.int64)}

    def packed(self, weights):
        self.layer.kernel = weights
        return {name: array.copy() for name, array in self().items()}


def drawn(seed, dtype=np.float32):
    values = np.random.default_rng(seed).standard_normal(SHAPE) * 40
    return np.clip(np.rint(values), -128, 127).astype(dtype) if dtype is np.int8 else values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_elements_are_found_wherever_they_were_moved(dtype):
    packing, weights = Packing(0, dtype=dtype), drawn(1, dtype)
    assert unpack_places(packing, [packing.slot()], packing.packed(weights))
    np.testing.assert_array_equal(packing.layer.kernel, weights)


@pytest.mark.parametrize("precision", [DataType.FLOAT, DataType.HALF])
def test_what_a_kernel_rounds_on_its_way_is_found_rounded(precision):
    """Also where nobody says that it rounds: FP16 holds fewer digits than the array in which the weights lie."""
    packing, weights = Packing(2, rounded_to=np.float16), drawn(3)
    assert unpack_places(packing, [packing.slot()], packing.packed(weights), precision)
    np.testing.assert_array_equal(packing.layer.kernel, weights.astype(np.float16).astype(np.float32))


def test_places_of_one_layer_serve_the_next_that_is_packed_alike():
    known, first, second = KnownPlaces(), Packing(4), Packing(4)
    assert unpack_places(first, [first.slot()], first.packed(drawn(5)), known=known)
    packed = second.packed(drawn(6))
    second.calls = 0
    assert unpack_places(second, [second.slot()], packed, known=known)
    assert second.calls == 1
    np.testing.assert_array_equal(second.layer.kernel, drawn(6))


def test_a_layer_that_only_looks_alike_is_searched_itself():
    known, first, second = KnownPlaces(), Packing(7), Packing(8)
    assert unpack_places(first, [first.slot()], first.packed(drawn(9)), known=known)
    assert unpack_places(second, [second.slot()], second.packed(drawn(10)), known=known)
    np.testing.assert_array_equal(second.layer.kernel, drawn(10))


def test_the_oldest_places_are_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(KnownPlaces, "LARGEST_BYTES", 4 * SHAPE[0] * SHAPE[1])
    known = KnownPlaces()
    for seed in (11, 12):
        packing = Packing(seed)
        assert unpack_places(packing, [packing.slot()], packing.packed(drawn(13)), known=known, like=str(seed))
    packing = Packing(11)
    packed = packing.packed(drawn(14))
    packing.calls = 0
    assert unpack_places(packing, [packing.slot()], packed, known=known, like="11")
    assert packing.calls > 1


def test_what_is_computed_from_weights_is_not_found():
    packing = Packing(15)
    packed = packing.packed(drawn(16))

    def doubled():
        return {name: array * 2 for name, array in packing().items()}

    assert not unpack_places(doubled, [packing.slot()], packed)
