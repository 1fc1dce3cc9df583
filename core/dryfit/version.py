"""The version of dryfit that is installed."""

from __future__ import annotations

import importlib.metadata

__version__ = importlib.metadata.version("dryfit")
"""The version of dryfit, such as "0.1.0"."""
