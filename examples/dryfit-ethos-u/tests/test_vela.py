"""Verdicts and cycles against Arm's compiler: drawn layers, and each operator of whole models.

`DRYFIT_ETHOS_U_LAYERS` is the number of drawn layers per family: 150 if it is not set, 2,000 for a whole comparison.
With fewer than 150 only one accelerator of each family and four of the models are compared.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence

import pytest
from drawn_layers import drawn
from tflite_writer import write
from vela import VelaAnswer, compiled, compiled_apart
from whole_models import MODELS

import dryfit

LAYERS = int(os.environ.get("DRYFIT_ETHOS_U_LAYERS", "150"))
IS_SAMPLE = LAYERS < 150
ACCELERATORS = ("u55-128", "u65-512", "u85-256")
ALL_ACCELERATORS = ("u55-32", "u55-128", "u55-256", "u65-256", "u65-512")
ALL_ACCELERATORS += ("u85-128", "u85-256", "u85-512", "u85-1024", "u85-2048")
COMPARED = ("resnet_8", "ds_cnn", "autoencoder", "with_cpu_operators") if IS_SAMPLE else tuple(MODELS)
AGREEMENT = 0.99
MEAN_ERROR = 0.2

EXPLAINED: Mapping[str, str] = {
    "RESIZE_BILINEAR half-pixel centers, same size": "Vela asks for a factor of 2 even where nothing is resized",
    "MINIMUM, MAXIMUM on INT32 with scales": "dryfit's networks have no scale for INT32 codes; Vela compares them",
    "CONV_2D and others on INT16, bias near 2^40": "dryfit keeps a bias of 64 bits as FP32, with 24 bits of it",
}
"""Differences between Vela 5.2.0 and this target, with the reason; the rest is below one percent."""


@functools.cache
def imported(model: bytes) -> dryfit.Network:
    """The network of a TFLite model, in Q/DQ form."""
    from dryfit.answers.asked import import_model
    from dryfit.plugins.contributions import ImportOptions

    return import_model(model, ImportOptions(quantize_method="")).network


def refused_operators(model: bytes, platform: str) -> dict[int, list[str]]:
    """Position of each operator that the target refuses, to the rules."""
    config = dryfit.BuilderConfig()
    config.set_platform("ETHOS_U", platform)
    found: dict[int, list[str]] = {}
    for layer in imported(model).layers:
        if layer.kind in ("constant", "shape") or layer.name.startswith("OUTPUT"):
            continue
        verdict = config.can_run_on(layer, "ETHOS_U")
        if not verdict:
            found.setdefault(int(layer.onnx_nodes[0].split(":")[0]), []).extend(one.rule for one in verdict.violations)
    return found


def differences(answers: Mapping[int, VelaAnswer], platform: str) -> tuple[int, list[str]]:
    """(layers that both judged, those that they judge differently)."""
    judged, found = 0, []
    for number, answer in answers.items():
        if answer.failure:
            continue
        operator = drawn(number)
        try:
            rules = refused_operators(write([operator]), platform)
        except dryfit.DryfitError:
            continue  # the importer refuses this form, which the count below tolerates in few cases
        judged += 1
        if bool(rules) != bool(answer.on_cpu):
            found.append(f"{number} {operator.name}: {'CPU' if answer.on_cpu else 'NPU'}, dryfit {rules or 'NPU'}")
    return judged, found


@pytest.mark.parametrize("platform", ACCELERATORS)
def test_verdicts_on_drawn_layers_agree_with_vela(platform):
    answers = dict(compiled_apart({number: write([drawn(number)]) for number in range(LAYERS)}, platform))
    judged, found = differences(answers, platform)
    assert judged > 0.9 * LAYERS
    assert len(found) <= (1 - AGREEMENT) * judged, "\n".join(found)


@pytest.mark.parametrize("platform", ACCELERATORS)
@pytest.mark.parametrize("name", COMPARED)
def test_verdicts_on_each_operator_of_whole_models_are_those_of_vela(name, platform):
    model = MODELS[name]().to_bytes()
    answer = compiled(model, platform)
    assert not answer.failure
    assert sorted(refused_operators(model, platform)) == sorted(answer.on_cpu)


def estimated_cycles(model: bytes, platform: str) -> float:
    """Cycles of what runs on the NPU, by the target's estimate."""
    answer = dryfit.estimate(imported(model), device="ETHOS_U", fallback="CPU", platform=platform)
    clock = {"u55": 500e6, "u65": 1e9, "u85": 1e9}[platform.partition("-")[0]]
    return sum(step.microseconds for step in answer.layers if step.device == "ETHOS_U") * clock / 1e6


def logarithmic_errors(platform: str) -> Sequence[float]:
    """Error of each model against Vela's estimate."""
    models = [make().to_bytes() for make in MODELS.values()]
    return [math.log(estimated_cycles(one, platform) / compiled(one, platform).cycles) for one in models]


@pytest.mark.skipif(IS_SAMPLE, reason="the mean error is that over all models: set DRYFIT_ETHOS_U_LAYERS=150")
@pytest.mark.parametrize("platform", ALL_ACCELERATORS)
def test_estimates_are_near_those_of_vela(platform):
    errors = logarithmic_errors(platform)
    assert sum(map(abs, errors)) / len(errors) <= MEAN_ERROR, dict(zip(MODELS, errors, strict=True))
