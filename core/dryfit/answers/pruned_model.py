"""Prune a model to the sparsity pattern of a device: `dryfit.prune` and `dryfit sparsity prune`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs
from onnx import ModelProto

from dryfit.answers.asked import Model, asked, load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.defaults import with_every_precision
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.placement_text import defaults_line
from dryfit.answers.pruning import (
    ACCURACY,
    LeftWeights,
    PrunedWeights,
    Pruning,
    keep_weights_names,
    planned_pruning,
    pruned_copy,
)
from dryfit.answers.sparsity_layers import (
    SparsityQuestion,
    SparsitySummary,
    sparsity_layers,
    sparsity_summary,
)
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.building import designed
from dryfit.errors import ConfigError
from dryfit.json_names import json_names
from dryfit.network.network import Network
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.model_file import read_model, write_model
from dryfit.onnx.pruned_model import ExchangedWeights, with_weights

_NOT_STORED = "the model computes them, has them in a function, or uses them elsewhere too"


@frozen(repr=False, kw_only=True, eq=False)
class PruneAnswer(SparsityQuestion, Answer):
    """A pruned copy of a model, with a report of the changes.

    Attributes:
        output: file that was written; None for none.
        pruning: weights that were pruned, and weights that were not.
        before: sparsity of the original model.
        after: sparsity of the pruned copy.
        note: effect of pruning on accuracy.
        pruned_model: the pruned copy: an ONNX model, or a network if the input was a network.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.prune("digits.onnx", "pruned.onnx", platform="agx-orin-64")
        >>> [(one.name, one.zeroed) for one in answer.pruned]  # a DLA needs more than 64 input channels
        []
    """

    COMMAND: ClassVar[str] = "sparsity prune"
    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "model output device platform software precisions fallback overlays assumed pattern pruned left before after "
        "note"
    )

    output: Path | None
    pruning: Pruning
    before: SparsitySummary
    after: SparsitySummary
    note: str = ACCURACY
    pruned_model: ModelProto | Network
    notes: Sequence[str] = ()

    @property
    def pruned(self) -> Sequence[PrunedWeights]:
        """Pruned weights, in network order."""
        return self.pruning.pruned

    @property
    def left(self) -> Sequence[LeftWeights]:
        """Weights that would have gained from pruning but were not pruned."""
        return self.pruning.left

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return what was pruned, what was not and why, and the gain."""
        yield from defaults_line(self.assumed, self.overlays)
        rows = [
            (one.name, one.layers, f"{one.zeroed:,}", f"{one.size:,}", f"{100 * one.energy_kept:.1f} %")
            for one in self.pruned
        ]
        if rows:
            yield Table("", ["weights", "layers", "set to 0", "of", "squares kept"], rows)
        yield Entries("Unchanged", [(", ".join(one.layers), one.reason, "") for one in self.left])
        yield Line(self.summary_line())
        yield Line(str(self.after))

    def summary_line(self) -> str:
        """Return a one-line summary of the pruning."""
        return f"{self.output or self.model}: {self.pruning}"


def prune(
    model: Model,
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    **options: Unpack[Options],
) -> PruneAnswer:
    """Return a copy of a model, pruned by magnitude where the device skips the resulting zeros.

    Of every four neighbors along the input channels, the two largest are kept; on a tie, the first one wins. The model
    itself is not modified. Pruning changes the results: measure the accuracy and retrain.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        output: path of the pruned copy; None to write no file, see `PruneAnswer.pruned_model`. Networks are not
            written.
        force: whether to overwrite an existing file.
        options: keyword arguments of `dryfit sparsity prune`, with the defaults of `find_sparsity`.

    Raises:
        ConfigError: The file exists or is the model itself, or the options conflict with each other or with the model.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> dryfit.prune("digits.onnx", "sparse.onnx").after.sparse_macs_share
        0.0
    """
    path = None if output is None else Path(output)
    if path is not None:
        _require_free(model, path, force=force)
    subject = asked(model, None, {**options, "sparsity": "disable"}, defaults=with_every_precision)
    subject.refuse_other_formats(
        "Pruning", "Prune the model before it is converted, or pass an ONNX model or a network"
    )
    network, config, said = subject.network, subject.config, subject.options or NetworkOptions()
    default = TargetVariant.chosen(config, config.default_device_type)
    if isinstance(model, Network):
        keep_weights_names(model, network)
    with quiet_log():
        design = designed(network, config, f"Looking for weights to prune in {network.name}")
        before = sparsity_summary(sparsity_layers(design, default))
        pruning = planned_pruning(network, design, default)
    copy: ModelProto | Network
    if subject.source is None:
        copy = pruned_copy(model, pruning)
        pruning.apply(network)  # our own copy, whose layers the config's devices belong to
    else:
        onnx_model, external = read_model(subject.source, subject.folder)
        copy, pruning = _pruned_model(onnx_model, external, network, pruning)
        network = load_network(copy, said, subject.folder)
        config, _ = config_of(network, said)
    with quiet_log():
        after = sparsity_summary(sparsity_layers(designed(network, config, "Looking at the pruned copy"), default))
    if path is not None and isinstance(copy, ModelProto):
        write_model(copy, path, external, subject.folder or path.parent)
    return PruneAnswer(
        **attrs.asdict(SparsityQuestion.of(subject, default), recurse=False),
        output=path,
        pruning=pruning,
        before=before,
        after=after,
        pruned_model=copy,
        notes=subject.notes,
    )


def _require_free(model: Model, output: Path, *, force: bool) -> None:
    """Reject an output that exists or cannot be written.

    Raises:
        ConfigError: The output is the model, it exists and must not be overwritten, or the model is a network.
    """
    where = f"--output {output}"
    if isinstance(model, Network):
        raise ConfigError(
            "Pruned models can only be written for ONNX models", where=where, remedy="Use PruneAnswer.pruned_model"
        )
    is_file = isinstance(model, str | os.PathLike)
    if is_file and output.exists() and output.samefile(model):
        raise ConfigError(
            "The output must not be the model itself", where=where, remedy="Choose another name for the copy"
        )
    if output.exists() and not force:
        raise ConfigError("The file already exists", where=where, remedy="Choose another name, or give --force")


def _pruned_model(
    model: ModelProto, external: ExternalData, network: Network, pruning: Pruning
) -> tuple[ModelProto, Pruning]:
    """Return a pruned copy of an ONNX model, and the pruning limited to weights that the model stores."""
    wanted = {}
    for one in pruning.pruned:
        nodes = [node for name in one.layers for node in network.layer(name).onnx_nodes]
        wanted[ExchangedWeights(nodes, one.before, one.after)] = one
    copy, missing = with_weights(model, external, list(wanted))
    lost = [wanted[one] for one in missing]
    kept = [one for one in pruning.pruned if one not in lost]
    left = [*pruning.left, *(LeftWeights(one.name, one.layers, _NOT_STORED) for one in lost)]
    return copy, attrs.evolve(pruning, pruned=kept, left=left)
