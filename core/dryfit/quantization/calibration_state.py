"""What calibration has gathered so far, as one file: to go on from, to merge, and to solve again and again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.quantization.collector import Collector, require_mergeable

_MAGIC = b"dryfit calibration state 1 "


@frozen(eq=False)
class CalibrationState:
    """The collectors of a network's tensors, with what they have seen.

    Attributes:
        fingerprint: what the values depend on, in words: the model, how samples are made. States are merged and gone on
            with only where all of it is equal.
        samples: names of the samples that were seen; each counts once.
        collectors: tensor to collector, in the order of execution; all of one class.

    Example:
        >>> state = CalibrationState({"model": "sha256:..."}, ["cat.png"], collectors)
        >>> CalibrationState.from_bytes(state.to_bytes(), Histogram).samples
        ('cat.png',)
    """

    fingerprint: Mapping[str, str]
    samples: Sequence[str]
    collectors: Mapping[str, Collector]

    def to_bytes(self) -> bytes:
        """The state with a digest; equal states give equal bytes, in whatever order the samples came."""
        parts = [collector.to_bytes() for collector in self.collectors.values()]
        head = {
            "fingerprint": dict(self.fingerprint),
            "samples": sorted(self.samples),
            "tensors": [[name, len(part)] for name, part in zip(self.collectors, parts, strict=True)],
        }
        body = json.dumps(head, sort_keys=True).encode() + b"\n" + b"".join(parts)
        return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        collector: type[Collector],
        name: str = "calibration state",
        *,
        skips_nonfinite: bool = False,
    ) -> CalibrationState:
        """The state that `to_bytes` gave.

        Args:
            data: the bytes.
            collector: the class that its collectors are of.
            name: what errors call it, such as the name of its file.
            skips_nonfinite: whether the collectors go on so.

        Raises:
            CalibrationError: the bytes are damaged, or are the state of another kind of collector.
        """
        line, _, body = data.partition(b"\n")
        head = _Head.of(body) if line == _MAGIC + hashlib.sha256(body).hexdigest().encode() else None
        if head is None:
            what = "damaged" if data.startswith(_MAGIC) else "not a calibration state"
            raise CalibrationError(
                f"The file is {what}",
                where=name,
                found=f"{data[:40]!r}",
                allowed="the whole of a calibration state",
                remedy="Collect it again",
            )
        collectors: dict[str, Collector] = {}
        offset = 0
        for tensor, size in head.tensors:
            part = head.parts[offset : offset + size]
            collectors[tensor] = collector.from_bytes(part, tensor, skips_nonfinite=skips_nonfinite)
            offset += size
        return cls(head.fingerprint, head.samples, collectors)

    def require_fingerprint(self, fingerprint: Mapping[str, str], name: str = "calibration state") -> None:
        """Refuse to go on with a state of something else.

        Raises:
            CalibrationError: the fingerprint is another; the error says what differs.
        """
        keys = sorted({*fingerprint, *self.fingerprint})
        differs = [key for key in keys if fingerprint.get(key) != self.fingerprint.get(key)]
        if differs:
            raise CalibrationError(
                "The state belongs to another calibration",
                where=name,
                found="; ".join(f"{key}: {self.fingerprint.get(key)}" for key in differs),
                allowed="; ".join(f"{key}: {fingerprint.get(key)}" for key in differs),
                remedy="Use another state file, or calibrate with the same settings",
            )


def merge_states(states: Sequence[CalibrationState]) -> CalibrationState:
    """What one process would have gathered from the samples of all states, which stay as they are.

    Raises:
        CalibrationError: there is none; they are of different models, preparations or tensors; a sample is in two; or
            the collectors cannot be merged.
    """
    if not states:
        raise CalibrationError("At least one state is required", remedy="Pass the states to merge")
    first, seen = states[0], set[str]()
    merged: dict[str, Collector] = {}
    for index, state in enumerate(states):
        where = f"state {index}"
        state.require_fingerprint(first.fingerprint, where)
        twice = sorted(seen & set(state.samples))
        strange = sorted(set(first.collectors) ^ set(state.collectors))
        if twice or strange:
            names = ", ".join(map(repr, (twice or strange)[:10]))
            raise CalibrationError(
                "Samples must not be in more than one state" if twice else "The states must have the same tensors",
                where=where,
                found=names if twice else f"tensors that only one of the states has: {names}",
                remedy=(
                    "Merge each state only once, from different samples"
                    if twice
                    else "Calibrate all parts with the same model and options"
                ),
            )
        seen.update(state.samples)
        for name, collector in state.collectors.items():
            if name not in merged:
                require_mergeable(type(collector), where=where)
                merged[name] = type(collector)(name, skips_nonfinite=collector.skips_nonfinite)
            merged[name].merge(collector)
    return CalibrationState(first.fingerprint, sorted(seen), {name: merged[name] for name in first.collectors})


@frozen
class _Head:
    """What the body of a state begins with, and the collectors' parts after it."""

    fingerprint: dict[str, str]
    samples: tuple[str, ...]
    tensors: list[tuple[str, int]]
    parts: bytes

    @classmethod
    def of(cls, body: bytes) -> _Head | None:
        """None where the body is no state's."""
        line, _, parts = body.partition(b"\n")
        try:
            head = json.loads(line)
            fingerprint, samples = head["fingerprint"], tuple(head["samples"])
            found = cls(fingerprint, samples, [(tensor, size) for tensor, size in head["tensors"]], parts)
            texts = [*fingerprint, *fingerprint.values(), *samples, *(tensor for tensor, _ in found.tensors)]
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return None
        sizes = [size for _, size in found.tensors]
        is_sound = all(isinstance(one, str) for one in texts) and all(type(one) is int and one >= 0 for one in sizes)
        return found if is_sound and sum(sizes) == len(parts) else None
