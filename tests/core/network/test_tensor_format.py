"""What may be written where tensor formats are allowed, and what is refused at that line."""

import pytest

from dryfit import DataType, Network, TensorFormat
from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network import installed_packages
from dryfit.network.copying import copy_network
from dryfit.network.installed_packages import InstalledPackages
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.plugins import registry


@pytest.fixture
def tensor():
    return Network().add_input("image", DataType.HALF, (1, 4, 8, 8))


CHW16, LINEAR = TensorFormat.CHW16, TensorFormat.LINEAR


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (CHW16, {"CHW16"}),
        ("CHW16", {"CHW16"}),
        (1 << int(CHW16), {"CHW16"}),
        (1 << CHW16 | 1 << LINEAR, {"CHW16", "LINEAR"}),
        ([CHW16, "LINEAR"], {"CHW16", "LINEAR"}),
        ({CHW16, LINEAR}, {"CHW16", "LINEAR"}),
        (frozenset({"DLA_HWC4"}), {"DLA_HWC4"}),
        ((1 << 13) - 1, set(TensorFormat.__members__)),
        (LINEAR, {"LINEAR"}),
        (None, None),
    ],
)
def test_formats_are_a_mask_a_name_a_member_or_several(tensor, given, names):
    tensor.allowed_formats = given
    assert tensor.allowed_formats == names


def test_the_numbers_are_those_of_tensorrt():
    names = "LINEAR CHW2 HWC8 CHW4 CHW16 CHW32 DHWC8 CDHW32 HWC DLA_LINEAR DLA_HWC4 HWC16 DHWC"
    assert {one.name: int(one) for one in TensorFormat} == {name: at for at, name in enumerate(names.split())}


@pytest.mark.parametrize("given", [0, -1, 1 << 13, True, 1.5, [], [4], [None], b"CHW16", {"CHW16": 1}, DataType.HALF])
def test_what_is_no_format_is_refused_as_it_is_set(tensor, given):
    with pytest.raises(NetworkError) as error:
        tensor.allowed_formats = given
    assert error.value.where == "tensor 'image'"
    assert error.value.found == repr(given)
    assert "1 << int(TensorFormat.CHW16)" in error.value.allowed
    assert tensor.allowed_formats is None


def test_an_unknown_name_is_refused_with_the_closest(tensor):
    with pytest.raises(UnknownNameError) as error:
        tensor.allowed_formats = ["LINEAR", "CHW61"]
    assert (error.value.name, error.value.where) == ("CHW61", "tensor 'image'")
    assert set(TensorFormat.__members__) <= set(error.value.known)
    assert "CHW16" in error.value.remedy


def test_members_are_no_bits(tensor):
    with pytest.raises(TypeError, match="1 << int"):
        tensor.allowed_formats = CHW16 | LINEAR


def test_formats_of_other_devices_go_by_their_names(tensor, monkeypatch):
    answers = InstalledPackages(format_names=lambda: {"ACME_TILES"})
    monkeypatch.setattr(installed_packages, "_find", lambda: answers)
    tensor.allowed_formats = {"ACME_TILES", CHW16}
    assert tensor.allowed_formats == {"ACME_TILES", "CHW16"}
    again = network_from_dict(*network_to_dict(tensor.network))
    monkeypatch.setattr(installed_packages, "_find", InstalledPackages)
    copied = copy_network(tensor.network)  # a file may name a device that is not installed
    assert again.inputs[0].allowed_formats == copied.inputs[0].allowed_formats == {"ACME_TILES", "CHW16"}


def test_every_format_of_the_devices_that_come_with_dryfit_has_a_number():
    assert registry.format_names() <= TensorFormat.__members__.keys()
