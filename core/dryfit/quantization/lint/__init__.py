"""A lint of explicitly quantized networks: where Q/DQ stand against what TensorRT's chapter recommends."""

from dryfit.quantization.lint.catalogue import all_lint_rules, lint_network
from dryfit.quantization.lint.network_view import SEVERITIES, LintFinding

__all__ = ["SEVERITIES", "LintFinding", "all_lint_rules", "lint_network"]
