"""Edits: ways of writing a part of a model in other operators, so that a rule of a device is met; and applying them.

Every module of `dryfit.onnx.edits` declares some:

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
from onnx import ModelProto, NodeProto

from dryfit.attrs_classes import frozen
from dryfit.errors import OnnxImportError, PluginError, UnknownNameError
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.onnx.editing.parts import tidy_reshapes
from dryfit.onnx.external_data import ExternalData

Rewrite = Callable[[ModelGraph, NodeProto], bool]
"""Rewrites the graph at a node if it can; returns whether it did. Leaves the graph alone where it returns False."""


def _rules(rules: Iterable[str]) -> frozenset[str]:
    return frozenset(rules)


@frozen
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
        PluginError: a module of `dryfit.onnx.edits` has no edit, or two edits have one id.
    """
    from dryfit.onnx import edits

    found: dict[str, Edit] = {}
    for module_info in pkgutil.iter_modules(edits.__path__):
        module = importlib.import_module(f"{edits.__name__}.{module_info.name}")
        declared = [value for value in vars(module).values() if isinstance(value, Edit)]
        ids = [one.id for one in declared]
        if not ids or len({*ids, *found}) < len(ids) + len(found):
            raise PluginError(
                "A module of edits must declare edits with unique ids",
                where=f"module {module.__name__!r}",
                found=", ".join(ids) or "none",
                remedy="Rename the edit",
            )
        found.update(zip(ids, declared, strict=True))
    return dict(sorted(found.items()))


def find_edit(id: str) -> Edit:
    """The edit of an id.

    Raises:
        UnknownNameError: there is none.
    """
    if id not in all_edits():
        raise UnknownNameError("edit", id, all_edits())
    return all_edits()[id]


@frozen
class EditChoice:
    """An edit, everywhere or at one node.

    Attributes:
        edit: the edit.
        node: name of the only node to rewrite; None for every node where it is possible.
    """

    edit: Edit
    node: str | None = None

    @property
    def text(self) -> str:
        """As `--apply` takes it: `average-pool-cascade` or `average-pool-cascade@pool5`."""
        return self.edit.id if self.node is None else f"{self.edit.id}@{self.node}"

    @classmethod
    def parsed(cls, text: str) -> EditChoice:
        """The choice that a text stands for.

        Raises:
            UnknownNameError: there is no such edit.
        """
        name, _, node = text.strip().partition("@")
        return cls(find_edit(name), node or None)


@frozen
class EditedModel:
    """What came of it.

    Attributes:
        model: the new model.
        choices: what was applied.
        places: for each choice, in order, the names of the nodes that it rewrote.
    """

    model: ModelProto
    choices: Sequence[EditChoice]
    places: Sequence[Sequence[str]]


def apply_edits(
    model: ModelProto,
    external: ExternalData,
    choices: Sequence[EditChoice],
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> EditedModel:
    """A model with edits applied one after the other. Edits that find no place change nothing.

    Args:
        model: stays as it is.
        external: where its external data may lie.
        choices: what to apply.
        shapes: input name to its shape. Extents that the model leaves open become fixed, except the first: the batch.

    Raises:
        UnknownNameError: a choice names a node that does not exist.
        OnnxImportError: the model's shapes do not fit together.
    """
    graph = ModelGraph(model, external)
    graph.fix_inputs(dict(shapes or {}))
    names = {node_name(node) for node in graph.nodes}
    places = []
    for choice in choices:
        if choice.node is not None and choice.node not in names:
            raise UnknownNameError("node", choice.node, names, where=f"edit {choice.text!r}")
        rewritten = [
            node_name(node)
            for node in list(graph.nodes)
            if choice.node in (None, node_name(node))
            and node.domain in ("", "ai.onnx")
            and node.input
            and graph.holds(node)
            and choice.edit.rewrite(graph, node)
        ]
        if rewritten:
            tidy_reshapes(graph)
        places.append(rewritten)
    return EditedModel(graph.model(), choices, places)


def require_places(edited: EditedModel) -> None:
    """Refuse edits that found nothing to change.

    Raises:
        OnnxImportError: names those that did.
    """
    idle = [choice for choice, places in zip(edited.choices, edited.places, strict=True) if not places]
    if idle:
        raise OnnxImportError(
            "The edit does not apply to this model",
            where=", ".join(f"edit {choice.text!r}" for choice in idle),
            allowed="; ".join(choice.edit.changes for choice in idle),
            remedy="Run `dryfit explain` on the model to list the edits that apply",
        )
