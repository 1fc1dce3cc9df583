"""Networks of many small layers beside ONNX Runtime: transformers with dynamic shapes, and models of small images.

Usage: python benchmarks/small_networks.py [FOLDER] [--rounds 15] [--write]

Here the time beside the kernels counts, and whether layers about shapes, masks and indices run in native code. One
thread; processor time, so that other work on the machine shifts little; sides take turns in one process. Transformers
are written as exporters write them: lengths by Shape, a causal mask with a padding mask, NaN replaced behind the
softmax, GELU by Erf, the last valid token by GatherND; with layer normalization as one operator (`norm`) and without.
Results are compared before anything is timed. The shuffle net is one that onnx brings for its tests, with weights of
one value each.

With FOLDER the networks are the ONNX files in it. A file that fails, or whose results differ, is reported and left out.

`--write` writes the results of the networks at hand to docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np
import onnx

import dryfit
from measuring.machine import machine_text, versions_text
from measuring.models import SHARED, Array
from measuring.page import plain_table, table, write_section
from measuring.ratios import median_ratio, spread, take_turns, timed
from measuring.runtimes import onnxruntime_session
from measuring.small_models import transformer, with_image_size

COLUMNS = ("network", "input", "dryfit", "ONNX Runtime", "ratio", "quartiles")
TOLERANCE = 1e-2
"""Largest difference, relative to the largest output; the detector's ends are exponentials."""


@attrs.frozen(eq=False)
class SmallNetwork:
    """A model and what it is run on."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of ONNX files; default: the networks at hand")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    if arguments.write and arguments.folder is not None:
        parser.error("--write takes the networks at hand, not a folder")
    if arguments.folder is not None and not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is not a folder")
    print(f"{machine_text()}; {versions_text()}")
    rows, ratios = [], []
    at_hand = (compare(network, arguments.rounds) for network in networks())
    for found in at_hand if arguments.folder is None else compare_files(arguments.folder, arguments.rounds):
        rows.append(found[1:])
        ratios.append(found[0])
        print(plain_table(COLUMNS, rows[-1:]).splitlines()[1], flush=True)
    if not ratios:
        parser.exit(1, "No network was measured\n")
    median = f"Median ratio: {statistics.median(ratios):.2f}."
    print("\n" + plain_table(COLUMNS, rows) + median)
    if arguments.write:
        about = f"Processor time of one thread, measured on {machine_text()}, with {versions_text()}.\n\n"
        write_section("small networks", about + table(COLUMNS, rows) + f"\n{median}\n")


def networks() -> Iterator[SmallNetwork]:
    """The networks; those that are not there are left out, and told."""
    ids, mask = np.arange(32, dtype=np.int64)[None] % 200, np.ones((1, 32), np.int64)
    for name, layers, width, has_norm in (
        ("transformer, 2 x 64", 2, 64, False),
        ("transformer, 2 x 64, norm", 2, 64, True),
        ("transformer, 4 x 128", 4, 128, False),
    ):
        yield SmallNetwork(name, transformer(layers, width, has_norm=has_norm), {"ids": ids, "mask": mask})
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for name, path, size in (
        ("yunet_n, 128 x 128", SHARED / "yunet_n_320.onnx", 128),
        ("shufflenet", light / "light_shufflenet.onnx", None),
        ("yolox_nano", SHARED / "yolox_nano_416.onnx", None),
        ("resnet20", SHARED / "resnet20_cifar10.onnx", None),
        ("mnist", SHARED / "mnist-8.onnx", None),
        ("mnist_vit", SHARED / "mnist_vit_fp32.onnx", None),
    ):
        if not path.exists():
            print(f"{name} is left out: {path.name} is not in {path.parent}")
            continue
        model = onnx.load(path)
        model = model if size is None else with_image_size(model, size)
        yield SmallNetwork(name, model, dict(random_feeds(model)))


def compare_files(folder: Path, rounds: int) -> Iterator[tuple[float, str, str, str, str, str, str]]:
    """`compare` each ONNX file of a folder, by name; why one is left out is printed."""
    for path in sorted(folder.glob("*.onnx")):
        try:
            model = onnx.load(path)
            yield compare(SmallNetwork(path.stem, model, dict(random_feeds(model))), rounds)
        except Exception as error:  # noqa: BLE001  each library has exceptions of its own
            print(f"{path.name} is left out: {type(error).__name__}: {error}", flush=True)


def random_feeds(model: onnx.ModelProto) -> Iterator[tuple[str, Array]]:
    """Normal numbers for each input, ones where these are ids or masks; what is dynamic is 1."""
    known = {tensor.name for tensor in model.graph.initializer}
    for tensor in model.graph.input:
        if tensor.name not in known:
            shape = [one.dim_value or 1 for one in tensor.type.tensor_type.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.type.tensor_type.elem_type)
            is_real = np.issubdtype(dtype, np.floating)
            values = np.random.default_rng(0).standard_normal(shape) if is_real else np.ones(shape)
            yield tensor.name, values.astype(dtype)


def compare(network: SmallNetwork, rounds: int) -> tuple[float, str, str, str, str, str, str]:
    """The ratio, and the cells.

    Raises:
        ValueError: dryfit's result is not that of ONNX Runtime.
    """
    context = context_of(network)
    session, feeds = onnxruntime_session(network.model.SerializeToString(), 1), dict(network.feeds)
    for found, expected in zip(context.run(feeds).values(), session.run(None, feeds), strict=True):
        if expected.size and np.abs(found - expected).max() > TOLERANCE * np.abs(expected).max():
            raise ValueError(f"{network.name}: dryfit and ONNX Runtime differ")
    sides = {
        "own": timed(lambda: context.run(feeds), time.process_time),
        "other": timed(lambda: session.run(None, feeds), time.process_time),
    }
    seconds = take_turns(sides, rounds, pause=0.0)
    own, other = seconds["own"], seconds["other"]
    ratio, (low, high) = median_ratio(own, other), spread(own, other)
    shape = "x".join(map(str, next(iter(feeds.values())).shape))
    times = (f"{1e3 * min(own):.3f} ms", f"{1e3 * min(other):.3f} ms")
    return (ratio, network.name, shape, *times, f"{ratio:.2f}", f"{low:.2f} to {high:.2f}")


def context_of(network: SmallNetwork) -> dryfit.ExecutionContext:
    """An engine's context with one thread; dynamic extents may be up to twice those of the feeds."""
    builder, parsed = dryfit.Builder(), dryfit.network_from_onnx(network.model)
    config = builder.create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    if any(-1 in tensor.shape for tensor in parsed.inputs):
        profile = builder.create_optimization_profile()
        for tensor in parsed.inputs:
            shape = network.feeds[tensor.name].shape
            most = tuple(2 * one if free == -1 else one for one, free in zip(shape, tensor.shape, strict=True))
            profile.set_shape(tensor.name, shape, shape, most)
        config.add_optimization_profile(profile)
    return builder.build_engine(parsed, config).create_execution_context(num_threads=1)


if __name__ == "__main__":
    main()
