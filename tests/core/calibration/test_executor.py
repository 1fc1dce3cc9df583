"""Calibration on the host's kernels: the references' states where arithmetic is exact, whatever the batches."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.builder.build import build_plan
from dryfit.calibration.executor import EngineExecutor, tapped_network, whole_network_config
from dryfit.errors import CalibrationError, ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.quantization.calibration import collect
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector

CALIBRATOR = Calibrator(name="largest", title="", solve=lambda one: Solution.of_threshold(one.magnitude))


def small_network():
    """Convolution, ReLU, a sum, a concatenation, a pooling, a transpose, a softmax; weights are small whole numbers."""
    random = np.random.default_rng(5)
    network = Network("small")
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 8, 8))
    kernel = random.integers(-2, 3, (8, 3, 3, 3)).astype(np.float32)
    layer = network.add_convolution_nd(x, 8, (3, 3), kernel, random.integers(-3, 4, 8).astype(np.float32))
    layer.padding_nd = (1, 1)
    convolved = layer.get_output(0)
    relu = network.add_activation(convolved, ActivationType.RELU).get_output(0)
    double = network.add_elementwise(relu, convolved, ElementWiseOperation.SUM).get_output(0)
    joined = network.add_concatenation([relu, double]).get_output(0)
    pooled = network.add_pooling_nd(joined, PoolingType.MAX, (2, 2)).get_output(0)
    shuffle = network.add_shuffle(pooled)
    shuffle.first_transpose = (0, 2, 3, 1)
    network.mark_output(shuffle.get_output(0))
    for tensor, name in (
        (convolved, "conv"), (relu, "relu"), (double, "sum"), (joined, "joined"), (pooled, "pool"),
        (shuffle.get_output(0), "moved"),
    ):  # fmt: skip
        network.rename_tensor(tensor, name)
    return network


def pictures(count, seed=0):
    """Whole numbers, so that no order of additions changes a bit."""
    random = np.random.default_rng(seed)
    return [random.integers(-9, 10, (1, 3, 8, 8)).astype(np.float32) for _ in range(count)]


def states(arrays, **settings):
    settings.setdefault("executor", EngineExecutor(1))
    seen = collect(small_network(), CALIBRATOR, [{"x": array} for array in arrays], **settings)
    return {name: one.to_bytes() for name, one in seen.items()}


def test_the_states_are_those_that_the_references_lead_to():
    expected = collect(small_network(), CALIBRATOR, [{"x": array} for array in pictures(3)])
    found = states(pictures(3))
    assert list(found) == ["x", "conv", "relu", "sum", "joined", "pool", "moved"]
    assert found == {name: one.to_bytes() for name, one in expected.items()}


def test_what_is_implied_equals_what_would_have_been_seen():
    """With values skipped nothing is implied: each tensor is looked at."""
    assert states(pictures(3)) == states(pictures(3), skips_nonfinite=True)


WHOLE = pictures(7, seed=1)


@settings(deadline=None, max_examples=12)
@given(st.permutations(range(7)), st.lists(st.integers(1, 6), max_size=3), st.integers(1, 3))
def test_order_batches_and_threads_change_no_byte(order, cuts, threads):
    shuffled = [WHOLE[index] for index in order]
    bounds = [0, *sorted(set(cuts)), 7]
    batches = [np.concatenate(shuffled[a:b]) for a, b in itertools.pairwise(bounds)]
    assert states(batches, executor=EngineExecutor(threads)) == states(WHOLE)


def test_shards_that_are_merged_make_the_whole():
    merged, *others = [
        collect(small_network(), CALIBRATOR, [{"x": array} for array in part], executor=EngineExecutor(1))
        for part in (WHOLE[4:], WHOLE[:1], WHOLE[1:4])
    ]
    for part in others:
        for name, one in part.items():
            merged[name].merge(one)
    assert {name: one.to_bytes() for name, one in merged.items()} == states(WHOLE)


def test_a_second_run_goes_on_with_what_the_first_has_collected():
    samples = [{"x": array} for array in WHOLE]
    kept = collect(small_network(), CALIBRATOR, samples[:3], executor=EngineExecutor(1))
    kept = collect(small_network(), CALIBRATOR, samples[3:], executor=EngineExecutor(1), collectors=kept)
    assert {name: one.to_bytes() for name, one in kept.items()} == states(WHOLE)


class Sums(Collector):
    """A collector that wants the values themselves, in the tensor's shape."""

    state_name = "sums"

    def __init__(self, tensor="", **options):
        super().__init__(tensor, **options)
        self.seen = {}

    def add(self, values, sample):
        self.seen[sample] = (values.shape, float(values.sum()))

    def payload(self):
        return b""

    def restore(self, payload):
        pass


def test_a_collector_of_ones_own_gets_the_values_in_their_shape():
    calibrator = Calibrator(name="sums", title="", solve=lambda one: Solution(None, "none"), collector=Sums)
    samples = [{"x": array} for array in pictures(2)]
    expected = collect(small_network(), calibrator, samples)
    found = collect(small_network(), calibrator, samples, executor=EngineExecutor(1))
    assert {name: one.seen for name, one in found.items()} == {name: one.seen for name, one in expected.items()}
    assert found["pool"].seen["0"][0] == (1, 16, 7, 7)


def test_only_the_tensors_that_are_asked_for_are_looked_at():
    seen = collect(
        small_network(), CALIBRATOR, [{"x": pictures(1)[0]}], executor=EngineExecutor(1), tensors=["sum", "pool"]
    )
    assert list(seen) == ["sum", "pool"]


def test_precisions_that_were_asked_for_do_not_reach_calibration():
    network = small_network()
    for layer in network.layers:
        layer.precision = DataType.HALF
    seen = collect(network, CALIBRATOR, [{"x": array} for array in pictures(2)], executor=EngineExecutor(1))
    assert {name: one.to_bytes() for name, one in seen.items()} == states(pictures(2))
    assert network.layers[0].precision is DataType.HALF


def test_an_int8_input_is_calibrated_with_fp32_data_that_it_can_hold():
    network = Network()
    x = network.add_input("x", DataType.INT8, (1, 4))
    network.mark_output(network.add_activation(x, ActivationType.RELU).get_output(0))
    values = np.float32([[-128, 0, 5, 127]])
    seen = collect(network, CALIBRATOR, [{"x": values}], executor=EngineExecutor(1))
    assert (seen["x"].minimum, seen["x"].maximum) == (-128.0, 127.0)
    assert network.inputs[0].dtype is DataType.INT8
    with pytest.raises(CalibrationError, match=r"input 'x', sample 'cat'.*found values from -128.0 to 128.0"):
        collect(network, CALIBRATOR, [("cat", {"x": values + np.float32([0, 0, 0, 1])})], executor=EngineExecutor(1))


def test_values_that_are_not_finite_name_tensor_and_sample():
    bad = pictures(1)[0].copy()
    bad[0, 0, 0, 0] = np.nan
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample 'cat.png'.*1 NaN and 0 infinite of 192 values"):
        collect(small_network(), CALIBRATOR, [("cat.png", {"x": bad})], executor=EngineExecutor(1))


def test_a_sample_that_does_not_fit_is_named():
    with pytest.raises(ExecutionError, match=r"sample '1'"):
        states([pictures(1)[0], np.zeros((1, 3, 8, 9), np.float32)])


def test_a_tapped_tensor_is_not_fused_away_and_the_network_stays_as_it_was():
    network = small_network()
    before = len(network.layers)
    tapped = tapped_network(network, ["conv", "pool"], ["sum"])
    assert [tensor.name for tensor in tapped.outputs] == ["histogram of conv", "histogram of pool", "sum"]
    assert len(network.layers) == before
    kinds = [layer.kind for layer in tapped.layers]
    assert kinds.index("histogram") == kinds.index("convolution") + 1


def test_calibration_takes_accurate_kernels_with_fewer_products_and_measures_none():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 16, 16, 16))
    layer = network.add_convolution_nd(x, 16, (3, 3), np.ones((16, 16, 3, 3), np.float32))
    network.mark_output(layer.get_output(0))
    config = whole_network_config(network, {"x": np.zeros((1, 16, 16, 16), np.float32)})
    assert config.builder_optimization_level == 0
    assert [one.kernel for one in build_plan(network, config).operations] == ["cpu.winograd_2"]


def rounding_network():
    """Layers whose results are rounded: whoever adds in another order is found out."""
    random = np.random.default_rng(11)
    network = Network("rounding")
    value = network.add_input("x", DataType.FLOAT, (-1, 5, 19, 17))
    for channels, groups in ((32, 1), (32, 32), (48, 1)):
        kernel = random.standard_normal((channels, value.shape[1] // groups, 3, 3)).astype(np.float32)
        layer = network.add_convolution_nd(value, channels, (3, 3), kernel, np.zeros(channels, np.float32))
        layer.num_groups, layer.padding_nd = groups, (1, 1)
        value = network.add_activation(layer.get_output(0), ActivationType.TANH).get_output(0)
    pooled = network.add_pooling_nd(value, PoolingType.AVERAGE, (3, 3)).get_output(0)
    shuffle = network.add_shuffle(pooled)
    shuffle.reshape_dims = (0, -1)
    flat = shuffle.get_output(0)
    weights = random.standard_normal((flat.shape[1], 10)).astype(np.float32)
    constant = network.add_constant(weights.shape, weights).get_output(0)
    product = network.add_matrix_multiply(flat, MatrixOperation.NONE, constant, MatrixOperation.NONE).get_output(0)
    softmax = network.add_softmax(product)
    softmax.axes = 1 << 1
    network.mark_output(softmax.get_output(0))
    return network


def test_rounding_is_the_same_for_any_batches_and_threads():
    arrays = [np.random.default_rng(seed).standard_normal((1, 5, 19, 17)).astype(np.float32) for seed in range(6)]

    def bytes_of(batches, threads):
        samples = [{"x": np.concatenate(batch)} for batch in batches]
        seen = collect(rounding_network(), CALIBRATOR, samples, executor=EngineExecutor(threads))
        return [one.to_bytes() for one in seen.values()]

    whole = bytes_of([[array] for array in arrays], 1)
    for batches in ([arrays], [arrays[:2], arrays[2:]], [arrays[3:], arrays[:3]]):
        for threads in (1, 2, 3):
            assert bytes_of(batches, threads) == whole
