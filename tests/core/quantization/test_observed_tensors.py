"""What calibration looks at, and what follows without looking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.quantization.calibration import collect
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.range_sharing import Implication, implied_states

CALIBRATOR = Calibrator(name="largest", title="", solve=lambda one: Solution.of_threshold(one.magnitude))


class Watching(Histogram):
    """The same, but nothing is implied for it: it is shown every tensor."""


def network():
    made = Network("implied")
    x = made.add_input("x", DataType.FLOAT, (-1, 4))
    relu = made.add_activation(x, ActivationType.RELU).get_output(0)
    shuffle = made.add_shuffle(relu)
    shuffle.first_transpose = (1, 0)
    moved = shuffle.get_output(0)
    shuffle = made.add_shuffle(x)
    shuffle.first_transpose = (1, 0)
    joined = made.add_concatenation([moved, shuffle.get_output(0)]).get_output(0)
    tanh = made.add_activation(joined, ActivationType.TANH).get_output(0)
    for tensor, name in (
        (relu, "relu"), (moved, "moved"), (shuffle.get_output(0), "turned"), (joined, "joined"), (tanh, "tanh")
    ):  # fmt: skip
        made.rename_tensor(tensor, name)
    made.mark_output(tanh)
    return made


ALL = ["x", "relu", "moved", "turned", "joined", "tanh"]


def test_reshapes_relus_and_concatenations_imply_and_nothing_else():
    found = implied_states(network(), ALL)
    assert {name: (one.implication, list(one.sources)) for name, one in found.items()} == {
        "relu": (Implication.RECTIFIED, ["x"]),
        "moved": (Implication.SAME, ["relu"]),
        "turned": (Implication.SAME, ["x"]),
        "joined": (Implication.UNION, ["moved", "turned"]),
    }


@pytest.mark.parametrize(("missing", "still"), [("x", {"moved", "joined"}), ("relu", {"turned", "joined"})])
def test_only_what_is_observed_implies(missing, still):
    assert set(implied_states(network(), [name for name in ALL if name != missing])) == still


rows = st.lists(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=4, max_size=4), min_size=1
)


@given(st.lists(rows, min_size=1, max_size=3))
def test_implied_states_are_those_that_would_have_been_seen(samples):
    feeds = [{"x": np.array(sample, np.float32)} for sample in samples]
    implied = collect(network(), CALIBRATOR, feeds)
    watched = collect(network(), Calibrator(name="w", title="", solve=CALIBRATOR.solve, collector=Watching), feeds)
    assert {name: one.payload() for name, one in implied.items()} == {
        name: one.payload() for name, one in watched.items()
    }
