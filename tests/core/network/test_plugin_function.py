"""Functions as layer plugins."""

import ml_dtypes
import numba
import numpy as np
import pytest

from dryfit.errors import ExecutionError, NetworkError, PluginError, UnknownNameError
from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.plugin_function import layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.reference.executor import run_reference

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


def run(plugin, *arrays, fields=None):
    network = Network()
    tensors = [
        None if array is None else network.add_input(f"x{index}", DataType.from_numpy(array.dtype), array.shape)
        for index, array in enumerate(arrays)
    ]
    for tensor in network.add_plugin(tensors, plugin, fields).outputs:
        network.mark_output(tensor)
    feeds = {f"x{index}": array for index, array in enumerate(arrays) if array is not None}
    return list(run_reference(network, feeds).values())


def test_a_function_computes_with_its_keyword_only_parameters_as_fields():
    @layer_plugin("Line", namespace="mine", version="3")
    def line(x, *, slope: float = 2, offsets: tuple[float, ...] = (), sign=-1):
        """A line."""
        assert type(slope) is float
        return sign * (slope * x + sum(offsets))

    assert line.key == ("Line", "3", "mine")
    assert (line.__name__, line.__doc__) == ("line", "A line.")
    np.testing.assert_array_equal(run(line, X)[0], -2 * X)
    np.testing.assert_array_equal(run(line, X, fields={"slope": 3, "offsets": (1, 0.5)})[0], -(3 * X + 1.5))
    np.testing.assert_array_equal(line(X, slope=2.0, sign=1), 2 * X)


def test_a_compiled_function_computes_the_same():
    @layer_plugin("Line")
    @numba.njit
    def line(x, bias=None, *, slope: float = 2.0, times: int = 1):
        if bias is not None:
            return slope * x * times + bias
        return slope * x * times

    (output,) = run(line, X, fields={"slope": 0.5})
    assert output.dtype == np.float32  # Numba gives float64
    np.testing.assert_array_equal(output, 0.5 * X)
    np.testing.assert_array_equal(run(line, X, X, fields={"times": 3})[0], 7 * X)
    np.testing.assert_array_equal(line(X, times=2), 4 * X)


def test_outputs_are_a_function_of_the_inputs_specs():
    def shapes(x, *, k: int):
        return TensorSpec((x.shape[0], k), x.dtype), TensorSpec((x.shape[0], k), DataType.INT64)

    @layer_plugin("Largest", outputs=shapes)
    def largest(x, *, k: int):
        order = np.argsort(-x, axis=1)[:, :k]
        return np.take_along_axis(x, order, 1), order

    values, indices = run(largest, X, fields={"k": 2})
    np.testing.assert_array_equal(values, [[2, 1], [5, 4]])
    np.testing.assert_array_equal(indices, [[2, 1], [2, 1]])
    with pytest.raises(NetworkError, match="field 'k' is missing"):
        run(largest, X)


def test_narrow_floats_are_rounded_once_to_the_type_of_the_output():
    @layer_plugin("Third")
    def third(x):
        return x.astype(np.float64) / 3

    x = np.arange(1, 9).astype(ml_dtypes.bfloat16)
    (output,) = run(third, x)
    np.testing.assert_array_equal(output, (x.astype(np.float64) / 3).astype(ml_dtypes.bfloat16))


def test_a_result_of_another_sort_of_type_is_not_converted():
    @layer_plugin("Whole")
    def whole(x):
        return x.astype(np.int64)

    with pytest.raises(
        ExecutionError, match=r"layer '.*plugin 'Whole'.*found \['int64 \(2, 3\)'\]; allowed: \['float32"
    ):
        run(whole, X)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [((), "required input 'x' is missing"), ((None, X), "'x' is"), ((X, X, X), "takes 2 inputs, not 3")],
)
def test_inputs_that_the_function_does_not_have_are_refused(arrays, reason):
    @layer_plugin("Two")
    def two(x, y=None):
        return x

    with pytest.raises(NetworkError, match=reason):
        run(two, *arrays)


def test_a_function_may_take_any_number_of_inputs():
    @layer_plugin("Sum")
    def total(*xs):
        return sum(xs)

    np.testing.assert_array_equal(run(total, X, X, X)[0], 3 * X)


def test_a_field_that_does_not_exist_is_answered_with_the_closest():
    @layer_plugin("Swish")
    def swish(x, *, beta: float = 1.0):
        return x

    with pytest.raises(UnknownNameError, match="Did you mean 'beta'"):
        run(swish, X, fields={"bata": 1.0})


def test_annotations_of_inputs_need_not_exist_at_run_time():
    @layer_plugin("Same")
    def same(x: "NoSuchType", *, k: "int" = 1):  # noqa: F821  the point of the test
        return x

    assert same.declared_fields["k"].kind is int


def _any_keyword(x, **fields):
    return x


def _untyped(x, *, alpha):
    return x


def _unknown_type(x, *, alpha: "NoSuchType" = 1):  # noqa: F821  the point of the test
    return x


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_any_keyword, "must have a parameter for each field"),
        (_untyped, "without annotation or default: alpha"),
        (_unknown_type, "name 'NoSuchType' is not defined"),
    ],
)
def test_a_function_that_cannot_be_a_plugin_is_refused_by_its_name(function, reason):
    with pytest.raises(PluginError, match=reason) as caught:
        layer_plugin("Wrong")(function)
    assert caught.value.where.endswith(function.__name__)


def test_a_function_that_takes_quantized_tensors_has_their_scales_as_fields():
    with pytest.raises(PluginError, match="no input_scales, output_scales"):
        layer_plugin("Wrong", takes_quantized=True)(lambda x: x)

    @layer_plugin("Right", takes_quantized=True)
    def right(x, *, input_scales: tuple = (), output_scales: tuple = ()):
        return x

    assert right.takes_quantized
