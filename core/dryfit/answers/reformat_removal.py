"""Find why tensors are copied, and which input and output formats avoid it, by trying each format.

Nothing is derived from a table: every reported format was applied to the network and evaluated.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.json_data import Count
from dryfit.answers.options import INPUT_FORMATS, OUTPUT_FORMATS
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.trtexec_spellings import IoFormat, io_formats_set, io_formats_text
from dryfit.builder.design import Design
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.builder.formats.sides import Sides
from dryfit.builder.refusals import refusals_of
from dryfit.building import design_for_assessment, design_of_trial
from dryfit.engine.plan import Reformat
from dryfit.engine.progress import stepped
from dryfit.errors import DryfitError
from dryfit.json_names import json_names
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


@frozen
class FormatTrial:
    """A type and format of one input or output, and its effect on the network.

    Attributes:
        tensor: name of the input or output.
        io_format: type and format that were tried.
        tensor_bytes: size of the tensor in this format, in bytes.
        removes: whether this format removes the copy of the tensor.
        reformats, reformat_bytes: number of copies in the whole network with this format, and their bytes.
        moved_bytes: `reformat_bytes` plus bytes converted inside devices; None if the network cannot be built this way.
        problem: why the network cannot be built; "" if it can.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("option_text:io_format reformats reformat_bytes moved_bytes")

    tensor: str
    io_format: IoFormat
    tensor_bytes: int = 0
    removes: bool = False
    reformats: Count = 0
    reformat_bytes: Count = 0
    moved_bytes: int | None = None
    problem: str = ""

    @property
    def option_text(self) -> str:
        """Type and format of the tensor, in the syntax of `--input-io-formats`."""
        return str(self.io_format)


@frozen
class Removals:
    """The effect of input and output formats on the copies of a network.

    Attributes:
        trials: formats tried for each copied input and output, by name; fewest bytes moved first, then smallest tensor.
        together: for each input and output, the first format that removes its copy, all set at once; None if there is
            none, or the network cannot be built this way.
        io_formats: resulting type and format of every input and output, by name.
    """

    trials: Mapping[str, Sequence[FormatTrial]]
    together: FormatTrial | None
    io_formats: Mapping[str, IoFormat]

    def best(self, tensor: str) -> FormatTrial | None:
        """Return the format that removes the copy and moves the fewest bytes; None if no format removes it."""
        return next((one for one in self.trials.get(tensor, ()) if one.removes), None)


@frozen
class ExplainedReformat(Reformat):
    """A copy between two types, formats or devices, with the format that avoids it.

    Attributes:
        removed_by: type and format of the input or output that avoids the copy; None if there is none, or the search
            was off.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor source:from destination:to size:bytes cause rule remedy rule_source:source removed_by"
    )

    removed_by: FormatTrial | None = None

    @property
    def remedy(self) -> str:
        """Remedy for copies caused by this rule."""
        return REFORMAT_RULES[self.rule].remedy

    @property
    def rule_source(self) -> str:
        """Source of the rule."""
        return REFORMAT_RULES[self.rule].source


@frozen
class Copies:
    """The copies of a whole network.

    Attributes:
        reformats: number of reformats.
        reformat_bytes: number of bytes that the reformats write.
    """

    reformats: Count
    reformat_bytes: Count


@frozen
class IoFormats:
    """The combined effect of all formats that remove a copy.

    Attributes:
        apply: command-line options that set these formats.
        before: reformats with the network's own formats.
        after: reformats with these formats.
    """

    apply: str
    before: Copies
    after: Copies


def explained_reformats(
    reformats: Sequence[Reformat], network: Network, layers: Collection[str], removals: Removals | None
) -> list[ExplainedReformat]:
    """Return the copies at the given layers, each with the format that avoids it."""
    tensors = {
        tensor.name
        for layer in network.layers
        if layer.name in layers
        for tensor in (*layer.inputs, *layer.outputs)
        if tensor is not None
    }
    return [
        ExplainedReformat(**attrs.asdict(one), removed_by=None if removals is None else removals.best(one.tensor))
        for one in reformats
        if one.tensor in tensors
    ]


def io_formats_together(reformats: Sequence[Reformat], network: Network, removals: Removals | None) -> IoFormats | None:
    """Return the combined effect of all formats that remove a copy; None if there are none, or the search was off."""
    if removals is None or removals.together is None:
        return None
    together = removals.together
    words = []
    for option, tensors in ((INPUT_FORMATS, network.inputs), (OUTPUT_FORMATS, network.outputs)):
        entries = [removals.io_formats[tensor.name] for tensor in tensors]
        if entries != [IoFormat.of(tensor) for tensor in tensors]:
            words += [option, io_formats_text(entries)]
    before = Copies(len(reformats), sum(one.size for one in reformats))
    return IoFormats(shlex.join(words), before, Copies(together.reformats, together.reformat_bytes))


def find_removals(network: Network, config: BuilderConfig, design: Design | None = None) -> Removals:
    """Try every format that a device can read or write, for each input and output that is copied.

    The types and formats of the network are changed during the search and restored afterwards.

    Args:
        network: the user's network.
        config: flags and devices. Its progress monitor receives each trial.
        design: decisions about the unchanged network; computed if omitted.

    Raises:
        DryfitError: The unchanged network cannot be assessed.
    """
    design = design or design_for_assessment(network, config)
    sides = Sides(design.partition, design.precisions, design.variants, design.specs, config)
    copied = {one.tensor for one in design.formats.reformats}
    border = [*design.network.inputs, *design.network.outputs]
    trials: dict[str, list[FormatTrial]] = {tensor.name: [] for tensor in border if tensor.name in copied}
    to_try = [
        (tensor.name, one, size)
        for tensor in border
        if tensor.name in trials
        for one, size in _candidates(network, tensor, sides).items()
    ]
    for name, one, size in stepped(to_try, "Trying formats of inputs and outputs", config.progress_monitor):
        trials[name].append(attrs.evolve(_tried(network, config, {name: one}, name), tensor_bytes=size))
    for of_tensor in trials.values():
        of_tensor.sort(
            key=lambda one: (not one.removes, one.moved_bytes is None, one.moved_bytes or 0, one.tensor_bytes)
        )
    found = Removals(trials, None, {})
    chosen = {name: best.io_format for name in trials if (best := found.best(name)) is not None}
    if not chosen:
        return found
    own = {tensor.name: IoFormat.of(tensor) for tensor in (*network.inputs, *network.outputs)}
    (first, *others) = chosen
    alone = found.best(first)
    together = alone if alone is not None and not others else _tried(network, config, chosen, *chosen)
    return Removals(trials, None if together.problem else together, {**own, **chosen})


def _candidates(network: Network, tensor: Tensor, sides: Sides) -> dict[IoFormat, int]:
    """Return the types and formats that devices on the other side of the tensor support, and their size in bytes.

    Formats that the caller's own device would convert are omitted, because the tensor is already in its native one. In
    a strongly typed network, types are fixed.
    """
    giver = sides.giver(tensor)
    devices = [side for side in (giver, *sides.takers(tensor, giver)) if side.segment >= 0]
    if tensor.producer is not None:
        devices = devices[:1]  # the layer that writes the output, not those that read it as well
    own = IoFormat.of(tensor).dtype
    return {
        IoFormat(side.dtype, (form.layout.name,)): sides.size_bytes(tensor, form)
        for side in devices
        for form, converted_bytes in side.forms()
        if not (converted_bytes and side.device == sides.caller)
        and (side.dtype is own or not network.is_strongly_typed)
    }


def _tried(network: Network, config: BuilderConfig, chosen: dict[str, IoFormat], *tensors: str) -> FormatTrial:
    """Return the result of applying these types and formats to the network."""
    first = next(iter(chosen))
    trial = FormatTrial(first, chosen[first])
    with io_formats_set(network, chosen):
        try:
            design = design_of_trial(network, config)
        except DryfitError as error:
            return attrs.evolve(trial, problem=str(error))
    problems = refusals_of(design)
    if problems:
        return attrs.evolve(trial, problem="; ".join(problems))
    formats = design.formats
    return attrs.evolve(
        trial,
        removes=not any(one.tensor in tensors for one in formats.reformats),
        reformats=len(formats.reformats),
        reformat_bytes=sum(one.size for one in formats.reformats),
        moved_bytes=formats.moved_bytes,
    )
