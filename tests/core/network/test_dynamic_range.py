"""The dynamic range of a tensor, as TensorRT's Python users write it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import chain

from dryfit.errors import NetworkError


def test_a_range_is_assigned_and_none_forgets_it():
    tensor = chain("c").tensor("x")
    tensor.dynamic_range = (np.float32(-1), 2)
    assert tensor.dynamic_range == (-1.0, 2.0)
    tensor.dynamic_range = None
    assert tensor.dynamic_range is None
    tensor.set_dynamic_range(-3, 0)
    assert tensor.dynamic_range == (-3.0, 0.0)
    tensor.reset_dynamic_range()
    assert tensor.dynamic_range is None


@pytest.mark.parametrize(
    "bounds", [(0, 0), (1, -1), (0, np.nan), (-np.inf, 1), 3.0, (1,), (1, 2, 3), ("a", "b"), (0, 1e60), (0, 1e-60)]
)
def test_what_is_no_range_is_refused_and_the_old_one_stays(bounds):
    tensor = chain("c").tensor("x")
    tensor.dynamic_range = (-1, 1)
    with pytest.raises(NetworkError, match=r"tensor 'x'[\s\S]*binary32"):
        tensor.dynamic_range = bounds
    assert tensor.dynamic_range == (-1.0, 1.0)
