"""The GPU target passes the kit that every target is held to."""

from dryfit.plugins import registry
from dryfit.testing.target_conformance import TargetConformance


class TestGPU(TargetConformance):
    target = registry.target("GPU")
