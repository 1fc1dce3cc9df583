"""Bilinear resizing of codes, by hand and against real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.quantization.methods.operator_calls import call_of_layer, operand, random_codes

from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.quantization.methods.definitions import resized
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate

AWAY, UP = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP
KINDS = (
    ResizeCoordinateTransformation.ASYMMETRIC,
    ResizeCoordinateTransformation.ALIGN_CORNERS,
    ResizeCoordinateTransformation.HALF_PIXEL,
)
DEFINITIONS = {
    resized.resized_by_whole_places: AWAY,
    resized.resized_by_whole_weights: UP,
    resized.resized_in_real_numbers: None,
    resized.resized_by_products_of_weights: None,
    resized.resized_and_cut_off: None,
}


def result(definition, codes, extents, kind):
    """The codes of a resize."""
    record = None
    if DEFINITIONS[definition]:
        record = Requantization(
            scale_rule=ScaleRule.FLOAT, encoding=Encoding.Q31, steps=Steps.TWO_STEP, rounding=DEFINITIONS[definition]
        )
    rule = MethodRule(
        operator="resize_bilinear",
        definition=definition,
        requantization=record,
        formula="",
        fidelity="inferred",
        source="",
    )
    return definition(call_of_layer(layer_of(codes, extents, kind), operand(codes, 0.1, 3), scale=0.1), rule)


def layer_of(codes, extents, kind):
    """A bilinear resize to these extents."""
    return Resize(
        shape=(*codes.shape[:2], *extents), resize_mode=InterpolationMode.LINEAR, coordinate_transformation=kind
    )


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resize_to_the_same_extents_changes_nothing(definition, kind):
    codes = random_codes((2, 3, 5, 4)) if definition in list(DEFINITIONS)[:2] else random_codes((2, 3, 5, 4)) & 127
    np.testing.assert_array_equal(result(definition, codes, (5, 4), kind), codes)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_half_pixels_blend_quarters(definition):
    found = result(definition, np.int8([[[[0, 100]]]]), (1, 4), ResizeCoordinateTransformation.HALF_PIXEL)
    assert found.ravel().tolist() == [0, 25, 75, 100]


def test_negative_halves_part_the_methods():
    """-1/2 away from zero, up, and without its fraction."""
    kind, codes = ResizeCoordinateTransformation.ASYMMETRIC, np.int8([[[[-1, 0]]]])
    found = [result(definition, codes, (1, 4), kind).ravel()[1] for definition in DEFINITIONS]
    assert found == [-1, 0, 0, 0, 0]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("extents", [(9, 3), (2, 11)])
def test_codes_are_next_to_the_real_interpolation(definition, kind, extents):
    codes = random_codes((1, 2, 4, 6)) & 127
    exact = evaluate(layer_of(codes, extents, kind), [codes.astype(np.float32)])[0]
    distance = result(definition, codes, extents, kind) - exact
    # Places with 10 bits behind the point: an index more, an error of 1/2048 of a cell more, in both axes.
    allowed = 0.5 + 127 * 11 / 1024 if definition is resized.resized_by_whole_places else 0.63
    allowed = 1.001 if definition is resized.resized_and_cut_off else allowed
    assert np.abs(distance).max() < allowed
