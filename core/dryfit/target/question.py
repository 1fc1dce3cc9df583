"""The question passed to a limit rule, and the finding that it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    import numpy as np

    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor, TensorSpec
    from dryfit.target.verdict import Verdict


@attrs.frozen(eq=False)
class Question:
    """A layer in its current state, and the context in which it would run.

    Attributes:
        layer: the layer; rules may inspect its tensors, and through them its neighbors.
        precision: type in which the layer would be computed (FP16, INT8, ...).
        device: name of the device.
        platform: `agx-orin-64`, ...; rules compare with `family`: `orin`, `xavier`.
        family: the platform's family.
        software: version as a tuple, such as (10, 3). Empty: the device has one rule set.
        explicit_device: whether the user set this layer's device, rather than using the default.
        is_put_here: whether the user assigned another layer of the network to this device.
        options: settings of the builder config, as plain data: `flags` (names), `engine_capability`, `assume_scales`.
        cores: number of cores of the device on the platform.
        specs: tensor name to spec, if the shapes differ from those in the network (a dynamic network whose profile
            fixes every dimension). None: the network's own specs.
        weights: the layer's weights as the device would store them, for rules that check their values. None: the
            question does not concern them.
        verdict: what the same device answers about another layer, for rules on pairs of layers. None: the installed
            target's own answer.
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
    verdict: Callable[[Question], Verdict] | None = attrs.field(default=None, repr=False)

    def spec(self, tensor: Tensor) -> TensorSpec:
        """Return the shape and type of a tensor in this question."""
        return tensor.spec if self.specs is None else self.specs[tensor.name]

    @property
    def inputs(self) -> Sequence[Tensor]:
        """Connected inputs, in order."""
        return self.layer.connected_inputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Outputs, in order."""
        return self.layer.outputs

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether the tensor's contents are known when the network is built."""
        return tensor.is_constant or self.spec(tensor).value is not None


@frozen
class Finding:
    """Result of a failed check: the found value, the allowed values, and any text that overrides the rule's own.

    Attributes:
        actual: found value, as text.
        allowed: allowed values, as text.
        parameter: the checked parameter. None: that of the rule.
        remedy: how the user can fix it. None: the remedy of the rule.
        message: the complete sentence. None: "... must be ... (found ...)".
        is_failure: whether the rule could not be evaluated because its own code raised.
    """

    actual: str
    allowed: str
    parameter: str | None = None
    remedy: str | None = None
    message: str | None = None
    is_failure: bool = False


class Check(Protocol):
    """The test of a rule: None if it holds, otherwise what was found.

    Checks from `dryfit.target.checks` also describe what they test (`parameter`, `text`), and checks made of
    constraints such as `between` provide the values on both sides of each limit (`boundaries`), from which
    documentation and tests are generated.

    The result must depend on the question alone: of layers that are equal in everything the check reads, only one is
    checked.
    """

    def __call__(self, question: Question) -> Finding | None:
        """Evaluate the check for a question."""
        ...
