"""Random networks for property tests: every value is a small whole number, so that any correct rewrite is exact."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.slice import SampleMode
from dryfit.network.network import Network

SHAPE = (2, 3, 4)


@st.composite
def networks(draw, dynamic: bool = False):
    """A network with an input `x` (its first axis dynamic where asked), and the array to feed it."""
    network = Network("random")
    tensors = [network.add_input("x", DataType.FLOAT, (-1, *SHAPE[1:]) if dynamic else SHAPE)]
    for number in range(draw(st.integers(1, 12))):
        step = draw(st.sampled_from(STEPS))
        tensors.append(step(draw, network, draw(st.sampled_from(tensors[-4:]))))
        if draw(st.booleans()):
            network.rename_tensor(tensors[-1], f"named {number}")
    chosen = draw(st.lists(st.sampled_from(tensors[1:]), min_size=1, max_size=3, unique_by=id))
    for tensor in chosen:
        if not tensor.is_network_input:
            network.mark_output(tensor)
    if not network.outputs:
        network.mark_output(network.add_identity(tensors[0]).get_output(0))
    return network, np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE) - 5


def _vector(network, values):
    return network.add_constant((len(values),), np.array(values, np.int64)).get_output(0)


def _identity(draw, network, x):
    return network.add_identity(x).get_output(0)


def _activation(draw, network, x):
    return network.add_activation(x, ActivationType.RELU).get_output(0)


def _cast_to_the_same_type(draw, network, x):
    return network.add_cast(x, DataType.FLOAT).get_output(0)


def _cast_there_and_back(draw, network, x):
    there = network.add_layer(Cast(to_type=DataType.INT32), [x]).get_output(0)
    return network.add_cast(there, DataType.FLOAT).get_output(0)


def _reshape_to_its_own_shape(draw, network, x):
    shape = network.add_shape(x).get_output(0)
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, shape)
    return shuffle.get_output(0)


def _flatten_and_restore(draw, network, x):
    flat = network.add_shuffle(x)
    flat.reshape_dims = (-1,)
    back = network.add_shuffle(flat.get_output(0))
    picked = network.add_gather(network.add_shape(x).get_output(0), _vector(network, [0]), 0).get_output(0)
    back.set_input(1, network.add_concatenation([picked, _vector(network, SHAPE[1:])]).get_output(0))
    return back.get_output(0)


def _transpose_twice(draw, network, x):
    order = tuple(draw(st.permutations(range(3))))
    first = network.add_shuffle(x)
    first.first_transpose = order
    second = network.add_shuffle(first.get_output(0))
    second.second_transpose = tuple(np.argsort(order).tolist())
    return second.get_output(0)


def _whole_slice(draw, network, x):
    layer = network.add_slice(x, (), (), ())
    layer.axes = (1, 2)
    layer.start, layer.shape, layer.stride = (0, 0), SHAPE[1:], (1, 1)
    return layer.get_output(0)


def _reversing_slice(draw, network, x):
    layer = network.add_slice(x, (), (), ())
    layer.axes = (1,)
    layer.set_input(1, _vector(network, [2]))
    layer.set_input(2, _vector(network, [3]))
    layer.stride = (draw(st.sampled_from([-1, 1])),)
    layer.mode = SampleMode.FILL
    return layer.get_output(0)


def _add_a_computed_constant(draw, network, x):
    value = draw(st.integers(-3, 3))
    constant = network.add_constant((1, 1, 1), np.full((1, 1, 1), value, np.float32)).get_output(0)
    doubled = network.add_elementwise(constant, constant, ElementWiseOperation.SUM).get_output(0)
    return network.add_elementwise(x, doubled, ElementWiseOperation.SUM).get_output(0)


def _maximum_with_itself(draw, network, x):
    return network.add_elementwise(x, x, ElementWiseOperation.MAX).get_output(0)


def _concatenation_of_one(draw, network, x):
    return network.add_concatenation([x]).get_output(0)


def _unsqueeze_and_squeeze(draw, network, x):
    axes = _vector(network, [draw(st.integers(0, 3))])
    return network.add_squeeze(network.add_unsqueeze(x, axes).get_output(0), axes).get_output(0)


STEPS = [
    _identity,
    _activation,
    _cast_to_the_same_type,
    _cast_there_and_back,
    _reshape_to_its_own_shape,
    _flatten_and_restore,
    _transpose_twice,
    _whole_slice,
    _reversing_slice,
    _add_a_computed_constant,
    _maximum_with_itself,
    _concatenation_of_one,
    _unsqueeze_and_squeeze,
]
