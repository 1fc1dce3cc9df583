"""The numbers by which kernels and native functions name things to each other."""

from __future__ import annotations

from dryfit.network.data_types import DataType

FP32, FP16 = 0, 1
"""Element types in memory; the size in bytes is `4 >> code`."""

ELEMENT_CODES = {DataType.FLOAT: FP32, DataType.HALF: FP16}

NONE, RELU, CLIP, LEAKY_RELU, SIGMOID, TANH, HARD_SIGMOID = range(7)
"""Activations."""

FIRST, SUM, PROD, MAX, MIN, SUB, DIV, MULTIPLY_ADD = range(8)
"""What a pointwise function does with its operands a, b and c; FIRST gives a, MULTIPLY_ADD gives a * b + c."""

TILES_OUTSIDE, PANELS_OUTSIDE = 0, 1
"""The outer loop of a matrix product."""

TILE_WORDS, PANEL_WORDS = 7, 6
"""Words in a row of its tile table and of its panel table."""

PANEL_CHANNELS = 32
"""Output channels of a packed panel, on every machine."""
