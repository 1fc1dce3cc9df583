"""Why a build copies a tensor from one type, format or device to another: the reasons as a table.

Every `Reformat` names one of them, and each says what would do without the copy.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

_LOGS = "inferred from logs of the TensorRT builder"
_FORMATS = "TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA"


@attrs.frozen
class ReformatRule:
    """One reason for copies.

    Attributes:
        id: stable.
        text: when there is such a copy, in one sentence.
        remedy: what would do without it.
        source: document and section.
    """

    id: str
    text: str
    remedy: str
    source: str


NETWORK_INPUT = ReformatRule(
    "reformat.network_input",
    "An input of the network is given in a type or format that the device which reads it does not take",
    "Give the input in a type and format that the device reads: its dtype and allowed_formats, or --input-io-formats",
    f"{_FORMATS}; one copy for each input is {_LOGS}",
)
NETWORK_OUTPUT = ReformatRule(
    "reformat.network_output",
    "An output of the network is wanted in a type or format that the device which writes it does not give",
    "Take the output in a type and format that the device writes: set_output_type and allowed_formats, or "
    "--output-io-formats",
    f"{_FORMATS}; one copy for each tensor is {_LOGS}",
)
DEVICE_BORDER = ReformatRule(
    "reformat.device_border",
    "A tensor goes from one device to another that reads it in another type or format",
    "Keep the layers on both sides on one device; no format of an input or output does without this copy",
    f"one copy for each tensor that crosses is {_LOGS}",
)
BETWEEN_SEGMENTS = ReformatRule(
    "reformat.between_segments",
    "Layers of another device stand between segments of the default one: what they read is copied, and what they give",
    "Keep the layers in between on the default device, which saves both copies and makes one segment of two; no format "
    "of an input or output does without them",
    f"two copies for each tensor are {_LOGS}",
)
TYPE_CHANGE = ReformatRule(
    "reformat.type_change",
    "Segments of one device exchange a tensor in another type or format than it was computed in",
    "Give the layers on both sides the same precision",
    "our choice: between segments nothing converts but a copy",
)

REFORMAT_RULES: Mapping[str, ReformatRule] = {
    rule.id: rule for rule in (NETWORK_INPUT, NETWORK_OUTPUT, DEVICE_BORDER, BETWEEN_SEGMENTS, TYPE_CHANGE)
}
"""Id to reason."""
