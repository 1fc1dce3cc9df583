"""What the tests of tuning share: a judge of a small model, and a tuner that has begun."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from dryfit.answers.options import NetworkOptions
from dryfit.answers.tuning import tuning
from dryfit.answers.tuning.judge import DeviceRuns, Judge
from dryfit.answers.tuning.trials import Trials
from dryfit.onnx.external_data import ExternalData
from dryfit.plugins.metrics import metric as metric_of

HERE = ExternalData(None)


def judge_of(small: onnx.ModelProto, values: np.ndarray[Any, Any], *, device: str = "GPU") -> Judge:
    """A judge by the SQNR of these samples, which are also those that are learned from."""
    feeds = [{"x": one[np.newaxis]} for one in values]
    options = NetworkOptions(device=device, precision="int8,fp16", fallback="GPU")
    runs = DeviceRuns(folder=None, options=options, shapes={"x": feeds[0]["x"].shape}, threads=1)
    return Judge.of_model(
        small,
        external=HERE,
        runs=runs,
        away=runs,
        trials=Trials({}),
        collected=feeds,
        held=feeds,
        metric=metric_of("sqnr"),
        labels=None,
    )


def begun(small: onnx.ModelProto, values: np.ndarray[Any, Any], *options: Any, **named: Any) -> tuning._Tuner:
    """A tuner of a model that has judged it as it is; `options` are those behind the model."""
    tuner = tuning._Tuner(judge_of(small, values), small, *options, **named)
    tuner.begin()
    return tuner
