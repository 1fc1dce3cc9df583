"""A check as JUnit XML.

Each layer is a test: it passes where it runs on the device that it was given, and is skipped, with every reason, where
it does not. The build is one too, which is skipped where it would be refused.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from dryfit.answers.check import CheckAnswer
from dryfit.answers.placement import LayerAnswer
from dryfit.cli.junit_document import case, junit_document


def junit_text(answer: CheckAnswer) -> str:
    """The document."""
    layers = [_layer(layer, answer.own_devices.get(layer.name, answer.device)) for layer in answer.layers]
    build = [case("build", answer.model, " ".join(answer.refusals))]
    return junit_document("dryfit check", answer.model, answer.conditions, {"layers": layers, "build": build})


def _layer(layer: LayerAnswer, wanted: str) -> ET.Element:
    skipped = ""
    if layer.device != wanted and not layer.is_host_work:  # host work was never meant to go elsewhere
        reasons = [f"{one.message} [{one.rule}]" for one in layer.violations(wanted)] or [layer.cause]
        place = f"runs on {layer.device}" if layer.device else "unplaced"
        skipped = f"Not on {wanted}, {place}: {'; '.join(reasons)}"
    return case(layer.kind, layer.name, skipped)
