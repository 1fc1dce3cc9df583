import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PaddingMode, PoolingType

from .building import network_with


def pooling(shape=(1, 3, 8, 9), window=(3, 3), type_=PoolingType.MAX, **changes):
    network, x = network_with(shape)
    layer = network.add_pooling_nd(x, type_, window)
    for name, value in changes.items():
        setattr(layer, name, value)
    return layer


def test_parameters_have_tensorrts_names_and_defaults():
    layer = pooling()
    assert (layer.stride_nd, layer.padding_nd, layer.blend_factor) == ((1, 1), (0, 0), 0.0)
    assert layer.average_count_excludes_padding is True
    assert not layer.is_host_only


def test_the_shape_follows_the_padding_mode():
    assert pooling(stride_nd=(2, 2)).get_output(0).shape == (1, 3, 3, 4)
    up = {"stride_nd": (2, 2), "padding_mode": PaddingMode.EXPLICIT_ROUND_UP}
    assert pooling(**up).get_output(0).shape == (1, 3, 4, 4)
    same = {"stride_nd": (2, 2), "padding_mode": PaddingMode.SAME_UPPER}
    assert pooling(**same).get_output(0).shape == (1, 3, 4, 5)


def test_a_window_that_would_begin_behind_the_input_is_left_out():
    # ceil((4 + 1 + 1 - 1) / 3) + 1 = 3 windows begin at -1, 2 and 5; the input ends at 4.
    layer = pooling(
        (1, 1, 4),
        (1,),
        stride_nd=(3,),
        pre_padding=(1,),
        post_padding=(1,),
        padding_mode=PaddingMode.EXPLICIT_ROUND_UP,
    )
    assert layer.get_output(0).shape == (1, 1, 2)


def test_paddings_may_be_set_after_adding():
    layer = pooling((1, 1, 2, 2), (3, 3))
    with pytest.raises(NetworkError, match="larger than the padded input"):
        _ = layer.get_output(0).shape
    layer.padding_nd = (1, 1)
    assert layer.get_output(0).shape == (1, 1, 2, 2)


def test_dynamic_extents_stay_dynamic():
    assert pooling((-1, 3, -1, 9)).get_output(0).shape == (-1, 3, -1, 7)


def test_indices_are_a_second_output_and_host_only():
    network, x = network_with((1, 3, 8, 9))
    layer = network.add_pooling_nd(x, PoolingType.MAX, (2, 2), returns_indices=True)
    assert layer.is_host_only
    assert [(output.shape, output.dtype) for output in layer.outputs] == [
        ((1, 3, 7, 8), DataType.FLOAT),
        ((1, 3, 7, 8), DataType.INT64),
    ]
    with pytest.raises(NetworkError, match="found AVERAGE; allowed: MAX"):
        network.add_pooling_nd(x, PoolingType.AVERAGE, (2, 2), returns_indices=True)


def test_a_dilation_is_host_only():
    assert pooling(dilation_nd=(2, 1)).is_host_only


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": (9, 3)}, r"window \(9, 3\) on an input of \(1, 3, 8, 9\)"),
        ({"window": (3,)}, r"rank 4 with a window_size_nd of \(3,\); allowed: rank 3"),
        ({"stride_nd": (2,)}, "`stride_nd` must have one value per spatial axis.*allowed: 2 values"),
        ({"window": (0, 1)}, "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(arguments, message):
    with pytest.raises(NetworkError, match=message):
        _ = pooling(**arguments).get_output(0).shape
