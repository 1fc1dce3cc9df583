"""The bars that whole networks have to reach, and what was found of them."""

from __future__ import annotations

import attrs

ONNXRUNTIME, OPENVINO = "onnxruntime", "openvino"

BARS: dict[tuple[str, str], dict[str, float]] = {
    ("resnet50", "int8"): {ONNXRUNTIME: 1.35, OPENVINO: 1.2},
    ("mobilenetv2", "int8"): {ONNXRUNTIME: 1.6, OPENVINO: 1.35},
    ("resnet50", "fp32"): {ONNXRUNTIME: 1.2, OPENVINO: 1.15},
    **{
        (network, "fp32"): {ONNXRUNTIME: 1.1, OPENVINO: 1.1}
        for network in ("mobilenetv2", "squeezenet", "densenet121", "inception_v2")
    },
}
"""(network, precision) to peer to the least ratio of its time to dryfit's, at batch 1, with one thread and with two."""

BATCH_BARS = {ONNXRUNTIME: 1.05, OPENVINO: 1.0}
"""The same for larger batches, of all networks and precisions."""


@attrs.frozen
class Comparison:
    """What was found of one network against one peer.

    Attributes:
        network, precision, batch, threads: what ran.
        peer: `onnxruntime` or `openvino`.
        form: of the peer's model, the one that it is fastest with, such as `u8`; "" for FP32.
        own_ms, peer_ms: least time of a run.
        peak_share: dryfit's multiply-accumulates a second as a share of this machine's peak, in words.
        ratio: median over the turns of the peer's time divided by dryfit's.
        low, high: quartiles of the ratio.
    """

    network: str
    precision: str
    batch: int
    threads: int
    peer: str
    form: str
    own_ms: float
    peak_share: str
    peer_ms: float
    ratio: float
    low: float
    high: float

    @property
    def bar(self) -> float | None:
        """What the ratio has to reach; None where nothing is asked."""
        bars = BARS.get((self.network, self.precision), {}) if self.batch == 1 else BATCH_BARS
        return bars.get(self.peer)

    @property
    def verdict(self) -> str:
        """Whether the bar is met, in a word; with a question mark where the quartiles lie on both sides of it."""
        if self.bar is None:
            return ""
        word = "met" if self.ratio >= self.bar else "MISSED"
        return word if (self.low >= self.bar) == (self.high >= self.bar) else f"{word}?"


@attrs.frozen
class Memory:
    """Peak resident memory of a process that loads a model and runs it ten times, in MiB."""

    network: str
    precision: str
    own_mib: float
    peer_mib: float

    @property
    def verdict(self) -> str:
        """Whether dryfit takes at most what ONNX Runtime takes."""
        return "met" if self.own_mib <= self.peer_mib else "MISSED"
