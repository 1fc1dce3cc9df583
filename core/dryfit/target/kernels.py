"""What a host kernel declares: one decorated function, and the record that the decorator makes of it.

A kernel serves a layer group. At build time it says whether it can (`accepts`, `fuses`) and packs the group's weights
(`pack`). When shapes and memory are known it is bound (`bind`) and gives a step, which the host's schedule runs.
Every target that declares no kernel of its own for a layer is run by the CPU target's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import attrs

from dryfit.errors import DryfitError, ExecutionError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.target.binding import (
    Array,
    Binding,
    CallableStep,
    HostLayout,
    Schedule,
    Specs,
    Step,
    is_activation,
)
from dryfit.target.declared_object import data_types as declared_types
from dryfit.target.declared_object import names
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup
from dryfit.target.kernel_declaration import KernelDeclaration, KernelFormats, WorkspaceBytes
from dryfit.target.kernel_formats import bind_in_formats, unfit_format

__all__ = [
    "Array",
    "Binding",
    "CallableStep",
    "EveryKind",
    "FusedKinds",
    "HostLayout",
    "Kernel",
    "Schedule",
    "Specs",
    "Step",
    "is_activation",
    "kernel",
]

BindFunction = Callable[[Binding], Step | Callable[[], object]]
"""What makes a step of a binding. A plain function that it gives becomes a step with the group's name."""
Accepts = Callable[[LayerGroup, Specs], bool]
Fuses = Callable[[LayerGroup, Layer], bool]
Unpack = Callable[[LayerGroup, Mapping[str, Array]], Mapping[str, Array]]


def _any(group: LayerGroup, specs: Specs) -> bool:
    del group, specs
    return True


def _nothing(group: LayerGroup) -> dict[str, Array]:
    del group
    return {}


def _no_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del group, specs, num_threads
    return 0


class EveryKind(frozenset[str]):
    """The set of all layer kinds, those that plugins add later included; `Kernel.kinds` of a kernel that serves all.

    Such a kernel runs the layers of a group one after the other, whatever they are, so that any chain may be its group.
    """

    def __contains__(self, kind: object) -> bool:
        return True


@attrs.frozen
class FusedKinds:
    """The simplest answer to "can this layer join the group?": yes, where it is of one of these kinds."""

    kinds: frozenset[str] = attrs.field(default=frozenset(), converter=names)

    def __call__(self, group: LayerGroup, layer: Layer) -> bool:
        """Whether the layer's kind is among them."""
        del group
        return layer.kind in self.kinds


@attrs.frozen(eq=False)
class Kernel:
    """A host function with a declared signature. `kernel` makes one of a function.

    Attributes:
        name: `<package>.<what>`, unique, stable: engines name their kernels by it.
        kinds: kinds of main layer that it serves; `EveryKind()` for all.
        data_types: types of the group's activations that it serves.
        function: binding -> step, or a plain function that computes the outputs. Given as `bind`; the method `bind`
            calls it.
        accepts: whether it serves this group for these specs (static or dynamic); looked at after kinds, data types and
            formats, when a kernel is chosen and again whenever one is bound. By then constants that are packed are left
            out of the engine: they have the type and shape that they had, and are 1 everywhere. It follows from group
            and specs alone, and not from how tensors are called: equal groups are checked once.
        fuses: whether it can take this layer, the only consumer of the group's output, as the group's next. The group
            may end with dequantizations of the layer's other inputs where `absorbs_dequantize`.
        absorbs_dequantize: whether it works on quantized values, so that its groups may begin with the dequantizations
            of their inputs. It says of each group, in `accepts`, whether it does.
        pack: the group's weights as the kernel wants them; saved in the engine, so plain arrays only, and independent
            of the machine.
        packed_parameters: parameters of the group's layers (such as `kernel`, `bias`) that `pack` made superfluous, so
            that the engine need not keep them. It then knows their types and shapes, and no longer their values.
        unpack: the way back, for a `pack` that does more to weights than to move and round them: the group and what was
            packed to the main layer's parameters (`kernel`, `bias`), with all that `pack` folded into them. None where
            the places of the elements say it.
        packs_constants: whether `pack` made superfluous the constant that a dequantization of the group gives the main
            layer's weights from. The engine then knows its type and shape, and no longer its values.
        workspace_function: scratch memory of one run, for concrete specs. Given as `workspace_bytes`; the method of
            that name calls it.
        layout: the host layout that it is fast for.
        formats: `input` and `output` to the tensor format in which the kernel wants what the group reads and writes.
            These are then arrays of that format's extents, padding and all, with copies before and after each run.
        priority: among the kernels that accept a group those of the highest are looked at, and the fastest is taken.
        version: raised when the kernel becomes faster or slower: what was measured of another version does not count.
        spreads_nan: whether an infinity or NaN may reach results that do not depend on it. The flag `STRICT_NANS`
            leaves such a kernel out.
    """

    name: str
    kinds: frozenset[str] = attrs.field(converter=names)
    data_types: frozenset[DataType] = attrs.field(converter=declared_types)
    function: BindFunction = attrs.field(alias="bind")
    accepts: Accepts = _any
    fuses: Fuses = FusedKinds()
    absorbs_dequantize: bool = False
    pack: Callable[[LayerGroup], Mapping[str, Array]] = _nothing
    packed_parameters: Sequence[str] = ()
    packs_constants: bool = False
    unpack: Unpack | None = None
    workspace_function: WorkspaceBytes = attrs.field(default=_no_bytes, alias="workspace_bytes")
    layout: HostLayout = HostLayout.ANY
    formats: KernelFormats = attrs.field(factory=dict)
    priority: int = 0
    version: int = 1
    spreads_nan: bool = False

    def refusal(self, group: LayerGroup, specs: Specs) -> str | None:
        """Why it cannot run a group, in words; None where it can.

        Raises:
            PluginError: it fails when it is asked.
        """
        if group.main.kind not in self.kinds:
            return f"it supports {', '.join(sorted(self.kinds))}, not {group.main.kind}"
        if group.prologue and not self.absorbs_dequantize:
            return "it takes floating-point inputs and does not dequantize"
        read_and_written = (tensor for tensor in (*group.inputs, *group.outputs) if is_activation(tensor, specs))
        strange = {specs[tensor.name].dtype for tensor in read_and_written} - self.data_types
        if strange:
            served = ", ".join(sorted(dtype.text for dtype in self.data_types))
            return f"it supports {served}, not {', '.join(sorted(dtype.text for dtype in strange))}"
        if self.formats and (unfit := unfit_format(self.formats, group, specs)):
            return unfit
        accepts = self.answer(group, lambda: self.accepts(group, specs))
        return None if accepts else "it does not support the layer's parameters or shapes"

    def answer(self, group: LayerGroup, ask: Callable[[], bool]) -> bool:
        """Return what the kernel, which may be of any package, answers about a group.

        Raises:
            PluginError: it fails.
        """
        try:
            return bool(ask())
        except DryfitError:
            raise
        except Exception as error:
            raise PluginError(
                "A kernel failed while it checked a layer",
                where=f"kernel {self.name!r}, layer {group.name!r}",
                found=f"{type(error).__name__}: {error}",
                remedy="Report it to its authors; meanwhile choose another with `config.set_kernel`",
            ) from error

    def require(self, group: LayerGroup, specs: Specs) -> None:
        """Refuse a group that the kernel cannot run.

        Raises:
            ExecutionError: the kernel does not accept the group for these specs.
            PluginError: it fails when it is asked.
        """
        if (refusal := self.refusal(group, specs)) is not None:
            raise ExecutionError(
                "The kernel does not support this layer",
                where=f"layer {group.name!r}, kernel {self.name!r}",
                found=refusal,
                remedy="Build the engine again, for these shapes",
            )

    def workspace_bytes(self, group: LayerGroup, specs: Specs, num_threads: int) -> int:
        """Return bytes of scratch memory of one run of a group that the kernel accepts, for concrete specs.

        Raises:
            ExecutionError: the kernel does not accept the group.
        """
        self.require(group, specs)
        return self.workspace_function(group, specs, num_threads)

    def bind(self, binding: Binding) -> Step:
        """Return the step that runs a group on the binding's memory. There is no other way to a step of a kernel.

        Raises:
            ExecutionError: the kernel does not accept the group for these shapes.
            PluginError: the function gave neither a step nor a function.
            ConfigError: a declared format is not defined for a tensor's shape.
        """
        self.require(binding.group, binding.specs)
        if self.formats:
            return bind_in_formats(self.formats, binding, self._bound)
        return self._bound(binding)

    def _bound(self, binding: Binding) -> Step:
        made = self.function(binding)
        if hasattr(made, "run"):
            return cast("Step", made)
        if callable(made):
            return CallableStep(binding.group.name, self._named(made, binding.group.name))
        raise PluginError(
            "A kernel's function must return a step or a function without arguments that computes the outputs",
            where=f"kernel {self.name!r}",
            found=type(made).__name__,
            remedy="Return the function that does the work instead of doing it at binding time",
        )

    def _named(self, function: Callable[[], object], layer: str) -> Callable[[], object]:
        """A function whose failures name the kernel and the layer. A lack of memory is not the kernel's fault."""

        def run() -> None:
            try:
                function()
            except (DryfitError, MemoryError, OverflowError):
                raise
            except Exception as error:
                raise PluginError(
                    "A kernel failed while it ran",
                    where=f"kernel {self.name!r}, layer {layer!r}",
                    found=f"{type(error).__name__}: {error}",
                    remedy="Report it to its authors; meanwhile choose another with `config.set_kernel`",
                ) from error

        return run


def kernel(
    name: str,
    *,
    kinds: Iterable[str] | str,
    data_types: Iterable[DataType | str] | DataType | str,
    accepts: Accepts = _any,
    fuses: Fuses | Iterable[str] = (),
    absorbs_dequantize: bool = False,
    pack: Callable[[LayerGroup], Mapping[str, Array]] = _nothing,
    packed_parameters: Sequence[str] = (),
    packs_constants: bool = False,
    unpack: Unpack | None = None,
    workspace_bytes: WorkspaceBytes | int = 0,
    layout: HostLayout | str = HostLayout.ANY,
    formats: Mapping[str, TensorFormat] | None = None,
    priority: int = 0,
    version: int = 1,
    spreads_nan: bool = False,
) -> Callable[[BindFunction], Kernel]:
    """Make a kernel of a function that is given a binding.

    What it gives is called in each run: a step, or a plain function (numpy, or compiled by Numba) that reads
    `binding.inputs` and writes `binding.outputs`. Arguments are those of `Kernel`, with these short forms.

    Args:
        name: `<package>.<what>`.
        kinds: one kind, or several.
        data_types: one type, or several, also by name: `fp16`, `HALF`, `float16`.
        accepts: as in `Kernel`.
        fuses: kinds of layers that may follow in the group, or a function that decides.
        absorbs_dequantize: as in `Kernel`.
        pack: as in `Kernel`.
        packed_parameters: as in `Kernel`.
        packs_constants: as in `Kernel`.
        unpack: as in `Kernel`.
        workspace_bytes: a number, or a function of group, specs and number of threads.
        layout: also by name: `channels_last`.
        formats: as in `Kernel`.
        priority: as in `Kernel`.
        version: as in `Kernel`.
        spreads_nan: as in `Kernel`.

    Raises:
        PluginError: a name, kind, type, layout or format is none; the message names the kernel and the function.

    Example:
        >>> @kernel("acme.identity", kinds="identity", data_types=["fp32", "fp16"])
        ... def copy(binding):
        ...     (x,), (y,) = binding.inputs, binding.outputs
        ...     return lambda: np.copyto(y, x)
        >>> copy.name, sorted(copy.kinds)
        ('acme.identity', ['identity'])
    """

    def declare(function: BindFunction) -> Kernel:
        declared = KernelDeclaration(name, function)
        return Kernel(
            name=declared.name(),
            kinds=declared.kinds(kinds),
            data_types=declared.data_types(data_types),
            bind=function,
            accepts=accepts,
            fuses=fuses if callable(fuses) else FusedKinds(declared.known_kinds(fuses, "fuses")),
            absorbs_dequantize=absorbs_dequantize,
            pack=pack,
            packed_parameters=tuple(packed_parameters),
            packs_constants=packs_constants,
            unpack=unpack,
            workspace_bytes=declared.workspace_bytes(workspace_bytes),
            layout=declared.layout(layout),
            formats=declared.formats(formats or {}),
            priority=priority,
            version=version,
            spreads_nan=spreads_nan,
        )

    return declare
