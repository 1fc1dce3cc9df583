"""Applying edits to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from onnx import ModelProto

from dryfit.errors import OnnxImportError, UnknownNameError
from dryfit.onnx.editing.edit import Edit, find_edit
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.onnx.editing.reshapes import tidy_reshapes
from dryfit.onnx.external_data import ExternalData


@attrs.frozen
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


@attrs.frozen
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
            "An edit finds nothing that it can change in this model",
            where=", ".join(f"edit {choice.text!r}" for choice in idle),
            allowed="; ".join(choice.edit.changes for choice in idle),
            remedy="Run `dryfit explain` on the model to see the edits that it can take",
        )
