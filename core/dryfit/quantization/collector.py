"""The common base of collectors, which process a tensor's values sample by sample and keep what a solver needs.

Rejecting non-finite values, merging, and serializing a state with its digest are implemented here once, so that a
custom collector consists of four short methods.
"""

from __future__ import annotations

import abc
import hashlib
import json
from typing import Any, ClassVar, Self

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.network.tensor import Array

_MAGIC = b"dryfit collector 1\n"


class Collector(abc.ABC):
    """Gathers statistics of the values of one tensor.

    A subclass implements `add`, `payload`, `restore` and, if it is mergeable, `absorb`.

    Args:
        tensor: name of the tensor, used in error messages; not part of the state.
        skips_nonfinite: whether to skip NaN and infinity, counting them in `skipped`, instead of raising an error.

    Attributes:
        state_name: name of the payload format; states in other formats are rejected.
        is_mergeable: whether two states can be merged, with the same bytes as if one collector had processed all
            values. Required for distributing work over processes and machines.
        is_per_sample: whether the grouping of values into updates matters, as for a mean over samples. Samples are then
            passed one by one, and `add` receives their names.
        skipped: number of skipped values.
    """

    state_name: ClassVar[str]
    is_mergeable: ClassVar[bool] = True
    is_per_sample: ClassVar[bool] = False

    def __init__(self, tensor: str = "", *, skips_nonfinite: bool = False) -> None:
        self.tensor = tensor
        self.skips_nonfinite = skips_nonfinite
        self.skipped = 0

    @abc.abstractmethod
    def add(self, values: Array, sample: str) -> None:
        """Add the values of one sample.

        Args:
            values: float32 or float64, finite, at least one value; in the tensor's shape, or flat if values were
                skipped. Must not be modified.
            sample: name of the sample.
        """

    @abc.abstractmethod
    def payload(self) -> bytes:
        """Return the state as bytes; equal states give equal bytes."""

    @abc.abstractmethod
    def restore(self, payload: bytes) -> None:
        """Restore a state that `payload` returned. Called on a new collector.

        Raises:
            CalibrationError: The bytes are not a valid state.
        """

    def absorb(self, other: Self) -> None:
        """Merge the state of another collector of this class. Called only if mergeable.

        Raises:
            NotImplementedError: The class declares that it is mergeable but does not implement this method.
        """
        raise NotImplementedError(f"{type(self).__name__} is declared mergeable but does not define `absorb`")

    def update(self, array: Any, sample: str) -> None:
        """Add the values of one sample. The state is unchanged if this raises.

        Types of up to 16 bits are converted to float32, wider integers to float64. All conversions are exact, except
        for integers beyond 2^53.

        Args:
            array: real numbers of any shape; an empty array changes nothing.
            sample: name of the sample in error messages.

        Raises:
            CalibrationError: Values are not finite and must not be skipped, or are not real numbers.
        """
        values = _widened(np.asarray(array), self.tensor, sample)
        if values.size and not np.isfinite([values.min(), values.max()]).all():
            nan, infinite = int(np.count_nonzero(np.isnan(values))), int(np.count_nonzero(np.isinf(values)))
            self.skip_nonfinite(nan, infinite, values.size, sample)
            values = values[np.isfinite(values)]
        if values.size:
            self.add(values, sample)

    def skip_nonfinite(self, nan: int, infinite: int, values: int, sample: str) -> None:
        """Count the skipped values of a sample.

        Args:
            nan: number of NaN values.
            infinite: number of infinite values.
            values: total number of values.
            sample: name of the sample in error messages.

        Raises:
            CalibrationError: Such values must not be skipped.
        """
        if not self.skips_nonfinite:
            raise CalibrationError(
                "Values must be finite",
                where=f"tensor {self.tensor!r}, sample {sample!r}",
                found=f"{nan} NaN and {infinite} infinite of {values} values",
                allowed="finite numbers",
                remedy="Leave out this sample, or skip such values (skips_nonfinite=True)",
            )
        self.skipped += nan + infinite

    def merge(self, other: Self) -> None:
        """Merge another collector, as if this one had processed its values.

        Raises:
            CalibrationError: The collector is not mergeable, or the other one is of another class or for another
                tensor.
        """
        if type(other) is not type(self):
            raise CalibrationError(
                "States of different collectors cannot be merged",
                where=f"tensor {self.tensor!r}",
                found=f"{type(self).__name__} and {type(other).__name__}",
                allowed="states of one collector",
                remedy="Collect both with the same calibrator",
            )
        if other.tensor != self.tensor:
            # Parts of two networks, or of two tensors of one: the sum would be the range of neither.
            raise CalibrationError(
                "Only states of the same tensor can be merged",
                where=f"tensor {self.tensor!r}",
                found=f"tensor {other.tensor!r}",
                remedy="Merge states of the same network, tensor by tensor",
            )
        require_mergeable(type(self), where=f"tensor {self.tensor!r}")
        self.skipped += other.skipped
        self.absorb(other)

    def to_bytes(self) -> bytes:
        """Return the state with a digest; equal states give equal bytes."""
        payload = self.payload()
        head = {"sha256": _digest(self.skipped, payload), "skipped": self.skipped, "state": self.state_name}
        return _MAGIC + json.dumps(head).encode() + b"\n" + payload

    @classmethod
    def from_bytes(cls, data: bytes, tensor: str = "", *, skips_nonfinite: bool = False) -> Self:
        """Return the collector whose state `to_bytes` returned.

        Raises:
            CalibrationError: The bytes are damaged, or are the state of another kind of collector.
        """
        where = f"state of tensor {tensor!r}"
        line, _, payload = data.removeprefix(_MAGIC).partition(b"\n")
        try:
            head = json.loads(line) if data.startswith(_MAGIC) else None
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict) or not isinstance(head.get("skipped"), int) or head["skipped"] < 0:
            raise CalibrationError(
                "The bytes are not the state of a collector",
                where=where,
                found=f"{data[:24]!r}",
                remedy="Collect it again",
            )
        if head.get("state") != cls.state_name:
            raise CalibrationError(
                "The state belongs to another collector",
                where=where,
                found=head.get("state"),
                allowed=cls.state_name,
                remedy="Collect it again, or use that collector",
            )
        if head.get("sha256") != _digest(head["skipped"], payload):
            raise CalibrationError(
                "The state is damaged: the digest does not match", where=where, remedy="Collect it again"
            )
        collector = cls(tensor, skips_nonfinite=skips_nonfinite)
        collector.skipped = head["skipped"]
        collector.restore(payload)
        return collector


def require_mergeable(collector: type[Collector], where: str) -> None:
    """Raise if the states of a collector cannot be merged.

    Raises:
        CalibrationError: The collector declares `is_mergeable = False`.
    """
    if not collector.is_mergeable:
        raise CalibrationError(
            "The states of this collector cannot be merged",
            where=where,
            found=f"{collector.__name__}, which declares is_mergeable = False",
            remedy="Process all samples with one collector, in one process",
        )


def _widened(array: Array, tensor: str, sample: str) -> Array:
    if array.dtype != np.bool_:
        for dtype in (np.float32, np.float64):
            if np.can_cast(array.dtype, dtype, "safe"):
                return array.astype(dtype, copy=False)
    raise CalibrationError(
        "Values must be real numbers",
        where=f"tensor {tensor!r}, sample {sample!r}",
        found=array.dtype,
        allowed="floating point or integers",
        remedy="Choose a tensor of numbers",
    )


def _digest(skipped: int, payload: bytes) -> str:
    return hashlib.sha256(b"%d\n" % skipped + payload).hexdigest()
