"""The ACME NPU and its layer pass the tests that dryfit's own targets and layers are held to."""

from __future__ import annotations

import numpy as np
from dryfit_npu import TARGET
from dryfit_npu.kernels import swish

from dryfit.testing.layer_plugin_conformance import LayerPluginConformance
from dryfit.testing.target_conformance import TargetConformance


class TestAcmeNpu(TargetConformance):
    target = TARGET


class TestSwish(LayerPluginConformance):
    plugin = swish
    examples = [
        ({}, [np.linspace(-4, 4, 24, dtype=np.float32).reshape(1, 2, 3, 4)]),
        ({"beta": 0.5}, [np.linspace(-4, 4, 6, dtype=np.float16)]),
    ]

    def oracle(self, fields, inputs):
        x = inputs[0].astype(np.float64)
        return [x * (0.5 + 0.5 * np.tanh(0.5 * fields["beta"] * x))]
