"""Debug tensors: what a listener receives, in which order, and that results do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.engine.small_networks import convolution_network

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import ExecutionError, NetworkError, UnknownNameError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.reference.executor import run_reference

X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)


class Recorder:
    """Keeps what it receives; stops the run at a tensor."""

    def __init__(self, stop_at=None):
        self.seen, self.stop_at = [], stop_at

    def process_debug_tensor(self, name, array, dtype, shape):
        self.seen.append((name, array, dtype, shape))
        return name != self.stop_at

    @property
    def names(self):
        return [name for name, *_ in self.seen]

    @property
    def arrays(self):
        return {name: array for name, array, *_ in self.seen}


def _marked(*names, unfused=False):
    network = convolution_network(2)
    for name in names:
        network.mark_debug(network.tensor(name))
    if unfused:
        network.mark_unfused_tensors_as_debug_tensors()
    return network


def _context(network, config=None, *, listener=None):
    engine = Builder().build_engine(network, config or BuilderConfig())
    context = Engine.load(engine.serialize()).create_execution_context(1)
    context.set_debug_listener(listener)
    return context


def test_a_marked_tensor_is_received_and_not_fused_away():
    plain = Builder().build_engine(_marked(), BuilderConfig())
    network, recorder = _marked("conv_out"), Recorder()
    context = _context(network, listener=recorder)
    assert (plain.num_layers, context.engine.num_layers) == (1, 2)
    context.set_tensor_debug_state("conv_out", True)
    outputs = context.run({"x": X})
    expected = {}
    run_reference(network, {"x": X}, lambda tensor, array: expected.update({tensor.name: array}))
    assert recorder.names == ["conv_out"]
    name, array, dtype, shape = recorder.seen[0]
    np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-5)
    assert (dtype, shape) == (DataType.FLOAT, (2, 4, 8, 8))
    np.testing.assert_array_equal(outputs["y"], np.maximum(array, 0))


def test_callers_do_not_get_debug_tensors():
    engine = Builder().build_engine(_marked("conv_out"), BuilderConfig())
    assert [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)] == ["x", "y"]
    assert list(engine.create_execution_context(1).run({"x": X})) == ["y"]


def test_states_are_off_at_first_and_can_be_switched():
    recorder = Recorder()
    context = _context(_marked("x", "conv_out", "y"), listener=recorder)
    names = ["x", "conv_out", "y"]
    assert [context.get_debug_state(name) for name in names] == [False] * 3
    context.run({"x": X})
    assert not recorder.seen
    context.set_all_tensors_debug_state(True)
    context.set_tensor_debug_state("conv_out", False)
    assert [context.get_debug_state(name) for name in names] == [True, False, True]
    outputs = context.run({"x": X})
    assert recorder.names == ["x", "y"]
    np.testing.assert_array_equal(recorder.arrays["x"], X)
    np.testing.assert_array_equal(recorder.arrays["y"], outputs["y"])


def test_results_do_not_depend_on_the_listener():
    context = _context(_marked("conv_out", unfused=True))
    expected = context.run({"x": X})["y"]
    context.set_debug_listener(Recorder())
    context.set_all_tensors_debug_state(True)
    context.unfused_tensors_debug_state = True
    np.testing.assert_array_equal(context.run({"x": X})["y"], expected)


def test_a_listener_that_returns_false_stops_the_run():
    recorder = Recorder(stop_at="conv_out")
    context = _context(_marked("conv_out", "y"), listener=recorder)
    context.set_all_tensors_debug_state(True)
    with pytest.raises(ExecutionError, match="The debug listener stopped the run") as caught:
        context.run({"x": X})
    assert caught.value.where == "engine 'tiny', tensor 'conv_out'"
    assert recorder.names == ["conv_out"]  # nothing after it
    context.set_debug_listener(None)
    assert list(context.run({"x": X})) == ["y"]


def test_a_function_without_a_result_is_a_listener():
    seen = []
    context = _context(_marked("y"), listener=lambda name, array, dtype, shape: seen.append((name, shape)))
    context.set_tensor_debug_state("y", True)
    context.run({"x": X})
    assert seen == [("y", (2, 4, 8, 8))]


def test_a_listener_may_keep_arrays():
    recorder = Recorder()
    context = _context(_marked("conv_out"), listener=recorder)
    context.set_all_tensors_debug_state(True)
    context.run({"x": X})
    first = recorder.arrays["conv_out"].copy()
    context.run({"x": -X})
    np.testing.assert_array_equal(recorder.seen[0][1], first)
    assert np.abs(recorder.seen[1][1] - first).max() > 0.1


def test_unfused_tensors_are_those_that_the_engine_stores():
    recorder = Recorder()
    network = convolution_network(2)
    second = network.add_pooling_nd(network.tensor("y"), PoolingType.MAX, (2, 2))
    network.rename_tensor(second.get_output(0), "pooled")
    network.mark_output(second.get_output(0))
    network.mark_unfused_tensors_as_debug_tensors()
    fused = [tensor.name for tensor in network.tensors if tensor.name == "conv_out"]
    context = _context(network, listener=recorder)
    assert context.engine.num_layers == 2  # the marks prevent no fusion
    context.run({"x": X})
    assert not recorder.seen
    context.unfused_tensors_debug_state = True
    outputs = context.run({"x": X})
    assert recorder.names == ["y", "pooled"]
    assert fused == ["conv_out"]
    np.testing.assert_array_equal(recorder.arrays["y"], outputs["y"])


def test_unfused_tensors_have_to_be_marked():
    context = _context(_marked())
    with pytest.raises(ExecutionError, match="are not marked as debug tensors"):
        context.unfused_tensors_debug_state = True
    assert context.unfused_tensors_debug_state is False


def test_a_tensor_that_is_not_marked_has_no_state():
    context = _context(_marked("conv_out"))
    for call in (context.get_debug_state, lambda name: context.set_tensor_debug_state(name, True)):
        with pytest.raises(UnknownNameError, match="conv_out"):
            call("y")
    assert context.engine.is_debug_tensor("conv_out")
    assert not context.engine.is_debug_tensor("y")


def test_marks_belong_to_tensors_of_the_network():
    network = _marked("conv_out")
    tensor = network.tensor("conv_out")
    assert network.is_debug_tensor(tensor)
    network.unmark_debug(tensor)
    network.unmark_debug(tensor)
    assert not network.is_debug_tensor(tensor)
    with pytest.raises(NetworkError, match="another network"):
        convolution_network().mark_debug(tensor)


@pytest.mark.parametrize("copied", [copy_network, lambda network: network_from_dict(*network_to_dict(network))])
def test_copies_and_files_keep_marks(copied):
    network = _marked("conv_out", unfused=True)
    copy = copied(network)
    assert [tensor.name for tensor in copy.debug_tensors] == ["conv_out"]
    assert copy.has_unfused_debug_tensors
    copy.unmark_unfused_tensors_as_debug_tensors()
    assert network.has_unfused_debug_tensors
    assert "debug conv_out" in str(copy)


def test_a_tensor_that_leads_nowhere_is_computed():
    network = convolution_network(2)
    extra = network.add_activation(network.tensor("conv_out"), ActivationType.SIGMOID).get_output(0)
    network.rename_tensor(extra, "extra")
    network.mark_debug(extra)
    recorder = Recorder()
    context = _context(network, listener=recorder)
    context.set_all_tensors_debug_state(True)
    context.run({"x": X})
    assert recorder.names == ["extra"]


def test_a_tensor_whose_shape_depends_on_data_is_received():
    network = Network("late")
    x = network.add_input("x", DataType.FLOAT, (4,))
    places = network.add_non_zero(x).get_output(0)
    network.rename_tensor(places, "places")
    network.mark_debug(places)
    network.mark_output(network.add_cast(places, DataType.FLOAT).get_output(0))
    config = BuilderConfig()
    recorder = Recorder()
    context = _context(network, config, listener=recorder)
    context.set_all_tensors_debug_state(True)
    context.run(np.array([0, 1, 0, 2], np.float32))
    context.run(np.array([0, 0, 0, 2], np.float32))
    assert [array.tolist() for _, array, *_ in recorder.seen] == [[[1, 3]], [[3]]]


def test_a_tensor_that_is_known_before_the_run_is_received():
    network = Network("known")
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    shape = network.add_shape(x).get_output(0)
    network.rename_tensor(shape, "shape")
    network.mark_debug(shape)
    network.mark_output(network.add_identity(x).get_output(0))
    recorder = Recorder()
    context = _context(network, listener=recorder)
    context.set_all_tensors_debug_state(True)
    context.run(np.zeros((2, 3), np.float32))
    assert recorder.arrays["shape"].tolist() == [2, 3]


@pytest.mark.parametrize("device", [DeviceType.GPU, DeviceType.DLA])
def test_tensors_of_devices_have_the_networks_type(device):
    config, recorder = BuilderConfig(), Recorder()
    config.default_device_type = device
    config.set_flag(BuilderFlag.FP16)
    config.allow_gpu_fallback(True)
    network = _marked("conv_out")
    context = _context(network, config, listener=recorder)
    context.set_all_tensors_debug_state(True)
    outputs = context.run({"x": X})
    ((name, array, dtype, _),) = recorder.seen
    assert (name, dtype, array.dtype) == ("conv_out", DataType.FLOAT, np.float32)
    np.testing.assert_allclose(np.maximum(array, 0), outputs["y"], rtol=2e-3, atol=1e-3)


def test_dynamic_shapes_are_received_as_they_are():
    network, recorder, config = convolution_network(-1), Recorder(), BuilderConfig()
    network.mark_debug(network.tensor("conv_out"))
    profile = OptimizationProfile()
    profile.set_shape("x", (1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))
    config.add_optimization_profile(profile)
    context = _context(network, config, listener=recorder)
    context.set_all_tensors_debug_state(True)
    for batch in (1, 3):
        context.run(np.zeros((batch, 3, 8, 8), np.float32))
    assert [shape[0] for *_, shape in recorder.seen] == [1, 3]
