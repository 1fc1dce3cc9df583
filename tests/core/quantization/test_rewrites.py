"""What became of Q/DQ, and which scales count as equal."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.passes.quantization.scale_numbers import numbers_of
from dryfit.quantization.rewrites import Rewrite, RewriteAction, RewriteJournal, equal_scales, holding


def step(layer, action=RewriteAction.MOVED, over=("pool",), reason="it picks values", scales=()):
    return Rewrite("move-quantizes", layer, action, over, reason, scales)


def test_a_journal_keeps_the_order_and_tells_of_each_layer():
    steps = [step("a"), step("b"), step("a", RewriteAction.FOLDED, ("w",))]
    journal = RewriteJournal(steps[:1])
    for one in steps[1:]:
        journal.add(one)
    assert list(journal) == steps
    assert len(journal) == 3
    assert journal.of("a") == (steps[0], steps[2])
    assert journal.of("c") == ()


def test_a_copy_of_a_copy_has_the_name_of_the_first():
    journal = RewriteJournal()
    journal.note_copy("q before pool", "q")
    journal.note_copy("q before conv", "q before pool")
    assert journal.origin("q before conv") == "q"
    assert journal.origin("q") == "q"
    assert journal.origin("stranger") == "stranger"


def test_a_step_reads_as_a_sentence():
    assert str(step("q", over=("pool", "slice"))) == "'q' moved over 'pool', 'slice': it picks values"
    assert str(step("q", RewriteAction.MERGED, ("p",), "the same")) == "'q' merged into 'p': the same"
    assert str(step("q", RewriteAction.STOPPED, (), "alone")) == "'q' stopped: alone"


def quantized_twice(first: np.ndarray, second: np.ndarray) -> Network:
    """Quantizations `a` and `b` of one input, by scales of these names."""
    network = Network("two")
    x = network.add_input("x", DataType.FLOAT, (1, 4))
    for name, value in (("a", first), ("b", second)):
        scale = network.add_constant(value.shape, value).get_output(0)
        network.rename_tensor(scale, name)
        layer = network.add_quantize(x, scale)
        layer.axis = 1
        network.mark_output(layer.get_output(0))
    return network


def are_equal(network: Network) -> bool:
    specs = {tensor: tensor.spec for tensor in network.tensors}
    first, second = (numbers_of(layer, specs) for layer in network.layers if layer.kind == "quantize")
    return first == second


ONE, OTHER = np.array(0.5, np.float32), np.array(0.25, np.float32)


def test_equal_scales_are_grouped_whatever_their_types_are():
    assert equal_scales(quantized_twice(ONE, ONE)) == [("a", "b")]
    assert equal_scales(quantized_twice(ONE, ONE.astype(np.float16))) == [("a", "b")]
    assert equal_scales(quantized_twice(ONE, OTHER)) == []
    assert equal_scales(quantized_twice(np.full(4, 0.5, np.float32), np.full(4, 0.5, np.float32))) == [("a", "b")]


def test_held_scales_compare_by_their_groups_and_others_by_their_values():
    same, different = quantized_twice(ONE, ONE), quantized_twice(ONE, OTHER)
    assert (are_equal(same), are_equal(different)) == (True, False)
    with holding(same, []):
        assert not are_equal(same)
    with holding(different, [("a", "b")]):
        assert are_equal(different)
        with holding(different, []):
            assert not are_equal(different)
        assert are_equal(different)
    assert (are_equal(same), are_equal(different)) == (True, False)


def test_a_scale_for_all_and_scales_for_channels_are_never_equal():
    network = quantized_twice(ONE, np.full(4, 0.5, np.float32))
    with holding(network, [("a", "b")]):
        assert not are_equal(network)
