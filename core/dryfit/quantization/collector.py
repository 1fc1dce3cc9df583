"""What every collector has in common: it sees a tensor's values, sample by sample, and keeps what a solver needs.

Refusing values that are not finite, merging, and writing a state to bytes with its digest are done here, once, so that
a collector of one's own is four short methods.
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
    """Gathers what is to be known of the values of one tensor.

    A subclass writes `add`, `payload`, `restore` and, where it is mergeable, `absorb`.

    Args:
        tensor: the tensor's name, which errors tell; it is no part of the state.
        skips_nonfinite: count NaN and infinity in `skipped` and leave them out, where they are errors otherwise.

    Attributes:
        state_name: names the form of the payload; states of other forms are refused.
        is_mergeable: whether two states can be made one, with the same bytes as if one collector had seen everything.
            Work is spread over processes and machines only then.
        is_per_sample: whether it matters which values came together in one update, as for a mean over samples.
            Samples have to be given one by one then; `add` gets their names.
        skipped: how many values were left out.
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
        """Take in the values of one sample.

        Args:
            values: float32 or float64, finite, at least one; of the tensor's shape, or flat where some were left out.
                They must not be changed.
            sample: what the sample is called.
        """

    @abc.abstractmethod
    def payload(self) -> bytes:
        """The state; equal states give equal bytes."""

    @abc.abstractmethod
    def restore(self, payload: bytes) -> None:
        """Take over a state that `payload` gave; what is restored is fresh.

        Raises:
            CalibrationError: no state has these bytes.
        """

    def absorb(self, other: Self) -> None:
        """Take in what another collector of this class has seen. Only a mergeable collector is asked.

        Raises:
            NotImplementedError: the class says that it is mergeable, and does not say how.
        """
        raise NotImplementedError(f"{type(self).__name__} is declared mergeable but does not define `absorb`")

    def update(self, array: Any, sample: str) -> None:
        """Take in the values of one sample; the state stays as it was where this raises.

        Types of 16 bits and fewer are widened to float32, wider integers to float64. Every conversion is exact but
        that of integers beyond 2^53.

        Args:
            array: real numbers of any shape; an empty array changes nothing.
            sample: what errors call the sample.

        Raises:
            CalibrationError: values are not finite, and are not to be skipped; or they are no real numbers.
        """
        values = _widened(np.asarray(array), self.tensor, sample)
        if values.size and not np.isfinite([values.min(), values.max()]).all():
            nan, infinite = int(np.count_nonzero(np.isnan(values))), int(np.count_nonzero(np.isinf(values)))
            self.skip_nonfinite(nan, infinite, values.size, sample)
            values = values[np.isfinite(values)]
        if values.size:
            self.add(values, sample)

    def skip_nonfinite(self, nan: int, infinite: int, values: int, sample: str) -> None:
        """Count what is left out of a sample.

        Args:
            nan: how many of its values are NaN.
            infinite: how many are infinite.
            values: how many it has.
            sample: what errors call the sample.

        Raises:
            CalibrationError: such values are not to be skipped.
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
        """Take in what another collector has seen, as if this one had.

        Raises:
            CalibrationError: this kind of collector cannot be merged, or the other is of another kind or tensor.
        """
        if type(other) is not type(self):
            raise CalibrationError(
                "States of different collectors cannot be merged",
                where=f"tensor {self.tensor!r}",
                found=f"{type(self).__name__} and {type(other).__name__}",
                remedy="Collect both with the same calibrator",
            )
        if other.tensor != self.tensor:
            # Parts of two networks, or of two tensors of one: the sum would be the range of neither.
            raise CalibrationError(
                "Only states of the same tensor can be merged",
                where=f"tensor {self.tensor!r}",
                found=f"tensor {other.tensor!r}",
                remedy="Merge parts of the same network, tensor by tensor",
            )
        require_mergeable(type(self), where=f"tensor {self.tensor!r}")
        self.skipped += other.skipped
        self.absorb(other)

    def to_bytes(self) -> bytes:
        """The state with a digest; equal states give equal bytes."""
        payload = self.payload()
        head = {"sha256": _digest(self.skipped, payload), "skipped": self.skipped, "state": self.state_name}
        return _MAGIC + json.dumps(head).encode() + b"\n" + payload

    @classmethod
    def from_bytes(cls, data: bytes, tensor: str = "", *, skips_nonfinite: bool = False) -> Self:
        """The collector whose state `to_bytes` gave.

        Raises:
            CalibrationError: the bytes are damaged, or are the state of another kind of collector.
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
    """Refuse a collector whose states cannot be made one.

    Raises:
        CalibrationError: it declares `is_mergeable = False`.
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
