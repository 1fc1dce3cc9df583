"""The page of quantize methods: which method has which operator, and how it computes it, from the rules themselves."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.plugins import registry
from dryfit.plugins.discovery import QUANTIZE_METHODS, owner_of
from dryfit.plugins.quantize_methods import quantize_methods
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.quantization.methods.operators import OPERATORS

_HEAD = """# Quantize methods

Written by `make docs` from the rules of the methods.

Libraries and devices agree on what a quantized network means in real numbers, and differ in the last code: in how they
hold a multiplier, how often they round and where ties go. A *quantize method* is the arithmetic of one of them, to the
last code. `quantize_method` on a layer or a network, or `--quantize-method` on the command line, chooses one; `dryfit
compare MODEL --methods A,B` shows where two part. Everything here runs on this machine's processor and simulates
nothing else of the library or device.

A rule is *confirmed* where its results were compared with those of the library itself, as many as its source says;
*documented* where a document of the device's maker states it; *inferred* where it follows from what is known of its
parts. Small files of the libraries' own results lie in `tests/golden/quantize_methods`, and every rule that is
confirmed is held to them, bit for bit, and to the live libraries where these are installed (`tests/oracles`).
"""

_NOTATION = """
## Notation

| word | meaning |
|---|---|
| `x`, `w`, `y`, `a`, `b` | codes of the input, the weights, the output, the two operands of a sum |
| `sx`, `zx` and so on | their scale, FP32, and zero point: a code stands for `(x - zx) * sx` |
| `sum` | INT32: the products `(x - zx) * (w - zw)` of a weighted operator, and its INT32 bias |
| `f32(..)`, `f64(..)` | one rounding to that type |
| `rte`, `raz`, `rup` | rounding to whole numbers: ties to even, away from zero, up |
| `clamp` | into the codes of the output's type, or of a fused activation's limits |
| `qmul(m)` | `(M, S)`: m as an INT32 mantissa M of 31 bits and a power of two, `m = M * 2**(S - 31)` |
| `srdhm(a, b)` | `a * b / 2**31`, `rup`, saturated: the first of two steps |
| `rdbp(v, n)` | `v / 2**n`, `raz`; `rrs(v, n)`: the same, `rup`: the second step |

A note that compares frameworks names the rules of convolutions D2 (FP64 multiplier, two steps), F2 (FP32 multiplier,
two steps) and D1 (FP64 multiplier, one step). Its F2 stands for two: `f64(f32(sx * sw)) / f64(sy)`, which TensorFlow
Lite has for UINT8, and `f32(f32(sx * sw) / sy)`, which Caffe2 has. They differ in some hundred of 76,800 results at
ties.

INT8 and UINT8 codes with one scale for a tensor mean the same numbers where codes and zero point differ by 128. Not all
methods have both: a library has the types that its kernels have. For Caffe2, which has UINT8 only, this is how INT8 is
computed; those rules are inferred.
"""


def quantize_methods_page() -> str:
    """The page, in Markdown. Methods of other installed packages are not on it."""
    entries = {entry.name: owner_of(entry) for entry in registry.entries(QUANTIZE_METHODS)}
    methods = [method for name, method in quantize_methods().items() if not entries[name].is_foreign]
    return (
        _HEAD + _methods(methods) + _matrix(methods) + _NOTATION + "".join(_operator(one, methods) for one in OPERATORS)
    )


def _methods(methods: Sequence[QuantizeMethod]) -> str:
    rows = [f"| `{one.name}` | {one.title} | {one.library or 'none: a device'} | {one.source} |\n" for one in methods]
    return "\n## Methods\n\n| method | arithmetic | verified against | source |\n|---|---|---|---|\n" + "".join(rows)


def _matrix(methods: Sequence[QuantizeMethod]) -> str:
    head = "| operator | " + " | ".join(f"`{one.name}`" for one in methods) + " |\n"
    line = "|---|" + "---|" * len(methods) + "\n"
    rows = [f"| [{name}](#{name}) | " + " | ".join(_cell(name, one) for one in methods) + " |\n" for name in OPERATORS]
    legend = "\nLetters: C confirmed, D documented, I inferred, of an operator's rules; a dash: not there.\n"
    return "\n## Operators\n\n" + head + line + "".join(rows) + legend


def _cell(operator: str, method: QuantizeMethod) -> str:
    found = {rule.fidelity for rule in method.rules if rule.operator == operator}
    return ", ".join(sorted(one[0].upper() for one in found)) or "-"


def _operator(name: str, methods: Sequence[QuantizeMethod]) -> str:
    """The section of an operator: each rule once, with all methods that have it."""
    text = f"\n## {name}\n\n{OPERATORS[name].capitalize()}.\n"
    owners: dict[tuple[str, str, str, str, str], list[str]] = {}
    for method in methods:
        for rule in method.rules:
            if rule.operator == name:
                key = (rule.case_title, rule.formula, rule.fidelity, rule.source, rule.required)
                owners.setdefault(key, []).append(method.name)
    for (case, formula, fidelity, source, requirements), names in owners.items():
        text += f"\n**{', '.join(f'`{one}`' for one in names)}**: {case}\n\n* `{formula}`\n"
        text += f"* requires: {requirements}\n" if requirements else ""
        text += f"* {fidelity}: {source}\n"
    return text
