import attrs
import pytest
from tests.core.builder.networks import activation, add, chain, convolution, elu, image_network, named

from dryfit.builder.placement.assign import Assignment
from dryfit.builder.placement.partition import partition_network
from dryfit.builder.placement.roles import layer_roles
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.segments.pools import parts_that_fit
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, SegmentRules, Target

PLATFORM = Platform("one", "one", "One")
POOL = MemoryPool("WEIGHTS", {"": None}, holds="weights", per="segment", source="the pool's document")


NO_RULES = SegmentRules()


class Npu(Target):
    """A device whose memory pool needs no module to stand in."""

    memory_pools = (POOL,)


def variant(device, rules=NO_RULES, kind=Target, software=(2, 0)):
    return TargetVariant(kind(device, device, [PLATFORM], segment_rules=rules), PLATFORM, software)


def assignment_of(network, devices):
    roles = layer_roles(network)
    return Assignment(roles, devices, dict.fromkeys(devices, "the test says so"), {}, [], [])


def cut(network, devices, npu=None, fallback="GPU", pool_use=lambda variant, layers: {}, limits=None):
    npu = attrs.evolve(npu or variant("NPU"), pool_limits=limits or {})
    variants = {"GPU": variant("GPU"), "NPU": npu}
    assignment = assignment_of(network, devices)

    def needs(partition):
        return [pool_use(variants[run.device], run.layers) for run in partition.runs]

    def parts(partition, segment, limits):
        run = partition.runs[segment]

        def fits(layers):
            needed = pool_use(variants[run.device], layers)
            return all(needed.get(name, 0) <= limit for name, limit in limits.items())

        return parts_that_fit([[layer] for layer in run.layers], fits)

    return partition_network(network, assignment, variants, fallback, needs, parts)


def names(partition):
    return [(run.device, [layer.name for layer in run.layers]) for run in partition.runs]


def by_kind(network):
    """ELU on the GPU, everything else on the NPU."""
    return {layer.name: "GPU" if layer.name.startswith("e") else "NPU" for layer in network.layers}


def test_a_run_ends_where_the_device_changes_and_says_why():
    network = chain("c", "r", "e", "r")
    partition = cut(network, by_kind(network))
    assert names(partition) == [("NPU", ["c0", "r1"]), ("GPU", ["e2"]), ("NPU", ["r3"])]
    assert [run.cut_cause for run in partition.runs[:2]] == ["", ""]
    assert partition.runs[2].cut_cause == ("layer 'e2' on GPU lies between segment 0 and this one: the test says so")
    assert partition.segments == {"c0": 0, "r1": 0, "e2": 1, "r3": 2}


def test_a_segment_is_not_left_and_entered_again():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(add(network, elu(network, first, "elu"), first, "sum"))
    partition = cut(network, by_kind(network))
    assert names(partition) == [("NPU", ["first"]), ("GPU", ["elu"]), ("NPU", ["sum"])]


def test_a_branch_that_comes_from_elsewhere_does_not_cut():
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(add(network, first, elu(network, x, "elu"), "sum"))
    assert names(cut(network, by_kind(network))) == [("GPU", ["elu"]), ("NPU", ["first", "sum"])]


def test_branches_that_share_no_tensor_are_segments_of_their_own():
    network, x = image_network()
    network.mark_output(convolution(network, x, "left"))
    network.mark_output(convolution(network, x, "right"))
    partition = cut(network, by_kind(network))
    assert names(partition) == [("NPU", ["left"]), ("NPU", ["right"])]
    assert partition.runs[1].cut_cause == "it shares no tensor with an earlier segment of NPU"


def test_a_shape_computation_cuts_nothing_but_keeps_the_order():
    network, x = image_network((-1, 4, 4, 4))
    first = activation(network, x, "first")
    shuffle = network.add_shuffle(first)
    shuffle.set_input(1, named(network.add_shape(first), "shape"))
    network.mark_output(named(shuffle, "reshaped"))
    partition = cut(network, {"first": "NPU", "reshaped": "NPU"})
    assert names(partition) == [("NPU", ["first", "reshaped"])]
    assert "shape" not in partition.segments


def batch_network():
    network, x = image_network((2, 4, 4, 4))
    shuffle = network.add_shuffle(activation(network, x, "before"))
    shuffle.reshape_dims = (1, 8, 4, 4)
    network.mark_output(activation(network, named(shuffle, "fold"), "after"))
    return network


def test_a_change_of_batch_cuts_where_the_device_asks_for_one_batch():
    network = batch_network()
    devices = dict.fromkeys(("before", "fold", "after"), "NPU")
    rules = SegmentRules(same_batch=True, source="the document")
    partition = cut(network, devices, variant("NPU", rules))
    assert names(partition) == [("NPU", ["before"]), ("NPU", ["fold", "after"])]
    assert partition.runs[1].cut_cause == "the batch changes from 2 to 1 at layer 'fold' [the document]"
    assert len(cut(network, devices).runs) == 1


def alternating(count):
    return chain(*("re" * count))


def test_segments_beyond_the_limit_of_the_software_move_to_the_fallback_device():
    network = alternating(4)
    rules = SegmentRules(max_segments={(1, 0): 1, (2, 0): 2}, source="the document")
    partition = cut(network, by_kind(network), variant("NPU", rules))
    assert names(partition) == [
        ("NPU", ["r0"]),
        ("GPU", ["e1"]),
        ("NPU", ["r2"]),
        ("GPU", ["e3", "r4", "e5", "r6", "e7"]),
    ]
    limit = "which loads at most 2 with software 2.0 [the document]"
    assert partition.moved == {
        "r4": f"NPU segment of layer 'r4': it is segment 3 of NPU, {limit}",
        "r6": f"NPU segment of layer 'r6': it is segment 4 of NPU, {limit}",
    }
    older = cut(network, by_kind(network), variant("NPU", rules, software=(1, 5)))
    assert [run.device for run in older.runs] == ["NPU", "GPU"]


def a_hundred_bytes_for_each_convolution(variant, layers):
    return {"WEIGHTS": 100 * sum(layer.kind == "convolution" for layer in layers)}


def test_a_segment_that_does_not_fit_its_pool_is_cut_into_segments_that_do():
    network = chain("c", "r", "c", "r", "c", "e", "c")
    npu = variant("NPU", kind=Npu)
    use = a_hundred_bytes_for_each_convolution
    partition = cut(network, by_kind(network), npu, pool_use=use, limits={"WEIGHTS": 200})
    assert names(partition) == [
        ("NPU", ["c0", "r1", "c2", "r3"]),
        ("NPU", ["c4"]),
        ("GPU", ["e5"]),
        ("NPU", ["c6"]),
    ]
    assert (partition.moved, partition.rejected) == ({}, [])
    assert partition.runs[1].cut_cause.startswith(
        "NPU segment of layers 'c0' to 'c4': it needs 300 bytes of WEIGHTS, whose limit is 200 bytes"
    )


def test_a_layer_that_does_not_fit_alone_moves_and_takes_no_other_with_it():
    network = chain("c", "r", "c", "r")
    npu = variant("NPU", kind=Npu)

    def use(variant, layers):
        return {"WEIGHTS": 500 * sum(layer.name == "c2" for layer in layers)}

    partition = cut(network, by_kind(network), npu, pool_use=use, limits={"WEIGHTS": 200})
    assert names(partition) == [("NPU", ["c0", "r1"]), ("GPU", ["c2"]), ("NPU", ["r3"])]
    assert list(partition.moved) == ["c2"]


def test_a_segment_that_does_not_fit_its_pool_moves_as_a_whole_where_its_device_does_so():
    network = chain("c", "c", "e", "r")
    npu = variant("NPU", SegmentRules(cuts_to_fit=False), kind=Npu)
    use = a_hundred_bytes_for_each_convolution

    partition = cut(network, by_kind(network), npu, pool_use=use, limits={"WEIGHTS": 199})
    assert names(partition) == [("GPU", ["c0", "c1", "e2"]), ("NPU", ["r3"])]
    assert partition.moved["c1"] == (
        "NPU segment of layers 'c0' to 'c1': it needs 200 bytes of WEIGHTS, whose limit is 199 bytes "
        "[memory_pool.segment; source: the pool's document]"
    )
    assert cut(network, by_kind(network), npu, pool_use=use, limits={"WEIGHTS": 200}).moved == {}


def test_without_fallback_a_segment_that_must_move_is_refused():
    network = alternating(2)
    partition = cut(network, by_kind(network), variant("NPU", SegmentRules(max_segments={(): 1})), fallback=None)
    assert partition.moved == {}
    assert partition.refused == [
        "NPU segment of layer 'r2': it is segment 2 of NPU, which loads at most 1 with software 2.0"
    ]


def test_segments_of_a_device_can_be_left_out_and_the_rest_is_numbered_anew():
    network = chain("r", "e", "r")
    partition = cut(network, by_kind(network)).without("GPU")
    assert names(partition) == [("NPU", ["r0"]), ("NPU", ["r2"])]
    assert partition.segments == {"r0": 0, "r2": 1}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_network_is_always_cut_alike(seed):
    network, x = image_network()
    tensors = [x]
    for index in range(20):
        make = elu if (index * (seed + 3)) % 4 == 0 else activation
        tensor = make(network, tensors[(index * 7 + seed) % len(tensors)], f"{'e' if make is elu else 'r'}{index}")
        tensors.append(tensor)
    total = tensors[1]
    for number, tensor in enumerate(tensors[2:]):
        total = named(network.add_elementwise(total, tensor, ElementWiseOperation.SUM), f"s{number}")
    network.mark_output(total)
    first, second = (cut(network, by_kind(network)) for _ in range(2))
    assert names(first) == names(second)
    assert attrs.evolve(first, runs=()) == attrs.evolve(second, runs=())
