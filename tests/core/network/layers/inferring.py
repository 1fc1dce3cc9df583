"""Asking a layer for its outputs, and for its refusals."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorSpec


def spec(*shape, dtype=DataType.FLOAT):
    """A spec of a shape."""
    return TensorSpec(shape, dtype)


def indices(*shape):
    """A spec of INT64 indices."""
    return spec(*shape, dtype=DataType.INT64)


def known(*values, dtype=np.int64):
    """A spec of a vector that is known."""
    return TensorSpec.of(np.array(values, dtype))


def scalar(value, dtype=np.int64):
    """A spec of a scalar that is known."""
    return TensorSpec.of(np.array(value, dtype))


def shape_of(layer, *inputs):
    """The shape of the first output."""
    return layer.infer_outputs(inputs)[0].shape


def assert_refused(layer, inputs, message, **facts):
    """Check that the layer refuses the inputs, says so, names itself, and gives the facts."""
    layer.name = "asked"
    with pytest.raises(NetworkError) as caught:
        layer.infer_outputs(inputs)
    assert message in caught.value.message
    assert caught.value.where == f"layer 'asked' ({layer.kind})"
    for name, value in facts.items():
        assert getattr(caught.value, name) == value, name
