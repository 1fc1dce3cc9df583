"""The declaration of a host kernel: a decorated function, and the record that the decorator creates from it.

A kernel runs a layer group. At build time it reports whether it supports the group (`accepts`, `fuses`) and packs the
group's weights (`pack`). When shapes and memory are known it is bound (`bind`) and returns a step, which the host's
schedule runs. The CPU target's kernels run every layer for which a target declares no kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import attrs

from dryfit.attrs_classes import frozen
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
from dryfit.target.tactics import Tactics

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
"""Function that creates a step from a binding. A returned plain function becomes a step with the group's name."""
Accepts = Callable[[LayerGroup, Specs], bool]
Fuses = Callable[[LayerGroup, Layer], bool]
Unpack = Callable[[LayerGroup, Mapping[str, Array]], Mapping[str, Array]]


def _any(group: LayerGroup, specs: Specs) -> bool:
    del group, specs
    return True


def _nothing(group: LayerGroup) -> dict[str, Array]:
    del group
    return {}


def _no_tactics(group: LayerGroup, specs: Specs) -> Tactics:
    del group, specs
    return Tactics()


def _no_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del group, specs, num_threads
    return 0


class EveryKind(frozenset[str]):
    """The set of all layer kinds, including those that plugins add later; `Kernel.kinds` of a generic kernel.

    Such a kernel runs the layers of a group one after another, whatever their kinds, so that its group may be any
    chain.
    """

    def __contains__(self, kind: object) -> bool:
        return True


@frozen
class FusedKinds:
    """The simplest `fuses` function: a layer can join the group if it is of one of these kinds."""

    kinds: frozenset[str] = attrs.field(default=frozenset(), converter=names)

    def __call__(self, group: LayerGroup, layer: Layer) -> bool:
        """Return whether the layer's kind is among them."""
        del group
        return layer.kind in self.kinds


@frozen(eq=False)
class Kernel:
    """A host function with a declared signature. Use `kernel` to create one from a function.

    Attributes:
        name: `<package>.<what>`. Unique and stable, because engines refer to their kernels by name.
        kinds: supported kinds of the main layer; `EveryKind()` for all.
        data_types: supported types of the group's activations.
        function: binding -> step, or a plain function that computes the outputs. Passed as `bind`; the method `bind`
            calls it.
        accepts: whether the kernel supports this group for these specs (static or dynamic). Evaluated after kinds, data
            types and formats, when a kernel is selected and again whenever it is bound. At binding, packed constants
            are no longer in the engine: they keep their type and shape, and all their values are 1. The result must
            depend on group and specs alone, not on tensor names: equal groups are checked once.
        fuses: whether this layer, the only consumer of the group's output, can join the group as its next layer. With
            `absorbs_dequantize`, the group may end with dequantizations of the layer's other inputs.
        fuses_forks: whether `fuses` may also be asked about the last layer of a fork, such as the product in
            `x * sigmoid(x)`, with a group that ends in the middle of the fork. It must then look at every layer.
        absorbs_dequantize: whether the kernel computes on quantized values, so that its groups may begin with the
            dequantizations of their inputs. `accepts` decides for each group.
        pack: packs the group's weights in the form that the kernel needs. The result is stored in the engine: plain
            arrays only, independent of the machine.
        packed_parameters: parameters of the group's layers (such as `kernel`, `bias`) that `pack` replaces, so that the
            engine need not store them. The engine then has their types and shapes, but not their values.
        unpack: inverse of a `pack` that does more than move and round the weights: maps the group and the packed arrays
            to the main layer's parameters (`kernel`, `bias`), including everything that `pack` folded into them. None:
            the positions of the elements define the inverse.
        packs_constants: whether `pack` replaces the constant from which a dequantization of the group provides the main
            layer's weights. The engine then has its type and shape, but not its values.
        workspace_function: scratch memory per run, in bytes, for concrete specs. Passed as `workspace_bytes`; the
            method of that name calls it.
        layout: the host layout that the kernel is optimized for.
        joins_channels: whether the output's channels are those of the inputs, one after the other. The engine may let
            inputs lie in the output's array from the beginning; the kernel is then given views of it.
        view: (group, specs, array of the first input) to the output's array, if it is a view of that; else None. The
            engine may let the output be the view; the kernel is then given both, and has nothing to copy.
        formats: `input` and `output` to the tensor format that the kernel requires for the tensors that the group reads
            and writes. Their arrays then have the extents of that format, including padding, and are copied before and
            after each run.
        priority: of the kernels that accept a group, only those with the highest priority are considered; the fastest
            of them is selected.
        version: to be increased when the kernel becomes faster or slower: timings of other versions are ignored.
        spreads_nan: whether an infinity or NaN may propagate to results that do not depend on it. The flag
            `STRICT_NANS` excludes such kernels.
        unmeasured_priority: rank among kernels that could be measured and are not, if
            `BuilderConfig.ranks_unmeasured_kernels` is set: calibration measures none, because its results must be the
            same in every run. For a kernel that is nearly always faster, and at least as accurate.
        tactics: the ways in which the kernel can run a group of concrete specs, with the same results. `Binding.tactic`
            is the one to run. Builds measure them unless the kernel ranks them for this processor.
    """

    name: str
    kinds: frozenset[str] = attrs.field(converter=names)
    data_types: frozenset[DataType] = attrs.field(converter=declared_types)
    function: BindFunction = attrs.field(alias="bind")
    accepts: Accepts = _any
    fuses: Fuses = FusedKinds()
    fuses_forks: bool = False
    absorbs_dequantize: bool = False
    pack: Callable[[LayerGroup], Mapping[str, Array]] = _nothing
    packed_parameters: Sequence[str] = ()
    packs_constants: bool = False
    unpack: Unpack | None = None
    workspace_function: WorkspaceBytes = attrs.field(default=_no_bytes, alias="workspace_bytes")
    layout: HostLayout = HostLayout.ANY
    joins_channels: bool = False
    view: Callable[[LayerGroup, Specs, Array], Array | None] | None = None
    formats: KernelFormats = attrs.field(factory=dict)
    priority: int = 0
    version: int = 1
    spreads_nan: bool = False
    unmeasured_priority: int = 0
    tactics: Callable[[LayerGroup, Specs], Tactics] = _no_tactics

    @property
    def has_tactics(self) -> bool:
        """Whether it may run a group in several ways."""
        return self.tactics is not _no_tactics

    def refusal(self, group: LayerGroup, specs: Specs) -> str | None:
        """Return why the kernel cannot run a group; None if it can.

        Raises:
            PluginError: The kernel's own code fails.
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
        """Return the answer of the kernel, which may come from any package, about a group.

        Raises:
            PluginError: The kernel's own code fails.
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
        """Raise if the kernel cannot run a group.

        Raises:
            ExecutionError: The kernel does not accept the group for these specs.
            PluginError: The kernel's own code fails.
        """
        if (refusal := self.refusal(group, specs)) is not None:
            raise ExecutionError(
                "The kernel does not support this layer",
                where=f"layer {group.name!r}, kernel {self.name!r}",
                found=refusal,
                remedy="Build the engine again, for these shapes",
            )

    def workspace_bytes(self, group: LayerGroup, specs: Specs, num_threads: int) -> int:
        """Return the bytes of scratch memory per run of an accepted group, for concrete specs.

        Raises:
            ExecutionError: The kernel does not accept the group.
        """
        self.require(group, specs)
        return self.workspace_function(group, specs, num_threads)

    def bind(self, binding: Binding) -> Step:
        """Return the step that runs a group on the memory of a binding. The only way to obtain a step of a kernel.

        Raises:
            ExecutionError: The kernel does not accept the group for these shapes.
            PluginError: The function returned neither a step nor a function.
            ConfigError: A declared format is not defined for the shape of a tensor.
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
    fuses_forks: bool = False,
    absorbs_dequantize: bool = False,
    pack: Callable[[LayerGroup], Mapping[str, Array]] = _nothing,
    packed_parameters: Sequence[str] = (),
    packs_constants: bool = False,
    unpack: Unpack | None = None,
    workspace_bytes: WorkspaceBytes | int = 0,
    layout: HostLayout | str = HostLayout.ANY,
    joins_channels: bool = False,
    view: Callable[[LayerGroup, Specs, Array], Array | None] | None = None,
    formats: Mapping[str, TensorFormat] | None = None,
    priority: int = 0,
    version: int = 1,
    spreads_nan: bool = False,
    unmeasured_priority: int = 0,
    tactics: Callable[[LayerGroup, Specs], Tactics] = _no_tactics,
) -> Callable[[BindFunction], Kernel]:
    """Return a decorator that makes a kernel of a function of a binding.

    The function returns the code of each run: a step, or a plain function (numpy, or compiled by Numba) that reads
    `binding.inputs` and writes `binding.outputs`. The arguments are those of `Kernel`, with these short forms.

    Args:
        name: `<package>.<what>`.
        kinds: one kind or several.
        data_types: one type or several, also by name: `fp16`, `HALF`, `float16`.
        accepts: as in `Kernel`.
        fuses: layer kinds that may follow in the group, or a function that decides.
        fuses_forks: as in `Kernel`.
        absorbs_dequantize: as in `Kernel`.
        pack: as in `Kernel`.
        packed_parameters: as in `Kernel`.
        packs_constants: as in `Kernel`.
        unpack: as in `Kernel`.
        workspace_bytes: a number, or a function of group, specs and number of threads.
        layout: also by name: `channels_last`.
        joins_channels: as in `Kernel`.
        view: as in `Kernel`.
        formats: as in `Kernel`.
        priority: as in `Kernel`.
        version: as in `Kernel`.
        spreads_nan: as in `Kernel`.
        unmeasured_priority: as in `Kernel`.
        tactics: as in `Kernel`.

    Raises:
        PluginError: A name, kind, type, layout or format does not exist. The message names the kernel and the function.

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
            fuses_forks=fuses_forks,
            absorbs_dequantize=absorbs_dequantize,
            pack=pack,
            packed_parameters=tuple(packed_parameters),
            packs_constants=packs_constants,
            unpack=unpack,
            workspace_bytes=declared.workspace_bytes(workspace_bytes),
            layout=declared.layout(layout),
            joins_channels=joins_channels,
            view=view,
            formats=declared.formats(formats or {}),
            priority=priority,
            version=version,
            spreads_nan=spreads_nan,
            unmeasured_priority=unmeasured_priority,
            tactics=tactics,
        )

    return declare
