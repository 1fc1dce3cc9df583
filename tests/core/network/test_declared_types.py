import enum
import re

import numpy as np
import pytest

from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.layers.matrix import Einsum
from dryfit.network.layers.plugin import Plugin
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.ranking import TopKOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.resize import Resize
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.layers.window_layer import PaddingMode, PoolingType
from dryfit.network.network import Network


class ForeignPadding(enum.Enum):
    SAME_LOWER = 3


NO_GUESS = "Pass an allowed value"


class Number(enum.IntEnum):
    TWO = 2


def network_with_input():
    network = Network("net")
    return network, network.add_input("x", DataType.FLOAT, (1, 3, 8, 8))


def convolution():
    network, x = network_with_input()
    layer = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, 3, 3, 3), np.float32))
    network.rename_layer(layer, "conv")
    return layer


def refusal(layer, name, value):
    before = getattr(layer, name)
    with pytest.raises(NetworkError) as error:
        setattr(layer, name, value)
    assert getattr(layer, name) is before
    return error.value


# Enumerations


def test_the_text_of_a_member_is_refused_and_the_member_named():
    network, x = network_with_input()
    with pytest.raises(NetworkError) as error:
        network.add_reduce(x, "AVG", 0b100, False)
    assert error.value.where == "a new reduce layer"
    assert error.value.message == "`op` has the wrong type"
    assert error.value.found == "str 'AVG'"
    assert error.value.allowed == ", ".join(f"ReduceOperation.{one.name}" for one in ReduceOperation)
    assert error.value.remedy == "Did you mean ReduceOperation.AVG?"
    assert len(network.layers) == 0


def test_a_member_of_another_enumeration_is_refused():
    network, x = network_with_input()
    with pytest.raises(NetworkError) as error:
        network.add_pooling_nd(x, ReduceOperation.SUM, (2, 2))
    assert error.value.found == "ReduceOperation.SUM"
    assert error.value.allowed == ", ".join(f"PoolingType.{one.name}" for one in PoolingType)
    assert error.value.remedy == NO_GUESS


@pytest.mark.parametrize(
    ("value", "found", "remedy"),
    [
        ("SAME_UPPER", "str 'SAME_UPPER'", "Did you mean PaddingMode.SAME_UPPER?"),
        ("same_lower", "str 'same_lower'", "Did you mean PaddingMode.SAME_LOWER?"),
        (2, "int 2", "Did you mean PaddingMode.SAME_UPPER?"),
        (ForeignPadding.SAME_LOWER, "ForeignPadding.SAME_LOWER", "Did you mean PaddingMode.SAME_LOWER?"),
        (9, "int 9", NO_GUESS),
        (True, "bool True", NO_GUESS),
        ("CAFFE", "str 'CAFFE'", NO_GUESS),
        (None, "NoneType None", NO_GUESS),
    ],
)
def test_a_padding_mode_is_not_guessed(value, found, remedy):
    problem = refusal(convolution(), "padding_mode", value)
    assert problem.where == "layer 'conv' (convolution)"
    assert (problem.found, problem.remedy) == (found, remedy)
    assert problem.allowed.split(", ")[2] == "PaddingMode.SAME_UPPER"


def test_a_mode_of_a_slice_is_a_sample_mode():
    assert refusal(Slice(), "mode", "WRAP").remedy == "Did you mean SampleMode.WRAP?"
    assert Slice(mode=SampleMode.WRAP).mode is SampleMode.WRAP


@pytest.mark.parametrize(
    ("value", "meant"),
    [("HALF", "HALF"), ("fp16", "HALF"), (np.float32, "FLOAT"), (np.dtype("int8"), "INT8"), (1, "HALF"), (3, "INT32")],
)
def test_a_data_type_in_other_words_is_refused_and_the_member_named(value, meant):
    with pytest.raises(NetworkError) as error:
        Cast(to_type=value)
    assert error.value.remedy == f"Did you mean DataType.{meant}?"


@pytest.mark.parametrize("value", ["x", None, 77, 1.5])
def test_for_what_is_no_data_type_at_all_none_is_guessed(value):
    with pytest.raises(NetworkError, match="`to_type` has the wrong type") as error:
        Cast(to_type=value)
    assert error.value.remedy == NO_GUESS


# Numbers, texts and tuples


@pytest.mark.parametrize("value", [(1.5, 1), [1, "2"], "12", (True, 1), {1: 2}, ((1, 2),)])
def test_a_stride_is_a_tuple_of_integers(value):
    problem = refusal(convolution(), "stride_nd", value)
    assert problem.allowed == "a tuple of integers"


def test_a_padding_on_both_sides_is_not_truncated():
    layer = convolution()
    with pytest.raises(NetworkError, match=re.escape("tuple (1.5, 1)")):
        layer.padding_nd = (1.5, 1)
    assert (layer.pre_padding, layer.post_padding) == ((0, 0), (0, 0))
    layer.padding_nd = [1, np.int64(2)]
    assert (layer.pre_padding, layer.post_padding) == ((1, 2), (1, 2))


@pytest.mark.parametrize("value", [[2, 1], np.array([2, 1]), (np.int32(2), np.int64(1)), (n for n in (2, 1))])
def test_sequences_of_integers_become_tuples_of_python_integers(value):
    layer = convolution()
    layer.stride_nd = value
    assert layer.stride_nd == (2, 1)
    assert [type(stride) for stride in layer.stride_nd] == [int, int]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (2.0, "Write 2"),
        (2.5, NO_GUESS),
        (True, NO_GUESS),
        ("2", NO_GUESS),
        (Number.TWO, NO_GUESS),
        (None, NO_GUESS),
    ],
)
def test_an_integer_is_no_other_number(value, remedy):
    problem = refusal(convolution(), "num_groups", value)
    assert (problem.allowed, problem.remedy) == ("an integer", remedy)


def test_integers_of_numpy_become_pythons():
    layer = convolution()
    layer.num_groups = np.int64(1)
    assert type(layer.num_groups) is int


def test_numbers_become_floats_where_a_float_is_declared():
    layer = Activation(activation_type=ActivationType.ELU, alpha=1, beta=np.float32(0.5))
    assert (layer.alpha, layer.beta) == (1.0, 0.5)
    assert (type(layer.alpha), type(layer.beta)) == (float, float)
    assert Resize(scales=[1, np.float32(2)]).scales == (1.0, 2.0)
    for value in ("1", True, None, 10**400):
        assert refusal(layer, "alpha", value).allowed.startswith("a number")


def test_integers_of_a_fill_stay_exact():
    layer = Fill(operation=FillOperation.LINSPACE, alpha=2**53 + 1, beta=0.5, to_type=DataType.INT64)
    assert (layer.alpha, layer.beta) == (2**53 + 1, 0.5)


@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_a_bool_is_true_or_false(value):
    with pytest.raises(NetworkError) as error:
        Cast(to_type=DataType.HALF, saturate=value)
    assert error.value.allowed == "True or False"
    assert Cast(to_type=DataType.HALF, saturate=np.bool_(False)).saturate is False


def test_a_text_is_a_text():
    with pytest.raises(NetworkError) as error:
        Einsum(equation=b"ij->ji")
    assert (error.value.found, error.value.allowed) == ("bytes b'ij->ji'", "a string")


# Arrays, dicts and what every layer has


def test_weights_are_an_array():
    problem = refusal(convolution(), "kernel", [[1.0]])
    assert (problem.allowed, problem.remedy) == ("an array, or None", "Make it an array with numpy.asarray")


def test_an_optional_tuple_may_be_none_and_nothing_else():
    layer = Slice(axes=[1])
    assert layer.axes == (1,)
    assert refusal(layer, "axes", "1").allowed == "a tuple of integers, or None"
    layer.axes = None
    assert layer.axes is None


def test_fields_of_a_plugin_hold_plain_values():
    layer = Plugin(plugin_name="swish", fields={"beta": 1.0, "sizes": (1, "a"), "weights": np.zeros(2)})
    assert layer.fields["sizes"] == (1, "a")
    assert refusal(layer, "fields", {"beta": object}).found.startswith("'beta': type")
    assert refusal(layer, "fields", {1: 2.0}).found == "int 1"
    assert refusal(layer, "fields", [1]).allowed == "a dict"


@pytest.mark.parametrize("value", [DataType.INT64, DataType.BOOL, DataType.UINT8])
def test_nothing_is_computed_in_a_type_of_indices(value):
    layer = convolution()
    problem = refusal(layer, "precision", value)
    assert problem.found == f"DataType.{value.name}"
    assert problem.allowed.startswith("DataType.FLOAT, DataType.HALF, ")
    layer.precision = DataType.HALF
    layer.reset_precision()
    assert layer.precision is None


def test_a_precision_is_a_data_type():
    assert refusal(convolution(), "precision", "fp16").remedy == "Did you mean DataType.HALF?"


def test_a_type_is_asked_for_an_output_that_exists():
    layer = convolution()
    with pytest.raises(NetworkError) as error:
        layer.set_output_type(1, DataType.HALF)
    assert (error.value.found, error.value.allowed) == (1, "0")
    with pytest.raises(NetworkError, match="found 0: str 'fp16'"):
        layer.set_output_type(0, "fp16")
    assert layer.output_types == {}
    layer.set_output_type(0, DataType.HALF)
    assert layer.get_output_type(0) is DataType.HALF


def test_top_k_takes_one_element_or_more():
    network, x = network_with_input()
    with pytest.raises(NetworkError, match="found 0; allowed: 1 to 8"):
        network.add_topk(x, TopKOperation.MAX, 0, 0b1000)


@pytest.mark.parametrize("kind", sorted(LAYER_KINDS))
def test_no_parameter_of_any_kind_takes_an_arbitrary_object(kind):
    cls = LAYER_KINDS[kind]
    layer = cls.__new__(cls)  # parameters are refused one by one, whatever the others are
    for field in cls.parameters():
        if field.name != "weights":  # any object is an element of an array
            with pytest.raises(NetworkError, match=f"`{field.name}` has the wrong type"):
                setattr(layer, field.name, object())


# Unknown attributes


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("stride", "stride_nd"),
        ("padding", "padding_nd"),
        ("dilation", "dilation_nd"),
        ("kernel_size", "kernel_size_nd"),
        ("groups", "num_groups"),
        ("pading_mode", "padding_mode"),
    ],
)
def test_an_unknown_parameter_of_a_layer_is_refused_with_the_closest(name, close):
    layer = convolution()
    with pytest.raises(UnknownNameError) as error:
        setattr(layer, name, 2)
    assert error.value.where == "layer 'conv' (convolution)"
    assert error.value.remedy == f"Did you mean {close!r}?"
    assert not hasattr(layer, name)


def test_the_window_of_a_pooling_has_its_new_name():
    network, x = network_with_input()
    layer = network.add_pooling_nd(x, PoolingType.MAX, (2, 2))
    with pytest.raises(UnknownNameError, match="'window_size_nd'"):
        layer.window_size = (3, 3)


@pytest.mark.parametrize("name", ["kind", "type", "num_inputs", "get_output"])
def test_what_is_no_parameter_cannot_be_set(name):
    with pytest.raises(UnknownNameError, match=name):
        setattr(convolution(), name, 1)


def test_private_attributes_of_a_layer_can_be_set():
    layer = Convolution(num_output_maps=1, kernel_size_nd=(1,))
    layer._note = "mine"
    assert layer._note == "mine"
    assert layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
