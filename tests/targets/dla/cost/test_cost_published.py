"""The model against the published figures: those that it is fitted on, and those that it has never seen."""

from __future__ import annotations

import itertools

import attrs
import pytest
from docs.pages.dla_cost.fit import fit, mean_error
from docs.pages.dla_cost.networks import (
    int8_specs,
    layers_that_can_be_sparse,
    resnet_34_backbone,
    resnet_50,
    ssd_resnet_34,
)
from docs.pages.dla_cost.published import (
    BOARD,
    LAYERS,
    LAYERS_CLOCK_HZ,
    ROWS,
    SOFTWARE,
    estimated_images_per_second,
    log_errors,
    published_steps,
)

from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec
from dryfit.target.cost import CostQuestion, TransferQuestion
from dryfit_dla.cost.estimate import estimate_cost, estimate_transfer
from dryfit_dla.cost.formula import step_cost
from dryfit_dla.cost.parameters import FITTED, PARAMETERS
from dryfit_dla.cost.steps import steps_of
from dryfit_dla.platforms import PLATFORMS

PARAMETERS_IN_USE = PARAMETERS[BOARD.name]
FITTED_ROWS = [row for row in ROWS if row.is_fitted]
CHECKS = [row for row in ROWS if not row.is_fitted]


@pytest.mark.parametrize(
    ("draw", "gigamacs"), [(lambda: resnet_50(batch=1), 4.09), (ssd_resnet_34, 216.4), (resnet_34_backbone, 59.2)]
)
def test_the_networks_have_the_published_multiply_accumulates(draw, gigamacs):
    network = draw()
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    total = sum(layer.multiply_accumulates(specs) for layer in network.layers)
    assert total / 1e9 == pytest.approx(gigamacs, rel=2e-3)


def test_the_heads_of_ssd_have_the_maps_of_the_published_network():
    assert [tensor.shape[-1] for tensor in ssd_resnet_34().outputs] == [50, 25, 13, 7, 3, 3]


def test_each_convolution_and_each_pooling_of_a_resnet_is_one_step():
    row = ROWS[0]
    kinds = [layer.kind for layer in row.draw().layers]
    assert len(published_steps(row)) == kinds.count("convolution") + kinds.count("pooling")


def test_the_parameters_in_use_are_those_that_the_fit_finds():
    found = fit(FITTED_ROWS, PARAMETERS_IN_USE)
    for name in FITTED:
        assert getattr(PARAMETERS_IN_USE, name) == pytest.approx(getattr(found, name), rel=1e-3), name


@pytest.mark.parametrize("index", range(4))
def test_no_fitted_number_can_be_moved_without_loss(index):
    def loss(parameters):
        errors = [mean_error([row], parameters) ** 2 for row in FITTED_ROWS]
        return sum(errors)

    name = FITTED[index]
    for factor in (0.8, 1.25):
        moved = attrs.evolve(PARAMETERS_IN_USE, **{name: getattr(PARAMETERS_IN_USE, name) * factor})
        assert loss(moved) > loss(PARAMETERS_IN_USE)


@pytest.mark.parametrize("row", FITTED_ROWS, ids=lambda row: row.title)
def test_a_row_that_was_fitted_is_met_within_two_per_cent(row):
    assert mean_error([row], PARAMETERS_IN_USE) < 0.02


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: row.title)
def test_a_row_that_was_not_fitted_is_met_within_ten_per_cent_if_dense_and_three_if_sparse(row):
    assert mean_error([row], PARAMETERS_IN_USE) < (0.03 if row.is_sparse else 0.10)


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_sparse], ids=lambda row: row.title)
def test_no_figure_of_a_sparse_row_is_off_by_more_than_six_per_cent(row):
    assert max(map(abs, log_errors([row], PARAMETERS_IN_USE))) < 0.06


def test_dense_rows_do_not_depend_on_the_gains():
    gains = attrs.evolve(PARAMETERS_IN_USE, sparse_gain=1.0, refetching_sparse_gain=1.0)
    dense = [row for row in ROWS if not row.is_sparse]
    assert log_errors(dense, gains) == log_errors(dense, PARAMETERS_IN_USE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_power_modes_are_in_the_published_order(row):
    estimates = {mode: estimated_images_per_second(row, mode, PARAMETERS_IN_USE) for mode in row.images_per_second}
    by_estimate, by_publication = (
        sorted(one, key=lambda mode: one[mode]) for one in (estimates, row.images_per_second)
    )
    assert by_estimate == by_publication


def test_ssd_without_itself_in_the_fit_is_still_met_within_ten_per_cent():
    row = ROWS[1]
    others = [one for one in FITTED_ROWS if one is not row]
    assert mean_error([row], fit(others, PARAMETERS_IN_USE)) < 0.10


def test_the_checks_were_not_fitted():
    assert [row.title for row in CHECKS] == [
        "ResNet-34 backbone, 1280x768",
        "ResNet-34 backbone, 1280x768, 2:4 sparse",
        "SSD-MobileNetV1, 300x300",
    ]


def test_convolutions_of_64_channels_have_to_gain_for_the_published_gain_of_the_backbone():
    dense, sparse = CHECKS[:2]
    network = dense.draw()
    wide = {layer.name for layer in network.layers if layer.kind == "convolution" and layer.inputs[0].shape[1] > 64}
    layers, specs = network.layers, int8_specs(network)
    precisions = {layer.name: DataType.INT8 for layer in layers}
    twice_as_fast = attrs.evolve(PARAMETERS_IN_USE, refetching_sparse_gain=PARAMETERS_IN_USE.sparse_gain)
    for mode in BOARD.power_modes:
        times = []
        for chosen in ((), wide):
            question = CostQuestion(layers, specs, BOARD, precisions=precisions, sparse_layers=frozenset(chosen))
            steps = steps_of(question, twice_as_fast)
            times.append(sum(step_cost(step, twice_as_fast, mode).microseconds for step in steps))
        published = sparse.images_per_second[mode.name] / dense.images_per_second[mode.name]
        assert times[0] / times[1] < published


@pytest.mark.parametrize(("title", "index", "milliseconds"), LAYERS, ids=[one[0] for one in LAYERS])
def test_a_published_time_of_a_single_layer_is_met_within_a_factor_of_two(title, index, milliseconds):
    mode = attrs.evolve(BOARD.power_modes[0], clock_hz=LAYERS_CLOCK_HZ)
    found = step_cost(published_steps(CHECKS[0])[index], PARAMETERS_IN_USE, mode).microseconds / 1000
    assert 0.5 < found / milliseconds < 2, title


def test_the_single_layers_are_the_ones_that_were_published():
    steps = [published_steps(CHECKS[0])[index] for _, index, _ in LAYERS]
    shapes = [(one.inputs[0].channels, one.outputs[0].channels, one.outputs[0].positions) for one in steps]
    assert shapes == [
        *((3, 64, 384 * 640), (64, 64, 192 * 320), (64, 64, 192 * 320)),
        *((64, 64, 192 * 320), (64, 128, 96 * 160)),
    ]
    assert [len(one.inputs) for one in steps] == [1, 1, 1, 2, 1]


def test_images_heads_and_narrow_layers_cannot_be_sparse():
    network = ssd_resnet_34()
    chosen = layers_that_can_be_sparse(network, BOARD, SOFTWARE)
    for layer in network.layers:
        if layer.kind == "convolution":
            is_wide = layer.inputs[0].shape[1] >= 64 and layer.num_output_maps % 64 in (0, 1, 2, 4, 8, 16, 32)
            assert (layer.name in chosen) == is_wide


def test_more_clock_is_never_slower():
    speeds = [
        [estimated_images_per_second(row, mode.name, PARAMETERS_IN_USE) for mode in BOARD.power_modes] for row in ROWS
    ]
    assert all(earlier > later for row in speeds for earlier, later in itertools.pairwise(row))


def test_the_one_published_time_in_fp16_comes_back():
    network = resnet_50(batch=1)
    specs = {tensor.name: TensorSpec(tensor.shape, DataType.HALF) for tensor in network.tensors}
    precisions = {layer.name: DataType.HALF for layer in network.layers}
    found = estimate_cost(CostQuestion(network.layers, specs, BOARD, precisions=precisions))
    assert found.microseconds / 1000 == pytest.approx(17.73, rel=0.02)


@pytest.mark.parametrize(("board", "milliseconds"), [("orin-nx-16", 1.5), ("agx-xavier", 1.5)])
def test_a_tensor_there_and_one_back_take_the_published_round_trip(board, milliseconds):
    platform = next(one for one in PLATFORMS if one.name == board)
    found = estimate_transfer(TransferQuestion(4096, platform))
    assert 2 * found.microseconds / 1000 == pytest.approx(milliseconds)


def test_a_board_without_a_dla_has_work_and_no_time():
    network = resnet_34_backbone()
    nano = next(one for one in PLATFORMS if not one.cores)
    found = estimate_cost(CostQuestion(network.layers, int8_specs(network), nano))
    assert found.macs == pytest.approx(59.2e9, rel=2e-3)
    assert (found.microseconds, found.steps) == (None, ())


def test_orin_nx_is_as_quick_as_agx_orin_at_15_watts():
    row = ROWS[0]
    orin_nx = next(one for one in PLATFORMS if one.name == "orin-nx-16")
    times = [
        sum(step_cost(step, PARAMETERS[board.name], mode).microseconds for step in published_steps(row))
        for board, mode in ((orin_nx, orin_nx.power_mode("MAXN")), (BOARD, BOARD.power_mode("15W")))
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-3)
