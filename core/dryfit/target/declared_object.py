"""Objects that a target declares by name, so that they are imported when they are needed."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from dryfit.errors import PluginError, described_failure
from dryfit.target.declared_types import mistaken
from dryfit.target.first_import import first_import

_examined: dict[tuple[str, str], Any] = {}
"""Place and field to the object that was found to be of the right type. A declaration is asked for thousands of times
in one build, and looking through a device's formats or kernels each time took a tenth of it."""


def declared_object(place: str, device: str, field: str) -> Any:
    """What `module:attribute` names.

    Args:
        place: `module:attribute`.
        device: the target's, for errors.
        field: of the target, which says what kind of object is declared.

    Raises:
        PluginError: the module cannot be imported, or has no such attribute, or it is something else.
    """
    module, _, attribute = place.partition(":")
    known = _examined.get((place, field))
    if known is not None and getattr(sys.modules.get(module), attribute, None) is known:
        return known
    where = f"target {device}, {field} = {place!r}"
    try:
        with contextlib.nullcontext() if module in sys.modules else first_import(module):
            loaded = getattr(importlib.import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's module may raise anything, even SystemExit
        raise PluginError(
            "What the target declares could not be loaded",
            where=where,
            found=described_failure(error),
            allowed=None if module and attribute else "`module:attribute`",
            remedy="`dryfit plugins doctor` shows the traceback",
        ) from error
    found, allowed = mistaken(field, loaded)
    if found:
        raise PluginError(
            "What the target declares is something else",
            where=where,
            found=found,
            allowed=allowed,
            remedy="Tell the makers of the target; `dryfit plugins list` names its package",
        )
    _examined[place, field] = loaded
    return loaded
