"""The GPU target passes the kit that every target is held to."""

from dryfit.plugins.registry import target
from dryfit.testing import TargetConformance


class TestGPU(TargetConformance):
    target = target("GPU")
