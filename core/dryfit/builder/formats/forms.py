"""The ways in which one tensor lies in the memories of an engine's devices."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.target.formats import TensorFormat


@attrs.frozen
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
        """The form as it stands in a sentence."""
        return f"{self.dtype.name} {self.layout.name} on {self.device}"


@attrs.frozen
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
