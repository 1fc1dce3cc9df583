import pytest

from dryfit.building import Builder
from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.network import Network

STRONGLY_TYPED = NetworkDefinitionCreationFlag.STRONGLY_TYPED


def test_the_flags_have_the_numbers_of_tensorrt_10():
    assert {flag.name: int(flag) for flag in NetworkDefinitionCreationFlag} == {
        "EXPLICIT_BATCH": 0,
        "STRONGLY_TYPED": 1,
        "PREFER_JIT_PYTHON_PLUGINS": 2,
        "PREFER_AOT_PYTHON_PLUGINS": 3,
    }


def test_a_builder_makes_networks_with_flags_which_a_copy_keeps():
    network = Builder().create_network(1 << STRONGLY_TYPED | 1 << NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
    for one in (network, copy_network(network)):
        assert one.flags == 0b11
        assert one.is_strongly_typed
        assert one.get_flag(NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
        assert not one.get_flag(NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS)
    assert not Builder().create_network().is_strongly_typed


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (STRONGLY_TYPED, "Write 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED"),
        (1 << 4, "found 0b10000"),
        (True, "found True"),
        ("strong", "found 'strong'"),
    ],
)
def test_what_is_no_mask_of_flags_is_refused(flags, words):
    with pytest.raises(NetworkError, match="Not a mask of creation flags") as caught:
        Network(flags=flags)
    assert words in str(caught.value)
