"""Write the golden vectors of quantize methods: small cases, and what the real libraries answer.

    python tests/golden/quantize_methods/generate.py --python caffe2=/path/to/python3.9 tflite onnx caffe2

Methods of one library share its cases.
A method whose library is not there keeps the answers that it has. The same libraries on the same kind of CPU give the
same bytes; `manifest.json` says which those were.
"""

from __future__ import annotations

import json
import platform
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))  # the oracles lie in tests/oracles

import click
import numpy as np
from tests.oracles.golden_file import GoldenVectors, read_golden, write_golden
from tests.oracles.oracle import Refusal
from tests.oracles.table import ORACLES, oracle_of_method

from dryfit.errors import ConfigError
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.testing.operator_cases.case_table import DRAWN, trial_cases
from dryfit.testing.operator_cases.habits import family_of
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"
SEED = 2024
ROUNDS = {
    "convolution": 2,
    "deconvolution": 2,
    "inner_product": 2,
    "requantize": 3,
    "quantize": 4,
    "bias_add": 5,
    "sigmoid": 8,
    "softmax": 5,
    "dequantize": 3,
    "eltwise_difference": 3,
    "eltwise_extreme": 1,
    "eltwise_product": 3,
    "function": 3,
    "parametric_relu": 2,
}
"""Of each operator, for each type of codes; `_ROUNDS` of the others."""
_ROUNDS = 6
_FEATURES = ("sse4_1", "avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "asimd", "asimddp")


def cpu() -> dict[str, Any]:
    """Model and instruction sets, as far as the system tells."""
    facts: dict[str, str] = {}
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text(encoding="utf-8").split("\n\n")[0].splitlines():
            key, _, value = line.partition(":")
            facts[key.strip()] = value.strip()
    features = (facts.get("flags") or facts.get("Features", "")).split()
    return {
        "machine": platform.machine(),
        "model": facts.get("model name", platform.processor()),
        "features": [one for one in _FEATURES if one in features],
    }


def vectors_of(method: str, python: str | None) -> dict[str, Any]:
    """Write a method's answers into the files of its library; its entry in the manifest."""
    oracle = oracle_of_method(method, python)
    operators: dict[str, Any] = {}
    for operator in sorted(DRAWN.keys() & {rule.operator for rule in quantize_method(method).rules}):
        drawn = trial_cases(operator, method, count=ROUNDS.get(operator, _ROUNDS), seed=SEED, is_exhaustive=False)
        answers = [_or_refusal(method, *pair) for pair in zip(drawn, oracle.answers(drawn), strict=True)]
        kept = [None if isinstance(answer, Refusal) else answer for answer in answers]
        refused = Counter(answer.reason.splitlines()[0] for answer in answers if isinstance(answer, Refusal))
        path = FOLDER / family_of(method) / f"{operator}.npz"
        before = read_golden(path).answers if path.exists() else {}
        if any(answer is not None for answer in kept):
            same = {name: given for name, given in before.items() if len(given) == len(kept)}
            write_golden(path, GoldenVectors(drawn, {**same, method: kept}))
        elements = sum(answer.size for answer in kept if answer is not None)
        count = len(kept) - refused.total()
        if count:
            operators[operator] = {"cases": count, "elements": elements, "refused": dict(sorted(refused.items()))}
    return {"library": ", ".join(sorted(oracle.versions)), "cpu": cpu(), "operators": operators}


def _or_refusal(method: str, case: OperatorCase, answer: Array | Refusal) -> Array | Refusal:
    """The answer; or why the method itself refuses the case, though the library answers."""
    try:
        quantize_method(method).rule_for(case.call)
    except ConfigError as error:
        return Refusal(f"{error.message}: {error.found}") if not isinstance(answer, Refusal) else answer
    return answer


@click.command()
@click.argument("methods", nargs=-1, type=click.Choice(sorted(ORACLES)))
@click.option("--python", "pythons", multiple=True, metavar="METHOD=PATH", help="Interpreter with a method's library.")
def main(methods: tuple[str, ...], pythons: tuple[str, ...]) -> None:
    """Write golden vectors; of every method where none is named."""
    given = dict(one.split("=", 1) for one in pythons)
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8")) if MANIFEST.exists() else {}
    for method in methods or sorted(ORACLES):
        try:
            manifest[method] = vectors_of(method, given.get(method))
        except ConfigError as error:
            click.echo(f"{method}: kept as it is: {error}", err=True)
            continue
        elements = sum(one["elements"] for one in manifest[method]["operators"].values())
        click.echo(f"{method}: {manifest[method]['library']}, {elements} elements")
    MANIFEST.write_text(json.dumps(dict(sorted(manifest.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
