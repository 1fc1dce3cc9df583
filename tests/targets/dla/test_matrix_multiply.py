"""The rules on matrix products that are functions."""

from tests.targets.dla.questions import network_with, one_violation, product, verdict, violated, with_ranges, zeros

from dryfit.network.layers.matrix import MatrixOperation


def test_a_product_with_a_constant_runs_and_one_of_two_computed_operands_does_not():
    assert violated(product()) == []
    found = one_violation(verdict(product(constant=False)))
    assert found.rule == "dla.matrix_multiply.constant"
    assert (found.parameter, found.actual, found.allowed) == (
        "operands",
        "computed and computed",
        "computed and constant",
    )
    assert "convolution" in found.remedy


def test_a_constant_on_the_left_is_refused():
    network, x = network_with((1, 1, 16, 4))
    constant = network.add_constant((1, 1, 8, 16), zeros(1, 1, 8, 16)).get_output(0)
    layer = network.add_matrix_multiply(constant, MatrixOperation.NONE, x, MatrixOperation.NONE)
    assert one_violation(verdict(layer)).actual == "constant and computed"


def test_a_constant_of_several_matrices_is_refused():
    found = one_violation(verdict(product((1, 2, 4, 16), (1, 2, 16, 8))))
    assert (found.rule, found.actual) == ("dla.matrix_multiply.one_matrix", "(1, 2, 16, 8)")
    assert violated(product((1, 2, 4, 16), (1, 1, 16, 8))) == []


def test_a_transposed_constant_has_its_columns_first():
    layer = product((1, 1, 4, 16), (1, 1, 8193, 16), ops=("NONE", "TRANSPOSE"))
    assert "matrix_multiply.columns" in violated(layer)
    assert "matrix_multiply.summed" not in violated(layer)
    assert violated(product((1, 1, 4, 16), (1, 1, 8192, 16), ops=("NONE", "TRANSPOSE"))) == []
    assert violated(product((1, 1, 4, 16), (1, 1, 16), ops=("NONE", "VECTOR"))) == []


def test_the_constant_needs_no_scale_in_int8():
    assert violated(with_ranges(product()), flags=("INT8",)) == []


def test_a_product_of_lower_rank_is_a_warning():
    answer = verdict(product((4, 16), (16, 8)))
    assert answer.supported
    assert [one.rule for one in answer.warnings] == ["dla.matrix_multiply.rank"]
    assert verdict(product()).warnings == ()
