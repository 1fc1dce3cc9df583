"""Samples from folders, files and functions."""

import contextlib
import pickle
import struct
import zlib

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.quantization.calibration_data import ArrayFiles, FunctionSamples, PictureFolder, source_of
from dryfit.quantization.picture_preparation import PicturePreparation

Image = pytest.importorskip("PIL.Image")


def network_of(**shapes):
    network = Network("taker")
    for name, shape in shapes.items():
        network.add_input(name, DataType.FLOAT, shape)
    return network


def all_of(source, network):
    return dict(source.samples(source.names(network), network))


# Pictures -------------------------------------------------------------------------------------------------------------


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)


def test_pictures_come_by_name_as_pixels_less_mean_times_scale(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3))
    save(tmp_path / "b" / "dog.png", pixels)
    save(tmp_path / "cat.png", 255 - pixels)
    source = PictureFolder(tmp_path, PicturePreparation(mean=(1, 2, 3), scale=(0.5, 1, 2)))
    found = all_of(source, network_of(image=(1, 3, 4, 6)))
    assert list(found) == ["b/dog.png", "cat.png"]
    expected = ((pixels - [1.0, 2.0, 3.0]) * [0.5, 1.0, 2.0]).astype(np.float32)
    np.testing.assert_array_equal(found["b/dog.png"]["image"], expected.transpose(2, 0, 1)[None])
    assert found["cat.png"]["image"].flags.c_contiguous


@pytest.mark.parametrize(
    ("channels", "shape", "order"), [("BGR", (1, 3, 4, 6), [2, 1, 0]), ("RGB", (-1, 4, 6, 3), [0, 1, 2])]
)
def test_channels_come_in_the_order_and_place_that_the_input_has(tmp_path, channels, shape, order):
    pixels = np.random.default_rng(1).integers(0, 256, (4, 6, 3))
    save(tmp_path / "a.png", pixels)
    found = all_of(PictureFolder(tmp_path, PicturePreparation(channels=channels)), network_of(image=shape))
    expected = pixels[:, :, order] if shape[-1] == 3 else pixels[:, :, order].transpose(2, 0, 1)
    np.testing.assert_array_equal(found["a.png"]["image"][0], expected)


def test_an_input_of_one_channel_takes_grey_pictures(tmp_path):
    save(tmp_path / "a.png", np.full((5, 5, 3), 77))
    found = all_of(PictureFolder(tmp_path, PicturePreparation()), network_of(image=(1, 1, 5, 5)))
    assert (found["a.png"]["image"] == 77).all()


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF, DataType.BF16])
def test_pictures_come_in_the_real_type_that_the_input_takes(tmp_path, dtype):
    save(tmp_path / "a.png", np.full((2, 2, 3), 77))
    network = Network("taker")
    network.add_input("image", dtype, (1, 3, 2, 2))
    found = all_of(PictureFolder(tmp_path, PicturePreparation(scale=1 / 256)), network)["a.png"]["image"]
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found, np.full((1, 3, 2, 2), 77 / 256, np.float32).astype(dtype.numpy))


@pytest.mark.parametrize(
    ("dtype", "mean"), [(DataType.UINT8, 0), (DataType.INT8, 128), (DataType.INT32, 0), (DataType.DOUBLE, 0)]
)
def test_pictures_come_in_another_type_that_holds_them_as_they_are(tmp_path, dtype, mean):
    pixels = np.random.default_rng(2).integers(0, 256, (4, 6, 3))
    pixels[0, 0] = (0, 128, 255)
    save(tmp_path / "a.png", pixels)
    network = Network("taker")
    network.add_input("image", dtype, (1, 4, 6, 3))
    found = all_of(PictureFolder(tmp_path, PicturePreparation(mean=mean)), network)["a.png"]["image"]
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found[0].astype(np.int64), pixels - mean)


@pytest.mark.parametrize(
    ("dtype", "prepared", "told"),
    [
        (DataType.UINT8, {"scale": 1 / 255}, "a.png, input 'image'.*type UINT8.*from 0.2 to 0.2.*pixels of 0 to 255"),
        (DataType.UINT8, {"mean": 100}, "type UINT8.*from -49 to -49.*--mean, --scale"),
        (DataType.INT8, {"scale": 3}, r"type INT8.*from 153 to 153 .mean \(0.0,\), scale \(3.0,\)"),
        (DataType.BOOL, {"mean": 50}, "The prepared pictures must fit the input type BOOL"),
    ],
)
def test_pictures_that_an_input_of_integers_cannot_hold_are_refused_with_their_values(tmp_path, dtype, prepared, told):
    save(tmp_path / "a.png", np.full((2, 2, 3), 51))
    network = Network("taker")
    network.add_input("image", dtype, (1, 3, 2, 2))
    with pytest.raises(CalibrationError, match=told):
        all_of(PictureFolder(tmp_path, PicturePreparation(**prepared)), network)


def test_resizing_stretches_crops_in_the_middle_or_fills_up(tmp_path):
    """A picture twice as wide as high: its left half is 10, its right half 200."""
    pixels = np.zeros((8, 16, 1)) + np.where(np.arange(16) < 8, 10, 200)[None, :, None]
    save(tmp_path / "a.png", pixels.repeat(3, axis=2))

    def row(**settings):
        source = PictureFolder(tmp_path, PicturePreparation(**settings))
        return all_of(source, network_of(image=(1, 3, 8, 8)))["a.png"]["image"][0, 0]

    stretched = row(resize="stretch")
    assert (stretched[:, :3] == 10).all()
    assert (stretched[:, 5:] == 200).all()
    cropped = row(resize="crop")
    assert (cropped[:, :4] == 10).all()
    assert (cropped[:, 4:] == 200).all()
    padded = row(resize="pad", fill=99)
    assert (padded[4:] == 99).all()
    assert (padded[:4, 0] == 10).all()
    assert row(resize="crop", short_side=16).shape == (8, 8)


def test_a_fixed_batch_takes_as_many_pictures_at_a_time(tmp_path):
    for index in range(4):
        save(tmp_path / f"{index}.png", np.full((2, 2, 3), index))
    source = PictureFolder(tmp_path, PicturePreparation())
    found = all_of(source, network_of(image=(2, 3, 2, 2)))
    assert {name: arrays["image"][:, 0, 0, 0].tolist() for name, arrays in found.items()} == {
        "0.png": [0, 1],
        "2.png": [2, 3],
    }
    with pytest.raises(CalibrationError, match=r"found 4 pictures; allowed: a multiple of the network's batch, 3"):
        source.names(network_of(image=(3, 3, 2, 2)))


def test_what_cannot_be_a_picture_is_refused_by_name(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    source = PictureFolder(tmp_path, PicturePreparation())
    with pytest.raises(CalibrationError, match=r"broken.png: The file is not a readable picture"):
        all_of(source, network_of(image=(1, 3, 4, 4)))
    with pytest.raises(
        CalibrationError, match=r"input 'x': The input does not have the shape of a picture \(found \(1, 10\)"
    ):
        all_of(source, network_of(x=(1, 10)))
    with pytest.raises(CalibrationError, match=r"several inputs.*'a', 'b'"):
        all_of(source, network_of(a=(1, 3, 4, 4), b=(1, 3, 4, 4)))
    with pytest.raises(CalibrationError, match=r"found channels for 3; allowed: 1"):
        all_of(PictureFolder(tmp_path, PicturePreparation(channels="BGR")), network_of(image=(1, 1, 4, 4)))
    with pytest.raises(CalibrationError, match=r"resize \(found 'zoom'; allowed: stretch, crop, pad"):
        PicturePreparation(resize="zoom")


def png(width, height):
    """A picture of one grey value, of few bytes."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (width + 1) * min(height, 16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_a_picture_that_could_be_a_decompression_bomb_is_refused(tmp_path, side, recwarn):
    (tmp_path / "bomb.png").write_bytes(png(side, side))
    with pytest.raises(CalibrationError, match=r"bomb.png: The picture is too large") as caught:
        all_of(PictureFolder(tmp_path, PicturePreparation()), network_of(image=(1, 3, 4, 4)))
    assert str(side * side) in str(caught.value.found)
    assert "89478485 pixels" in caught.value.allowed
    assert not recwarn.list


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "ppm", "webp"])
def test_damaged_pictures_are_refused_by_name(tmp_path, suffix):
    path = tmp_path / f"damaged.{suffix}"
    save(path, np.random.default_rng(0).integers(0, 256, (24, 24, 3)))
    whole = path.read_bytes()
    source, network = PictureFolder(tmp_path, PicturePreparation()), network_of(image=(1, 3, 4, 4))
    rng = np.random.default_rng(1)
    refused = 0
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        cut = bytearray(whole[:length]) if length % 2 else bytearray(whole)
        for place in rng.integers(0, len(cut), 3) if cut else ():
            cut[place] = rng.integers(256)
        path.write_bytes(cut)
        with contextlib.suppress(CalibrationError):
            all_of(source, network)
            continue
        refused += 1
    assert refused


def test_the_text_of_a_preparation_tells_everything_that_values_depend_on():
    one, other = (PictureFolder("a", PicturePreparation(mean=mean)).text for mean in (1.0, 2.0))
    assert one != other
    assert one == PictureFolder("b", PicturePreparation(mean=(1.0,))).text


# Arrays ---------------------------------------------------------------------------------------------------------------


def test_an_array_is_cut_into_samples_along_its_first_axis(tmp_path):
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.save(tmp_path / "all.npy", array)
    found = all_of(ArrayFiles(tmp_path / "all.npy"), network_of(x=(2, 4)))
    assert list(found) == ["all.npy[0]", "all.npy[1]", "all.npy[2]"]
    np.testing.assert_array_equal(found["all.npy[1]"]["x"], array[2:4])
    assert len(all_of(ArrayFiles(tmp_path), network_of(x=(-1, 4)))) == 6


def test_a_sample_may_leave_its_batch_out(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    assert all_of(ArrayFiles(tmp_path), network_of(x=(1, 4)))["a.npy"]["x"].shape == (1, 4)


def test_files_of_several_arrays_name_the_inputs(tmp_path):
    for index in range(2):
        np.savez(tmp_path / f"{index}.npz", a=np.full((1, 2), index, np.float32), b=np.zeros((1, 3), np.float32))
    network = network_of(a=(1, 2), b=(1, 3))
    assert [arrays["a"][0, 0] for arrays in all_of(ArrayFiles(tmp_path), network).values()] == [0, 1]
    with pytest.raises(
        CalibrationError, match=r"0.npz: The names of the arrays must match .*found 'a', 'b'; allowed: 'a'\)"
    ):
        all_of(ArrayFiles(tmp_path), network_of(a=(1, 2)))


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 5), np.float32))
    for shape in ((1, 4), (2, 5), (1, 1, 5)):
        if shape != (1, 1, 5):
            with pytest.raises(CalibrationError, match=r"a.npy, input 'x': The shape of the array must match"):
                all_of(ArrayFiles(tmp_path), network_of(x=shape))
    (tmp_path / "a.npy").write_bytes(b"nothing")
    with pytest.raises(CalibrationError, match=r"a.npy: The arrays cannot be read"):
        all_of(ArrayFiles(tmp_path), network_of(x=(1, 5)))
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(CalibrationError, match=r"a.npy: The arrays cannot be read"):
        all_of(ArrayFiles(tmp_path), network_of(x=(1, 5)))


# Functions ------------------------------------------------------------------------------------------------------------


def test_a_function_gives_a_sequence_or_an_iterable(tmp_path, monkeypatch):
    (tmp_path / "makers_of_samples.py").write_text(
        "import numpy as np\n"
        "def listed():\n    return [{'x': np.full((1, 2), i, np.float32)} for i in range(3)]\n"
        "def flowing():\n    yield from listed()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    network = network_of(x=(1, 2))
    for name in ("listed", "flowing"):
        source = source_of(f"makers_of_samples:{name}")
        assert isinstance(source, FunctionSamples)
        assert list(source.names(network)) == ["0", "1", "2"]
        assert [(n, a["x"][0, 0]) for n, a in source.samples(["1", "2"], network)] == [("1", 1), ("2", 2)]
    with pytest.raises(CalibrationError, match=r"makers_of_samples:none: The function for samples cannot be called"):
        source_of("makers_of_samples:none").names(network)


def test_a_function_may_stand_in_a_file(tmp_path):
    loader = tmp_path / "load data.py"
    loader.write_text("def load_data():\n    return [{'x': index} for index in range(3)]\n")
    source = source_of(f"{loader}:load_data")
    assert [feeds["x"] for _, feeds in source.samples(source.names(None), None)] == [0, 1, 2]
    for place in (f"{tmp_path / 'none.py'}:load_data", f"{loader}:none", f"{loader}:"):
        with pytest.raises(CalibrationError, match=r"The function for samples cannot be called .*file.py:funct"):
            source_of(place).names(None)
    loader.write_text("def load_data(:\n")
    with pytest.raises(CalibrationError, match=r"load data.py:load_data: .*found SyntaxError: "):
        source.names(None)


def test_an_iterable_is_asked_for_no_more_than_is_wanted(tmp_path):
    loader = tmp_path / "endless.py"
    loader.write_text("import itertools\ndef load_data():\n    return ({'x': index} for index in itertools.count())\n")
    assert list(source_of(f"{loader}:load_data").samples(["1", "3"], None)) == [("1", {"x": 1}), ("3", {"x": 3})]


# Which source ---------------------------------------------------------------------------------------------------------


def test_the_place_says_what_kind_of_source_it_is(tmp_path):
    for empty in (tmp_path, tmp_path / "missing.npy"):
        with pytest.raises(CalibrationError, match=r"No samples found .allowed: a folder with pictures") as caught:
            source_of(str(empty))
        assert caught.value.where == str(empty)
    np.save(tmp_path / "a.npy", np.ones(3))
    assert source_of(str(tmp_path)) == ArrayFiles(tmp_path)
    assert source_of(str(tmp_path / "a.npy")) == ArrayFiles(tmp_path / "a.npy")
    save(tmp_path / "b.jpg", np.zeros((2, 2, 3)))
    with pytest.raises(CalibrationError, match="either pictures or arrays"):
        source_of(str(tmp_path))


def test_a_source_can_be_sent_to_another_process(tmp_path):
    for source in (PictureFolder(tmp_path, PicturePreparation(mean=3)), ArrayFiles(tmp_path), FunctionSamples("a:b")):
        assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301  our own bytes
