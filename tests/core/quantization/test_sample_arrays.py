"""Samples in files and in mappings."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from dryfit import ActivationType, Builder, BuilderFlag, DataType, Network, calibrate_ranges
from dryfit.calibration.calibrate import calibrate
from dryfit.errors import CalibrationError
from dryfit.plugins.calibrators import calibrator
from dryfit.quantization.calibration_data import source_of
from dryfit.quantization.sample_arrays import load_arrays, named_samples

HUGE = (1, 1, 99_999_999, 99_999)


def npy(array, shape=None):
    """The bytes of an .npy file, whose header may state another shape."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header | ({"shape": shape} if shape else {}))
    return file.getvalue() + array.tobytes()


def npz(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.ones((2, 3), np.float32)),
        np.zeros((0, 3)),
        np.int8(3) * np.ones((), np.int8),
    ],
)
def test_arrays_are_read_as_they_are(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array, y=array)
    for found in (load_arrays(tmp_path / "a.npy"), *load_arrays(tmp_path / "a.npz").values()):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("shape", [HUGE, (2**62, 2**62), (2**31,)])
def test_a_header_that_promises_more_than_the_file_has_is_refused(tmp_path, shape):
    data = npy(np.ones(8, np.float32), shape)
    (tmp_path / "a.npy").write_bytes(data)
    (tmp_path / "a.npz").write_bytes(npz(x=npy(np.ones(3)), y=data))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=r"the header states shape \("):
            load_arrays(tmp_path / name)


def test_code_in_a_file_is_never_run(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="arrays of Python objects"):
            load_arrays(tmp_path / name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nothing",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
    ],
)
def test_other_files_are_refused(tmp_path, data):
    for name in ("a.npy", "a.npz"):
        (tmp_path / name).write_bytes(data)
        if (name, data[:4]) == ("a.npz", b"PK\x05\x06"):
            assert load_arrays(tmp_path / name) == {}
            continue
        with pytest.raises(ValueError, match=r"."):
            load_arrays(tmp_path / name)


def test_headers_with_any_bytes_are_read_or_refused(tmp_path):
    """numpy's own reader raises errors of many kinds here, tokenize.TokenError among them."""
    whole, rng = npy(np.ones((2, 3), np.float32)), np.random.default_rng(0)
    refused = 0
    for trial in range(400):
        data = bytearray(whole)
        for place in rng.integers(6, 80, 1 + trial % 4):
            data[place] = rng.choice(list(b"([{'\",}])0123456789\0L \n"))
        (tmp_path / "a.npy").write_bytes(data)
        try:
            load_arrays(tmp_path / "a.npy")
        except ValueError:
            refused += 1
    assert refused > 100


ARRAYS = np.random.default_rng(0).standard_normal((6, 3, 4, 4)).astype(np.float32)
MINMAX = calibrator("minmax")


def network(*names, batch=1):
    made = Network("relu")
    for name in names or ("x",):
        x = made.add_input(name, DataType.FLOAT, (batch, 3, 4, 4))
        made.mark_output(made.add_activation(x, ActivationType.RELU).get_output(0))
    return made


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


FORMS = {
    "mappings": [{"x": one[None]} for one in ARRAYS],
    "named": [(f"picture {index}", {"x": one[None]}) for index, one in enumerate(ARRAYS)],
    "arrays": [one[None] for one in ARRAYS],
    "arrays without a batch": list(ARRAYS),
    "one array": ARRAYS,
    "batches": [ARRAYS[:2], ARRAYS[2:]],
    "lists of numbers": [one[None].tolist() for one in ARRAYS],
    "numbers in a mapping": [{"x": one[None].tolist()} for one in ARRAYS],
    "as get_batch gives them": [[one[None]] for one in ARRAYS],
    "dlpack": [OnlyDlpack(one[None]) for one in ARRAYS],
    "a generator": (one[None] for one in ARRAYS),
}


@pytest.mark.parametrize("samples", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_ranges(samples):
    found = calibrate_ranges(network(), MINMAX, samples)
    assert found["x"].dynamic_range.threshold == np.abs(ARRAYS).max()


def test_a_fixed_batch_is_one_sample_and_of_a_dynamic_one_each_row_is():
    assert [(name, feeds["x"].shape[0]) for name, feeds in named_samples(ARRAYS, network(batch=3))] == [
        ("0", 3),
        ("1", 3),
    ]
    assert len(list(named_samples([ARRAYS], network(batch=-1)))) == len(ARRAYS)


def test_builds_and_the_fast_calibration_take_arrays_too():
    made, config = network(), Builder().create_builder_config()
    config.set_flag(BuilderFlag.INT8)
    config.calibrate_with("minmax", ARRAYS)
    engine = Builder().build_engine(made, config)
    largest = np.abs(ARRAYS).max()
    assert engine.plan.network.tensor("x").dynamic_range[1] == largest
    assert calibrate(made, "minmax", list(ARRAYS))["x"].dynamic_range.threshold == largest


@pytest.mark.parametrize(
    ("samples", "where", "found"),
    [
        ([ARRAYS[:1], "picture.png"], "sample '1'", "a str"),
        ([None], "sample '0'", "a NoneType"),
        ([{"x": "picture.png"}], "sample '0'", "a str"),
        ([[[1.0], [2.0, 3.0]]], "sample '0'", "a list that cannot be converted"),
        ({"x": ARRAYS[:1]}, "network 'relu'", "a dict"),
        ("pictures", "network 'relu'", "a str"),
        (7, "network 'relu'", "a int"),
        ([("cat", 7j)], "sample 'cat'", "a complex"),
    ],
)
def test_what_is_no_sample_is_refused_with_what_one_is(samples, where, found):
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network(), MINMAX, samples)
    assert error.value.where == where
    assert error.value.found.startswith(found)
    assert "{'x': array}, or an array" in error.value.allowed


def test_of_several_inputs_a_sample_says_which_array_is_for_which():
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network("a", "b"), MINMAX, [ARRAYS[:1]])
    assert error.value.allowed == "{'a': array, 'b': array}"


def test_an_array_that_does_not_fit_is_refused_with_the_shape():
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network(), MINMAX, [ARRAYS[:, :2]])
    assert (error.value.where, error.value.found) == ("sample '0', input 'x'", (6, 2, 4, 4))


def test_a_function_may_give_arrays(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text("import numpy as np\ndef f():\n    return [np.ones((1, 3, 4, 4), np.float32)]\n")
    source = source_of(f"{tmp_path / 'given.py'}:f")
    ((name, feeds),) = source.samples(source.names(network()), network())
    assert (name, feeds["x"].shape) == ("0", (1, 3, 4, 4))
