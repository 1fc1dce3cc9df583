"""`python -m dryfit_tensorrt --api 8.6 script.py ARGS` is `dryfit tensorrt run`, for debuggers and scripts."""

from __future__ import annotations

import sys

from dryfit.__main__ import main

main(["tensorrt", "run", *sys.argv[1:]])
