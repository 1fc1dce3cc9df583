"""The data of the example: scikit-learn's 1,797 handwritten digits, and one fixed split of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

TEST_SIZE = 360
SPLIT_SEED = 7


class Split(NamedTuple):
    """Images `float32[N, 1, 8, 8]` in 0 to 1, and their digits `int64[N]`."""

    images: np.ndarray
    labels: np.ndarray


def train_and_test() -> tuple[Split, Split]:
    """1,437 images to train with and 360 to test with, the same at every call and on every machine."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, np.newaxis]
    labels = digits.target.astype(np.int64)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    test, train = order[:TEST_SIZE], order[TEST_SIZE:]
    return Split(images[train], labels[train]), Split(images[test], labels[test])
