"""A lint of explicitly quantized networks: where Q/DQ stand against what TensorRT's chapter recommends."""

from dryfit.quantization.lint.catalogue import all_lint_rules, lint_network
from dryfit.quantization.lint.network_view import SEVERITIES, Finding

__all__ = ["SEVERITIES", "Finding", "all_lint_rules", "lint_network"]
