"""The target passes the tests that dryfit's own targets are held to."""

from __future__ import annotations

from dryfit_ethos_u import TARGET

from dryfit.testing.target_conformance import TargetConformance


class TestEthosU(TargetConformance):
    target = TARGET
