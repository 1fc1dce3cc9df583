"""Conformance kits that third parties run against their own targets and plugins."""

from __future__ import annotations

from dryfit.testing.target_conformance import TargetConformance

__all__ = ["TargetConformance"]
