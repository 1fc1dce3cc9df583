"""The ways through a product or a depthwise convolution: the same bits by each, and which is taken where."""

from __future__ import annotations

import numpy as np
import pytest

import dryfit
from dryfit.engine import resolved_operation
from dryfit_cpu import tactics
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.tactics import PANELS, PANELS_BY_BLOCKS, PLANES, ROWS, TILES, cut_runs, plane_tactics, product_tactics


def convolution(inputs, outputs, extent, window, groups=1):
    generator, network = np.random.default_rng(0), dryfit.Network("layer")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, inputs, extent, extent))
    weights = generator.standard_normal((outputs, inputs // groups, window, window)).astype(np.float32)
    layer = network.add_convolution_nd(x, outputs, (window, window), weights)
    layer.padding_nd = (window // 2, window // 2)
    layer.num_groups = groups
    network.mark_output(network.add_activation(layer.get_output(0), dryfit.ActivationType.RELU).get_output(0))
    return network


@pytest.mark.parametrize(
    ("network", "names"),
    [
        (convolution(512, 64, 12, 1), {TILES, PANELS, PANELS_BY_BLOCKS}),
        (convolution(64, 48, 12, 3), {TILES, PANELS, PANELS_BY_BLOCKS}),
        (convolution(40, 40, 9, 3, groups=40), {ROWS, PLANES}),
        (convolution(40, 40, 9, 7, groups=40), {ROWS, PLANES}),
    ],
    ids=["1x1", "3x3", "depthwise", "depthwise 7x7"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_all_tactics_give_the_same_bits(network, names, threads, monkeypatch):
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    for kernel in ("cpu.winograd_2", "cpu.winograd_4"):
        config.forbid_kernels(kernel)
    engine = dryfit.Builder().build_engine(network, config)
    image = np.random.default_rng(1).standard_normal(network.inputs[0].shape).astype(np.float32)
    (operation,) = resolved_operation.resolve_operations(engine.plan)
    specs = {tensor.name: tensor.spec for tensor in engine.plan.network.tensors}
    assert set(operation.kernel.tactics(operation.group, specs).names) == names
    results = []
    for name in sorted(names):
        monkeypatch.setattr(resolved_operation, "chosen_tactic", lambda *_, name=name: name)
        (result,) = engine.create_execution_context(num_threads=threads).run({"x": image}).values()
        results.append(result)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_small_weights_stay_in_the_cache_while_tiles_go_by_and_large_ones_do_not():
    assert product_tactics(100_000, 64, 128, has_blocks=False).names == [TILES, PANELS]
    assert product_tactics(784, 2048, 512, has_blocks=False).names == [PANELS, TILES]
    assert product_tactics(784, 2048, 512, has_blocks=True).names == [PANELS, TILES, PANELS_BY_BLOCKS]


def test_inputs_that_stay_in_the_cache_are_read_again_and_not_the_weights():
    assert product_tactics(32, 128, 128, has_blocks=False).names == [PANELS, TILES]
    assert not tactics.goes_by_tiles(tiles=6, depth=128, weight_bytes=4 * 128 * 128)
    assert tactics.goes_by_tiles(tiles=100_000, depth=128, weight_bytes=4 * 128 * 128)


def test_one_tile_or_one_panel_leaves_no_choice():
    assert product_tactics(1, 2048, 1000, has_blocks=True).names == ()
    assert product_tactics(784, 64, current_tier().block_channels, has_blocks=True).names == ()
    assert plane_tactics((1, 64, 1, 100), 16).names == ()


def test_large_images_go_by_row_by_row():
    assert plane_tactics((1, 32, 14, 14), 16).names == [PLANES, ROWS]
    assert plane_tactics((1, 32, 1000, 1000), 16).names == [ROWS, PLANES]


@pytest.mark.parametrize(
    ("length", "pieces", "piece"), [(960, 4, 240), (1536, 6, 256), (257, 1, 257), (300, 2, 150), (512, 2, 256)]
)
def test_runs_are_cut_into_equal_pieces(length, pieces, piece):
    offsets, words = cut_runs([0, 10_000], length)
    assert (len(offsets), words) == (2 * pieces, piece)
    assert offsets[:pieces] == [4 * piece * index for index in range(pieces)]
    assert offsets[pieces] == 10_000


def test_only_families_with_a_source_need_no_measurement(monkeypatch):
    assert all(family.source for family in tactics.FAMILIES.values())
    tactics.family.cache_clear()
    monkeypatch.setattr(tactics, "FAMILIES", {})
    try:
        guess = product_tactics(784, 64, 128, has_blocks=False)
    finally:
        tactics.family.cache_clear()
    assert not guess.are_ranked
