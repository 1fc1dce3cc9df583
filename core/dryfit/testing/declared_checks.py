"""Checks that a device computes a network as its target declares: in its types and formats, with its kernels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.kernels.choice import serves
from dryfit.building import Builder
from dryfit.engine.plan import Operation, Plan
from dryfit.engine.segment_program import operation_group
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup
from dryfit.target.target import Target
from dryfit.testing.kernel_trials import KernelCase, KernelTrial
from dryfit.testing.trial_networks import Trial, trial_problems


def network_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Plan a random FP32 network with a type enabled, and return the deviations from the declaration.

    Args:
        target: an installed target.
        precision: one of `TRIAL_PRECISIONS`.
        seed: seed of the network.
    """

    def look(trial: Trial) -> Iterator[str]:
        return plan_problems(Builder().build_plan(trial.network, trial.config), target)

    return trial_problems(target, precision, seed, look)


def plan_problems(plan: Plan, target: Target) -> Iterator[str]:
    """Return where a plan deviates from the target's declaration."""
    yield from _type_problems(plan, target)
    layers = {layer.name: layer for layer in plan.network.layers}
    groups = [(operation, operation_group(operation, layers)) for operation in plan.operations]
    yield from _format_problems(plan, target, groups)
    own = {kernel.name: kernel for kernel in target.kernels}
    specs = infer_specs(plan.network)
    for operation, group in groups:
        if operation.device != target.device or operation.is_compiled or operation.kernel in own:
            continue
        able = [name for name, kernel in own.items() if serves(kernel, group, specs)]
        if able:
            yield f"{operation.kernel} runs {operation.name!r}, though the target's own {able[0]} serves it"


def _type_problems(plan: Plan, target: Target) -> Iterator[str]:
    declared = ", ".join(dtype.text for dtype in target.precisions)
    for layer in plan.layers:
        if layer.device != target.device or layer.segment < 0:
            continue
        verdict = plan.verdicts.get(layer.layer, {}).get(target.device)
        if layer.precision not in target.precisions:
            yield f"layer {layer.layer!r} is computed in {layer.precision.text}, and the target declares {declared}"
        elif verdict is not None and layer.precision is not verdict.precision:
            yield f"layer {layer.layer!r} is computed in {layer.precision.text}, not in {verdict.precision.text}"


def _format_problems(plan: Plan, target: Target, groups: Sequence[tuple[Operation, LayerGroup]]) -> Iterator[str]:
    """Tensors at the borders of the device's segments that lie in a format that is not listed for their type."""
    for segment in plan.segments:
        if segment.device != target.device:
            continue
        own = [group for operation, group in groups if operation.segment == segment.index]
        others = [group for operation, group in groups if operation.segment != segment.index]
        written = {tensor.name: tensor.dtype for group in own for tensor in group.outputs}
        read = {tensor.name: tensor.dtype for group in own for tensor in group.inputs if tensor.name not in written}
        outside = {tensor.name for group in others for tensor in group.inputs}
        outside |= {tensor.name for tensor in plan.network.outputs}
        given = {name: dtype for name, dtype in written.items() if name in outside}
        for side, tensors, table in (("input", read, target.input_formats), ("output", given, target.output_formats)):
            yield from _unlisted(plan, target, side, tensors, table)


def _unlisted(
    plan: Plan,
    target: Target,
    side: str,
    tensors: Mapping[str, DataType],
    table: Mapping[DataType, Collection[TensorFormat]],
) -> Iterator[str]:
    for name, dtype in tensors.items():
        place = plan.placements.get(name)
        listed = [one.name for one in table.get(dtype, ())]
        if place is None or place.device != target.device or dtype not in target.precisions:
            continue
        if place.format not in listed:
            told = ", ".join(listed) or "none"
            yield f"the {side} {name!r} is {dtype.text} in {place.format}; listed for {dtype.text}: {told}"


def kernel_use_problems(
    target: Target, case: KernelCase, trial: KernelTrial, config: BuilderConfig
) -> list[str] | None:
    """Build a layer that a kernel of the target supports in an FP32 network, and check that such a kernel runs it.

    Args:
        target: an installed target.
        case: case of one of its own kernels.
        trial: a layer within the limits, in the type of the case.
        config: builder config that requests this type.

    Returns:
        The problems; None if the layer is not on the device in this type after all, such as for lack of memory.
    """
    network = _in_fp32(trial.network, case.dtype)
    if not target.segment_rules.is_host:
        config.allow_fallback(registry.host().device)
    verdict = config.can_run_on(network.layer(trial.group.main.name), target.device)
    if not verdict or verdict.precision is not case.dtype:
        return None
    plan = Builder().build_plan(network, config)
    (found,) = (one for one in plan.operations if trial.group.main.name in one.source_layers)
    if found.device != target.device or found.is_compiled:
        return None
    own = {kernel.name for kernel in target.kernels}
    if found.kernel in own and found.precision is case.dtype:
        return []
    ran = f"{found.kernel} runs {found.name!r} in {found.precision.text}"
    return [f"{ran}, though {case.dtype.text} is requested and the target brings {trial.kernel.name}"]


def _in_fp32(network: Network, dtype: DataType) -> Network:
    """The same layers for FLOAT inputs, where the network has inputs of another type."""
    made, tensors = Network(network.name), dict[str, Tensor]()
    for tensor in network.inputs:
        own = DataType.FLOAT if tensor.dtype is dtype else tensor.dtype
        tensors[tensor.name] = made.add_input(tensor.name, own, tensor.shape)
    for layer in network.layers:
        inputs = [None if tensor is None else tensors[tensor.name] for tensor in layer.inputs]
        new = made.add_layer(copy_layer(layer), inputs)
        tensors.update((old.name, output) for old, output in zip(layer.outputs, new.outputs, strict=True))
    for tensor in network.outputs:
        made.mark_output(tensors[tensor.name])
    return made
