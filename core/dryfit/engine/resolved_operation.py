"""Operations of a plan resolved to their layers and the kernel of an installed target."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.buffers import check_size
from dryfit.engine.packages import install_remedy, require_layer_plugins, require_quantize_methods, target_key
from dryfit.engine.plan import Operation, Plan
from dryfit.engine.segment_program import load_program, operation_group, segment_kernel
from dryfit.errors import DryfitError, EngineFileError, PluginError, UnknownNameError
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant
from dryfit.network.packed_elements import is_stand_in
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.quantization.rounding import Rounding
from dryfit.target.arithmetic import integer_rounding
from dryfit.target.forks import fork_at
from dryfit.target.group import LayerGroup, is_repeatable
from dryfit.target.kernels import Array, Binding, EveryKind, Kernel, Specs, Step
from dryfit.target.memory import read_only
from dryfit.target.tactics import chosen_tactic
from dryfit.target.target import Target


@frozen(eq=False)
class ResolvedOperation:
    """An operation that can be bound.

    Attributes:
        operation: operation in the plan.
        group: layers of the operation.
        kernel: kernel that runs the layers.
        weights: arrays packed by the kernel; read-only, shared by all contexts.
        rounding: rounding function of the device, if it computes in INT8.
    """

    operation: Operation
    group: LayerGroup
    kernel: Kernel
    weights: Mapping[str, Array]
    rounding: Rounding

    def workspace_bytes(self, specs: Specs, num_threads: int) -> int:
        """Return the bytes of scratch memory that one run requires.

        The kernel is not asked whether it supports the group, which takes time: `bind` checks that.

        Raises:
            EngineFileError: The kernel cannot run the operation as the engine describes it.
            ExecutionError: The kernel does not support the group, or the size exceeds the possible memory.
        """
        try:
            size = int(self.kernel.workspace_function(self.group, specs, num_threads))
        except DryfitError:
            raise
        except Exception as error:  # as in `bind`
            self.kernel.require(self.group, specs)
            raise self._stumbled(error) from error
        return check_size(size, f"engine layer {self.operation.name!r}", f"the workspace of {self.kernel.name}")

    def bind(self, arrays: Mapping[str, Array], specs: Specs, workspace: Array, num_threads: int) -> Step:
        """Return the step that runs the operation on these arrays.

        Raises:
            EngineFileError: The kernel cannot run the operation as the engine describes it.
        """
        try:
            binding = Binding(self.group, specs, arrays, self.weights, workspace, num_threads, rounding=self.rounding)
            tactic = chosen_tactic(self.kernel, self.group, specs)
            return self.kernel.bind(attrs.evolve(binding, tactic=tactic) if tactic else binding)
        except DryfitError:
            raise
        except Exception as error:  # what a file says is checked by the kernel, which may stumble in any way
            raise self._stumbled(error) from error

    def _stumbled(self, error: Exception) -> EngineFileError:
        return EngineFileError(
            "The kernel does not support this layer as the engine describes it",
            where=f"engine layer {self.operation.name!r}, kernel {self.kernel.name!r}",
            found=f"{type(error).__name__}: {error}",
            remedy="Rebuild the engine; if the error persists, report a bug in the kernel",
        )


def resolve_operations(plan: Plan) -> Sequence[ResolvedOperation]:
    """Resolve the operations of a plan to their layers and kernels.

    Raises:
        PluginError: A kernel's target, a layer plugin or a quantize method is not installed; the message names the
            package that provides it.
        EngineFileError: The device has no kernel of that name; the kernel does not support the kind or types of a
            layer, or does not fuse these layers; or the program of a compiled segment cannot be loaded.
    """
    require_layer_plugins(plan)
    require_quantize_methods(plan)
    layers = {layer.name: layer for layer in plan.network.layers}
    kernels: dict[str, Mapping[str, Kernel]] = {}
    resolved = []
    for operation in plan.operations:
        group = operation_group(operation, layers)
        kernel = _kernel(operation, plan, kernels)
        if group.main.kind not in kernel.kinds:
            raise EngineFileError(
                "The engine uses a kernel that does not support this kind of layer",
                where=f"engine layer {operation.name!r}",
                found=f"kernel {kernel.name!r} for {group.main.kind}",
                allowed=", ".join(sorted(kernel.kinds)),
                remedy="Build the engine again",
            )
        strange = sorted({tensor.dtype.text for tensor in _activations(group) if tensor.dtype not in kernel.data_types})
        if strange:
            raise EngineFileError(
                "The engine uses a kernel that does not support these types",
                where=f"engine layer {operation.name!r}",
                found=f"kernel {kernel.name!r} for {', '.join(strange)}",
                allowed=", ".join(sorted(dtype.text for dtype in kernel.data_types)),
                remedy="Build the engine again",
            )
        _require_chain(operation, group, kernel)
        _require_packed(operation, group, kernel)
        weights = {name: read_only(array) for name, array in operation.weights.items()}
        rounding = integer_rounding(registry.target(operation.device).arithmetic, software(plan, operation.device))
        resolved.append(ResolvedOperation(operation, group, kernel, weights, rounding))
    return resolved


def _require_chain(operation: Operation, group: LayerGroup, kernel: Kernel) -> None:
    """Reject layers after the main one that the kernel does not fuse with it.

    Layers join a group one by one, see `dryfit.builder.fusion.fuse`; but a group that ends in a quantization joins the
    group before it as a whole, starting after the quantization of that group. The whole group is checked when it is
    bound.
    """
    if isinstance(kernel.kinds, EveryKind):
        return
    if not kernel.fuses_forks and not _is_chain(group):
        raise EngineFileError(
            "The engine uses a kernel that does not support forks",
            where=f"engine layer {operation.name!r}",
            found=f"kernel {kernel.name!r} for {', '.join(one.kind for one in group.layers)}",
            allowed="layers that each read the output of the layer before",
            remedy="Build the engine again",
        )
    place = group.layers.index(group.main)
    place += _joined_at_once(group, kernel, place) or 1
    while place < len(group.layers):
        layer, before = group.layers[place], LayerGroup(group.layers[:place])
        is_repeated = is_repeatable(layer) and layer is not group.layers[-1]
        joined = _joined_at_once(group, kernel, place)
        if joined or (is_repeated and group.prologue) or _fuses(kernel, before, layer):
            place += joined or 1
            continue
        last = next(one for one in reversed(before.layers) if not is_repeatable(one))
        if group.prologue and last is not group.main and last.kind == group.layers[-1].kind == "quantize":
            return
        raise EngineFileError(
            "The engine uses a kernel that does not support this fusion",
            where=f"engine layer {operation.name!r}",
            found=f"kernel {kernel.name!r} for {', '.join(one.kind for one in group.layers[: place + 1])}",
            allowed=f"no {layer.kind} there",
            remedy="Build the engine again",
        )


def _is_chain(group: LayerGroup) -> bool:
    """Return whether, of the group's layers, each is read only by the next one, if need be through dequantizations."""
    repeated = {layer.name for layer in group.layers[:-1] if is_repeatable(layer)}
    readers: dict[str, set[str]] = {
        layer.name: {one.name for one in group.layers for tensor in layer.outputs if tensor in one.connected_inputs}
        for layer in group.layers
    }
    for before, after in itertools.pairwise(layer.name for layer in group.layers if layer.name not in repeated):
        reached = {end for name in readers[before] for end in (readers[name] if name in repeated else {name})}
        if reached != {after}:
            return False
    return True


def _joined_at_once(group: LayerGroup, kernel: Kernel, place: int) -> int:
    """The number of layers from a place on that the kernel fuses as a fork, or one and what follows it; 0 if none."""
    length = fork_at(group.layers, place) if kernel.fuses_forks else 0
    for end in (place + length, place + length - 1) if length else ():
        if end < len(group.layers) and _fuses(kernel, LayerGroup(group.layers[:end]), group.layers[end]):
            return end + 1 - place
    return 0


def _fuses(kernel: Kernel, group: LayerGroup, layer: Layer) -> bool:
    return kernel.answer(group, lambda: kernel.fuses(group, layer))


def _require_packed(operation: Operation, group: LayerGroup, kernel: Kernel) -> None:
    """Reject a kernel that would read parameters that the engine omits because another kernel packed them."""
    lacking = [
        f"{field.name!r} of layer {layer.name!r}"
        for layer in group.layers
        for field in layer.parameters()
        if field.name not in kernel.packed_parameters
        and isinstance(value := getattr(layer, field.name), np.ndarray)
        and is_stand_in(value)
    ]
    codes = group.codes_read if kernel.packs_constants else None
    lacking += [
        f"constant {tensor.producer.name!r}"
        for layer in group.layers
        for index, tensor in enumerate(layer.inputs)
        if tensor is not None
        and isinstance(tensor.producer, Constant)
        and is_stand_in(tensor.producer.weights)
        and (codes is None or layer is not codes[0] or index != codes[1])
    ]
    if lacking:
        raise EngineFileError(
            "An engine must only leave out parameters that its kernel packs",
            where=f"engine layer {operation.name!r}, kernel {kernel.name!r}",
            found=", ".join(lacking),
            allowed=", ".join(kernel.packed_parameters) or "none",
            remedy="Build the engine again",
        )


def software(plan: Plan, device: str) -> tuple[int, ...]:
    """Return the software version that a device was built for; empty if the engine states none, meaning the newest.

    Raises:
        EngineFileError: The text is not a version.
    """
    versions = plan.settings.get("software")
    return version_numbers(versions.get(device, "") if isinstance(versions, dict) else "", device)


def version_numbers(text: object, device: str) -> tuple[int, ...]:
    """Return a software version from an engine's settings as numbers.

    Raises:
        EngineFileError: The text is not a version.
    """
    if not isinstance(text, str) or not re.fullmatch(r"(\d{1,9}(\.\d{1,9})*)?", text, re.ASCII):
        raise EngineFileError(
            "A software version must be numbers with dots",
            where=f"setting 'software' of {device}",
            found=repr(text),
            remedy="Build the engine again",
        )
    return tuple(int(part) for part in text.split(".")) if text else ()


def _activations(group: LayerGroup) -> list[Tensor]:
    """Return the tensors that a group reads and writes at run time, without those known at build time."""
    return [
        tensor for tensor in (*group.inputs, *group.outputs) if tensor.spec.value is None and not tensor.is_constant
    ]


def _kernel(operation: Operation, plan: Plan, by_device: dict[str, Mapping[str, Kernel]]) -> Kernel:
    """Return the kernel of an operation; `by_device` caches the kernels by device."""
    where = f"engine layer {operation.name!r}"
    target = _target(operation.device, plan, where)
    if operation.is_compiled:
        loaded = load_program(operation, target)
        return segment_kernel(operation.device, lambda program: loaded)
    kernels = by_device[operation.device] = by_device.get(operation.device) or _kernels(target)
    if operation.kernel not in kernels:
        raise EngineFileError(
            "The engine uses a kernel that is not installed",
            where=where,
            found=f"kernel {operation.kernel!r}",
            allowed=", ".join(sorted(kernels)),
            remedy=install_remedy(plan, target_key(operation.device)),
        )
    return kernels[operation.kernel]


def _target(device: str, plan: Plan, where: str) -> Target:
    """Return the target of a device of the engine.

    Raises:
        PluginError: No installed package provides the device; the message names the one to install.
    """
    try:
        return registry.target(device)
    except UnknownNameError as error:
        raise PluginError(
            "The engine was built for a device that is not installed",
            where=where,
            found=device,
            allowed=", ".join(error.known),
            remedy=install_remedy(plan, target_key(device)),
        ) from error


def _kernels(target: Target) -> Mapping[str, Kernel]:
    """Return the kernels that support a device, by name: its own, and the host's."""
    return {kernel.name: kernel for kernel in (*registry.host().kernels, *target.kernels)}
