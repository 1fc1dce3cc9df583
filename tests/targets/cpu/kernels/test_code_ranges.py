"""Which tensors hold no negative codes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import run_group
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, random_bytes

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels import integer_products
from dryfit_cpu.kernels.code_ranges import has_no_negative_codes
from dryfit_cpu.kernels.convolution import convolve_integers
from dryfit_cpu.kernels.integer_stages import quantized_source

SHAPE = (1, 8, 6, 6)


def chain_of(*steps):
    """A chain of a convolution, steps, a rounding and the layer that reads it."""
    chain = QuantizedChain(SHAPE)
    chain.convolve(random_bytes((8, 8, 1, 1)), np.full(8, 0.01, np.float32), None)
    for step in steps:
        step(chain)
    return chain


def is_known(chain, zero_point=0):
    chain.quantize(0.05, zero_point)
    chain.dequantize()
    return has_no_negative_codes(quantized_source(chain.value, chain.group))


def relu(chain):
    chain.activate(None)


def clip(low, high=6.0):
    return lambda chain: chain.activate((low, high))


def sigmoid(chain):
    chain.value = chain.network.add_activation(chain.value, ActivationType.SIGMOID).get_output(0)


def pool(chain, kind=PoolingType.MAX, **parameters):
    layer = chain.network.add_pooling_nd(chain.value, kind, (2, 2))
    for name, value in parameters.items():
        setattr(layer, name, value)
    chain.value = layer.get_output(0)


def pooled(**parameters):
    return lambda chain: pool(chain, **parameters)


def reduced(op):
    """A reduction of images."""

    def reduce(chain):
        layer = chain.network.add_reduce(chain.value, op, axes=12, keep_dims=True)
        chain.value = layer.get_output(0)

    return reduce


def powered(chain):
    power = np.full(8, 0.5, np.float32)
    chain.value = chain.network.add_scale(chain.value, ScaleMode.CHANNEL, power=power).get_output(0)


def doubled(times):
    """The value added to itself so many times: as many paths as two to their number lead back from the end."""

    def add(chain):
        for _ in range(times):
            sum_with(lambda one: one.value)(chain)

    return add


def rounding(chain):
    chain.quantize(0.04)
    chain.dequantize()


def reshape(chain):
    layer = chain.network.add_shuffle(chain.value)
    layer.reshape_dims = (1, 4, 2, -1)
    chain.value = layer.get_output(0)


def sum_with(other):
    def add(chain):
        chain.value = chain.network.add_elementwise(chain.value, other(chain), ElementWiseOperation.SUM).get_output(0)

    return add


@pytest.mark.parametrize(
    "steps",
    [
        (relu,),
        (clip(0.0),),
        (sigmoid,),
        (relu, pool),
        (relu, pooled(kind=PoolingType.AVERAGE, pre_padding=(1, 1), post_padding=(1, 1))),
        (relu, rounding, pool, reshape),
        (relu, rounding, reduced(ReduceOperation.AVG), rounding),
        (relu, sum_with(lambda chain: chain.value)),
        (relu, sum_with(lambda chain: chain.constant(np.ones(SHAPE, np.float32)))),
        (sum_with(lambda chain: chain.constant(-np.ones(SHAPE, np.float32))), relu),
    ],
)
def test_what_comes_from_a_relu_of_codes_has_none(steps):
    assert is_known(chain_of(*steps))


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (pool,),
        (reduced(ReduceOperation.AVG),),
        (relu, reduced(ReduceOperation.PROD)),
        (clip(-1.0),),
        (clip(0.0, -1.0),),
        (relu, pooled(kind=PoolingType.MAX_AVERAGE_BLEND, blend_factor=2.0)),
        (relu, pooled(pre_padding=(2, 2))),
        (relu, pooled(post_padding=(2, 2))),
        (relu, pooled(dilation_nd=(2, 2), pre_padding=(1, 1))),
        (pooled(pre_padding=(2, 2)), relu),
        (powered, relu),
        (relu, doubled(40)),
        (relu, sum_with(lambda chain: chain.constant(-np.ones(SHAPE, np.float32)))),
        (sum_with(lambda chain: chain.constant(np.full(SHAPE, np.nan, np.float32))), relu),
        (relu, sum_with(lambda chain: chain.constant(np.full(SHAPE, np.inf, np.float32)))),
    ],
)
def test_what_may_be_negative_or_no_number_may_have_some(steps):
    assert not is_known(chain_of(*steps))


def test_a_relu_of_what_the_caller_gives_may_give_nan_whose_code_is_the_lowest():
    chain = QuantizedChain(SHAPE)
    chain.value = chain.network.add_input("real", DataType.FLOAT, SHAPE)
    relu(chain)
    assert not is_known(chain)


def test_with_a_zero_point_codes_of_positive_numbers_may_be_negative():
    assert not is_known(chain_of(relu), zero_point=-128)


@pytest.mark.skipif(not current_tier().has_short_sums, reason="this tier has one kind of integer products")
@pytest.mark.parametrize("is_cut", [False, True])
def test_only_codes_that_are_never_negative_are_multiplied_as_bytes(is_cut, monkeypatch):
    sizes = []
    read_input = integer_products.read_input

    def noted(*arguments):
        sizes.append(arguments[-1])
        return read_input(*arguments)

    monkeypatch.setattr(integer_products, "read_input", noted)
    chain = QuantizedChain(SHAPE, is_cut=is_cut)
    chain.convolve(random_bytes((16, 8, 3, 3)), np.full(16, 0.01, np.float32), None, pre_padding=(1, 1))
    chain.quantize(0.05)
    run_group(chain.network, chain.layers, chain.feeds(), kernel=convolve_integers)
    assert sizes == [1 if is_cut else 2]
