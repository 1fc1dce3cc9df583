"""The rules on resizes that are functions, and how scales are read."""

import pytest
from tests.targets.dla.questions import noted, one_violation, resize, verdict, violated, with_ranges

XAVIER_8_2 = {"platform": "xavier", "software": "8.2"}


def test_extents_instead_of_scales_are_judged_by_their_ratio():
    assert violated(resize(None, extents=(1, 16, 16, 24))) == []
    found = one_violation(verdict(resize(None, extents=(1, 16, 12, 16))))
    assert found.rule == "dla.resize.nearest_scales"
    assert (found.parameter, found.actual) == ("scale of H and W", "(1.5, 2)")
    assert found.allowed == "each a whole number from 1 to 32"


def test_a_resize_that_shrinks_is_refused():
    assert violated(resize((1, 1, 0.5, 0.5))) == ["resize.nearest_scales"]
    assert violated(resize((1, 1, 0.5, 0.5), "LINEAR")) == ["resize.linear_scales"]


def test_a_resize_of_unknown_size_has_no_scales():
    layer = resize(None, shape=(1, 16, -1, 8), extents=(1, 16, 16, 16))
    assert violated(layer) == ["dynamic_dimensions", "resize.scales"]


def test_linear_scales_end_at_four_and_nearest_ones_at_thirty_two():
    assert violated(resize((1, 1, 4, 4), "LINEAR")) == []
    assert violated(resize((1, 1, 5, 4), "LINEAR")) == ["resize.linear_scales"]
    assert violated(resize((1, 1, 5, 4))) == []


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        ("ASYMMETRIC FORMULA FLOOR", True),
        ("HALF_PIXEL FORMULA HALF_DOWN", True),
        ("HALF_PIXEL FORMULA HALF_UP", True),
        ("HALF_PIXEL FORMULA FLOOR", False),
        ("ASYMMETRIC FORMULA HALF_DOWN", False),
        ("ASYMMETRIC UPPER FLOOR", False),
        ("ALIGN_CORNERS FORMULA FLOOR", False),
    ],
)
def test_nearest_sampling_has_three_forms(sampling, allowed):
    layer = resize(sampling=sampling)
    assert violated(layer) == ([] if allowed else ["resize.nearest_sampling"])
    assert all(one.actual == sampling for one in verdict(layer).violations)


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        ("HALF_PIXEL FORMULA CEIL", True),
        ("HALF_PIXEL UPPER FLOOR", True),
        ("ALIGN_CORNERS FORMULA FLOOR", False),
        ("ASYMMETRIC FORMULA FLOOR", False),
    ],
)
def test_linear_sampling_has_two_forms_and_no_rounding(sampling, allowed):
    layer = resize(mode="LINEAR", sampling=sampling)
    assert violated(layer) == ([] if allowed else ["resize.linear_sampling"])
    for one in verdict(layer).violations:
        assert one.actual == " ".join(sampling.split()[:2])
        assert one.allowed == "HALF_PIXEL FORMULA or HALF_PIXEL UPPER"


def test_8_2_has_one_form_of_sampling_and_no_linear_mode():
    assert violated(resize(), **XAVIER_8_2) == []
    assert violated(resize(sampling="HALF_PIXEL FORMULA HALF_UP"), **XAVIER_8_2) == ["resize.sampling_8_3"]
    assert violated(resize(mode="LINEAR"), **XAVIER_8_2) == ["resize.mode_8_3"]
    assert violated(resize(mode="LINEAR"), platform="xavier", software="8.4") == []


def test_a_size_is_given_once():
    layer = resize((1, 1, 2, 2), extents=(1, 16, 16, 16))
    found = one_violation(verdict(layer))
    assert (found.rule, found.actual) == ("dla.resize.one_size", "extents (1, 16, 16, 16) and scales (1, 1, 2, 2)")
    layer.shape = ()
    assert violated(layer) == []


def test_a_linear_resize_to_a_smaller_range_is_promoted():
    int8 = {"flags": ("INT8",)}
    larger, equal = (with_ranges(resize(mode="LINEAR"), x=bound) for bound in (2.0, 1.0))
    assert verdict(larger, **int8).supported
    assert noted(larger, **int8) == ["resize.int8_promotion"]
    assert noted(equal, **int8) == []
    assert noted(with_ranges(resize(), x=2.0), **int8) == []
    assert noted(larger) == []
