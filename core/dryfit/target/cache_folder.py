"""Where what can be made again is kept: machine code of kernels, what the processor is, and how long kernels take."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

ENVIRONMENT_VARIABLE = "DRYFIT_CACHE_DIR"
"""Names the folder to use instead of the user's cache folder."""


def cache_folder() -> Path:
    """The folder of all caches; it need not exist."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or platformdirs.user_cache_dir("dryfit", appauthor=False))
