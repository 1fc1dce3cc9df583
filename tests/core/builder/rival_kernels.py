"""A stranger's device with several kernels for one layer kind, and networks for it."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.timing_cache import TimingCache, TimingCacheKey
from dryfit.builder.kernels.timing import group_signature
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.plugins import discovery, registry
from dryfit.plugins.discovery import TARGETS
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import kernel
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME_FAST", [], supported_kinds=frozenset({"activation", "convolution", "elementwise", "softmax"}))
TYPES = [DataType.FLOAT, DataType.HALF]


def is_relu(group, specs):
    return group.main.activation_type is ActivationType.RELU


@kernel("acme.brisk", kinds="activation", data_types=TYPES, accepts=is_relu)
def brisk(binding):
    """ReLU."""
    (x,), (y,) = binding.inputs, binding.outputs
    return lambda: np.maximum(x, 0, out=y)


@kernel("acme.toilsome", kinds="activation", data_types=TYPES, accepts=is_relu)
def toilsome(binding):
    """ReLU, twenty times over."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        for _ in range(20):
            np.maximum(x, 0, out=y)

    return run


@kernel("acme.compiled", kinds="activation", data_types="fp32", accepts=is_relu)
def compiled(binding):
    """ReLU by Numba."""
    import numba

    @numba.njit
    def rectify(x, y):
        for index in np.ndindex(x.shape):
            y[index] = max(x[index], np.float32(0))

    (x,), (y,) = binding.inputs, binding.outputs
    return lambda: rectify(x, y)


LINES = TensorFormat("LINES", TYPES, channels_last=True, line_alignment_bytes={"": 48})


@kernel("acme.packed", kinds="activation", data_types=TYPES, accepts=is_relu, formats={"input": LINES, "output": LINES})
def packed(binding):
    """ReLU on lines of pixels, padding and all; the padding of the output is no zero."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        np.maximum(x, 0, out=y)
        y[:, :, 6:] = 7

    return run


KERNELS = (brisk, toilsome)
TARGET = Target(
    "ACME_FAST",
    "Acme, of several minds",
    [Platform("one", "one", "Acme one")],
    precisions=TYPES,
    limits_at=f"{__name__}:LIMITS",
    kernels_at=f"{__name__}:KERNELS",
    simulated="nothing but its kernels",
)


@attrs.frozen
class Entry:
    """The entry point of the target."""

    name: str = "acme-fast"
    group: str = TARGETS
    value: str = f"{__name__}:TARGET"
    module: str = __name__
    attr: str = "TARGET"
    dist: object = SimpleNamespace(name="acme-fast", version="1.0")

    def load(self):
        return TARGET


def install(monkeypatch, *kernels):
    """Install the target, with these kernels."""
    read = discovery.installed_entry_points
    monkeypatch.setattr(f"{__name__}.KERNELS", kernels or KERNELS)
    fresh = PluginRegistry(lambda: [*read(), Entry()], "")
    monkeypatch.setattr(registry, "__dict__", vars(fresh))


def acme_config(cache=None):
    config = BuilderConfig()
    config.default_device_type = "ACME_FAST"
    config.allow_fallback("CPU")
    config.set_timing_cache(TimingCache() if cache is None else cache)
    return config


def doctored(network, layers, microseconds, specs=None, layout="any"):
    """A cache that says how long kernels take for the group of these layers."""
    group = LayerGroup([network.layer(name) for name in layers])
    specs = specs or {tensor.name: tensor.spec for tensor in network.tensors}
    cache = TimingCache()
    for name, time in microseconds.items():
        cache.update(TimingCacheKey(group_signature(group, specs), name, 1, layout), time)
    return cache
