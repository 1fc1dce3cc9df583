"""An edit: a way of writing a part of a model in other operators, so that a rule of a device is met.

Every module of `dryfit.onnx.edits` declares one:

    @edit("average-pool-cascade", title=..., cures=["pooling.window"], changes=..., source=...)
    def cascade_average_pools(graph: ModelGraph, node: NodeProto) -> bool:
        ...
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
from onnx import NodeProto

from dryfit.errors import PluginError, UnknownNameError
from dryfit.onnx.editing.model_graph import ModelGraph

Rewrite = Callable[[ModelGraph, NodeProto], bool]
"""Rewrites the graph at a node if it can; returns whether it did. Leaves the graph alone where it returns False."""


def _rules(rules: Iterable[str]) -> frozenset[str]:
    return frozenset(rules)


@attrs.frozen
class Edit:
    """One way of rewriting.

    Attributes:
        id: what `--apply` takes.
        title: what it does, in a few words.
        cures: ids of the limit rules that it may cure, without the device's name: any device may have such a rule.
        changes: what becomes of what, and where it is not possible.
        source: who recommends it, or why it is exact.
        rewrite: does it at one node.
    """

    id: str
    title: str
    cures: frozenset[str] = attrs.field(converter=_rules)
    changes: str
    source: str
    rewrite: Rewrite = attrs.field(repr=False)

    def may_cure(self, rules: Iterable[str]) -> bool:
        """Whether one of these rules (ids that begin with a device's name) is one that the edit is for."""
        return any(rule.partition(".")[2] in self.cures for rule in rules)


def edit(id: str, *, title: str, cures: Sequence[str], changes: str, source: str) -> Callable[[Rewrite], Edit]:
    """Make a function an edit; see `Edit`."""
    return lambda rewrite: Edit(id, title, cures, changes, source, rewrite)


@functools.cache
def all_edits() -> Mapping[str, Edit]:
    """Id to edit, in the order of the ids.

    Raises:
        PluginError: a module of `dryfit.onnx.edits` has no edit or two, or two have one id.
    """
    from dryfit.onnx import edits

    found: dict[str, Edit] = {}
    for module_info in pkgutil.iter_modules(edits.__path__):
        module = importlib.import_module(f"{edits.__name__}.{module_info.name}")
        declared = [value for value in vars(module).values() if isinstance(value, Edit)]
        if len(declared) != 1 or declared[0].id in found:
            raise PluginError(
                "A module of edits declares one edit, whose id no other has",
                where=f"module {module.__name__!r}",
                found=", ".join(one.id for one in declared) or "none",
            )
        found[declared[0].id] = declared[0]
    return dict(sorted(found.items()))


def find_edit(id: str) -> Edit:
    """The edit of an id.

    Raises:
        UnknownNameError: there is none.
    """
    if id not in all_edits():
        raise UnknownNameError("edit", id, all_edits())
    return all_edits()[id]
