"""What LLVM makes of the register block's inner loop, for each tier: no spills, and little besides products.

A change of the generator, or a new LLVM, that costs registers shows here, without a clock. Code for tiers that this
machine lacks is made too, and not run.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.targets.cpu.inner_loops import InnerLoop, inner_loops

from dryfit_cpu.compiler.tier import ENVIRONMENT_VARIABLE, TIERS, tiers_here

PRINT = "from tests.targets.cpu.cross_compilation import print_assembly; import sys; print_assembly(sys.argv[1:])"

EXPECTED = {
    "avx512": {
        "block_14_2": (56, 96, 0),
        "block_8_2": (32, 60, 0),
        "block_7_1": (28, 52, 0),
        "narrow_block_14_2": (28, 38, 0),
        "short_block_14_2": (28, 38, 0),
        "wide_block_1_1": (16, 23, 0),
    },
    "avx2": {
        "block_6_2": (24, 47, 0),
        "block_3_1": (12, 28, 0),
        "narrow_block_6_2": (12, 33, 0),
        "wide_block_1_1": (16, 23, 0),
    },
    "neon": {"block_8_2": (64, 83, 0), "block_4_1": (32, 47, 0), "narrow_block_8_2": (32, 51, 0)},
    "generic": {
        "block_6_2": (24, 106, 10),
        "block_3_1": (12, 50, 0),
        "narrow_block_6_2": (12, 57, 0),
        "wide_block_1_1": (16, 57, 0),
    },
}
"""Family of tiers -> block -> (products, instructions, stack references) of a turn of its inner loop, two values k of
each pixel, on Arm four. Measured with LLVM 20 and 22. Products are exact: rows x vectors x k. The instructions may be a
tenth more."""

EXPECTED_INTEGER = {
    "avx512-vnni": {"integer_block_14_2": (56, 96, 0), "integer_block_7_1": (28, 52, 0)},
    "avx512": {"integer_block_14_2": (56, 153, 0), "integer_block_7_1": (28, 81, 0)},
    "avx2-vnni": {"integer_block_6_2": (24, 59, 0)},
    "avx2": {"integer_block_6_2": (24, 72, 0), "integer_block_3_1": (12, 41, 0)},
    "neon-matrix": {"integer_block_8_2": (32, 59, 0), "integer_block_4_1": (16, 35, 0)},
    "neon-dot": {"integer_block_8_2": (64, 83, 0), "integer_block_4_1": (32, 47, 0)},
    "neon": {"integer_block_8_2": (128, 155, 0), "integer_block_4_1": (64, 87, 0)},
    "generic": {"integer_block_6_2": (24, 106, 8), "integer_block_3_1": (12, 51, 0)},
}
"""Tier -> block of integers -> (products, instructions, vectors on the stack) of a turn: two words k of each pixel, on
Arm four. A product of `neon` is of four values, two of which make a word; one of `neon-matrix` is two of `neon-dot`."""

EXPECTED_UNSIGNED = {
    "avx512": {"integer_block_14_2": (56, 242, 18), "integer_block_7_1": (28, 109, 0)},
    "avx2": {"integer_block_6_2": (23, 97, 6), "integer_block_3_1": (11, 51, 0)},
}
"""The same of blocks that multiply codes that are never negative: of each product the second of its two instructions
counts. The ones that it multiplies by take a register. With AVX2 the last product is shared with joined words."""

EXPECTED_JOINED = {"integer_block_6_2": (12, 86, 2), "integer_block_3_1": (6, 47, 0)}
"""The same with AVX2, where two words are joined in 16 bits before they are added to the sums."""

EXPECTED_NARROW = {
    "avx512-vnni": {"add_row_6": (32, 76), "add_row_14": (32, 76), "decode_panel_6": (16, 68), "add_row_10": (24, 110)},
    "avx2": {"add_row_6": (32, 92), "add_row_14": (32, 122), "decode_panel_6": (16, 84)},
}
"""Tier -> loop over words of INT4 (6), FP4 (14) or FP8 (10) weights -> (products, instructions) of a turn: 16 vectors
of weights of 4 bits, each a product with its scale and, in a row, one with x; 8 of FP8, which takes one more."""

EXPECTED_WINDOWS = {
    "avx512-vnni": {"byte_sums_64_3x3_by_1": (16, 73, 4), "byte_sums_32_3x3_by_2": (16, 90, 6)},
    "avx512": {"real_sums_32_3x3_by_1": (20, 66, 5)},
    "avx2": {"real_sums_16_3x3_by_1": (20, 74, 4)},
    "neon-matrix": {"byte_sums_16_3x3_by_1": (16, 76, 1)},
    "neon-dot": {"byte_sums_16_3x3_by_1": (16, 76, 1)},
    "neon": {"short_sums_16_3x3_by_1": (40, 109, 3)},
    "generic": {"real_sums_16_3x3_by_1": (40, 238, 46)},
}
"""Tier -> code -> the same of a turn, which is one output of a block of channels, from reading its columns to writing
its bytes. With byte products 12 of them are sums and 4 scale, with products of 16-bit integers 36 are sums. Measured
with LLVM 22."""

EXPECTED_FUNCTIONS = {
    "avx512-vnni": {("vscalefps",): (7, 17), ("vdivps", "vpternlogd"): (9, 23)},
    "avx512": {("vscalefps",): (7, 17), ("vdivps", "vpternlogd"): (9, 23)},
}
"""Tier -> what stands once a vector in the loop of a function, of the exponential and of the hyperbolic tangent ->
(products, instructions) of a vector. Moves between registers count, for which such a processor has no work."""

EXPECTED_COLLECTION = {"avx512-vnni": 8, "avx512": 8, "avx2": 8}
"""Tier -> instructions of a turn of a depthwise deconvolution's innermost loop: one term of an output's sum."""

FAMILIES = {tier.name: tier.name.split("-")[0] for tier in TIERS}

READ = {
    "convolution.convolve": FAMILIES,
    "convolution.collect": EXPECTED_COLLECTION,
    "integer_convolution.convolve": EXPECTED_INTEGER,
    "integer_convolution.convolve_unsigned": EXPECTED_UNSIGNED,
    "integer_depthwise.depthwise": EXPECTED_WINDOWS,
    "narrow_products.multiply": EXPECTED_NARROW,
    "pointwise.pointwise": EXPECTED_FUNCTIONS,
}
"""Native function -> the tiers for which its loops are read."""

SLACK = 1.1

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "reference" / "host-kernels.md"


def read_loops(tier: str, function: str) -> list[InnerLoop]:
    """The inner loops of a native function for a tier."""
    return list(inner_loops(assemblies(tier)[function]))


@functools.cache
def assemblies(tier: str) -> dict[str, str]:
    """The machine code of all functions that are read for a tier, from one process: much of it is compiled once."""
    functions = [name for name, expected in READ.items() if tier in expected]
    environment, command = {**os.environ, ENVIRONMENT_VARIABLE: tier}, ["-c", PRINT, *functions]
    if tier not in {one.name for one in tiers_here()}:
        command = ["-m", "tests.targets.cpu.cross_compilation", "assembly", tier, *functions]
    printed = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    return json.loads(printed.stdout)


def tiers(names: Collection[str]) -> list[ParameterSet]:
    """Names of tiers as parameters; all but the best that this machine has are for `--thorough`."""
    best = next((one.name for one in tiers_here() if one.name in names), "")
    marks = {name: [pytest.mark.nightly] * (name != best) for name in names}
    return [pytest.param(name, marks=marks[name], id=name) for name in names]


@pytest.mark.parametrize("tier", tiers(FAMILIES))
def test_the_inner_loop_of_a_block_is_made_of_products_and_spills_nothing(tier):
    loops = read_loops(tier, "convolution.convolve")
    for block, (products, instructions, stack_references) in EXPECTED[FAMILIES[tier]].items():
        found = [loop for loop in loops if loop.function == block]
        assert found, f"{block} has no inner loop"
        # The first is the one of whole turns; the other does what is left of a segment.
        loop = found[0]
        assert loop.products == products, block
        assert len(loop.instructions) <= SLACK * instructions, f"{block}: {loop.instructions}"
        assert loop.stack_references <= stack_references, f"{block} spills: {loop.instructions}"


@pytest.mark.parametrize("tier", tiers(EXPECTED_UNSIGNED))
def test_the_inner_loop_of_a_block_of_codes_that_are_never_negative_is_made_of_products(tier):
    assert_integer_loops(tier, "convolve_unsigned", EXPECTED_UNSIGNED[tier])


@pytest.mark.parametrize("tier", tiers(EXPECTED_INTEGER))
def test_the_inner_loop_of_a_block_of_integers_is_made_of_products(tier):
    assert_integer_loops(tier, "convolve", EXPECTED_INTEGER[tier])


@pytest.mark.parametrize("tier", tiers(["avx2"]))
def test_the_inner_loop_of_joined_words_is_made_of_products(tier):
    assert_integer_loops(tier, "convolve_unsigned", EXPECTED_JOINED, only="vpaddw")


def assert_integer_loops(tier, function, expected, only=""):
    loops = [
        loop
        for loop in read_loops(tier, f"integer_convolution.{function}")
        if not only or any(name == only for name, _ in loop.instructions)
    ]
    for block, (products, instructions, most_spills) in expected.items():
        # What packs belongs to an ending, of which LLVM may lay out parts so that a jump leads back.
        found = [one for one in loops if one.function == block]
        sums = [one for one in found if not any(name.startswith("vpack") for name, _ in one.instructions)]
        loop = max(sums, key=lambda one: one.products)
        assert loop.products == products, block
        assert len(loop.instructions) <= SLACK * instructions, f"{block}: {loop.instructions}"
        assert loop.vectors_on_stack <= most_spills, f"{block} spills: {loop.instructions}"
        if tier == "avx512-vnni":
            flips = [operands for name, operands in loop.instructions if name == "vpxord" and "{1to16}" in operands]
            assert len(flips) == products // 2, f"{block} flips bits by more than its loads: {loop.instructions}"


@pytest.mark.parametrize("kind", ["INT8", "FP32"])
def test_the_page_shows_the_largest_block_of_each_tier(kind):
    table = PAGE.read_text().split(f"\n{kind}:\n")[1].strip().split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    expected = {"INT8": EXPECTED_INTEGER, "FP32": EXPECTED}[kind]
    assert {name.split("`")[1] for name, *_ in rows} == set(expected)
    for name, counts, per_product, per_instruction, ideal, share in rows:
        products, instructions, _ = next(iter(expected[name.split("`")[1]].values()))
        assert counts == f"{products} of {instructions}"
        found = products * int(per_product) / instructions
        assert (per_instruction, share) == (f"{found:.1f}", f"{found / int(ideal):.0%}".replace("%", " %"))


@pytest.mark.parametrize("tier", tiers(EXPECTED_WINDOWS))
def test_a_turn_of_a_sliding_window_reads_a_column_once_and_keeps_its_sums_in_registers(tier):
    loops = read_loops(tier, "integer_depthwise.depthwise")
    for code, (products, instructions, stack_references) in EXPECTED_WINDOWS[tier].items():
        # Turns that end in another form go through the same loop, by longer ways.
        loop = min((loop for loop in loops if loop.function == code), key=lambda loop: len(loop.instructions))
        assert loop.products == products, code
        assert len(loop.instructions) <= SLACK * instructions, f"{code}: {loop.instructions}"
        assert loop.stack_references <= stack_references, f"{code} spills: {loop.instructions}"


@pytest.mark.parametrize("tier", tiers(EXPECTED_NARROW))
def test_narrow_weights_are_decoded_without_a_detour_through_memory(tier):
    loops = read_loops(tier, "narrow_products.multiply")
    for name, (products, instructions) in EXPECTED_NARROW[tier].items():
        loop = max((one for one in loops if one.function == name), key=lambda one: one.products)
        assert loop.products == products, name
        assert len(loop.instructions) <= SLACK * instructions, f"{name}: {loop.instructions}"
        assert loop.stack_references == 0, f"{name} spills: {loop.instructions}"


@pytest.mark.parametrize("tier", tiers(EXPECTED_FUNCTIONS))
def test_an_exponential_and_a_hyperbolic_tangent_take_few_instructions(tier):
    loops = read_loops(tier, "pointwise.pointwise")
    for marks, (products, instructions) in EXPECTED_FUNCTIONS[tier].items():
        counted = [(min([name for name, _ in loop.instructions].count(mark) for mark in marks), loop) for loop in loops]
        # Of a run's loops the unrolled one; operations of two operands have marks too.
        vectors, loop = max((one for one in counted if "apply_to_run" in one[1].function), key=lambda one: one[0])
        assert vectors, marks
        assert loop.products == vectors * products, marks
        assert len(loop.instructions) <= SLACK * vectors * instructions, f"{marks}: {loop.instructions}"
        assert loop.stack_references == 0, f"{marks} spills: {loop.instructions}"


@pytest.mark.parametrize("tier", tiers(EXPECTED_COLLECTION))
def test_a_term_of_a_deconvolution_is_a_product_and_a_sum_and_asks_for_no_border(tier):
    loops = [loop for loop in read_loops(tier, "convolution.collect") if loop.products == 1]
    loop = min(loops, key=lambda loop: len(loop.instructions))
    assert len(loop.instructions) <= SLACK * EXPECTED_COLLECTION[tier], loop.instructions
    assert loop.stack_references == 0, loop.instructions


# The reader itself ----------------------------------------------------------------------------------------------------

NESTED = """
block_2_1:
	.cfi_startproc
	movq	%rdi, %rax
.LBB0_1:
	movq	8(%rsp), %rcx
.LBB0_2:                                # inner loop
	vbroadcastss	(%rax), %zmm2
	vfmadd231ps	%zmm0, %zmm2, %zmm3     # comment (%rsp)
	vfmadd231ps	64(%rsp), %zmm2, %zmm4
	addq	$4, %rax
	decq	%rcx
	jne	.LBB0_2
	decq	%rdx
	jne	.LBB0_1
.LBB0_3:
	mulps	%xmm0, %xmm1
	jne	.LBB0_3
	retq
other:
	jmp	.LBB1_2
.LBB1_2:
	vpdpbusd	(%rax), %ymm0, %ymm1
	jne	.LBB1_2
"""


ARM = """
integer_block_2_1:
.LBB3_8:
	ldr	q26, [x10, x29]
.LBB3_9:                                // =>This Inner Loop Header: Depth=2
	prfm	pldl2keep, [x3, #64]
	ldp	q25, q24, [x19]
	sdot	v23.4s, v25.16b, v26.4b[0]
	smlal2	v22.4s, v24.8h, v26.h[1]
	str	q2, [sp, #48]
	str	x2, [sp, #64]
	b.ne	.LBB3_9
	cbnz	x9, .LBB3_8
	ret
"""


def test_loops_of_arm_are_read_too():
    (loop,) = inner_loops(ARM)
    assert (loop.function, len(loop.instructions), loop.products) == ("integer_block_2_1", 7, 2)
    assert (loop.stack_references, loop.vectors_on_stack) == (2, 1)


def test_only_innermost_loops_are_read_with_what_stands_in_them():
    loops = list(inner_loops(NESTED))
    assert [(loop.function, len(loop.instructions), loop.products) for loop in loops] == [
        ("block_2_1", 6, 2),
        ("block_2_1", 2, 1),
        ("other", 2, 1),
    ]
    assert [loop.stack_references for loop in loops] == [1, 0, 0]
    assert loops[0].share == pytest.approx(1 / 3)
