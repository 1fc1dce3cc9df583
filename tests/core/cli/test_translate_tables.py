import pytest

from dryfit.cli.translate_tables import print_translation


def report(largest_codes):
    lists = dict.fromkeys(("files", "tensors", "layers", "unequal", "weights", "borders", "notes"), ())
    counts = dict.fromkeys(("int8", "layers", "scales", "tensors"), 0)
    proof = {"samples": 1, "tensors": [], "inside": [], "codes": 9, "different": 2, "largest_codes": largest_codes}
    return {"model": "m.onnx", "to": "implicit", "summary": counts, "proof": proof, **lists}


@pytest.mark.parametrize(
    ("largest_codes", "rounds_all", "is_told"), [(2, False, True), (2, True, False), (1, False, False)]
)
def test_codes_that_differ_by_more_than_one_point_to_the_option(largest_codes, rounds_all, is_told, capsys):
    print_translation(report(largest_codes), rounds_all=rounds_all)
    assert ("--every-rounding keeps them" in capsys.readouterr().out) == is_told
