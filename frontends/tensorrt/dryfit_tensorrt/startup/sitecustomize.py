"""Runs when Python starts in a shell or program that `dryfit tensorrt` set up: installs the names, then chains.

`PYTHONPATH` has this folder first, so that `site` imports this file instead of another `sitecustomize`, which it then
imports itself. Nothing here may fail: every Python program of the shell runs it, also with a Python without dryfit.
"""

# ruff: noqa: INP001  the folder is put on the path and is not a package
from __future__ import annotations

import importlib
import os
import sys


class _NotInstalled:
    """Refuses `import tensorrt` with the reason, where the shell has dryfit's and this Python has not."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Raise for `tensorrt`; None for every other name."""
        if fullname == "tensorrt":
            message = (
                f"This shell simulates TensorRT with dryfit, and dryfit is not installed for {sys.executable}. "
                f"Install dryfit there, or run `dryfit tensorrt env --off` in the shell"
            )
            raise ModuleNotFoundError(message, name=fullname)


def _start() -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib takes longer than all of this
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != here]  # noqa: PTH100
    if os.environ.get("DRYFIT_TENSORRT_API"):
        try:
            from dryfit_tensorrt import imports
        except ModuleNotFoundError as error:
            if error.name != "dryfit_tensorrt":
                raise
            sys.meta_path.insert(0, _NotInstalled())
        else:
            imports.install()
    _chain()


def _chain() -> None:
    """Import the `sitecustomize` that this one is in front of."""
    own = sys.modules.pop(__name__)
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


_start()
