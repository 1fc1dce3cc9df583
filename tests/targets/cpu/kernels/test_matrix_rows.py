"""Where weights lie for machines that multiply matrices of bytes, read as their instruction reads them."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.kernels.integer_products import matrix_rows


def multiply_matrices(sums, a, b):
    """What `smmla` does: sums `[2, 2]`, two rows by two columns of eight signed bytes.

    Source: Arm Architecture Reference Manual, SMMLA (vector).
    """
    return sums + a.reshape(2, 8).astype(np.int32) @ b.reshape(2, 8).astype(np.int32).T


def block_sums(rows, pixels, eight):
    """The sums of two pixels by eight channels over one run, as a register block reads rows `[units, 128]` of bytes.

    The last units of a run, fewer than four, are multiplied one by one, with zeros behind.
    """
    sums = np.zeros((4, 2, 2), np.int32)
    units = len(rows)
    for first in range(0, units // 4 * 4, 2):
        both = pixels[:, 4 * first : 4 * first + 8]
        registers = rows[first : first + 2, 32 * eight : 32 * eight + 32].reshape(4, 16)
        sums = np.array([multiply_matrices(*one) for one in zip(sums, [both] * 4, registers, strict=True)])
    for unit in range(units // 4 * 4, units):
        zeros = np.zeros((8, 4), np.int8)
        both = np.concatenate([pixels[:, 4 * unit : 4 * unit + 4], zeros[:2]], axis=1)
        words = rows[unit, 32 * eight : 32 * eight + 32].reshape(8, 4)
        registers = np.concatenate([words, zeros], axis=1).reshape(4, 16)
        sums = np.array([multiply_matrices(*one) for one in zip(sums, [both] * 4, registers, strict=True)])
    return sums.transpose(1, 0, 2).reshape(2, 8)


@pytest.mark.parametrize("length", range(1, 10))
@pytest.mark.parametrize("runs", [1, 3])
def test_rearranged_weights_give_the_sums_of_the_packed_ones(length, runs):
    generator = np.random.default_rng(length)
    weights = generator.integers(-128, 128, (2, 2, runs * length, PANEL_CHANNELS, 4)).astype(np.int8)
    pixels = generator.integers(-128, 128, (2, runs * length * 4)).astype(np.int8)
    expected = pixels.astype(np.int32) @ weights.astype(np.int32).swapaxes(2, 3).reshape(
        2, 2, PANEL_CHANNELS, -1
    ).swapaxes(2, 3)
    rearranged = matrix_rows(weights, length)
    assert rearranged.shape == weights.shape
    for group, panel in np.ndindex(2, 2):
        rows = rearranged[group, panel].reshape(runs, length, -1)
        by_run = pixels.reshape(2, runs, -1)
        for eight in range(4):
            found = sum(block_sums(rows[run], by_run[:, run], eight) for run in range(runs))
            np.testing.assert_array_equal(found, expected[group, panel][:, 8 * eight : 8 * eight + 8])


def test_weights_that_were_packed_stay_as_they_are():
    weights = np.arange(4 * PANEL_CHANNELS * 4).astype(np.int8).reshape(1, 1, 4, PANEL_CHANNELS, 4)
    before = weights.copy()
    matrix_rows(weights, 4)
    np.testing.assert_array_equal(weights, before)
