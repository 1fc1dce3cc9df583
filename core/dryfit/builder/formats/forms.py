"""The ways in which one tensor lies in the memories of an engine's devices, and why a copy stands between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.rule import Rule
from dryfit.target.formats import TensorFormat


@frozen
class TensorForm:
    """One way in which a tensor lies in memory: device, type and format."""

    device: str
    dtype: DataType
    layout: TensorFormat

    @property
    def memory(self) -> tuple[DataType, str]:
        """What it is in memory: where this is the same, one form can be used for the other.

        Devices share the memory of the board.
        """
        return self.dtype, self.layout.name

    def __str__(self) -> str:
        return f"{self.device} {self.dtype.name} {self.layout.name}"

    @property
    def words(self) -> str:
        """The form in a sentence."""
        return f"{self.dtype.text} {self.layout.name} on {self.device}"


@frozen
class TensorForms:
    """All ways in which a tensor is kept.

    Attributes:
        produced: as its producer, or the caller of the engine, leaves it.
        copies: the other forms that consumers, or the caller, need; each is one copy, but for those that a loadable
            converts inside.
        given: for a network output, the form in which the caller gets it.
    """

    produced: TensorForm
    copies: Sequence[TensorForm] = ()
    given: TensorForm | None = None

    def of_type(self, dtype: DataType, *, is_output: bool) -> list[TensorForm]:
        """The forms of one type, each way to lie in memory once; the one that counts as the tensor's own first."""
        own = self.given if is_output and self.given is not None else self.produced
        forms: dict[tuple[DataType, str], TensorForm] = {}
        for form in (own, self.produced, *self.copies):
            forms.setdefault(form.memory, form)
        return [form for form in forms.values() if form.dtype is dtype]


_LOGS = "inferred from logs of the TensorRT builder"
_FORMATS = "TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA"

NETWORK_INPUT = Rule(
    "reformat.network_input",
    "A network input has a type or format that the device that reads it does not accept",
    f"{_FORMATS}; one copy for each input is {_LOGS}",
    "Set a type and format that the device reads (dtype and allowed_formats, or --input-io-formats)",
    "RF-01",
    severity="note",
)
NETWORK_OUTPUT = Rule(
    "reformat.network_output",
    "A network output has a type or format that the device that writes it does not produce",
    f"{_FORMATS}; one copy for each tensor is {_LOGS}",
    "Set a type and format that the device writes: dtype and allowed_formats, or --output-io-formats",
    "RF-02",
    severity="note",
)
DEVICE_BORDER = Rule(
    "reformat.device_border",
    "A tensor crosses from one device to another that reads a different type or format",
    f"one copy for each tensor that crosses is {_LOGS}",
    "Keep the layers on both sides on one device; no input or output format avoids this copy",
    "RF-02",
    severity="note",
)
BETWEEN_SEGMENTS = Rule(
    "reformat.between_segments",
    "Layers on another device separate segments of the default device; their inputs and outputs are copied",
    f"two copies for each tensor are {_LOGS}",
    "Keep the layers in between on the default device, which saves both copies and merges the two segments; no input "
    "or output format avoids these copies",
    "RF-03",
    severity="note",
)
TYPE_CHANGE = Rule(
    "reformat.type_change",
    "Segments of one device exchange a tensor in a different type or format than it was computed in",
    "our choice: only copies convert between segments",
    "Use the same precision for the layers on both sides",
    severity="note",
)

REFORMAT_RULES: Mapping[str, Rule] = {
    rule.id: rule for rule in (NETWORK_INPUT, NETWORK_OUTPUT, DEVICE_BORDER, BETWEEN_SEGMENTS, TYPE_CHANGE)
}
"""Id to reason of a copy."""

NO_COPIER = Rule(
    "reformat.no_copier",
    "A copy at an input or output must run on a device that reads formats of other devices",
    f"{_FORMATS}; the build failure is {_LOGS}",
    "Allow fallback, or give inputs and outputs types and formats of the device",
    "RF-04",
)
DIRECT_IO = Rule(
    "reformat.direct_io",
    "With the flag DIRECT_IO, no input or output with formats that were set may need a copy",
    "TensorRT BuilderFlag: DIRECT_IO",
    "Set formats that the device reads or writes as they are, or clear the flag",
    "RF-06",
)

FORBIDDEN_COPIES: Mapping[str, Rule] = {rule.id: rule for rule in (NO_COPIER, DIRECT_IO)}
"""Id to reason why a copy may not be made."""
