"""The main job on real input: a trained network, placed on a DLA, built, saved, loaded and run, without a DLA.

`python examples/digits/demo.py`, or `make demo`. `--device GPU` and `--platform xavier` show other placements.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from digits_data import Split, train_and_test

import dryfit
from dryfit.cli.console import bytes_text, print_line, print_table
from dryfit.cli.log import log_to_stderr
from dryfit.cli.placement_report import placement_report
from dryfit.cli.placement_tables import print_placement
from dryfit.engine.progress import TerminalProgress, run_many
from dryfit.reference.executor import run_reference

MODEL = Path(__file__).with_name("digits.onnx")
BATCH = 36


def build(device: str, platform: str, progress: dryfit.ProgressMonitor) -> dryfit.Engine:
    """The engine of the digits network: FP16, and what the device refuses runs on the GPU."""
    network = dryfit.network_from_onnx(MODEL)
    network.inputs[0].shape = (BATCH, 1, 8, 8)
    config = dryfit.BuilderConfig()
    config.default_device_type = device
    config.set_platform(device, platform)
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.set_flag(dryfit.BuilderFlag.GPU_FALLBACK)
    config.progress_monitor = progress
    # The builder warns of each layer that falls back; the report below tells it in order.
    with log_to_stderr(None):
        return dryfit.Builder().build_engine(network, config)


def run_engine(engine: dryfit.Engine, test: Split, progress: dryfit.ProgressMonitor) -> np.ndarray:
    """Probabilities `[360, 10]` of the test split."""
    context = engine.create_execution_context()
    batches = np.split(test.images, len(test.images) // BATCH)
    outputs = run_many(context, [{"image": batch} for batch in batches], progress)
    return np.concatenate([output["probabilities"] for output in outputs])


def run_fp32_reference(test: Split) -> np.ndarray:
    """The same by numpy in FP32, layer by layer: what the network means."""
    network = dryfit.network_from_onnx(MODEL)
    return run_reference(network, {"image": test.images})["probabilities"]


def main() -> None:
    """The whole way, and what came out."""
    parser = argparse.ArgumentParser(description="Place, build, save, load and run the digits network.")
    parser.add_argument("--device", default="DLA")
    parser.add_argument("--platform", default="agx-orin-64")
    arguments = parser.parse_args()

    _, test = train_and_test()
    with TerminalProgress() as progress, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.engine"
        build(arguments.device, arguments.platform, progress).save(path)
        size = path.stat().st_size
        engine = dryfit.Engine.load(path)
        print_placement(placement_report(MODEL.name, engine.plan, engine.plan.settings), verbose=True)
        print_line()
        print_line(f"Built, saved to a file of {bytes_text(size)}, loaded again, run on {len(test.labels)} images.")
        found = run_engine(engine, test, progress)
    reference = run_fp32_reference(test)
    accuracy = [
        (what, f"{(answer.argmax(axis=1) == test.labels).mean():.2%}")
        for what, answer in (("this engine", found), ("FP32 reference", reference))
    ]
    print_table("Accuracy on the test split", ["", "right"], accuracy)
    same = (found.argmax(axis=1) == reference.argmax(axis=1)).mean()
    print_line(f"Same digit as the reference: {same:.2%}; largest difference: {np.abs(found - reference).max():.2g}")


if __name__ == "__main__":
    main()
