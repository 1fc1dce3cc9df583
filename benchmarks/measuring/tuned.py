"""Plans of `dryfit tune` for the shared networks, kept in a folder, and what they answer to the judged pictures."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import dryfit
from dryfit.atomic_file import write_atomically
from dryfit.quantization.cache_forms import read_ranges, set_ranges
from measuring.accuracy import FLAGS, Answers, Build, measured, network_of
from measuring.accuracy_cases import CASES, SHARED, AccuracyCase, Pictures

DEVICES = ("GPU", "DLA")
CPU_SECONDS = "cpu seconds"


@attrs.frozen
class Setting:
    """How a network is tuned.

    Attributes:
        file: its model.
        options: keyword arguments of `dryfit.tune`.
    """

    file: str
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def case(self) -> AccuracyCase:
        """How the network is judged."""
        return next(one for one in CASES if one.file == self.file)

    @property
    def line(self) -> str:
        """The options of the command; "" for its defaults."""
        words = []
        for name, value in self.options.items():
            said = f"{100 * value:g}" if name.endswith("_macs") else str(value)
            words.append(f"--{name.replace('_', '-')} {said}")
        return " ".join(words)


_CLASSES = {"metric": "agreement", "max_loss": 3.0}

SETTINGS = (
    Setting("mobilenetv2-fp32.onnx", {**_CLASSES, "max_macs": 0.05, "max_added_macs": 0.4}),
    Setting("mobilenetv2-fp32.onnx", {**_CLASSES, "max_macs": 0.0, "max_added_macs": 0.8}),
    Setting("mobilenetv2-fp32.onnx", {**_CLASSES, "max_macs": 0.1}),
    Setting("squeezenet1.1-fp32.onnx", _CLASSES),
    Setting("squeezenet1.1-fp32.onnx", {**_CLASSES, "max_added_macs": 0.8}),
    Setting("squeezenet1.1-fp32.onnx", {**_CLASSES, "max_macs": 0.5}),
    Setting("clothing_mobilenetv2_fp32.onnx", {"target": 22.0}),
    Setting("yolox_nano_416.onnx"),
    Setting("yunet_n_320.onnx"),
    Setting("yunet_n_320.onnx", {"max_macs": 0.5}),
)


@attrs.frozen
class Plan:
    """A plan, and what it answers.

    Attributes:
        found: contents of `plan.json`.
        answers: what the tuned network answers to the judged pictures.
        cpu_seconds: CPU time of the tuning, by all its threads.
    """

    found: Mapping[str, Any]
    answers: Answers
    cpu_seconds: float


def plan_of(setting: Setting, device: str, pictures: Pictures, folder: Path) -> Plan:
    """The plan of a network for a device, by `dryfit tune` where the folder has none yet.

    Args:
        setting: the network, and how it is tuned.
        device: the default device; what it refuses runs on the GPU.
        pictures: it gets those to calibrate with, and is judged by the others.
        folder: folder of the plans.
    """
    words = [Path(setting.file).stem, device, *setting.line.replace("--", "").split()]
    place = folder / "-".join(words)
    known = place / "plan.json"
    if not known.exists():
        _tune(setting, device, pictures, place)
    found = json.loads(known.read_text())
    network = network_of(attrs.evolve(setting.case, file="model.onnx"), place)
    set_ranges(network, read_ranges(place / "model.cache"), "cache")
    half = set(found["half_layers"])
    for layer in network.layers:
        if layer.name in half:
            layer.precision = dryfit.DataType.HALF
    build = Build(device, (FLAGS.INT8, FLAGS.FP16, FLAGS.PREFER_PRECISION_CONSTRAINTS))
    seconds = json.loads((place / "run.json").read_text())[CPU_SECONDS]
    return Plan(found, measured(network, build, pictures).answers, seconds)


def _tune(setting: Setting, device: str, pictures: Pictures, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    samples = place.parent / f"{Path(setting.file).stem}-samples.npy"
    contents = io.BytesIO()
    np.save(contents, np.concatenate(pictures.calibration))
    # Another run may read the file at the same time.
    write_atomically(samples, [contents.getvalue()])
    before = time.process_time()
    answer = dryfit.tune(
        SHARED / "models" / setting.file,
        samples,
        place,
        device=device,
        fallback="GPU",
        # What does not depend on the limit of multiply-accumulates is tried once.
        state=place.parent / f"{Path(setting.file).stem}-{device}-{setting.options.get('metric', 'sqnr')}.state",
        resume=True,
        **setting.options,
    )
    (place / "run.json").write_text(json.dumps({CPU_SECONDS: round(time.process_time() - before)}))
    print(answer, flush=True)
