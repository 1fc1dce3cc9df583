"""Matrix products with INT4 weights, at the shapes of a small language model, beside FP32 and ONNX Runtime.

Usage: python benchmarks/narrow_weights.py [--threads 1 2] [--rows 1 16 64] [--seconds 3] [--write]

Weights have FP32 scales in blocks of 32 along K. ONNX Runtime runs its operator MatMulNBits: with FP32 activations,
which is the same arithmetic, and with activations that it quantizes to INT8, which is less exact and faster. All sides
run in turns; a time is the least. Bytes are those of the weights as a run reads them, codes and scales. `--write`
writes the table to docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import dryfit
from kernels import LayerTime, require_equal
from measuring.machine import machine_text, versions_text
from measuring.narrow_models import NarrowProduct
from measuring.page import plain_table, table, write_section
from measuring.ratios import rounds_within, take_turns, timed
from measuring.runtimes import onnxruntime_session

DEPTHS_AND_COLUMNS = ((2048, 2048), (2048, 8192))
COLUMNS = (
    "threads",
    "rows",
    "weights",
    "INT4",
    "GMAC/s",
    "GB/s of weights",
    "weights in MB",
    "FP32, in MB",
    "FP32",
    "MatMulNBits",
    "MatMulNBits, INT8 activations",
)


def main() -> None:
    """Check each product against FP32 and ONNX Runtime, then time all sides in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long each product may take")
    parser.add_argument("--write", action="store_true", help="write the table to the page in docs")
    arguments = parser.parse_args()
    rows = []
    for threads, extents, batch in product(arguments.threads, DEPTHS_AND_COLUMNS, arguments.rows):
        rows.append(compare(NarrowProduct.of(batch, *extents), threads, arguments.seconds))
        print(plain_table(COLUMNS, rows[-1:]).splitlines()[1], flush=True)
    about = f"{machine_text()}, with {versions_text()}"
    print(f"\n{about}\n" + plain_table(COLUMNS, rows))
    if arguments.write:
        write_section("narrow weights", f"Measured on {about}.\n\n" + table(COLUMNS, rows))


def compare(case: NarrowProduct, threads: int, budget: float) -> tuple[object, ...]:
    """The cells of one product.

    Raises:
        ValueError: dryfit's result is not that of ONNX Runtime.
    """
    inputs, name = {"x": case.input}, f"{case.rows} x {case.depth} x {case.columns}"
    narrow, real = LayerTime(case.dequantized_model(), threads), LayerTime(case.real_model(), threads)
    sessions = {level: onnxruntime_session(case.contributed_model(level), threads) for level in (1, 4)}
    require_equal(narrow.result(inputs), sessions[1].run(None, inputs)[0], name)
    require_equal(narrow.result(inputs), real.result(inputs), name)
    sides = {"narrow": lambda: narrow.measure(inputs), "real": lambda: real.measure(inputs)}
    sides |= {
        str(level): timed(lambda session=session: session.run(None, inputs)) for level, session in sessions.items()
    }
    start = time.perf_counter()
    take_turns(sides, 1)
    seconds = take_turns(sides, rounds_within(time.perf_counter() - start, budget))
    best = {side: min(times) for side, times in seconds.items()}
    return (
        threads,
        case.rows,
        f"{case.depth} x {case.columns}",
        f"{1e6 * best['narrow']:.0f} us",
        f"{case.rows * case.codes.size / best['narrow'] / 1e9:.1f}",
        f"{weight_bytes(narrow) / best['narrow'] / 1e9:.1f}",
        f"{weight_bytes(narrow) / 1e6:.1f}",
        f"{weight_bytes(real) / 1e6:.1f}",
        *(f"{1e6 * best[side]:.0f} us" for side in ("real", "1", "4")),
    )


def weight_bytes(layer: LayerTime) -> int:
    """Bytes of what the kernels packed."""
    plan: dryfit.Plan = layer.context.engine.plan
    return sum(array.nbytes for operation in plan.operations for array in operation.weights.values())


if __name__ == "__main__":
    main()
