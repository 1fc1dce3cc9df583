"""ResNet-50 in FP32, batch 1: dryfit's engine against ONNX Runtime and OpenVINO, interleaved in one process.

Usage: python benchmarks/resnet50_fp32.py [--rounds 30] [--threads 1 2] [--layers]

Prints the CPU, for each number of threads the median time of each side and the median of the ratios of neighbouring
bests of three (above 1 dryfit is faster), and the peak resident memory of the process. OpenVINO is left out, and that
is said, where it is not installed.
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import dryfit

INPUT = "gpu_0/data_0"
MODEL = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"

Array = np.ndarray[Any, Any]
Run = Callable[[], Array]


def randomised_model(seed: int = 0) -> onnx.ModelProto:
    """The model with He-style random weights in the place of its constants; the residual branches are damped."""
    model = onnx.load(MODEL)
    generator = np.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = [node for node in model.graph.node if node.op_type != "ConstantOfShape"]
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            name, shape = node.output[0], tuple(shapes[node.input[0]])
            model.graph.initializer.append(numpy_helper.from_array(_weights(generator, name, shape), name))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    used = {name for node in kept for name in node.input}
    weights = [tensor for tensor in model.graph.initializer if tensor.name in used]
    # A weight that is an input too could be fed, and ONNX Runtime would not fold it: only the image stays one.
    images = [tensor for tensor in model.graph.input if tensor.name == INPUT]
    for field, wanted in ((model.graph.initializer, weights), (model.graph.input, images)):
        del field[:]
        field.extend(wanted)
    return model


def _weights(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if len(shape) > 1:
        fan_in = int(np.prod(shape[1:]))
        return (generator.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
    if name.endswith(("_riv_0", "_s_0")):
        low = 0.2 if "branch2c_bn_s" in name else 0.8
        return generator.uniform(low, low + 0.2, shape).astype(np.float32)
    return (generator.standard_normal(shape) * 0.1).astype(np.float32)


def cpu_name() -> str:
    """The CPU, as the system calls it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    """Build all sides, compare their results, and time them in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--layers", action="store_true", help="print the time of each engine layer")
    arguments = parser.parse_args()
    model = randomised_model().SerializeToString()
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    start = time.perf_counter()
    engine = builder.build_engine(dryfit.network_from_onnx(model), config)
    print(f"{cpu_name()}; engine imported and built in {time.perf_counter() - start:.2f} s")
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    for threads in arguments.threads:
        context = engine.create_execution_context(num_threads=threads)
        peers = {"onnxruntime": onnxruntime_run(model, image, threads), "openvino": openvino_run(model, image, threads)}
        compare(dryfit_run(context, image), peers, threads, arguments.rounds)
        if arguments.layers:
            print_layers(context, image)
    print(
        f"peak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, all sides together"
    )


def dryfit_run(context: dryfit.ExecutionContext, image: Array) -> Run:
    """A run of dryfit's engine."""
    return lambda: next(iter(context.run({INPUT: image}).values()))


def onnxruntime_run(model: bytes, image: Array, threads: int) -> Run:
    """A run of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {INPUT: image})[0]


def openvino_run(model: bytes, image: Array, threads: int) -> Run | None:
    """A run of OpenVINO in FP32; None where it is not installed."""
    try:
        import openvino
    except ImportError:
        return None
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    return lambda: compiled({0: image})[0]


def compare(ours: Run, peers: dict[str, Run | None], threads: int, rounds: int) -> None:
    """Check all sides against each other, time them in turns, and print what was found."""
    print(f"{threads} thread{'s' if threads > 1 else ''}")
    result = ours().ravel()
    sides = {"dryfit": ours}
    for name, run in peers.items():
        if run is None:
            print(f"  {name} is not installed")
            continue
        print(f"  largest difference to {name} {np.abs(result - run().ravel()).max():.1e}, of {result.max():.3f}")
        sides[name] = run
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            seconds[name].append(best_of_three(run))
    for name, times in seconds.items():
        ratio = statistics.median(peer / own for own, peer in zip(seconds["dryfit"], times, strict=True))
        against = "" if name == "dryfit" else f", ratio {ratio:.2f}"
        print(f"  {name:12} {1e3 * statistics.median(times):6.2f} ms (least {1e3 * min(times):.2f}){against}")


def print_layers(context: dryfit.ExecutionContext, image: Array) -> None:
    """The least time of each engine layer in ten runs."""
    least: dict[str, float] = {}

    class Least(dryfit.Profiler):
        """Keeps the least."""

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            least[layer_name] = min(ms, least.get(layer_name, ms))

    context.profiler = Least()
    for _ in range(10):
        context.run({INPUT: image})
    context.profiler = None
    for name, ms in least.items():
        print(f"  {1e3 * ms:8.0f} us  {name}")


def best_of_three(run: Run) -> float:
    """Seconds of one run, when the other sides' threads have stopped looking for work, and caches are warm."""
    time.sleep(0.05)
    run()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
