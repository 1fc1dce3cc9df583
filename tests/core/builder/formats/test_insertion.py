import itertools

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.builder.designs import designed
from tests.core.builder.networks import (
    activation,
    add,
    chain,
    convolution,
    dla_config,
    elu,
    fp16_config,
    half_network,
    image_network,
)

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.formats.choice import choose_formats
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.builder.formats.sides import Sides, caller_device
from dryfit.errors import UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.tensor_format import TensorFormat

LINEAR_BYTES = 1 * 8 * 6 * 6 * 2
CHW16_BYTES = 1 * 16 * 6 * 6 * 2
DLA_LINEAR_BYTES = 1 * 8 * 6 * 32 * 2


def formats(network, config):
    return designed(network, config).formats


def moves(chosen):
    return [(one.tensor, one.source, one.destination, one.size) for one in chosen.reformats]


def test_an_engine_of_one_device_and_type_has_no_reformat():
    assert formats(chain("c", "e"), BuilderConfig()).reformats == []


def test_crossing_to_the_dla_and_back_is_one_copy_each():
    chosen = formats(chain("c", "e", "r"), dla_config())
    assert moves(chosen) == [
        ("x", "GPU FLOAT LINEAR", "DLA HALF CHW16", CHW16_BYTES),
        ("c0", "DLA HALF CHW16", "GPU HALF LINEAR", LINEAR_BYTES),
        ("e1", "GPU HALF LINEAR", "DLA HALF CHW16", CHW16_BYTES),
        ("r2", "DLA HALF CHW16", "GPU FLOAT LINEAR", 2 * LINEAR_BYTES),
    ]


def test_a_reformat_says_who_gives_and_who_takes():
    chosen = formats(chain("c", "e"), dla_config())
    assert [one.cause for one in chosen.reformats] == [
        "network input 'x' provides FP32 LINEAR on GPU, 'c0' requires FP16 CHW16 on DLA",
        "'c0' provides FP16 CHW16 on DLA, 'e1' requires FP16 LINEAR on GPU",
        "'e1' provides FP16 LINEAR on GPU, network output 'e1' requires FP32 LINEAR on GPU",
    ]


def test_one_copy_serves_all_segments_that_take_the_same_form():
    network, x = image_network()
    first = elu(network, x, "first")
    network.mark_output(convolution(network, first, "left"))
    network.mark_output(convolution(network, first, "right"))
    assert [move[0] for move in moves(formats(network, dla_config()))].count("first") == 1


def test_between_segments_of_one_device_nothing_is_copied():
    network = half_network()
    network.unmark_output(network.outputs[0])
    shuffle = network.add_shuffle(network.tensor("r1"))
    shuffle.reshape_dims = (2, 4, 6, 6)
    network.mark_output(activation(network, shuffle.get_output(0), "after"))
    config = dla_config()
    design = designed(network, config)
    if [run.device for run in design.partition.runs] != ["DLA", "GPU", "DLA"]:
        pytest.skip("the reshape runs on the DLA, so that nothing lies between")
    assert {one.tensor for one in design.formats.reformats} >= {"r1"}


def test_a_change_of_type_within_a_device_is_a_copy_too():
    network = chain("c", "r")
    network.layer("r1").precision = network.inputs[0].dtype
    assert moves(formats(network, fp16_config())) == [
        ("x", "GPU FLOAT LINEAR", "GPU HALF LINEAR", LINEAR_BYTES),
        ("c0", "GPU HALF LINEAR", "GPU FLOAT LINEAR", 2 * LINEAR_BYTES),
    ]


def int8_around_a_sigmoid():
    """c, sigmoid, c in INT8, of which a DLA computes the sigmoid in FP16."""
    network, x = image_network()
    scaled = convolution(network, x, "c0")
    promoted = activation(network, scaled, "s1", ActivationType.SIGMOID)
    network.mark_output(convolution(network, promoted, "c2"))
    for tensor in (x, scaled, promoted, network.outputs[0]):
        tensor.dynamic_range = (-3, 3)
    return network


def test_a_change_of_type_inside_a_loadable_is_no_copy():
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    design = designed(int8_around_a_sigmoid(), config)
    types = [design.precisions.layers[name] for name in ("c0", "s1", "c2")]
    assert types == [DataType.INT8, DataType.HALF, DataType.INT8]
    assert [one.tensor for one in design.formats.reformats] == ["x", "c2"]
    assert [str(form) for form in design.formats.forms["s1"].copies] == ["DLA INT8 CHW32"]


def test_a_native_format_that_the_user_allows_needs_no_copy():
    network = half_network()
    for tensor in (network.inputs[0], network.outputs[0]):
        tensor.allowed_formats = frozenset({"LINEAR", "CHW16"})
    chosen = formats(network, dla_config())
    assert chosen.reformats == []
    assert str(chosen.forms["x"].produced) == "GPU HALF CHW16"
    assert chosen.forms["r1"].given is not None
    assert chosen.forms["r1"].given.layout.name == "CHW16"


def test_a_format_of_the_device_that_the_user_chose_is_read_as_it_is():
    network = half_network()
    network.inputs[0].allowed_formats = frozenset({"DLA_LINEAR"})
    network.outputs[0].allowed_formats = frozenset({"DLA_LINEAR"})
    chosen = formats(network, dla_config(fallback=False))
    assert (chosen.reformats, chosen.problems) == ([], [])


def test_without_fallback_a_copy_at_the_border_is_a_problem():
    network = half_network()
    network.outputs[0].allowed_formats = frozenset({"CHW16"})
    chosen = formats(network, dla_config(fallback=False))
    assert len(chosen.problems) == 1
    assert "network input 'x' provides FP16 LINEAR on DLA, 'c0' requires FP16 CHW16 on DLA" in chosen.problems[0]
    assert "CHW16, DLA_LINEAR" in chosen.problems[0]
    network.inputs[0].allowed_formats = frozenset({"CHW16"})
    assert formats(network, dla_config(fallback=False)).problems == []


def test_direct_io_forbids_a_copy_where_formats_were_set():
    network = half_network()
    network.inputs[0].allowed_formats = frozenset({"LINEAR"})
    config = dla_config()
    assert formats(network, config).problems == []
    config.set_flag(BuilderFlag.DIRECT_IO)
    problems = formats(network, config).problems
    assert len(problems) == 1
    assert "DIRECT_IO" in problems[0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [(convolution, {"CHW16", "DLA_LINEAR", "DLA_HWC4"}), (activation, {"CHW16", "DLA_LINEAR"})],
)
def test_the_image_format_is_for_a_first_convolution_only(make, expected):
    network, x = image_network((1, 3, 32, 32))
    x.dtype = half_network().inputs[0].dtype
    network.mark_output(make(network, x, "first"))
    config = dla_config()
    design = designed(network, config)
    sides = Sides(design.partition, design.precisions, design.variants, design.specs, config)
    tensor = design.network.tensor("x")
    (taker,) = sides.takers(tensor, sides.giver(tensor))
    assert {layout.name for layout in taker.layouts} == expected


def test_an_image_that_the_user_gives_in_the_image_format_is_not_copied():
    network, x = image_network((1, 3, 32, 32))
    x.dtype = half_network().inputs[0].dtype
    x.allowed_formats = frozenset({"DLA_HWC4"})
    network.mark_output(convolution(network, x, "first"))
    assert "x" not in {one.tensor for one in formats(network, dla_config()).reformats}


def test_formats_of_which_no_device_in_use_has_any_are_an_error_with_those_that_it_has():
    network = half_network()
    network.inputs[0].allowed_formats = TensorFormat.DHWC
    with pytest.raises(UnknownNameError) as caught:
        formats(network, dla_config())
    assert "CHW16" in caught.value.allowed
    assert caught.value.where == "tensor 'x'"


def test_of_several_formats_those_count_that_a_device_in_use_has():
    network = half_network()
    network.inputs[0].allowed_formats = 1 << int(TensorFormat.DHWC) | 1 << int(TensorFormat.CHW16)
    assert "x" not in {one.tensor for one in formats(network, dla_config()).reformats}


def test_vectors_are_row_major_on_every_device():
    network, x = image_network((1, 8))
    network.mark_output(elu(network, x, "elu"))
    chosen = formats(network, fp16_config())
    assert {form.produced.layout.name for form in chosen.forms.values()} == {"LINEAR"}


def test_the_caller_is_on_the_default_device_unless_that_reads_its_own_formats_only():
    assert caller_device(BuilderConfig(), ["CPU"]) == "GPU"
    assert caller_device(dla_config(), ["DLA"]) == "GPU"
    assert caller_device(dla_config(fallback=False), ["DLA", "CPU"]) == "CPU"
    assert caller_device(dla_config(fallback=False), ["DLA"]) == "DLA"


@st.composite
def placed_networks(draw):
    """A network of up to six layers on random devices, its border in random formats, and the config."""
    network, x = image_network((1, draw(st.sampled_from([1, 3, 5, 20])), 5, draw(st.sampled_from([3, 40]))))
    config = dla_config()
    tensors = [x]
    for number in range(draw(st.integers(1, 6))):
        source = draw(st.sampled_from(tensors))
        kind = draw(st.sampled_from(["convolution", "relu", "elu", "sum"]))
        if kind == "convolution":
            made = convolution(network, source, f"c{number}", maps=draw(st.sampled_from([3, 20])))
        elif kind == "sum":
            made = add(network, source, activation(network, source, f"r{number}"), f"s{number}")
        else:
            made = (elu if kind == "elu" else activation)(network, source, f"a{number}")
        tensors.append(made)
    for layer in network.layers:
        if draw(st.booleans()):
            config.set_device_type(layer, "GPU")
    for tensor in tensors[1:]:
        if not tensor.consumers or draw(st.integers(0, 4)) == 0:
            network.mark_output(tensor)
    if draw(st.booleans()):
        x.dtype = DataType.HALF
        x.allowed_formats = draw(st.sampled_from([None, frozenset({"CHW16"}), frozenset({"LINEAR", "DLA_LINEAR"})]))
    return network, config


def memory(form):
    return form.dtype, form.layout.name


def least_bytes(tensor, sides, size):
    """The fewest bytes that any combination of what is given, copied and taken moves for a tensor."""
    giver = sides.giver(tensor)
    takers = sides.takers(tensor, giver)
    known = {memory(form): form for side in takers for form, _ in side.forms()}
    totals = []
    for produced, cost in giver.forms():
        for number in range(min(len(takers), len(known)) + 1):
            for copies in itertools.combinations(known, number):
                there = {memory(produced), *copies}
                options = [[cost for form, cost in one.forms() if memory(form) in there] for one in takers]
                if all(options):
                    totals.append(cost + sum(map(min, options)) + sum(size(known[one], tensor) for one in copies))
    return min(totals)


def preferred_bytes(tensor, sides, size):
    """What is moved where each segment, and the caller, has its way."""
    giver = sides.giver(tensor)
    first, *others = [min(side.forms(), key=lambda pair: pair[1]) for side in (giver, *sides.takers(tensor, giver))]
    copies = {memory(form): form for form, _ in others if memory(form) != memory(first[0])}
    return sum(cost for _, cost in (first, *others)) + sum(size(form, tensor) for form in copies.values())


@given(placed=placed_networks())
@settings(max_examples=60, deadline=None)
def test_no_other_choice_of_formats_moves_fewer_bytes(placed):
    network, config = placed
    design = designed(network, config)
    sides = Sides(design.partition, design.precisions, design.variants, design.specs, config)

    def size(form, tensor):
        return design.variants[form.device].size_bytes(form.layout, design.specs[tensor.name].shape, form.dtype)

    tensors = [one for one in design.network.tensors if one.name in design.formats.forms]
    assert design.formats.moved_bytes == sum(least_bytes(one, sides, size) for one in tensors)
    assert design.formats.moved_bytes <= sum(preferred_bytes(one, sides, size) for one in tensors)
    # Every reformat says why it is there.
    assert all(one.rule in REFORMAT_RULES and one.cause for one in design.formats.reformats)


class _CountedSegments(dict[str, int]):
    """The segment of each layer, and how often it was asked for."""

    asked = 0

    def get(self, *key):
        self.asked += 1
        return super().get(*key)


def asked_segments(readers):
    """How often a network's segments are looked up in which many read one tensor, each in a segment of its own."""
    network, x = image_network()
    for number in range(readers):
        network.mark_output(activation(network, x, f"r{number}"))
    design = designed(network, dla_config())
    segments = _CountedSegments(design.partition.segments)
    partition = attrs.evolve(design.partition, segments=segments)
    assert len(partition.runs) == readers
    sides = Sides(partition, design.precisions, design.variants, design.specs, dla_config())
    assert choose_formats(design.network, sides) == design.formats
    return segments.asked


def test_the_work_for_a_tensor_grows_as_the_number_of_segments_that_read_it():
    assert asked_segments(32) < 2.5 * asked_segments(16)
