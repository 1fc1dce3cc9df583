"""What a limit rule is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    import numpy as np

    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor, TensorSpec


@attrs.frozen(eq=False)
class Question:
    """A layer as it stands, and what it is asked for.

    Attributes:
        layer: the layer; rules may look at its tensors, and through them at its neighbours.
        precision: the type in which it would be computed (FP16, INT8, ...).
        device: the device asked about.
        platform: `agx-orin-64`, ...; `family` is what rules compare with: `orin`, `xavier`.
        family: the platform's family.
        software: version as a tuple, such as (10, 3). Empty when the device has one rule set.
        explicit_device: whether the user set this layer's device, rather than the default.
        is_put_here: whether the user set the device of another layer of the network to this one.
        options: what the builder config adds, as plain data: `flags` (names), `engine_capability`, `assume_scales`.
        cores: how many of the device the platform has.
        specs: tensor name to spec, where the shapes asked about are not those that the network states (a dynamic
            network whose profile fixes every dimension). None: the network's own.
        weights: the layer's weights as the device would store them, for rules that look at their values; None where
            the question is not about them.
    """

    layer: Layer
    precision: DataType
    device: str
    platform: str
    family: str
    software: tuple[int, ...]
    explicit_device: bool = False
    is_put_here: Callable[[Layer], bool] = attrs.field(default=lambda layer: False, repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    cores: int = 1
    specs: Mapping[str, TensorSpec] | None = None
    weights: np.ndarray[Any, Any] | None = None

    def spec(self, tensor: Tensor) -> TensorSpec:
        """Return the shape and type of a tensor that the question is about."""
        return tensor.spec if self.specs is None else self.specs[tensor.name]

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The connected inputs, in order."""
        return self.layer.connected_inputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The outputs, in order."""
        return self.layer.outputs

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether the tensor's contents are known when the network is built."""
        return tensor.is_constant or self.spec(tensor).value is not None


@attrs.frozen
class Finding:
    """What a failed check found: the actual value, the allowed values and, where the rule's own do not fit, more.

    Attributes:
        actual: what was found, as text.
        allowed: what would pass, as text.
        parameter: what was looked at; None for the rule's own.
        remedy: what the user can do; None for the rule's own.
        message: the whole in one sentence; None for "... must be ... (found ...)".
        is_failure: whether the rule could not be evaluated, since its own code raised.
    """

    actual: str
    allowed: str
    parameter: str | None = None
    remedy: str | None = None
    message: str | None = None
    is_failure: bool = False


class Check(Protocol):
    """The test inside a rule: None when it holds, else what was found.

    A check from `dryfit.target.checks` also says in words what it looks at (`parameter`, `text`), and those made of
    constraints such as `between` carry the values on both sides of each limit (`boundaries`), from which documents and
    tests are generated.

    What it finds follows from the question alone: of layers that are equal in all that it reads, it is asked about one.
    """

    def __call__(self, question: Question) -> Finding | None:
        """Look at the layer."""
        ...
