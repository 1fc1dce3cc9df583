"""States of calibrations in files: the same bytes, refused when damaged or of something else."""

import hashlib

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit.quantization.calibration_state import CalibrationState, merge_states
from dryfit.quantization.histogram import Histogram

FINGERPRINT = {"model": "sha256:1", "samples": "arrays"}


def state_of(samples, fingerprint=FINGERPRINT, tensors=("x", "relu 1: y")):
    """The state after samples, each a name and its values."""
    collectors = {tensor: Histogram(tensor) for tensor in tensors}
    for name, values in samples.items():
        for collector in collectors.values():
            collector.update(np.float32(values), name)
    return CalibrationState(fingerprint, list(samples), collectors)


SAMPLES = {"b": [1.0, -3.0], "a": [0.5], "c": [0.0, 9.0]}


def test_a_state_survives_its_bytes():
    data = state_of(SAMPLES).to_bytes()
    read = CalibrationState.from_bytes(data, Histogram)
    assert read.to_bytes() == data
    assert (read.samples, read.fingerprint, list(read.collectors)) == (("a", "b", "c"), FINGERPRINT, ["x", "relu 1: y"])


def test_states_merge_to_the_bytes_of_the_whole_in_any_order():
    whole = state_of(SAMPLES).to_bytes()
    parts = [state_of({name: values}) for name, values in SAMPLES.items()]
    before = [part.to_bytes() for part in parts]
    assert merge_states(parts).to_bytes() == merge_states(parts[::-1]).to_bytes() == whole
    assert [part.to_bytes() for part in parts] == before


@pytest.mark.parametrize("place", [0, 30, 100, 200, -1])
def test_every_damaged_byte_is_noticed(place):
    data = bytearray(state_of(SAMPLES).to_bytes())
    data[place] ^= 1
    with pytest.raises(CalibrationError, match=r"seen.state: The file is (damaged|not a calibration state)"):
        CalibrationState.from_bytes(bytes(data), Histogram, "seen.state")


@pytest.mark.parametrize("data", [b"", b"\n", b"dryfit calibration state 1 \n{}", b"\x00" * 500])
def test_other_files_are_refused(data):
    with pytest.raises(CalibrationError, match=r"The file is (damaged|not a calibration state)"):
        CalibrationState.from_bytes(data, Histogram)


HEAD = '{"fingerprint": {"model": "m"}, "samples": ["a"], "tensors": []}'


@pytest.mark.parametrize(
    "head",
    [
        "[" * 100_000,
        "[]",
        "{}",
        "not JSON",
        "\ud800",
        HEAD.replace('"m"', "1"),
        HEAD.replace('["a"]', "3"),
        HEAD.replace('["a"]', "[[]]"),
        HEAD.replace('"tensors": []', '"tensors": [["x"]]'),
        HEAD.replace('"tensors": []', '"tensors": [["x", -1]]'),
        HEAD.replace('"tensors": []', '"tensors": [["x", 1e999]]'),
        HEAD.replace('"tensors": []', '"tensors": [["x", 9]]'),
        HEAD.replace('"tensors": []', '"tensors": [["x", true]]'),
    ],
)
def test_a_forged_head_with_a_right_digest_is_refused(head):
    body = head.encode(errors="surrogatepass") + b"\n"
    data = b"dryfit calibration state 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    with pytest.raises(CalibrationError, match="The file is damaged"):
        CalibrationState.from_bytes(data, Histogram)


def test_a_collector_whose_head_is_nested_deeply_is_refused():
    state = state_of(SAMPLES, tensors=("x",))
    part = next(iter(state.collectors.values())).to_bytes()
    magic = part[: part.index(b"{")]
    with pytest.raises(CalibrationError, match="The bytes are not the state of"):
        Histogram.from_bytes(magic + b"[" * 100_000)


def test_a_state_of_another_model_is_refused_with_what_differs():
    with pytest.raises(CalibrationError, match=r"old.state.*found model: sha256:1; allowed: model: sha256:2"):
        state_of(SAMPLES).require_fingerprint({**FINGERPRINT, "model": "sha256:2"}, "old.state")


def test_a_sample_in_two_states_and_other_tensors_are_refused():
    with pytest.raises(CalibrationError, match=r"state 1: Samples must not be in more than one state \(found 'a'\)"):
        merge_states([state_of(SAMPLES), state_of({"a": [1.0]})])
    with pytest.raises(
        CalibrationError,
        match=r"state 1: The states must have the same tensors \(found tensors that only .*: 'relu 1: y'\)",
    ):
        merge_states([state_of({"a": [1.0]}), state_of({"b": [1.0]}, tensors=("x",))])
    with pytest.raises(CalibrationError, match=r"At least one state is required"):
        merge_states([])
