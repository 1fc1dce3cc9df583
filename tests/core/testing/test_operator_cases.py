"""Cases for oracles: they seek ties, are the same in every run, and come back from files as they were."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.oracles.golden_file import GoldenVectors, document_of, read_golden, write_golden
from tests.oracles.table import oracle_of_method

from dryfit.errors import ConfigError, UnknownNameError
from dryfit.testing.operator_cases.case_table import DRAWN, trial_cases
from dryfit.testing.operator_cases.drawn_grids import (
    all_pairs,
    tie_seeking_biases,
    tie_seeking_multipliers,
    tie_seeking_numbers,
)


def same(one, other):
    (first, arrays), (second, others) = document_of(one), document_of(other)
    assert first == second
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
        assert array.dtype == others[name].dtype


@pytest.mark.parametrize("multiplier", [2.0**-18, 0.0123, 0.25, 1.0])
def test_each_half_code_has_a_bias_within_half_a_unit_and_its_neighbours(multiplier):
    biases = tie_seeking_biases(multiplier).reshape(-1, 3)
    for index, (below, nearest, above) in enumerate(biases):
        half = Fraction(2 * index + 1, 2) - 131
        assert abs(Fraction(int(nearest)) - half / Fraction(multiplier)) <= Fraction(1, 2)
        assert (below, above) == (nearest - 1, nearest + 1)


def test_a_power_of_two_meets_its_ties_exactly():
    biases = tie_seeking_biases(0.125).astype(np.float64) * 0.125
    assert np.count_nonzero(biases % 1 == 0.5) == 263


def test_numbers_are_halves_of_a_scale_and_their_neighbours():
    numbers = tie_seeking_numbers(0.5).reshape(-1, 3)
    np.testing.assert_array_equal(numbers[:, 1], (np.arange(-131, 132) + 0.5) * 0.5)
    assert (numbers[:, 0] < numbers[:, 1]).all()
    assert (numbers[:, 1] < numbers[:, 2]).all()


def test_some_multipliers_are_powers_of_two_and_all_are_in_their_range():
    found = tie_seeking_multipliers(np.random.default_rng(0), 2000, 2**-6, 2**1)
    assert found.min() >= 2**-6
    assert found.max() <= 2
    assert 0.2 < np.mean(np.frexp(found)[0] == 0.5) < 0.4


def test_all_pairs_are_65536_different_ones():
    first, second = all_pairs(np.int8)
    assert len(np.unique(first.astype(np.int32) * 256 + second)) == 65536


@pytest.mark.parametrize("operator", sorted(DRAWN))
def test_cases_are_the_same_in_every_run_and_are_what_they_are_called(operator):
    first, second = (trial_cases(operator, "tflite", count=2, is_exhaustive=False) for _ in range(2))
    assert {case.operator for case in first} == {operator}
    for one, other in zip(first, second, strict=True):
        same(one, other)


@pytest.mark.parametrize("operator", ["convolution", "quantize", "resize_bilinear", "eltwise_sum"])
def test_a_golden_file_gives_back_its_cases_and_answers(operator, tmp_path):
    cases = trial_cases(operator, "onnx", count=1, is_exhaustive=False)
    answers = [np.full(case.call.output_shape, index, np.uint8) for index, case in enumerate(cases)]
    paths = tmp_path / "one.npz", tmp_path / "two.npz"
    for path in paths:
        write_golden(path, GoldenVectors(cases, {"onnx": answers, "other": [None, *answers[1:]]}))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    found = read_golden(paths[0])
    assert len(found.of("other")) == len(cases) - 1
    for (case, answer), one, expected in zip(found.of("onnx"), cases, answers, strict=True):
        same(case, one)
        np.testing.assert_array_equal(answer, expected)


def test_a_method_of_a_device_has_no_oracle():
    with pytest.raises(UnknownNameError, match="gpu"):
        oracle_of_method("gpu")


def test_a_library_in_a_python_of_its_own_is_named_by_a_variable(monkeypatch):
    monkeypatch.delenv("DRYFIT_CAFFE2_PYTHON", raising=False)
    with pytest.raises(ConfigError, match="DRYFIT_CAFFE2_PYTHON"):
        oracle_of_method("caffe2")
    monkeypatch.setenv("DRYFIT_CAFFE2_PYTHON", "no/such/python")
    with pytest.raises(ConfigError, match="no/such/python"):
        oracle_of_method("caffe2")
