"""The interface between plugins and dryfit: the records that entry points name and hooks return.

A record has the same effect either way: `my-pass = "my_package:PASS"` in the entry-point group `dryfit.passes` is
equivalent to a hook `contribute_passes` that returns `[PASS]`. Nothing heavy is imported here, so that a plugin's
module loads quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.network import Network


def _of_type(*kinds: type) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """A validator, so that a wrong value is told where the plugin makes the record, not where it is used."""

    def check(record: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise PluginError(
                f"`{attribute.name}` of a {type(record).__name__} has the wrong type",
                found=repr(value),
                allowed=" or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds),
                remedy="Set the field to a value of an allowed type",
            )

    return check


def _callable(record: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not callable(value):
        raise PluginError(
            f"`{attribute.name}` of a {type(record).__name__} is a function",
            found=repr(value),
            allowed="`module:attribute` as a string",
            remedy="Write `module:attribute` as a string instead; dryfit imports it when needed",
        )


@frozen
class PassContribution:
    """A pass for the pipeline that every network goes through before placement.

    Attributes:
        name: name of the pass, unique in the pipeline.
        function: function that rewrites the network in place without changing what it computes, and returns whether it
            changed anything.
        before, after: name of the pass before or after which the pass runs; exactly one of the two.
            `docs/reference/hooks.md` lists the names of dryfit's own passes.

    Raises:
        PluginError: Both or neither of `before` and `after` are given, or a field has the wrong type.
    """

    name: str = attrs.field(validator=_of_type(str))
    function: Callable[[Network], bool] = attrs.field(validator=_callable)
    before: str | None = attrs.field(default=None, validator=_of_type(str, type(None)))
    after: str | None = attrs.field(default=None, validator=_of_type(str, type(None)))

    def __attrs_post_init__(self) -> None:
        if (self.before is None) == (self.after is None):
            raise PluginError(
                "A contributed pass must be placed before or after another one",
                where=f"pass {self.name!r}",
                found=f"before={self.before!r}, after={self.after!r}",
                allowed="one of the two",
                remedy="Set either `before` or `after` to the name of a pass",
            )


@frozen
class OnnxOperator:
    """An importer of an ONNX operator, which converts it to layers.

    Attributes:
        op_type: name of the operator.
        domain: its operator set, such as `com.acme`. ONNX's own operators cannot be replaced.
        function: `(node) -> operand or operands`: function that adds the node's layers, as the files of
            `dryfit.onnx.operators` do; `node` is a `dryfit.onnx.node.Node`.
        since: the first version of the operator set that has these semantics.

    Raises:
        PluginError: The domain is ONNX's own, or a field has the wrong type.
    """

    op_type: str = attrs.field(validator=_of_type(str))
    domain: str = attrs.field(validator=_of_type(str))
    function: Callable[[Any], Any] = attrs.field(validator=_callable)
    since: int = attrs.field(default=1, validator=_of_type(int))

    def __attrs_post_init__(self) -> None:
        if self.domain in ("", "ai.onnx"):
            raise PluginError(
                "ONNX's own operators cannot be registered by plugins",
                where=f"operator {self.op_type!r}",
                found=f"domain {self.domain!r}",
                allowed="a domain of your own, such as com.acme",
                remedy="Register the operator in a domain of your own",
            )


@frozen(kw_only=True)
class ImportOptions:
    """What a model importer is asked for, besides the model.

    Attributes:
        flags: creation flags of the network: a mask of `NetworkDefinitionCreationFlag`.
        quantize_method: quantize method of the network; "" for none, None for the one that the format implies.
        folder: folder of files beside a model that is given as bytes or as an object; None if there is none.
        shapes: shape by input name, for dynamic inputs whose shape is fixed. An importer may ignore them.
    """

    flags: int = 0
    quantize_method: str | None = ""
    folder: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)


@frozen(eq=False)
class ImportedModel:
    """What a model importer makes of a file.

    Attributes:
        network: the network, with the names of the file. Each layer has the names of the nodes or operators that it
            was made of in `onnx_nodes`.
        implied_method: the quantize method that the importer chose, because the options left it open and the model is
            quantized for the arithmetic of a library; "" if none.
    """

    network: Network
    implied_method: str = ""


@frozen(kw_only=True)
class ModelImporter:
    """A model format that dryfit reads: an entry point of the group `dryfit.importers` names such a record.

    Attributes:
        name: name of the format in lower case, which is the entry point's name, such as `onnx`.
        title: name of the format in messages, such as `ONNX`.
        suffixes: file name suffixes of the format, such as `(".onnx",)`.
        recognises: `(first_bytes) -> bool`: whether a file that begins with these bytes (up to `FIRST_BYTES`) is of
            this format. Content counts before the suffix; a format without a signature returns False.
        read: `(source, options) -> ImportedModel`: reads a path or the bytes of a file, with `ImportOptions`. Rejects
            a file that is damaged or has unsupported parts with a `ModelImportError`, before memory is committed.
        without_names: `(source) -> bytes`: the file with numbers in place of the names that `read` gives to tensors and
            to the network, in the same order; `dryfit report --anonymous` needs it. None: such reports are rejected.

    Raises:
        PluginError: A field has the wrong type.
    """

    name: str = attrs.field(validator=_of_type(str))
    title: str = attrs.field(validator=_of_type(str))
    suffixes: Sequence[str] = attrs.field(validator=_of_type(tuple, list))
    recognises: Callable[[bytes], bool] = attrs.field(validator=_callable)
    read: Callable[[Any, ImportOptions], ImportedModel] = attrs.field(validator=_callable)
    without_names: Callable[[Any], bytes] | None = attrs.field(
        default=None, validator=attrs.validators.optional(_callable)
    )


@frozen
class PlacementVote:
    """A plugin's vote for the device of a layer.

    Attributes:
        device: the device; a vote for one that cannot run the layer, or that is neither the layer's default nor the
            fallback device, has no effect and is reported.
        reason: reason for the vote, shown as part of the placement reason of the layer.
        weight: weight of the vote. Weights are summed per device; the largest sum wins, and the default device wins a
            tie.
    """

    device: str = attrs.field(validator=_of_type(str))
    reason: str = attrs.field(validator=_of_type(str))
    weight: float = 1.0


@frozen(eq=False)
class GroupClaim:
    """A plugin's claim to compute a quantized group itself.

    Attributes:
        layer: a new layer, not yet in a network, that reads the group's quantized inputs and produces its quantized
            outputs, in the same order; usually a `Plugin` layer.
        reason: reason shown by `explain` and in the build log.
    """

    layer: Layer
    reason: str = attrs.field(validator=_of_type(str))


class BuildObserver:
    """Receives the events of a build. Override the methods you need; by default they do nothing.

    Exceptions of an observer never stop a build: they are recorded as a failure of the plugin, and the observer is
    removed.
    """

    def stage_finished(self, stage: str, index: int, count: int) -> None:
        """Stage number `index`, from 0, of `count` is finished."""

    def verdict_given(self, verdict: Any) -> None:
        """A layer was checked against a device. `verdict` is a `dryfit.target.verdict.Verdict`."""

    def build_finished(self, plan: Any) -> None:
        """The build is finished. `plan` is a `dryfit.engine.plan.Plan`; None after an error or after placement only."""


class RunObserver:
    """Receives the events of an execution context. Override the methods you need; by default they do nothing.

    Exceptions of an observer never stop a run: they are recorded as a failure of the plugin, and the observer is
    removed.

    Attributes:
        wants_layer_times: whether `layer_finished` is called. Measuring adds a small overhead to every run.
    """

    wants_layer_times: bool = False

    def run_started(self, input_shapes: dict[str, Sequence[int]]) -> None:
        """A run starts with inputs of these shapes."""

    def layer_finished(self, layer: str, milliseconds: float) -> None:
        """An engine layer took this many milliseconds of host time, which does not indicate the device's time."""

    def run_finished(self, milliseconds: float) -> None:
        """The run is finished, after this many milliseconds of host time."""
