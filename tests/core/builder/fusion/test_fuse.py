import attrs
import numpy as np
import pytest
from tests.core.builder.designs import lowered
from tests.core.builder.networks import activation, add, chain, convolution, elu, fp16_config, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.fusion import fuse
from dryfit.builder.fusion.fuse import LONGEST_GROUP, LayerPlace, choose_kernels, fuse_layers, rounds_once
from dryfit.builder.kernels.choice import KernelChoice
from dryfit.builder.segments.device_memory import choose_host_layouts
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import HostLayout, Kernel

FLOAT = DataType.FLOAT


def kernel(name, kinds, fuses=lambda group, layer: False, layout=HostLayout.ANY, priority=0, accepts=None, types=None):
    return Kernel(
        name,
        kinds,
        types or {FLOAT, DataType.HALF},
        bind=lambda binding: pytest.fail("nothing runs here"),
        fuses=fuses,
        layout=layout,
        priority=priority,
        accepts=accepts or (lambda group, specs: True),
    )


def ends_with_sum_or_activation(group, layer):
    return isinstance(layer, (Elementwise, Activation)) and len(group.layers) < 4


MATRIX = kernel("test.matrix", {"convolution"}, ends_with_sum_or_activation, HostLayout.CHANNELS_LAST)
REST = kernel("test.rest", {"activation", "elementwise", "concatenation", "shuffle", "cast"}, priority=-1)


@pytest.fixture(autouse=True)
def two_kernels(monkeypatch):
    """One kernel that fuses and one that takes what is left."""
    monkeypatch.setattr("dryfit.builder.kernels.choice.kernels_for", lambda device: (MATRIX, REST))


def groups(network, **places):
    same = {layer.name: places.get(layer.name, LayerPlace("GPU", 0, FLOAT)) for layer in network.layers}
    fused = fuse_layers(network, same)
    return [[layer.name for layer in one.group.layers] for one in fused]


def test_a_chain_joins_as_far_as_the_kernel_takes_it():
    assert groups(chain("c", "r", "e", "r", "r")) == [["c0", "r1", "e2", "r3"], ["r4"]]


def test_a_kernel_that_fuses_nothing_runs_single_layers():
    assert groups(chain("r", "r")) == [["r0"], ["r1"]]


def test_a_tensor_that_others_read_is_stored():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(activation(network, first, "left"))
    network.mark_output(activation(network, first, "right"))
    assert groups(network) == [["first"], ["left"], ["right"]]


def test_an_output_of_the_network_is_stored():
    network = chain("c", "r")
    network.mark_output(network.tensor("c0"))
    assert groups(network) == [["c0"], ["r1"]]


def test_a_group_ends_where_segment_device_or_precision_change():
    network = chain("c", "r")
    assert groups(network, r1=LayerPlace("GPU", 1, FLOAT)) == [["c0"], ["r1"]]
    assert groups(network, r1=LayerPlace("DLA", 0, FLOAT)) == [["c0"], ["r1"]]
    assert groups(network, r1=LayerPlace("GPU", 0, DataType.HALF)) == [["c0"], ["r1"]]


def test_what_is_in_no_segment_is_joined_with_nothing():
    network = chain("c", "r")
    nowhere = LayerPlace("GPU", -1, FLOAT)
    assert groups(network, c0=nowhere, r1=nowhere) == [["c0"], ["r1"]]


def test_a_sum_joins_the_branch_that_is_ready_last():
    network, x = image_network()
    early, late = convolution(network, x, "early"), convolution(network, x, "late")
    network.mark_output(activation(network, add(network, early, late, "sum"), "relu"))
    assert groups(network) == [["early"], ["late", "sum", "relu"]]


def test_a_sum_joins_the_other_branch_where_the_last_one_does_not_take_it():
    network, x = image_network()
    early = convolution(network, x, "early")
    network.mark_output(add(network, early, activation(network, x, "late"), "sum"))
    assert groups(network) == [["late"], ["early", "sum"]]


def test_each_group_runs_after_what_it_reads():
    network, x = image_network()
    left, right = convolution(network, x, "left"), elu(network, x, "right")
    network.mark_output(add(network, left, activation(network, right, "middle"), "sum"))
    done = {"x"}
    for fused in fuse_layers(
        network, dict.fromkeys([layer.name for layer in network.layers], LayerPlace("GPU", 0, FLOAT))
    ):
        assert {tensor.name for tensor in fused.group.inputs} <= done
        done |= {tensor.name for tensor in fused.group.outputs}


def test_a_device_that_rounds_after_each_layer_has_no_groups(monkeypatch):
    assert rounds_once(LayerPlace("GPU", 0, DataType.HALF))
    monkeypatch.setattr(fuse, "rounds_once", lambda place: False)
    assert groups(chain("c", "r")) == [["c0"], ["r1"]]


def test_constants_are_in_no_group():
    network = chain("c")
    network.mark_output(named(network.add_constant((1,), __import__("numpy").ones(1, "f4")), "k"))
    assert [fused.group.name for fused in fuse_layers(network, {"c0": LayerPlace("GPU", 0, FLOAT)})] == ["c0"]


def chosen(monkeypatch, *kernels):
    monkeypatch.setattr("dryfit.builder.kernels.choice.kernels_for", lambda device: kernels)
    network = chain("c")
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    return [one.name for one in KernelChoice().candidates("GPU", LayerGroup((network.layer("c0"),)), specs)]


def test_only_kernels_that_serve_kind_types_and_group_may_run_it(monkeypatch):
    other_kind = kernel("other kind", {"pooling"})
    other_type = kernel("other type", {"convolution"}, types={DataType.INT8})
    refuses = kernel("refuses", {"convolution"}, accepts=lambda group, specs: False)
    assert chosen(monkeypatch, other_kind, other_type, refuses, MATRIX) == ["test.matrix"]


def test_a_layer_that_no_kernel_serves_is_an_error_that_names_it(monkeypatch):
    with pytest.raises(BuildError) as caught:
        chosen(monkeypatch, kernel("other", {"pooling"}))
    assert "layer 'c0'" in str(caught.value)
    assert "'x': FP32" in str(caught.value)


# Host layouts


def layouts(network):
    places = dict.fromkeys([layer.name for layer in network.layers], LayerPlace("GPU", 0, FLOAT))
    return choose_host_layouts(network, choose_kernels(fuse_layers(network, places), KernelChoice()))


def test_inputs_and_outputs_are_row_major_and_what_is_between_lies_as_kernels_ask():
    network = chain("c", "r", "r", "r", "r", "r", "c")
    chosen_layouts = layouts(network)
    assert chosen_layouts["x"] is chosen_layouts["c6"] is HostLayout.LINEAR
    assert chosen_layouts["r3"] is HostLayout.CHANNELS_LAST


def test_kernels_without_a_preference_keep_what_their_neighbours_have():
    network, x = image_network()
    tensor = convolution(network, x, "first")
    network.mark_output(tensor)
    for index in range(6):
        tensor = activation(network, tensor, f"r{index}")
    network.mark_output(convolution(network, tensor, "last"))
    chosen_layouts = layouts(network)
    assert {chosen_layouts[f"r{index}"] for index in range(6)} == {HostLayout.CHANNELS_LAST}
    assert {*layouts(chain("r", "r", "r")).values()} == {HostLayout.LINEAR}


def test_only_images_and_volumes_have_channels_to_put_last():
    network, x = image_network()
    shuffle = network.add_shuffle(convolution(network, x, "first"))
    shuffle.reshape_dims = (8, 36)
    network.mark_output(elu(network, named(shuffle, "flat"), "elu"))
    volume = network.add_input("volume", FLOAT, (1, 8, 3, 6, 6))
    for name in ("filtered", "filtered again"):
        layer = network.add_convolution_nd(volume, 8, (1, 1, 1), np.ones((8, 8, 1, 1, 1), np.float32))
        volume = named(layer, name)
    network.mark_output(volume)
    chosen_layouts = layouts(network)
    assert chosen_layouts["first"] is chosen_layouts["filtered"] is HostLayout.CHANNELS_LAST
    assert chosen_layouts["flat"] is HostLayout.LINEAR


def test_real_kernels_join_convolution_sum_and_activation_in_fp16(monkeypatch):
    monkeypatch.undo()
    network, x = image_network()
    skip = activation(network, x, "skip")
    network.mark_output(activation(network, add(network, convolution(network, skip, "c"), skip, "sum"), "relu"))
    result = lowered(network, fp16_config())
    places = {layer.name: LayerPlace("GPU", 0, layer.outputs[0].dtype) for layer in result.network.layers}
    fused = fuse_layers(result.network, places)
    assert ["c", "sum", "relu"] in [[layer.name for layer in one.group.layers] for one in fused]
    assert BuilderConfig().default_device_type == "GPU"


def test_a_group_ends_where_it_gets_too_long(monkeypatch):
    greedy = kernel("test.greedy", {"activation"}, lambda group, layer: True)
    monkeypatch.setattr("dryfit.builder.kernels.choice.kernels_for", lambda device: (greedy,))
    joined = groups(chain(*["r"] * (2 * LONGEST_GROUP + 3)))
    assert [len(group) for group in joined] == [LONGEST_GROUP, LONGEST_GROUP, 3]


def gate(network, x):
    """`x * sigmoid(x)`, as two layers."""
    opened = activation(network, x, "opened", ActivationType.SIGMOID)
    return named(network.add_elementwise(x, opened, ElementWiseOperation.PROD), "gated")


@pytest.fixture
def taking_forks(monkeypatch):
    """A kernel that takes whole forks, and not the first layer of one."""

    def fuses(group, layer):
        return isinstance(layer, Elementwise) and len(group.layers) == 2

    forks = attrs.evolve(kernel("test.forks", {"convolution"}, fuses), fuses_forks=True)
    monkeypatch.setattr("dryfit.builder.kernels.choice.kernels_for", lambda device: (forks, REST))


@pytest.mark.usefixtures("taking_forks")
def test_a_fork_joins_as_a_whole():
    network, x = image_network()
    network.mark_output(activation(network, gate(network, convolution(network, x, "c")), "r"))
    assert groups(network) == [["c", "opened", "gated"], ["r"]]


@pytest.mark.usefixtures("taking_forks")
@pytest.mark.parametrize("read", ["c", "opened"])
def test_a_fork_that_is_read_in_between_is_not_joined(read):
    network, x = image_network()
    value = gate(network, convolution(network, x, "c"))
    network.mark_output(value)
    network.mark_output(activation(network, network.find_tensor(read), "r"))
    assert ["c", "opened", "gated"] not in groups(network)


def test_a_kernel_that_does_not_look_at_every_layer_is_given_no_fork():
    network, x = image_network()
    network.mark_output(gate(network, convolution(network, x, "c")))
    assert groups(network) == [["c"], ["opened"], ["gated"]]
