"""Arrays in files of strangers: read, or refused before memory is asked for."""

import io
import zipfile

import numpy as np
import pytest

from dryfit.quantization.array_files import load_arrays

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
