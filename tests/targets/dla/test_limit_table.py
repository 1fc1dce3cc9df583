"""The limit table as a whole."""

import subprocess
import sys

import numpy as np
from tests.targets.dla.questions import (
    network_with,
    one_violation,
    verdict,
)

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.layers.ranking import TopKOperation
from dryfit.plugins import registry
from dryfit.target.checks import FunctionCheck

TABLE = registry.target("DLA").limits


# A new kind may do without a reason of its own: the document lists no support for it. These kinds have theirs.
WITH_REASONS = """
constant cumulative dequantize dynamic_quantize einsum fill gather grid_sample histogram nms non_zero normalization
one_hot padding plugin quantize quantized_operator ragged_softmax reverse_sequence scatter select shape squeeze
top_k unsqueeze
"""


def test_every_layer_kind_is_supported_or_is_refused_with_the_reason_of_the_table():
    refused = set(LAYER_KINDS) - TABLE.supported_kinds
    reasons = TABLE.unsupported.keys() | TABLE.unmodelled.keys()
    assert reasons >= set(WITH_REASONS.split())
    assert all(TABLE.lacks(kind) for kind in refused)
    assert not reasons & TABLE.supported_kinds
    assert all(reason for reason in (*TABLE.unsupported.values(), *TABLE.unmodelled.values()))


def test_a_kind_that_the_dla_never_runs_is_refused_with_the_reason():
    network, x = network_with()
    found = one_violation(verdict(network.add_topk(x, TopKOperation.MAX, 3, 2)))
    assert found.rule == "dla.layer.kind"
    assert (found.actual, found.parameter) == ("top_k", "layer kind")
    assert found.message == "top_k layers are not supported on DLA: TensorRT does not offer this layer on the DLA"
    assert "convolution" in found.allowed


def test_no_kind_is_left_without_rules():
    assert not TABLE.unmodelled
    assert {kind for rule in TABLE.rules for kind in rule.kinds} == TABLE.supported_kinds


def test_a_constant_is_no_layer_of_the_dla():
    network, _ = network_with()
    found = one_violation(verdict(network.add_constant((1,), np.zeros(1, np.float32))))
    assert "an operand of the layer that reads it" in found.message


def test_every_function_that_is_a_check_says_what_it_looks_at():
    silent = [one.id for one in TABLE.rules if isinstance(one.check, FunctionCheck) and not one.check.function.__doc__]
    assert not silent


def test_the_table_is_read_without_numpy():
    code = (
        "import sys; from dryfit.plugins import registry; "
        "[(t.limits, t.memory_pools, t.arithmetic, t.input_formats, t.output_formats)"
        " for t in registry.targets().values()]; "
        "print(sorted({'numpy', 'numba', 'llvmlite', 'onnx'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
