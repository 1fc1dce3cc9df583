"""Runs a TFLite model as a question about it would."""

from __future__ import annotations

import numpy as np

import dryfit
from dryfit.answers.asked import asked


def outputs_of(data, *inputs, **options):
    """What dryfit computes for a model, in the order of its outputs."""
    subject = asked(data, None, options)
    engine = dryfit.Builder().build_engine(subject.network, subject.config)
    found = engine.create_execution_context().run(*inputs)
    return [np.asarray(found[tensor.name]) for tensor in subject.network.outputs]
