"""`dryfit.compare_versions`: what versions of TensorRT make of one model."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.engine.small_networks import convolution_network

import dryfit
from dryfit.errors import ConfigError, UnknownNameError

SAMPLE = {"x": np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)}


def compared(*apis, **options):
    return dryfit.compare_versions(convolution_network(), apis, data=SAMPLE, shape={"x": (2, 3, 8, 8)}, **options)


def test_weakly_typed_versions_take_precisions_and_version_11_leaves_them_out():
    answer = compared("8.6", "10.16", "11.1", precision="fp16")
    weak, _, strong = answer.versions
    assert (weak.can_be_built, strong.can_be_built) == (True, True)
    assert weak.layers_by_precision == {"FP16": 2}
    assert strong.layers_by_precision == {"FP32": 2}
    assert list(strong.notes) == ["--precision"]
    assert weak.notes == []
    assert [layer.differs for layer in answer.layers] == [True, True]
    assert answer.layers[0].placements["11.1"].precision == "FP32"
    (output,) = answer.outputs
    assert output.largest_differences["10.16"] == 0
    assert 0 < output.largest_differences["11.1"] < 0.1
    assert "Layers that differ" in str(answer)


def test_the_dla_is_refused_by_the_version_that_has_none():
    answer = compared("10.16", "11.1", device="DLA", fallback="GPU", precision="fp16")
    with_dla, without = answer.versions
    assert with_dla.segments["DLA"] == 1
    assert not without.can_be_built
    assert "TensorRT 11 has no DLA" in without.errors[0]
    assert answer.reference == "10.16"
    assert answer.outputs == []
    assert "not built: 11.1" in answer.summary_line()


def test_versions_are_checked():
    with pytest.raises(UnknownNameError, match=r"9\.9"):
        compared("9.9")
    with pytest.raises(ConfigError, match="once"):
        compared("8.6", "8.6")
    with pytest.raises(ConfigError, match="software"):
        compared("8.6", software="8.5")
