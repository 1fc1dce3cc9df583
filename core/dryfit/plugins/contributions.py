"""What plugins hand to dryfit: the records that entry points name and hooks return.

A record means the same by either door: `my-pass = "my_package:PASS"` in the entry-point group `dryfit.passes` and a
hook `contribute_passes` that returns `[PASS]` do the same. Nothing heavy is imported here, so that a plugin's module is
quick to load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

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
                remedy="Give the field a value of an allowed type",
            )

    return check


def _callable(record: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not callable(value):
        raise PluginError(
            f"`{attribute.name}` of a {type(record).__name__} is a function",
            found=repr(value),
            remedy="Write `module:attribute` as a string instead; dryfit imports it when needed",
        )


@attrs.frozen
class PassContribution:
    """A pass for the pipeline that every network goes through before it is placed.

    Attributes:
        name: of the pass, unique in the pipeline.
        function: rewrites the network in place without changing what it computes; returns whether it changed anything.
        before, after: name of the pass that it stands next to; exactly one of the two. Names of dryfit's own passes are
            in `docs/reference/hooks.md`.

    Raises:
        PluginError: both or neither of `before` and `after` is given, or a field has the wrong type.
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


@attrs.frozen
class OnnxOperator:
    """How an ONNX operator of a domain becomes layers.

    Attributes:
        op_type: the operator.
        domain: its operator set, such as `com.acme`. ONNX's own operators cannot be replaced.
        function: `(node) -> operand or operands`: adds the node's layers, as the files of `dryfit.onnx.operators` do;
            `node` is a `dryfit.onnx.node.Node`.
        since: the first version of the operator set that has these semantics.

    Raises:
        PluginError: the domain is ONNX's own, or a field has the wrong type.
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


@attrs.frozen
class PlacementVote:
    """A plugin's wish that a layer runs on a device.

    Attributes:
        device: the device; a vote for one that cannot run the layer, or that is neither the layer's default nor the
            fallback device, has no effect and is reported.
        reason: in words; it becomes part of the layer's cause.
        weight: votes for one device are summed; the device with the largest sum wins, the default where sums are equal.
    """

    device: str = attrs.field(validator=_of_type(str))
    reason: str = attrs.field(validator=_of_type(str))
    weight: float = 1.0


@attrs.frozen(eq=False)
class GroupClaim:
    """The answer of a plugin that computes a quantized group itself.

    Attributes:
        layer: a new layer that reads the group's quantized inputs and gives its quantized outputs, in their order;
            most often a `Plugin` layer. It is not in a network yet.
        reason: in words, for `explain` and the build log.
    """

    layer: Layer
    reason: str = attrs.field(validator=_of_type(str))


class BuildObserver:
    """Is told how a build goes. Override what you need; every method does nothing here.

    What an observer raises never stops a build: it is recorded as the plugin's failure, and the observer is dropped.
    """

    def stage_finished(self, stage: str, index: int, count: int) -> None:
        """Stage number `index`, from 0, of `count` is done."""

    def verdict_given(self, verdict: Any) -> None:
        """A device was asked about a layer. `verdict` is a `dryfit.target.verdict.Verdict`."""

    def build_finished(self, plan: Any) -> None:
        """It is over. `plan` is a `dryfit.engine.plan.Plan`; None after an error, or where only placement was asked."""


class RunObserver:
    """Is told how an execution context runs. Override what you need; every method does nothing here.

    What an observer raises never stops a run: it is recorded as the plugin's failure, and the observer is dropped.

    Attributes:
        wants_layer_times: whether `layer_finished` is to be called. Measuring costs a little in every run.
    """

    wants_layer_times: bool = False

    def run_started(self, input_shapes: dict[str, Sequence[int]]) -> None:
        """A run begins with inputs of these shapes."""

    def layer_finished(self, layer: str, milliseconds: float) -> None:
        """An engine layer took so many milliseconds of the host's time, which says nothing of the device's."""

    def run_finished(self, milliseconds: float) -> None:
        """The run is over, after so many milliseconds of the host's time."""
