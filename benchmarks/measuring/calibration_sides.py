"""Processes that calibrate, or only run, a model: `python -m measuring.calibration_sides SIDE MODEL FOLDER THREADS`.

FOLDER has an .npy file for each image. A side prints the milliseconds of its search for each tensor, or 0, and its peak
memory in MiB.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from measuring.calibration_models import input_name
from measuring.models import Array
from measuring.peak_memory import own_peak_mib


def images(folder: Path) -> Iterator[Array]:
    """The images, one after another."""
    for path in sorted(folder.glob("*.npy")):
        yield np.load(path)


def plain(model: Path, folder: Path, threads: int) -> float:
    """FP32 inference by dryfit: what calibration cannot be faster than."""
    import dryfit

    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    engine = builder.build_engine(dryfit.network_from_onnx(str(model)), config)
    context, name = engine.create_execution_context(num_threads=threads), input_name(model)
    for image in images(folder):
        context.run({name: image})
    return 0.0


def dryfit_entropy2(model: Path, folder: Path, threads: int) -> float:
    """The entropy2 calibrator of dryfit: histograms of all tensors, and the search."""
    import dryfit
    from dryfit.calibration.executor import EngineExecutor
    from dryfit.plugins.calibrators import calibrator
    from dryfit.quantization.calibration import collect
    from dryfit.quantization.network_ranges import solve_network

    name, chosen = input_name(model), calibrator("entropy2")
    network = dryfit.network_from_onnx(str(model))
    samples = ({name: image} for image in images(folder))
    seen = collect(network, chosen, samples, executor=EngineExecutor(threads))
    start = time.process_time()
    found = solve_network(network, seen, chosen)
    return 1e3 * (time.process_time() - start) / len(found)


def onnxruntime_entropy(model: Path, folder: Path, threads: int) -> float:
    """ONNX Runtime's entropy calibrator, as `quantize_static` calls it. It takes as many threads as it wants."""
    del threads
    import tempfile

    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod
    from onnxruntime.quantization.calibrate import create_calibrator

    class Reader(CalibrationDataReader):
        """Gives the images."""

        def __init__(self) -> None:
            self.images, self.name = images(folder), input_name(model)

        def get_next(self) -> Mapping[str, Array] | None:
            image = next(self.images, None)
            return None if image is None else {self.name: image}

    with tempfile.TemporaryDirectory() as place:
        calibrator = create_calibrator(
            model,
            augmented_model_path=str(Path(place) / "augmented.onnx"),
            calibrate_method=CalibrationMethod.Entropy,
        )
        calibrator.set_execution_providers(["CPUExecutionProvider"])
        calibrator.collect_data(Reader())
        calibrator.compute_data()
    return 0.0


SIDES: Mapping[str, Callable[[Path, Path, int], float]] = {
    "plain": plain,
    "dryfit": dryfit_entropy2,
    "onnxruntime": onnxruntime_entropy,
}
"""Name to what is measured."""


def main() -> None:
    """Run a side, and print what it tells."""
    side, model, folder, threads = sys.argv[1:]
    milliseconds = SIDES[side](Path(model), Path(folder), int(threads))
    print(milliseconds, own_peak_mib())


if __name__ == "__main__":
    main()
