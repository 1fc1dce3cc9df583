"""The CPU target passes the kit that every target is held to."""

from dryfit.plugins.registry import target
from dryfit.testing import TargetConformance


class TestCPU(TargetConformance):
    target = target("CPU")
