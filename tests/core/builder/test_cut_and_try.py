"""What a cut needs of memory pools: the same bytes in an assessment, a refusal and an engine."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.core.builder.networks import activation, add, chain, convolution, dla_config, elu, image_network

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.cut_and_try import CutPlanner
from dryfit.builder.segments.pools import PoolNeeds
from dryfit.building import Builder, assess, design_for_assessment
from dryfit.errors import BuildError, DryfitError, PlacementError, UnknownNameError

LOCAL = "DLA_LOCAL_DRAM"
TENSOR_BYTES = 16 * 32 * 32 * 2
"""Bytes of a tensor of the chains below in CHW16: 8 channels of 32 x 32 in FP16, filled up to 16."""


def wide_chain(*kinds):
    return chain(*kinds, shape=(1, 8, 32, 32))


def config_with(limit=None, fallback=True):
    config = dla_config(fallback)
    config.builder_optimization_level = 0
    if limit is not None:
        config.set_memory_pool_limit(LOCAL, limit)
    return config


def local_bytes(segments):
    return [one.pools[LOCAL] for one in segments if one.device == "DLA"]


def test_layers_that_run_as_one_share_no_tensor_in_memory():
    """Of conv, relu, conv, relu only what the first pair gives is kept: conv and relu run as one."""
    found = assess(wide_chain("c", "r", "c", "r"), config_with())
    assert local_bytes(found.segments) == [TENSOR_BYTES]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_an_assessment_tells_the_pools_of_the_engine(data):
    network, x = image_network()
    tensors = [x]
    for index in range(data.draw(st.integers(1, 7))):
        kind = data.draw(st.sampled_from(["convolution", "relu", "elu", "sum"]))
        one, other = (data.draw(st.sampled_from(tensors)) for _ in range(2))
        name = f"{kind}{index}"
        match kind:
            case "convolution":
                made = convolution(network, one, name)
            case "relu":
                made = activation(network, one, name)
            case "elu":
                made = elu(network, one, name)
            case _:
                made = add(network, one, other, name)
        tensors.append(made)
    for tensor in tensors[1:]:
        if not tensor.consumers:
            network.mark_output(tensor)
    config = config_with()
    assert Builder().build_plan(network, config).segments == assess(network, config).segments


def test_a_segment_that_fits_once_its_layers_are_joined_stays():
    """Layer by layer it would need two tensors at a time."""
    network, config = wide_chain("c", "r", "c", "r"), config_with(TENSOR_BYTES)
    assert {one.device for one in assess(network, config).layers} == {"DLA"}
    assert {one.device for one in Builder().build_plan(network, config).layers} == {"DLA"}


def test_a_segment_that_does_not_fit_moves_and_says_what_an_engine_would_need():
    network = wide_chain("c", "r", "c", "r")
    found = assess(network, config_with(TENSOR_BYTES // 2))
    assert {one.device for one in found.layers} == {"GPU"}
    assert f"it needs {TENSOR_BYTES} bytes of {LOCAL}, whose limit is {TENSOR_BYTES // 2} bytes" in found.warnings[0]
    assert found.rejected[0].shortages[0].needed == TENSOR_BYTES
    assert Builder().build_plan(network, config_with(TENSOR_BYTES // 2)).rejected == found.rejected


def test_without_fallback_the_refusal_says_what_an_engine_would_need():
    with pytest.raises(PlacementError, match=f"it needs {TENSOR_BYTES} bytes of {LOCAL}"):
        Builder().build_plan(wide_chain("c", "r", "c", "r"), config_with(TENSOR_BYTES // 2, fallback=False))


def test_what_has_no_place_takes_no_memory_of_the_others():
    """The ELU that the DLA does not have leaves a conv and a relu on each side of it, which need nothing inside."""
    found = assess(wide_chain("c", "r", "e", "c", "r"), config_with(fallback=False))
    assert not found.can_be_built
    assert local_bytes(found.segments) == [0, 0]
    found = assess(wide_chain("c", "r", "c", "e", "c", "r"), config_with(fallback=False))
    assert local_bytes(found.segments) == [TENSOR_BYTES, 0]


def test_scales_that_are_assumed_suffice_to_reckon_with():
    config = config_with()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    (size,) = local_bytes(assess(wide_chain("c", "r", "c", "r"), config).segments)
    assert size == 32 * 32 * 32


@pytest.mark.parametrize(("kernel", "kind"), [("cpu.nothing", UnknownNameError), ("cpu.softmax", BuildError)])
def test_a_kernel_that_cannot_be_taken_is_told_as_a_build_tells_it(kernel, kind):
    network = wide_chain("c", "r")
    config = config_with()
    config.set_kernel(network.layers[0], kernel)
    (error,) = assess(network, config).errors
    with pytest.raises(DryfitError) as raised:
        Builder().build_plan(network, config)
    assert type(error) is type(raised.value) is kind
    assert str(error) == str(raised.value)


def test_a_cut_with_too_many_segments_that_certainly_fit_is_not_planned(monkeypatch):
    """ELU runs on the GPU, so that each convolution is a segment of its own; the DLA loads 16 of them."""
    network, planned = wide_chain(*"ce" * 18), Counter()
    plan = CutPlanner._planned
    monkeypatch.setattr(CutPlanner, "_planned", lambda self, cut: planned.update(["cut"]) or plan(self, cut))
    found = assess(network, config_with())
    assert len([one for one in found.segments if one.device == "DLA"]) == 16
    assert planned["cut"] == 1


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_no_segment_needs_more_than_is_reckoned_for_it_at_most(data):
    kinds = data.draw(st.lists(st.sampled_from("cre"), min_size=1, max_size=8))
    config = config_with()
    if data.draw(st.booleans()):
        config.set_flag(BuilderFlag.INT8)
        config.assume_scales = True
    design = design_for_assessment(wide_chain(*kinds), config)
    for index, run in enumerate(design.partition.runs):
        needs = PoolNeeds(design.variants[run.device], design.specs, design.precisions)
        most = needs.at_most(run.layers)
        assert all(size <= most[pool] for pool, size in design.pools(index).items())
