"""The answer of `dryfit.translate` as text."""

import pytest

from dryfit.answers.translation import TranslateAnswer
from dryfit.onnx.translation.agreement import Agreement, TensorAgreement


def answer(largest_codes: int, *, rounds_all: bool) -> TranslateAnswer:
    found = TensorAgreement("x", 0.5, 0.5, is_output=True, elements=9, different=2, largest_codes=largest_codes)
    return TranslateAnswer(
        model="m.onnx",
        to="implicit",
        device="GPU",
        **dict.fromkeys(("files", "tensors", "layers", "unequal", "weights", "borders", "overlays", "notes"), ()),
        proof=Agreement(1, [found], []),
        keeps_every_rounding=rounds_all,
    )


@pytest.mark.parametrize(
    ("largest_codes", "rounds_all", "is_told"), [(2, False, True), (2, True, False), (1, False, False)]
)
def test_codes_that_differ_by_more_than_one_point_to_the_option(largest_codes, rounds_all, is_told):
    found = answer(largest_codes, rounds_all=rounds_all)
    assert ("--every-rounding keeps them" in str(found)) == is_told
    assert (found.summary.codes, found.summary.different) == (largest_codes, 2)
