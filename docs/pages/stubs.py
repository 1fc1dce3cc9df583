"""The public names of packages with a front door, as type checkers read them: `__init__.pyi` beside `__init__.py`."""

from __future__ import annotations

from types import ModuleType

import dryfit
import dryfit.testing


def dryfit_stub() -> str:
    """The stub of `dryfit`."""
    return _stub(dryfit)


def testing_stub() -> str:
    """The stub of `dryfit.testing`."""
    return _stub(dryfit.testing)


def _stub(package: ModuleType) -> str:
    places = vars(package)["_places"]
    imports = sorted(f"from {place} import {name} as {name}\n" for name, place in places.items())
    title = f"# The public names of `{package.__name__}`, written by `make docs` from the table in `__init__.py`."
    return f"{title}\n\n{''.join(imports)}"
