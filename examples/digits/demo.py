"""The main job on real input: a trained network, calibrated, placed on a DLA in INT8, built, saved, loaded and run.

`python examples/digits/demo.py`, or `make demo`. `--device GPU` and `--platform xavier` show other placements.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from digits_data import Split, train_and_test

import dryfit
from dryfit.answers.placement import placement_of
from dryfit.answers.placement_text import placement_blocks
from dryfit.answers.text import Table, bytes_text
from dryfit.building import assess
from dryfit.calibration.calibrate import calibrate
from dryfit.cli.console import print_line, show
from dryfit.cli.log import log_to_stderr
from dryfit.engine.progress import TerminalProgress, run_many
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.reference.executor import run_reference

MODEL = Path(__file__).with_name("digits.onnx")
BATCH = 20
CALIBRATION_IMAGES = 500

FP16, INT8 = dryfit.BuilderFlag.FP16, dryfit.BuilderFlag.INT8


class Wish(NamedTuple):
    """An engine that is compared: its device, the types that it may compute in besides FP32, and the platform."""

    device: str
    types: tuple[dryfit.BuilderFlag, ...]
    platform: str | None


def digits_network() -> dryfit.Network:
    """The network as it was trained, for batches."""
    network = dryfit.network_from_onnx(MODEL)
    network.inputs[0].shape = (BATCH, 1, 8, 8)
    return network


def calibrate_on(images: np.ndarray, path: Path) -> None:
    """Find the INT8 scales of the network's tensors from images, and write them as a calibration cache."""
    samples = [{"image": batch} for batch in np.split(images, len(images) // BATCH)]
    found = calibrate(digits_network(), "entropy2", samples)
    path.write_bytes(CalibrationCache.of_solutions(found, CalibrationAlgoType.ENTROPY_CALIBRATION_2).to_bytes())
    scales = sum(one.dynamic_range is not None for one in found.values())
    print_line(f"Calibrated on {len(images)} images by entropy2: {scales} scales of {len(found)} tensors.")
    print_line()


def config_of(wish: Wish, cache: Path, progress: dryfit.ProgressMonitor) -> dryfit.BuilderConfig:
    """How an engine is to be built. What its device refuses runs on the GPU."""
    config = dryfit.BuilderConfig()
    config.default_device_type = wish.device
    if wish.platform is not None:
        config.set_platform(wish.device, wish.platform)
    for flag in (*wish.types, dryfit.BuilderFlag.GPU_FALLBACK):
        config.set_flag(flag)
    if INT8 in wish.types:
        config.calibration_cache = cache
    config.progress_monitor = progress
    return config


def built(config: dryfit.BuilderConfig, path: Path) -> dryfit.Engine:
    """The engine, saved to a file and loaded from it."""
    # The builder warns of each layer that falls back; the report tells it in order.
    with log_to_stderr(None):
        dryfit.Builder().build_engine(digits_network(), config).save(path)
    return dryfit.Engine.load(path)


def run_engine(engine: dryfit.Engine, test: Split, progress: dryfit.ProgressMonitor) -> np.ndarray:
    """Probabilities `[360, 10]` of the test split."""
    context = engine.create_execution_context()
    batches = np.split(test.images, len(test.images) // BATCH)
    outputs = run_many(context, [{"image": batch} for batch in batches], progress)
    return np.concatenate([output["probabilities"] for output in outputs])


def run_fp32_reference(test: Split) -> np.ndarray:
    """The same by numpy in FP32, layer by layer: what the network means."""
    return run_reference(dryfit.network_from_onnx(MODEL), {"image": test.images})["probabilities"]


def print_decisions(engine: dryfit.Engine, config: dryfit.BuilderConfig) -> None:
    """Where each layer runs, in which type, and why."""
    show(placement_blocks(placement_of(MODEL.name, engine.plan, engine.plan.settings), verbose=True))
    print_line()
    with log_to_stderr(None):
        reasons = assess(digits_network(), config).reasons
    rows = [
        (layer.layer, layer.device, layer.precision.text, reasons[layer.layer].text) for layer in engine.plan.layers
    ]
    show([Table("Precisions", ["layer", "device", "precision", "because"], rows)])
    print_line()


def print_accuracy(answers: Mapping[str, np.ndarray], labels: np.ndarray) -> None:
    """How many digits are right, beside the first of the answers, which the others are compared with."""
    reference = next(iter(answers.values()))
    rows = []
    for name, found in answers.items():
        digits = found.argmax(axis=1)
        same = (digits == reference.argmax(axis=1)).mean()
        largest = np.abs(found - reference).max()
        rows.append((name, f"{(digits == labels).mean():.2%}", f"{same:.2%}", f"{largest:.2g}"))
    show([Table("Accuracy on the test split", ["", "right", "same digit as FP32", "largest difference"], rows)])


def main() -> None:
    """The whole way, and what came out."""
    parser = argparse.ArgumentParser(description="Calibrate, place, build, save, load and run the digits network.")
    parser.add_argument("--device", default="DLA")
    parser.add_argument("--platform", help="of the device; its first one where left out, for a DLA that of an AGX Orin")
    arguments = parser.parse_args()
    device, platform = arguments.device, arguments.platform
    wishes = {
        f"FP16 {device}": Wish(device, (FP16,), platform),
        "INT8 GPU": Wish("GPU", (INT8, FP16), platform if device == "GPU" else None),
        f"INT8 {device}": Wish(device, (INT8, FP16), platform),
    }

    train, test = train_and_test()
    answers = {"FP32 reference": run_fp32_reference(test)}
    with TerminalProgress() as progress, tempfile.TemporaryDirectory() as folder:
        cache, path = Path(folder) / "digits.cache", Path(folder) / "digits.engine"
        calibrate_on(train.images[:CALIBRATION_IMAGES], cache)
        for name, wish in wishes.items():
            config = config_of(wish, cache, progress)
            engine = built(config, path)
            answers[name] = run_engine(engine, test, progress)
        print_decisions(engine, config)
        size = bytes_text(path.stat().st_size)
    print_line(f"Built, saved to a file of {size}, loaded again, run on {len(test.labels)} images.")
    print_accuracy(answers, test.labels)


if __name__ == "__main__":
    main()
