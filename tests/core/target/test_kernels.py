"""Kernels as their authors write them: one decorated function, and what a binding gives to it."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from dryfit.errors import ExecutionError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, CallableStep, EveryKind, HostLayout, Kernel, kernel

FLOAT = DataType.FLOAT
PIXELS = TensorFormat("PIXELS", [FLOAT], channels_last=True, channels_vector=4, line_alignment_bytes={"": 48})


def declared(**others):
    """A kernel of a function that does nothing."""
    return kernel(others.pop("name", "acme.relu"), **{"kinds": "activation", "data_types": "fp32"} | others)(
        lambda binding: lambda: None
    )


def sum_group(shape=(2, 3)):
    """`(a + constant) -> ReLU`, and the arrays to bind it to."""
    network = Network()
    a = network.add_input("a", FLOAT, shape)
    b = network.add_constant(shape, np.full(shape, 2, np.float32)).get_output(0)
    total = network.add_elementwise(b, a, ElementWiseOperation.SUM)
    rectified = network.add_activation(total.get_output(0), ActivationType.RELU)
    network.mark_output(rectified.get_output(0))
    group = LayerGroup((total, rectified))
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    arrays = {"a": np.full(shape, -3, np.float32), rectified.get_output(0).name: np.zeros(shape, np.float32)}
    return group, specs, arrays


def bound(one: Kernel, shape=(2, 3), **others):
    group, specs, arrays = sum_group(shape)
    return one.bind(Binding(group, specs, arrays, {}, np.empty(0, np.uint8), **others)), arrays


# Declaring ------------------------------------------------------------------------------------------------------------


def test_a_decorated_function_is_a_kernel_that_holds_all_that_was_declared():
    @kernel(
        "acme.convolution",
        kinds=["convolution", "deconvolution"],
        data_types=["fp16", DataType.FLOAT],
        fuses={"activation", "scale"},
        packed_parameters=["kernel"],
        workspace_bytes=640,
        layout="channels_last",
        formats={"input": PIXELS},
        priority=3,
        version=2,
    )
    def convolve(binding):
        return lambda: None

    assert isinstance(convolve, Kernel)
    assert convolve.kinds == {"convolution", "deconvolution"}
    assert convolve.data_types == {DataType.HALF, DataType.FLOAT}
    assert convolve.fuses.kinds == {"activation", "scale"}
    assert convolve.workspace_function(None, {}, 4) == 640
    assert convolve.layout is HostLayout.CHANNELS_LAST
    assert convolve.formats == {"input": PIXELS}
    assert (convolve.packed_parameters, convolve.priority, convolve.version) == (("kernel",), 3, 2)


def test_kinds_that_it_fuses_decide_by_the_next_layer():
    group, _, _ = sum_group()
    sum_, rectified = group.layers
    one = declared(fuses=["activation"])
    assert one.fuses(LayerGroup((sum_,)), rectified)
    assert not one.fuses(LayerGroup((rectified,)), sum_)
    assert not declared().fuses(LayerGroup((sum_,)), rectified)
    assert declared(fuses=lambda group, layer: True).fuses(group, sum_)


def test_a_kernel_of_every_kind_serves_kinds_that_are_not_known_yet():
    assert "acme_kind_of_tomorrow" in declared(kinds=EveryKind()).kinds
    assert declared(data_types=DataType).data_types == frozenset(DataType)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": "relu"}, "such as acme.relu"),
        ({"name": "acme relu.x"}, "found 'acme relu.x'"),
        ({"kinds": "activatoin"}, "Did you mean 'activation'?"),
        ({"kinds": ["convolution", "relu"]}, "kinds: Unknown layer kind: 'relu'"),
        ({"kinds": []}, "kinds: the kernel must support at least one layer kind"),
        ({"data_types": []}, "data_types: the kernel must support at least one type"),
        ({"fuses": ["relu"]}, "fuses: Unknown layer kind: 'relu'"),
        ({"data_types": ["fp33"]}, "Did you mean 'fp32'?"),
        ({"layout": "nhwc"}, "channels_last"),
        ({"workspace_bytes": -1}, "found -1"),
        ({"workspace_bytes": 1.5}, "found 1.5"),
        ({"formats": {"inputs": PIXELS}}, "Did you mean 'input'?"),
        ({"formats": {"input": "PIXELS"}}, "Use the TensorFormat record of the device, not its name"),
    ],
)
def test_a_wrong_declaration_names_kernel_function_and_what_is_wrong(wrong, told):
    with pytest.raises(PluginError) as caught:
        declared(**wrong)
    text = str(caught.value)
    assert told in text
    assert f"kernel {wrong.get('name', 'acme.relu')!r}, function {__name__}.declared" in text


# Binding --------------------------------------------------------------------------------------------------------------


def test_inputs_and_outputs_are_arrays_in_order_without_constants():
    group, specs, arrays = sum_group()
    binding = Binding(group, specs, arrays, {}, np.empty(0, np.uint8))
    assert [tensor.name for tensor in group.inputs][1] == "a"
    (given,), (result,) = binding.inputs, binding.outputs
    assert given is arrays["a"]
    assert result is arrays[group.outputs[0].name]


def test_a_function_that_a_kernel_gives_becomes_a_step_with_the_groups_name():
    @kernel("acme.sum", kinds="elementwise", data_types="fp32")
    def add(binding):
        (a,), (y,) = binding.inputs, binding.outputs
        return lambda: np.maximum(a + 5, 0, out=y)

    step, arrays = bound(add)
    assert isinstance(step, CallableStep)
    assert step.name == sum_group()[0].name
    step.run()
    assert (arrays[sum_group()[0].outputs[0].name] == 2).all()


def test_what_a_kernel_raises_in_a_run_is_told_with_kernel_and_layer():
    step, _ = bound(Kernel("acme.odd", {"elementwise"}, {FLOAT}, bind=lambda binding: lambda: 1 / 0))
    with pytest.raises(PluginError, match="found ZeroDivisionError: division by zero") as caught:
        step.run()
    assert caught.value.where == f"kernel 'acme.odd', layer {sum_group()[0].name!r}"


def test_a_step_that_a_kernel_gives_stays_what_it_is():
    step = CallableStep("own name", lambda: None)
    assert bound(Kernel("acme.own", {"elementwise"}, {FLOAT}, bind=lambda binding: step))[0] is step


def test_a_kernel_that_works_while_it_is_bound_is_told_to_give_a_function():
    with pytest.raises(PluginError, match=r"kernel 'acme\.eager'.*found NoneType.*Return the function"):
        bound(Kernel("acme.eager", {"elementwise"}, {FLOAT}, bind=lambda binding: None))


# Formats --------------------------------------------------------------------------------------------------------------


def test_arrays_of_a_declared_format_have_its_extents_and_zeros_for_padding():
    seen = {}

    @kernel("acme.pixels", kinds="elementwise", data_types="fp32", formats={"input": PIXELS, "output": PIXELS})
    def add(binding):
        (x,), (y,) = binding.inputs, binding.outputs

        def run():
            seen["x"] = x.copy()
            y[...] = 77
            y[..., :3] = x[..., :3] + 5

        return run

    step, arrays = bound(add, (1, 3, 2, 2))
    arrays["a"][...] = np.arange(12).reshape(1, 3, 2, 2)
    step.run()
    assert seen["x"].shape == PIXELS.array_shape((1, 3, 2, 2), FLOAT) == (1, 2, 3, 4)
    np.testing.assert_array_equal(seen["x"][:, :, :2, :3], arrays["a"].transpose(0, 2, 3, 1))
    assert not seen["x"][:, :, 2:].any()
    assert not seen["x"][..., 3:].any()
    np.testing.assert_array_equal(arrays[sum_group()[0].outputs[0].name], arrays["a"] + 5)


def test_a_second_run_reads_what_the_inputs_hold_then():
    @kernel("acme.copy", kinds="elementwise", data_types="fp32", formats={"input": PIXELS})
    def copy(binding):
        (x,), (y,) = binding.inputs, binding.outputs
        return lambda: np.copyto(y, x[:, :, :2, :3].transpose(0, 3, 1, 2))

    step, arrays = bound(copy, (1, 3, 2, 2))
    for value in (4, -9):
        arrays["a"][...] = value
        step.run()
        assert (arrays[sum_group()[0].outputs[0].name] == value).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kinds": "convolution"}, "supports convolution, not elementwise"),
        ({"data_types": DataType.HALF}, "supports FP16, not FP32"),
        ({"accepts": lambda group, specs: False}, "it does not support the layer's parameters or shapes"),
    ],
)
def test_a_kernel_that_does_not_accept_its_group_is_never_bound(changes, words):
    asked = []
    one = declared(**{"kinds": "elementwise", **changes})
    one = attrs.evolve(one, bind=asked.append, workspace_bytes=lambda *given: asked.append(given))
    with pytest.raises(ExecutionError, match=words) as caught:
        bound(one, (1, 3, 2, 2))
    assert "kernel 'acme.relu'" in caught.value.where
    assert "Build the engine again" in caught.value.remedy
    group, specs, _ = sum_group()
    with pytest.raises(ExecutionError, match=words):
        one.workspace_bytes(group, specs, 1)
    assert not asked


def test_a_format_that_is_not_defined_for_a_shape_is_refused_when_it_is_bound():
    one = declared(kinds="elementwise", formats={"input": TensorFormat("GRAY", [FLOAT], channel_counts=(1,))})
    with pytest.raises(ExecutionError, match="GRAY"):
        bound(one, (1, 3, 2, 2))
