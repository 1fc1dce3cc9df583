"""Batches that run a few images at a time: the same bits, and only where no layer looks from one image to another."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

import dryfit
from dryfit.engine import batch_slices
from dryfit.engine.batch_slices import SlicedEngine
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.reduction import ReduceOperation

BATCH = 6


def network_of(end, shape=(BATCH, 8, 12, 12)):
    """A convolution, an activation, a sum of both, and what `end` makes of it."""
    generator, network = np.random.default_rng(0), dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, shape)
    weights = generator.standard_normal((8, 8, 3, 3)).astype(np.float32) / 9
    convolved = network.add_convolution_nd(x, 8, (3, 3), weights)
    convolved.padding_nd = (1, 1)
    active = network.add_activation(convolved.get_output(0), dryfit.ActivationType.RELU).get_output(0)
    total = network.add_elementwise(active, x, ElementWiseOperation.SUM).get_output(0)
    network.mark_output(end(network, total))
    return network


def engine_of(network):
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    if any(-1 in tensor.shape for tensor in network.inputs):
        profile = dryfit.Builder().create_optimization_profile()
        profile.set_shape("x", (1, 8, 12, 12), (BATCH, 8, 12, 12), (BATCH, 8, 12, 12))
        config.add_optimization_profile(profile)
    return dryfit.Builder().build_engine(network, config)


def run(engine, x, monkeypatch, slice_bytes, threads=1):
    """The output, and how many slices it came in."""
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", slice_bytes)
    context = engine.create_execution_context(num_threads=threads)
    (result,) = context.run({"x": x}).values()
    (bound,) = context._bindings.values()
    return result, len(bound.stretches[0].slices) if isinstance(bound, SlicedEngine) else 1


def softmax_of_means(network, x):
    means = network.add_reduce(x, ReduceOperation.AVG, 0b1100, keep_dims=False).get_output(0)
    softmax = network.add_softmax(means)
    softmax.axes = 0b10
    return softmax.get_output(0)


def flattened(network, x):
    layer = network.add_shuffle(x)
    layer.reshape_dims = (0, -1)
    return layer.get_output(0)


def joined(network, x):
    return network.add_concatenation([x, x]).get_output(0)


@pytest.mark.parametrize("end", [softmax_of_means, flattened, joined])
@pytest.mark.parametrize("batch", [BATCH, -1])
@pytest.mark.parametrize("threads", [1, 3])
def test_slices_of_a_batch_give_the_bits_of_the_whole(end, batch, threads, monkeypatch):
    engine = engine_of(network_of(end, (batch, 8, 12, 12)))
    x = np.random.default_rng(1).standard_normal((BATCH, 8, 12, 12)).astype(np.float32)
    whole, slices = run(engine, x, monkeypatch, 1 << 30)
    assert slices == 1
    for slice_bytes, expected in ((1, 6), (2 * 2 * 8 * 144 * 4, 3)):
        result, slices = run(engine, x, monkeypatch, slice_bytes, threads)
        np.testing.assert_array_equal(result, whole)
        assert slices == expected or end is joined


@pytest.mark.parametrize(
    ("slices", "threads", "expected"),
    [(1, 4, 1), (8, 1, 1), (8, 2, 2), (8, 16, 8), (3, 2, 1), (9, 2, 2), (6, 4, 2), (5, 5, 5), (4, 6, 2)],
)
def test_threads_take_slices_of_their_own_where_there_are_enough(slices, threads, expected):
    assert batch_slices.slices_at_once(slices, threads) == expected


def test_an_error_in_a_slice_is_the_error_of_the_run(monkeypatch):
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 1)
    context = engine_of(network_of(flattened)).create_execution_context(num_threads=2)
    x = np.ones((BATCH, 8, 12, 12), np.float32)
    context.run({"x": x})
    (bound,) = context._bindings.values()
    first, second = bound.stretches[0].lanes
    started = threading.Event()
    run_first = first.run

    def fail(inputs, observe=None):
        started.set()
        raise dryfit.ExecutionError("The lane fails", remedy="None")

    def run_after_the_other(inputs, observe=None):
        assert started.wait(10)
        return run_first(inputs, observe)

    monkeypatch.setattr(second, "run", fail)
    monkeypatch.setattr(first, "run", run_after_the_other)
    with pytest.raises(dryfit.ExecutionError, match="The lane fails"):
        context.run({"x": x})
    monkeypatch.undo()
    assert len(context.run({"x": x})) == 1


def mean_of_images(network, x):
    return network.add_reduce(x, ReduceOperation.AVG, 0b0001, keep_dims=True).get_output(0)


def softmax_over_images(network, x):
    softmax = network.add_softmax(x)
    softmax.axes = 0b0001
    return softmax.get_output(0)


def images_behind_each_other(network, x):
    layer = network.add_concatenation([x, x])
    layer.axis = 0
    return layer.get_output(0)


def turned(network, x):
    layer = network.add_shuffle(x)
    layer.first_transpose = (1, 0, 2, 3)
    return layer.get_output(0)


def of_all_images(network, x):
    layer = network.add_shuffle(x)
    layer.reshape_dims = (1, BATCH * 8, 12, 12)
    return layer.get_output(0)


def convolved_by_images(network, x):
    kernel = network.add_shuffle(x)
    kernel.reshape_dims = (BATCH, 8, 12, 12)
    layer = network.add_convolution_nd(x, BATCH, (12, 12))
    layer.set_input(1, kernel.get_output(0))
    return layer.get_output(0)


@pytest.mark.parametrize(
    "end",
    [mean_of_images, softmax_over_images, images_behind_each_other, turned, of_all_images, convolved_by_images],
)
def test_slices_end_where_images_meet(end, monkeypatch):
    engine = engine_of(network_of(end))
    x = np.random.default_rng(1).standard_normal((BATCH, 8, 12, 12)).astype(np.float32)
    whole, _ = run(engine, x, monkeypatch, 1 << 30)
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 1)
    context = engine.create_execution_context(num_threads=1)
    (result,) = context.run({"x": x}).values()
    (bound,) = context._bindings.values()
    np.testing.assert_array_equal(result, whole)
    assert [len(one.slices) for one in bound.stretches] == [BATCH, 1]


def test_a_network_whose_images_meet_at_once_runs_whole(monkeypatch):
    network = dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, (BATCH, 8, 12, 12))
    network.mark_output(network.add_activation(mean_of_images(network, x), dryfit.ActivationType.RELU).get_output(0))
    x = np.random.default_rng(1).standard_normal((BATCH, 8, 12, 12)).astype(np.float32)
    assert run(engine_of(network), x, monkeypatch, 1)[1] == 1


def of_the_known_batch(network, x):
    layer = network.add_shuffle(x)
    layer.reshape_dims = (BATCH, 8, 144)
    return layer.get_output(0)


def test_a_reshape_to_the_extents_of_the_whole_batch_does_not_stop_what_is_before_it(monkeypatch):
    engine = engine_of(network_of(of_the_known_batch))
    x = np.random.default_rng(1).standard_normal((BATCH, 8, 12, 12)).astype(np.float32)
    whole, _ = run(engine, x, monkeypatch, 1 << 30)
    result, slices = run(engine, x, monkeypatch, 1)
    np.testing.assert_array_equal(result, whole)
    assert slices == BATCH


@pytest.mark.parametrize("threads", [1, 2])
def test_a_profiler_adds_the_slices_up(threads, monkeypatch):
    engine, seen = engine_of(network_of(flattened)), []

    class Names(dryfit.Profiler):
        def report_layer_time(self, layer_name, ms):
            seen.append(layer_name)

    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 1)
    context = engine.create_execution_context(num_threads=threads)
    context.profiler = Names()
    context.run({"x": np.zeros((BATCH, 8, 12, 12), np.float32)})
    assert len(seen) == len(set(seen))


def test_layers_that_are_timed_run_one_after_the_other(monkeypatch):
    """A trace ends the span of a layer when it is told of it, and has one row for all of them."""
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 1)
    context = engine_of(network_of(flattened)).create_execution_context(num_threads=2)
    x = np.random.default_rng(1).standard_normal((BATCH, 8, 12, 12)).astype(np.float32)
    (expected,) = (one.copy() for one in context.run({"x": x}).values())
    (bound,) = context._bindings.values()
    assert len(bound.stretches[0].lanes) == 2
    seen = []

    def observe(name, seconds):
        seen.append((threading.get_ident(), time.perf_counter() - seconds, time.perf_counter()))

    (found,) = bound.run({"x": x}, observe).values()
    np.testing.assert_array_equal(found, expected)
    assert {thread for thread, _, _ in seen} == {threading.get_ident()}
    assert all(ended <= start + 1e-6 for (_, _, ended), (_, start, _) in itertools.pairwise(seen))


def test_slices_grow_where_images_get_small():
    generator, network = np.random.default_rng(0), dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, (8, 8, 16, 16))
    pooled = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (4, 4))
    pooled.stride_nd = (4, 4)
    weights = generator.standard_normal((8, 8, 1, 1)).astype(np.float32)
    first = network.add_convolution_nd(pooled.get_output(0), 8, (1, 1), weights).get_output(0)
    second = network.add_elementwise(first, pooled.get_output(0), ElementWiseOperation.SUM).get_output(0)
    classes = network.add_reduce(second, ReduceOperation.AVG, 0b1100, keep_dims=False).get_output(0)
    network.mark_output(first)
    network.mark_output(classes)
    engine = engine_of(network)
    image = np.random.default_rng(1).standard_normal((8, 8, 16, 16)).astype(np.float32)

    def run_in(slice_bytes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_slices, "SLICE_BYTES", slice_bytes)
            context = engine.create_execution_context(num_threads=1)
            found = context.run({"x": image})
            (bound,) = context._bindings.values()
        return found, [len(one.slices) for one in bound.stretches] if isinstance(bound, SlicedEngine) else [1]

    whole, slices = run_in(1 << 30)
    assert slices == [1]
    # What the pooling reads and writes is 8.5 KiB an image, what the convolution does 1.5 KiB, the mean 0.5 KiB.
    for slice_bytes, expected in ((9000, [8, 2, 1]), (13000, [8, 1])):
        found, slices = run_in(slice_bytes)
        assert slices == expected
        for name, array in whole.items():
            np.testing.assert_array_equal(found[name], array)


def test_quantized_networks_are_cut_although_their_weights_are_dequantized(monkeypatch):
    generator, network = np.random.default_rng(0), dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, (BATCH, 32, 6, 6))
    scale = network.add_constant((), np.float32(1 / 32)).get_output(0)
    scales = network.add_constant((32,), np.full(32, 1 / 256, np.float32)).get_output(0)
    data = network.add_dequantize(network.add_quantize(x, scale).get_output(0), scale).get_output(0)
    # Larger than what shape inference evaluates: nobody knows their values before the run.
    codes = network.add_constant((32, 32, 3, 3), generator.integers(-127, 128, (32, 32, 3, 3)).astype(np.int8))
    weights = network.add_dequantize(codes.get_output(0), scales)
    weights.axis = 0
    convolved = network.add_convolution_nd(data, 32, (3, 3))
    convolved.set_input(1, weights.get_output(0))
    convolved.padding_nd = (1, 1)
    codes_out = network.add_quantize(convolved.get_output(0), scale).get_output(0)
    network.mark_output(network.add_dequantize(codes_out, scale).get_output(0))
    engine = engine_of(network)
    image = generator.standard_normal((BATCH, 32, 6, 6)).astype(np.float32)
    whole, _ = run(engine, image, monkeypatch, 1 << 30)
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 1)
    context = engine.create_execution_context(num_threads=2)
    (result,) = context.run({"x": image}).values()
    np.testing.assert_array_equal(result, whole)
    (bound,) = context._bindings.values()
    assert [len(one.slices) for one in bound.stretches] == [BATCH]


def test_constants_that_are_computed_in_the_run_are_not_cut(monkeypatch):
    network = dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, (BATCH, 8, 32, 32))
    values = np.random.default_rng(0).integers(-127, 128, (BATCH, 1, 32, 32)).astype(np.int8)
    codes = network.add_constant(values.shape, values)
    scale = network.add_constant((), np.float32(1 / 8)).get_output(0)
    bias = network.add_dequantize(codes.get_output(0), scale).get_output(0)
    network.mark_output(network.add_elementwise(x, bias, ElementWiseOperation.SUM).get_output(0))
    image = np.random.default_rng(1).standard_normal((BATCH, 8, 32, 32)).astype(np.float32)
    result, _ = run(engine_of(network), image, monkeypatch, 1, threads=2)
    np.testing.assert_allclose(result, image + values / 8, rtol=1e-6)


def test_each_thread_has_a_slice_of_a_batch_that_is_cut(monkeypatch):
    generator, network = np.random.default_rng(0), dryfit.Network("batch")
    x = network.add_input("x", dryfit.DataType.FLOAT, (8, 8, 16, 16))
    pooled = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (4, 4))
    pooled.stride_nd = (4, 4)
    weights = generator.standard_normal((8, 8, 1, 1)).astype(np.float32)
    network.mark_output(network.add_convolution_nd(pooled.get_output(0), 8, (1, 1), weights).get_output(0))
    monkeypatch.setattr(batch_slices, "SLICE_BYTES", 13000)
    engine, image = engine_of(network), generator.standard_normal((8, 8, 16, 16)).astype(np.float32)
    for threads, expected in ((1, [8, 1]), (2, [8, 2]), (3, [8, 1]), (4, [8]), (16, [8])):
        context = engine.create_execution_context(num_threads=threads)
        context.run({"x": image})
        (bound,) = context._bindings.values()
        assert [len(one.slices) for one in bound.stretches] == expected, threads
