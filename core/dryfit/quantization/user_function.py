"""A function of the user's, named by its module or by the file that it stands in."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from dryfit.errors import CalibrationError


def call_user_function(place: str) -> Any:
    """What a function without arguments gives.

    Args:
        place: `module:function`, of a module that can be imported, or `folder/file.py:function`.

    Raises:
        CalibrationError: there is no such module, file or function, or it cannot be called so.
    """
    module, _, name = place.rpartition(":")
    try:
        loaded = _module_of_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        return getattr(loaded, name)()
    except (ImportError, OSError, SyntaxError, AttributeError, TypeError, ValueError) as error:
        raise CalibrationError(
            "The function that gives samples cannot be called",
            where=place,
            found=f"{type(error).__name__}: {error}",
            allowed="module:function, importable here, or file.py:function, without arguments",
        ) from error


def _module_of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
