"""The CPU target passes the kit that every target is held to."""

from dryfit.plugins import registry
from dryfit.testing.target_conformance import TargetConformance


class TestCPU(TargetConformance):
    target = registry.target("CPU")
