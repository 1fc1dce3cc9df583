"""Single layers: dryfit's host kernels against ONNX Runtime, interleaved in one process.

Usage: python benchmarks/kernels.py [--precisions fp32 int8 zero-points] [--threads 1] [--seconds 0.5]
                                    [--only depthwise] [--write]

Each layer is built as a network of its own, so that its kernel is chosen as in a build. dryfit's time is that of the
engine layers, without the copies of inputs and outputs to and from their layouts; ONNX Runtime's is a whole run. Both
read inputs that were written just before, as those of a layer in a network are: dryfit's by that copy, ONNX Runtime's
by one that is not timed either. In INT8 both read and write quantized values, and ONNX Runtime runs the faster of
signed and unsigned. Without dot products of bytes its kernels saturate sums of products by default: where its result is
not dryfit's, it runs its precise ones.
`zero-points` is INT8 whose weights have zero points, as those that quantizers write in UINT8. A ratio is the median
over the turns: above 1, dryfit is faster. *Of peak* is the layer's multiply-accumulates over dryfit's time, as a share
of what this machine's multipliers do when nothing is loaded or stored (`measuring/peak.py`); Winograd's filtering saves
products, and may pass 100 %. `--write` writes the table to docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import time

import attrs
import numpy as np
import onnxruntime

import dryfit
from dryfit.plugins import registry
from dryfit.target.kernels import HostLayout
from measuring.layer_models import NODE, Array, LayerCase, feeds, fp32_model, int8_model, layer_cases
from measuring.machine import machine_text, versions_text
from measuring.page import plain_table, table, write_section
from measuring.peak import share_of_peak
from measuring.ratios import Measure, median_ratio, rounds_within, spread, take_turns, timed
from measuring.runtimes import PRECISE, onnxruntime_session

COLUMNS = ("kind", "layer", "precision", "kernel", "dryfit", "of peak", "ONNX Runtime", "ratio", "quartiles")
PRECISIONS = ("fp32", "int8", "zero-points")
_WEIGHT_ZERO = {"int8": 0, "zero-points": -11}
PAUSE_SECONDS = 0.005
"""A layer is short: its turns are many, and a pause between them may be short too."""


class LayerTime(dryfit.Profiler):
    """A network of one layer, and how long its engine layers take.

    Where the layer's kernel wants images with their channels last, inputs and outputs lie so, as they do inside a
    network.
    """

    def __init__(self, model: bytes, threads: int) -> None:
        builder = dryfit.Builder()
        config = builder.create_builder_config()
        config.default_device_type = dryfit.DeviceType.CPU
        plan = builder.build_plan(dryfit.network_from_onnx(model), config)
        self.kernels = list(dict.fromkeys(one.kernel for one in plan.operations if NODE in one.onnx_nodes))
        layouts = {kernel.name: kernel.layout for kernel in registry.host().kernels}
        if HostLayout.CHANNELS_LAST in {layouts[name] for name in self.kernels}:
            placements = {
                name: attrs.evolve(placement, host_layout=HostLayout.CHANNELS_LAST)
                for name, placement in plan.placements.items()
            }
            plan = attrs.evolve(plan, placements=placements)
        self.context = dryfit.Engine(plan).create_execution_context(num_threads=threads)
        self.context.profiler = self
        specs = {tensor.name: tensor.spec for tensor in plan.network.tensors}
        self.macs = sum(layer.multiply_accumulates(specs) for layer in plan.network.layers)
        self.seconds = 0.0

    def report_layer_time(self, layer_name: str, ms: float) -> None:  # noqa: ARG002  all layers count
        """Add a layer's time."""
        self.seconds += ms / 1e3

    def measure(self, inputs: dict[str, Array]) -> float:
        """Run once; seconds of all engine layers."""
        self.seconds = 0.0
        self.context.run(inputs)
        return self.seconds

    def result(self, inputs: dict[str, Array]) -> Array:
        """The only output."""
        return next(iter(self.context.run(inputs).values()))


def main() -> None:
    """Check each layer against ONNX Runtime, then time both in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="about how long each layer may take")
    parser.add_argument("--only", default="", help="layers whose kind or name contains this")
    parser.add_argument("--write", action="store_true", help="write the table to the page in docs")
    arguments = parser.parse_args()
    about = f"{machine_text()}, with {versions_text()}, {arguments.threads} thread{'s' * (arguments.threads > 1)}"
    print(about)
    rows: list[tuple[object, ...]] = []
    for precision in arguments.precisions:
        for case in layer_cases():
            if arguments.only in f"{case.kind} {case.name}" and has_precision(case, precision):
                rows.append(compare(case, precision, arguments.threads, arguments.seconds))
                print(plain_table(COLUMNS, rows[-1:]).splitlines()[1], flush=True)
    print("\n" + plain_table(COLUMNS, rows))
    if arguments.write:
        write_section("kernels", f"Measured on {about}.\n\n" + table(COLUMNS, rows))


def has_precision(case: LayerCase, precision: str) -> bool:
    """Whether a layer is measured in a precision."""
    return precision == "fp32" or (case.is_quantizable and (precision == "int8" or bool(case.weights)))


def compare(case: LayerCase, precision: str, threads: int, budget: float) -> tuple[object, ...]:
    """The cells of one layer.

    Raises:
        ValueError: dryfit's result is not that of ONNX Runtime.
    """
    is_real = precision == "fp32"
    models = [fp32_model(case)] if is_real else []
    if not is_real:
        zero = _WEIGHT_ZERO[precision]
        models = [int8_model(case, is_signed=is_signed, weight_zero=zero) for is_signed in (True, False)]
    inputs = [feeds(model) for model in models]
    layers, name = [LayerTime(model, threads) for model in models], f"{case.name} {precision}"
    results = [layer.result(given) for layer, given in zip(layers, inputs, strict=True)]
    sessions = [exact_session(*one, threads, name) for one in zip(models, inputs, results, strict=True)]
    layer = layers[0]
    peers = {
        str(number): timed_on_new_inputs(session, given)
        for number, (session, given) in enumerate(zip(sessions, inputs, strict=True))
    }
    start = time.perf_counter()
    first = take_turns({"dryfit": lambda: layer.measure(inputs[0]), **peers}, 1, PAUSE_SECONDS)
    rounds = rounds_within(time.perf_counter() - start, budget)
    best = min(peers, key=lambda peer: first[peer][0])
    sides = {"dryfit": lambda: layer.measure(inputs[0]), "peer": peers[best]}
    seconds = take_turns(sides, rounds, PAUSE_SECONDS)
    own, other = seconds["dryfit"], seconds["peer"]
    low, high = spread(own, other)
    return (
        case.kind,
        case.name,
        precision.upper(),
        ", ".join(layer.kernels),
        f"{1e6 * min(own):.0f} us",
        share_of_peak(layer.macs, min(own), precision, threads),
        f"{1e6 * min(other):.0f} us",
        f"{median_ratio(own, other):.2f}",
        f"{low:.2f} to {high:.2f}",
    )


def timed_on_new_inputs(session: onnxruntime.InferenceSession, given: dict[str, Array]) -> Measure:
    """The time of a whole run whose inputs have just been written."""
    written = {name: np.empty_like(array) for name, array in given.items()}
    run = timed(lambda: session.run(None, written))

    def measure() -> float:
        for name, array in given.items():
            np.copyto(written[name], array)
        return run()

    return measure


def exact_session(
    model: bytes, inputs: dict[str, Array], result: Array, threads: int, name: str
) -> onnxruntime.InferenceSession:
    """A session that gives this result: with ONNX Runtime's default kernels, else with its precise ones.

    Raises:
        ValueError: neither does.
    """
    session = onnxruntime_session(model, threads)
    with contextlib.suppress(ValueError):
        require_equal(result, session.run(None, inputs)[0], name)
        return session
    session = onnxruntime_session(model, threads, PRECISE)
    require_equal(result, session.run(None, inputs)[0], name)
    return session


def require_equal(result: Array, expected: Array, name: str) -> None:
    """Refuse to compare the speed of what computes something else; INT8 values may differ by one step.

    Raises:
        ValueError: they differ by more.
    """
    difference = np.abs(result.astype(np.float64) - expected.astype(np.float64))
    allowed = 1 if expected.dtype.kind in "iu" else 1e-4 + 1e-3 * np.abs(expected)
    if not (difference <= allowed).all():
        raise ValueError(f"{name}: dryfit and ONNX Runtime differ by {difference.max():.2g}")


if __name__ == "__main__":
    main()
