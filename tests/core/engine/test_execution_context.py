"""What a context takes and gives: arrays of every origin, exact types and shapes, and errors that say what is right."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, named, relu_network

from dryfit import Builder
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.engine.engine import Engine
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network

PROFILES = [
    {"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))},
    {"x": ((8, 3, 8, 8), (8, 3, 8, 8), (8, 3, 8, 8))},
]


@pytest.fixture
def context():
    return Engine(plan_of(relu_network((2, 3)))).create_execution_context(num_threads=1)


@pytest.fixture
def dynamic():
    return Engine(plan_of(convolution_network(), profiles=PROFILES)).create_execution_context(num_threads=1)


X = np.array([[-1, 2, -3], [4, -5, 6]], dtype=np.float32)
Y = np.array([[0, 2, 0], [4, 0, 6]], dtype=np.float32)


class Interface:
    """An array of another library: only `__array_interface__`."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class Capsule:
    """An array of another library: only DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnAnotherDevice(Capsule):
    """A DLPack array in the memory of a GPU."""

    def __dlpack__(self, **arguments):
        raise BufferError("Cannot export a CUDA array to the CPU")

    def __dlpack_device__(self):
        return (2, 0)


def strided(array: np.ndarray) -> np.ndarray:
    """The same values with other strides: every second element of a reversed, larger array."""
    larger = np.zeros([2 * extent for extent in array.shape], array.dtype)[tuple([slice(None, None, -2)] * array.ndim)]
    larger[...] = array
    return larger


@pytest.mark.parametrize("wrap", [np.asarray, strided, np.asfortranarray, np.ma.array, Interface, Capsule])
def test_an_input_may_come_from_anywhere(context, wrap):
    np.testing.assert_array_equal(context.run({"x": wrap(X)})["y"], Y)


def test_a_tensor_of_torch_is_taken_by_dlpack(context):
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(context.run({"x": torch.from_numpy(X.copy())})["y"], Y)


def test_inputs_may_be_given_by_name_or_in_order():
    network = Network("difference")
    a, b = (network.add_input(name, DataType.FLOAT, (2,)) for name in ("a", "b"))
    network.mark_output(named(network, network.add_elementwise(a, b, ElementWiseOperation.SUB), "d"))
    context = Engine(plan_of(network)).create_execution_context(1)
    three, one = np.float32([3, 3]), np.float32([1, 1])
    for outputs in (context.run({"b": one, "a": three}), context.run(three, one)):
        np.testing.assert_array_equal(outputs["d_out"], [2, 2])
    with pytest.raises(ExecutionError, match=r"found missing 'b'; allowed: 'a' FP32 \(2,\), 'b' FP32 \(2,\)"):
        context.run(three)
    with pytest.raises(ExecutionError, match=r"more arrays than inputs.*found 3 arrays"):
        context.run(three, one, one)


def test_outputs_are_fresh_arrays(context):
    first = context.run(X)["y"]
    second = context.run(-X)["y"]
    np.testing.assert_array_equal(first, Y)
    assert first.flags.writeable
    assert first.flags.c_contiguous
    assert not np.shares_memory(first, second)


def test_an_output_is_written_where_it_is_asked_for(context):
    out = strided(np.zeros((2, 3), np.float32))
    outputs = context.run(X, out={"y": out})
    assert outputs["y"] is out
    np.testing.assert_array_equal(out, Y)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "missing 'x'"),
        ({"x": X, "z": X}, "unknown 'z'"),
        ({"X": X}, "unknown 'X', missing 'x'; allowed: 'x' FP32 (2, 3)"),
        ({"x": X.astype(np.float64)}, "found float64; allowed: float32 (FP32)). Convert it if intended: "),
        ({"x": X.astype(">f4")}, "found >f4"),
        ({"x": X[0]}, "found (3,); allowed: (2, 3)"),
        ({"x": X.T}, "found (3, 2); allowed: (2, 3)"),
        ({"x": [[1.0, 2.0, 3.0]] * 2}, "found list; allowed: a numpy array"),
        ({"x": 1.0}, "found float"),
        ({"x": None}, "found NoneType"),
        ({"x": np.ma.array(X, mask=X < 0)}, "found 3 masked elements"),
        ({"x": OnAnotherDevice(X)}, "Copy it to the CPU"),
    ],
)
@pytest.mark.parametrize("runs_before", [0, 2])
def test_what_does_not_fit_is_refused_with_what_would(context, inputs, words, runs_before):
    for _ in range(runs_before):
        np.testing.assert_array_equal(context.run({"x": X})["y"], Y)
    with pytest.raises(ExecutionError) as caught:
        context.run(inputs)
    assert words in str(caught.value)


@pytest.mark.parametrize("inputs", [[X], (X,), [Capsule(X)]])
def test_a_list_of_arrays_is_refused_with_the_mapping_that_is_meant(context, inputs):
    with pytest.raises(ExecutionError) as error:
        context.run(inputs)
    assert error.value.found == f"a {type(inputs).__name__} of arrays"
    assert "run({'x': array})" in error.value.remedy
    np.testing.assert_array_equal(context.run(*inputs)["y"], Y)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.zeros((2, 3), np.float64), "a float64 array"),
        ([0.0], "a list"),
        (np.broadcast_to(np.float32(0), (2, 3)), "a read-only float32 array"),
        (np.zeros((3, 2), np.float32), "found (3, 2); allowed: (2, 3)"),
    ],
)
def test_an_array_that_cannot_take_an_output_is_refused(context, out, words):
    with pytest.raises(ExecutionError) as caught:
        context.run(X, out={"y": out})
    assert words in str(caught.value)


def test_an_output_that_does_not_exist_is_refused(context):
    with pytest.raises(UnknownNameError, match="Unknown output: 'z'"):
        context.run(X, out={"z": np.zeros(1)})


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_context_has_at_least_one_thread(threads):
    with pytest.raises(ExecutionError, match="at least one thread"):
        Engine(plan_of(relu_network())).create_execution_context(threads)


# Shapes ---------------------------------------------------------------------------------------------------------------


def test_one_engine_takes_every_shape_of_its_profile(dynamic):
    rng = np.random.default_rng(0)
    whole = rng.standard_normal((4, 3, 8, 8)).astype(np.float32)
    expected = dynamic.run(whole)["y"]
    for batch in (1, 3, 2, 4, 1):
        np.testing.assert_array_equal(dynamic.run(whole[:batch])["y"], expected[:batch])


@pytest.mark.parametrize("shape", [(5, 3, 8, 8), (0, 3, 8, 8), (2, 4, 8, 8), (2, 3, 8, 9), (3, 8, 8)])
def test_a_shape_outside_of_the_profile_is_refused(dynamic, shape):
    for ask in (lambda: dynamic.run(np.zeros(shape, np.float32)), lambda: dynamic.set_input_shape("x", shape)):
        with pytest.raises(ExecutionError) as caught:
            ask()
        assert f"found {shape}; allowed: (1 to 4, 3, 8, 8)). Build the engine with" in str(caught.value)


def test_profiles_can_be_exchanged(dynamic):
    dynamic.set_input_shape("x", (2, 3, 8, 8))
    dynamic.set_optimization_profile(1)
    assert dynamic.active_optimization_profile == 1
    assert dynamic.get_tensor_shape("x") == (-1, 3, 8, 8)
    assert dynamic.run(np.zeros((8, 3, 8, 8), np.float32))["y"].shape == (8, 4, 8, 8)
    with pytest.raises(ExecutionError, match=r"allowed: \(8, 3, 8, 8\)"):
        dynamic.run(np.zeros((4, 3, 8, 8), np.float32))
    with pytest.raises(ExecutionError, match="found 2; allowed: 0 to 1"):
        dynamic.set_optimization_profile(2)
    with pytest.raises(ExecutionError, match=r"found True; allowed: 0 to 1"):
        dynamic.set_optimization_profile(True)


def test_a_shape_that_ran_is_refused_by_a_profile_that_does_not_have_it(dynamic):
    dynamic.run(np.zeros((2, 3, 8, 8), np.float32))
    dynamic.set_optimization_profile(1)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"found \(2, 3, 8, 8\); allowed: \(8, 3, 8, 8\)"):
            dynamic.run(np.zeros((2, 3, 8, 8), np.float32))


def test_output_shapes_follow_from_the_input_shapes_that_were_set(dynamic):
    assert dynamic.infer_shapes() == ["x"]
    assert not dynamic.all_binding_shapes_specified
    assert dynamic.get_tensor_shape("y") == (-1, 4, 8, 8)
    assert dynamic.set_input_shape("x", [3, 3, 8, 8])
    assert dynamic.infer_shapes() == []
    assert dynamic.get_tensor_shape("x") == (3, 3, 8, 8)
    assert dynamic.get_tensor_shape("y") == (3, 4, 8, 8)
    dynamic.set_input_shape("x", (1, 3, 8, 8))
    assert dynamic.get_tensor_shape("y") == (1, 4, 8, 8)


def test_names_that_do_not_exist_are_refused(dynamic):
    for ask in (dynamic.get_tensor_shape, dynamic.get_strides, dynamic.get_tensor):
        with pytest.raises(UnknownNameError, match="Unknown input or output: 'z'"):
            ask("z")
    with pytest.raises(UnknownNameError, match="Unknown input: 'y'"):
        dynamic.set_input_shape("y", (1,))


def test_strides_are_those_of_the_device(dynamic):
    with pytest.raises(ExecutionError, match=r"found \(-1, 4, 8, 8\)\)\. Call set_input_shape for 'x' first"):
        dynamic.get_strides("y")
    dynamic.set_input_shape("x", (2, 3, 8, 8))
    assert dynamic.get_strides("x") == (192, 64, 8, 1)
    assert dynamic.get_tensor_strides("y") == (256, 64, 8, 1)


def test_more_shapes_than_are_kept_run_one_after_the_other(dynamic):
    network = relu_network((-1, 3))
    context = Engine(plan_of(network)).create_execution_context(1)
    for rows in (1, 2, 3, 4, 5, 6, 7, 1, 2, 0):
        x = np.full((rows, 3), -1.0, np.float32)
        np.testing.assert_array_equal(context.run(x)["y"], np.zeros((rows, 3)))


# Tensors that are set -------------------------------------------------------------------------------------------------


def test_tensors_can_be_set_and_executed(context):
    x, y = X.copy(), np.empty((2, 3), np.float32)
    context.set_tensor("x", x)
    context.set_tensor("y", y)
    assert context.execute()["y"] is y
    np.testing.assert_array_equal(y, Y)
    x *= -1
    context.execute()
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert context.get_tensor("x") is x
    assert context.get_tensor("y") is y


def test_executing_without_an_input_is_refused(context):
    with pytest.raises(ExecutionError, match="missing 'x'"):
        context.execute()


def test_a_tensor_whose_shape_was_changed_since_is_refused(dynamic):
    dynamic.set_tensor("x", np.zeros((2, 3, 8, 8), np.float32))
    assert dynamic.execute()["y"].shape == (2, 4, 8, 8)
    dynamic.set_input_shape("x", (3, 3, 8, 8))
    with pytest.raises(ExecutionError, match=r"found \(2, 3, 8, 8\); allowed: \(3, 3, 8, 8\)"):
        dynamic.execute()


# Threads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, 3])
def test_a_name_that_is_no_text_is_an_unknown_name(context, name):
    with pytest.raises(UnknownNameError, match=f"Unknown input or output: {name}.*allowed: x, y"):
        context.get_strides(name)


def in_threads(*functions):
    """Run functions at the same time and return their results."""
    results: dict[int, object] = {}
    start = threading.Barrier(len(functions))

    def work(index, function):
        start.wait()
        results[index] = function()

    threads = [threading.Thread(target=work, args=item) for item in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[index] for index in range(len(functions))]


def test_contexts_of_one_engine_give_the_same_bits_at_the_same_time():
    engine = Engine(plan_of(convolution_network(), profiles=PROFILES))
    inputs = [np.random.default_rng(seed).standard_normal((2, 3, 8, 8)).astype(np.float32) for seed in range(4)]
    alone = engine.create_execution_context(1)
    expected = [alone.run(x)["y"].tobytes() for x in inputs]

    def worker(threads):
        context = engine.create_execution_context(threads)
        return [context.run(x)["y"].tobytes() for x in inputs * 5]

    for found in in_threads(lambda: worker(1), lambda: worker(2), lambda: worker(1), lambda: worker(2)):
        assert found == expected * 5


def test_contexts_of_one_engine_share_its_weights_and_the_threads_of_the_process():
    network = Network("wide")
    weights = np.random.default_rng(0).standard_normal((1024, 2048)).astype(np.float32)
    x = network.add_input("x", DataType.FLOAT, (4, 1024))
    constant = network.add_constant(weights.shape, weights).get_output(0)
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, constant, MatrixOperation.NONE)
    network.mark_output(product.outputs[0])
    config = BuilderConfig()
    config.default_device_type = "CPU"
    engine = Builder().build_engine(network, config)
    given = np.ones((4, 1024), np.float32)
    contexts = [engine.create_execution_context(2) for _ in range(8)]

    def product_of(context):
        (found,) = context.run(given).values()
        return found.tobytes()

    expected = product_of(contexts[0])
    before = len(helper_threads())
    tracemalloc.start()
    found = in_threads(*(lambda one=one: product_of(one) for one in contexts))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [expected] * 8
    assert peak < weights.nbytes, "contexts have copies of the weights"
    # One helper is enough for contexts of two threads each: whoever calls takes part.
    assert len(helper_threads()) <= max(1, before)


def helper_threads():
    """The threads of the process that contexts share."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("dryfit-")]


def test_a_context_that_two_threads_share_runs_one_at_a_time(context):
    def worker(x):
        return lambda: all((context.run(x)["y"] == np.maximum(x, 0)).all() for _ in range(50))

    assert in_threads(worker(X), worker(-X)) == [True, True]
