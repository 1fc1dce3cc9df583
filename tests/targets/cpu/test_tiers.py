"""Every tier that this machine has gives the references' results; each in a process of its own.

And an engine that one of them built computes the same bits with all others.

All other tests run in this machine's best tier, so that it is left out here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.targets.cpu.engines_of_tiers import build_engines, differing_engines

from dryfit_cpu.compiler.tier import ENVIRONMENT_VARIABLE, TIERS, current_tier, host_features, tiers_here

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]

SELECTION = (
    "kernels/test_convolution.py::test_rows_of_every_width_are_covered_by_tiles",
    "kernels/test_convolution.py::test_large_weights_are_summed_in_blocks_of_k_but_not_where_tiles_overlap",
    "kernels/test_convolution.py::test_every_number_of_output_channels_is_covered_by_blocks_and_vectors",
    "kernels/test_winograd.py::test_tiles_cover_images_of_every_extent_and_padding",
    "kernels/test_winograd.py::test_every_activation_may_follow_alone_and_around_a_residual",
    "kernels/test_winograd.py::test_strips_and_threads_change_no_bit",
    "kernels/test_convolution.py::test_the_first_layer_of_a_picture_network_reads_planes",
    "kernels/test_convolution.py::test_an_fp16_result_beyond_the_largest_number_is_infinite",
    "kernels/test_pooling.py::test_a_reduction_over_the_image_is_a_pooling",
    "kernels/test_products.py::test_a_bias_and_an_activation_follow_a_matrix_product_in_one_group",
    "kernels/test_pointwise.py::test_every_activation_is_computed_as_the_reference_does",
    "kernels/test_pointwise.py::test_a_cast_copies_between_layouts",
    "kernels/test_integer_convolution.py",
    "kernels/test_integer_deconvolution.py",
    "kernels/test_integer_depthwise.py",
    "kernels/test_integer_operations.py",
    "kernels/test_integer_pointwise.py",
    "kernels/test_integer_winograd.py::test_tiles_cover_images_of_every_extent_and_padding",
    "kernels/test_integer_winograd.py::test_the_same_kernel_rounds_as_each_device_does",
    "kernels/test_integer_winograd.py::test_sums_of_the_largest_values_of_any_sign_arrive",
    "kernels/test_integer_winograd.py::test_strips_and_threads_change_no_bit",
    "kernels/test_integer_winograd.py::test_blocks_cover_all_tiles_and_few_twice",
    "kernels/test_quantized_operators.py::test_biases_at_ties_are_rounded_as_the_method_says",
    "kernels/test_picking.py::test_a_padding_writes_zeros_around_and_crops",
    "kernels/test_quantization.py",
    "kernels/test_pointwise.py::test_every_unary_function_is_computed_as_the_reference_does",
    "kernels/test_products.py::test_a_deconvolution_of_each_channel_is_computed_as_the_reference_does",
    "kernels/test_reductions.py::test_special_values_are_reduced_as_numpy_does",
    "kernels/test_reductions.py::test_groups_of_channels_are_normalized_together",
    "kernels/test_reductions.py::test_every_local_normalization_is_computed_as_the_reference_does",
    "compiler/test_functions.py",
    "compiler/test_rounding.py",
)

FEW = ("test_convolution", "test_integer_convolution", "test_integer_depthwise", "test_quantization", "test_rounding")
"""Files whose code differs most from tier to tier: in others `make test` runs these alone, `make thorough` all."""

SHARE = "8"
"""Of the tests and examples of each function, every eighth runs in another tier; `make thorough` runs them all."""

INTEGERS_ONLY = frozenset({"avx512", "avx2-vnni"})
"""Tiers that differ from avx512-vnni and avx2, beside them, in how integers are multiplied, and in nothing else."""

SECOND = next((tier for tier in tiers_here()[1:] if tier.name not in INTEGERS_ONLY), None)
"""The next tier of this machine that differs in more. Its kernels are tested in `make test`; in other tiers a quantized
network is built and run, to the same bits, and `make thorough` runs the kernels' tests too."""


def selection_of(tier, *, is_thorough):
    """The tests that a tier has to pass."""
    names = [name for name in SELECTION if is_thorough or any(f"/{few}.py" in name for few in FEW)]
    return [name for name in names if tier.name not in INTEGERS_ONLY or "integer" in name or "quantized_op" in name]


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param(tier, id=tier.name, marks=[] if tier is SECOND else [pytest.mark.nightly])
        for tier in reversed(TIERS)
    ],
)
def test_a_tier_passes_the_tests_of_the_kernels(tier, pytestconfig):
    missing = tier.missing(host_features())
    if missing:
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    if tier is current_tier():
        pytest.skip("all tests run in this tier")
    is_thorough = pytestconfig.getoption("--thorough")
    names = [str(HERE / name) for name in selection_of(tier, is_thorough=is_thorough)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    share = "1" if is_thorough else SHARE
    found = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, ENVIRONMENT_VARIABLE: tier.name, "DRYFIT_TEST_SHARE": share},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-1000:]


OTHERS = [tier for tier in reversed(TIERS) if not tier.missing(host_features()) and tier is not current_tier()]


@pytest.mark.parametrize("network", ["mobilenetv2", pytest.param("resnet50", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("tier", OTHERS, ids=lambda tier: tier.name)
def test_an_engine_of_one_tier_computes_the_same_bits_with_another(tier, network, tmp_path):
    build_engines(tmp_path, network)
    found = subprocess.run(
        [sys.executable, "-m", "tests.targets.cpu.engines_of_tiers", "both", str(tmp_path), network],
        cwd=REPOSITORY,
        env={**os.environ, ENVIRONMENT_VARIABLE: tier.name},
        capture_output=True,
        text=True,
        check=True,
    )
    told = found.stdout.splitlines()
    engines = {f"{network}.{one.name}" for one in (tier, current_tier())}
    assert set(told) == {f"{engine} on {tier.name}: 0 results differ" for engine in engines}
    assert differing_engines(tmp_path) == dict.fromkeys(sorted(engines), 0)
