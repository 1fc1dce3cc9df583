"""From decisions to a plan: a kernel for each group of the cut that fits, packed weights, and memory."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.config.optimization_profile import profile_shapes
from dryfit.builder.decisions import decisions_of
from dryfit.builder.design import Design
from dryfit.builder.fusion.compilation import CompilationPhase, compile_kernels
from dryfit.builder.fusion.fuse import choose_kernels
from dryfit.builder.fusion.groups import FusedGroup
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.kernels.choice import kernel_times, optimum_specs
from dryfit.builder.kernels.packed_weights import drop_packed_weights
from dryfit.builder.kernels.selection import KernelSelection
from dryfit.builder.segments.compilation import SegmentCompilation
from dryfit.builder.segments.device_memory import DeviceMemory, choose_host_layouts, plan_device_memory
from dryfit.builder.segments.export import Exported, planned_exports
from dryfit.builder.stages import Stages, logger
from dryfit.builder.unused_settings import exceeded_workspaces, overflow_warnings, unused_settings
from dryfit.engine.packages import layer_key, method_key, target_key
from dryfit.engine.plan import PROGRAM, Decisions, Operation, Plan, Segment
from dryfit.engine.records import fields_of
from dryfit.network.layer import with_bodies
from dryfit.network.layers.plugin import Plugin
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.plugins import registry
from dryfit.plugins.layer_plugins import layer_plugin_package
from dryfit.plugins.quantize_methods import quantize_method_package
from dryfit.quantization.rounding import Rounding
from dryfit.reference.inference import infer_specs
from dryfit.short_text import printable
from dryfit.target.arithmetic import integer_rounding
from dryfit.target.group import SegmentGroup
from dryfit.target.kernels import Specs

NUM_STAGES = 5


def link(
    network: Network, design: Design, config: BuilderConfig, stages: Stages, *, exports: bool = False
) -> tuple[Plan, Exported]:
    """(the plan of a design in which everything has its place, the segments that their targets can write as files).

    Args:
        network: the user's.
        design: the decisions about it.
        config: what it is built with.
        stages: log and progress.
        exports: whether segments are to be written as files; else there are none.

    Raises:
        BuildError: no kernel runs a layer, or the progress monitor cancelled the build.
        NetworkError: a layer does not take the types that were chosen.
    """
    cut = design.cut
    lowered = cut.lowered
    selection = _selection(config, lowered)
    with CompilationPhase(stages), kernel_times(config, lowered.network) as times:
        groups = stages.run(
            "choose kernels",
            lambda: choose_kernels(cut.groups, cut.choice, times, selection),
            lambda result: map(str, result),
        )
    if selection is not None:
        selection.report()
    for fused in groups:
        logger.info("%s", printable(str(fused), kept=""))
    layouts = choose_host_layouts(lowered.network, groups)
    compilation = segment_compilation(design)
    operations = stages.run("pack weights", lambda: _pack(groups, lowered, compilation, stages))
    with CompilationPhase(stages):
        concrete = functools.partial(optimum_specs, lowered.network, config)
        stages.run(
            "compile kernels",
            lambda: compile_kernels(groups, operations, concrete, layouts, functools.partial(_rounding, config)),
        )
    memory = stages.run("plan memory", lambda: plan_device_memory(cut.contents, layouts), DeviceMemory.lines)
    later_warnings = _warnings(design, groups, config)
    for warning in later_warnings:
        logger.warning("%s", warning)
    exported = planned_exports(lowered.network, groups, layouts, compilation) if exports else {}
    drop_packed_weights(lowered.network, [(fused.group, fused.kernel) for fused in groups])
    decisions = decisions_of(design, later_warnings)
    plan = stages.run(
        "write the plan",
        lambda: Plan(
            **fields_of(Decisions, decisions),
            network=lowered.network,
            operations=operations,
            placements=memory.placements,
            profiles=profile_shapes(lowered.network, config),
            pool_sizes=_pool_sizes(memory, decisions.segments),
            settings={**config.settings(network), "passes": list(design.canonical.passes)},
            plugins=registry.active_plugins(),
            packages=used_packages(lowered.network, operations),
            hidden_outputs=design.canonical.watched.hidden_outputs,
            debug_tensors=design.canonical.watched.debug_tensors,
            has_unfused_debug_tensors=network.has_unfused_debug_tensors,
            assertions=design.canonical.watched.assertions,
            aliased_inputs=design.canonical.watched.aliased_inputs,
        ),
    )
    return plan, exported


def _selection(config: BuilderConfig, lowered: LoweredNetwork) -> KernelSelection | None:
    if config.kernel_selector is None:
        return None

    @functools.cache
    def bounds() -> list[Specs]:
        shapes = config.get_optimization_profile(0).shapes if config.num_optimization_profiles else {}
        names = [tensor.name for tensor in lowered.network.inputs if tensor.name in shapes]
        return [infer_specs(lowered.network, {name: shapes[name][index] for name in names}) for index in range(3)]

    return KernelSelection(config.kernel_selector, bounds, config.get_flag(BuilderFlag.REJECT_EMPTY_ALGORITHMS))


def _warnings(design: Design, groups: Sequence[FusedGroup], config: BuilderConfig) -> list[str]:
    """What turns out once kernels are chosen: settings without effect, limits exceeded, and FP16 overflow."""
    return [
        *unused_settings(config, design),
        *exceeded_workspaces(config, design, design.cut.lowered, groups),
        *design.cut.choice.without_effect({fused.group.main.name: fused.kernel.name for fused in groups}),
        *overflow_warnings(design.network, design.cut.lowered.network),
    ]


def segment_compilation(design: Design) -> SegmentCompilation:
    """What compiles the segments of a design."""
    shapes = {tensor.name: design.specs[tensor.name].shape for tensor in design.network.inputs}
    return SegmentCompilation(design.cut.lowered, design.variants, design.precisions.layers, design.formats, shapes)


def _rounding(config: BuilderConfig, device: str) -> Rounding:
    return integer_rounding(registry.target(device).arithmetic, config.software(device))


def _pack(
    groups: Sequence[FusedGroup], lowered: LoweredNetwork, compilation: SegmentCompilation, stages: Stages
) -> list[Operation]:
    operations = []
    kept = _EqualArrays()
    with stages.steps("Packing weights", list(groups)) as each:
        for fused in each:
            layers, group = fused.group.layers, fused.group
            is_compiled = isinstance(group, SegmentGroup)
            weights = {PROGRAM: compilation.program(group, fused.place)} if is_compiled else fused.kernel.pack(group)
            operations.append(
                Operation(
                    name=_engine_name(fused, lowered),
                    layers=[layer.name for layer in layers],
                    kernel=fused.kernel.name,
                    device=fused.place.device,
                    segment=fused.place.segment,
                    precision=fused.place.precision,
                    source_layers=[layer.name for layer in layers if layer.name not in lowered.reformats],
                    onnx_nodes=list(dict.fromkeys(node for layer in layers for node in layer.onnx_nodes)),
                    weights={name: kept.first(array) for name, array in weights.items()},
                )
            )
    return operations


class _EqualArrays:
    """Keeps one of packed arrays that are equal: the iterations of an unrolled loop have the same weights."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], list[Array]] = {}

    def first(self, array: Array) -> Array:
        """The first array with these elements."""
        if array.nbytes < _LEAST_SHARED or not array.flags.c_contiguous:
            return array
        samples = array.reshape(-1)[:: -(-array.size // _SAMPLES)].tobytes()
        alike = self._known.setdefault((array.dtype.str, array.shape, samples), [])
        bits = array.view(np.uint8)
        equal = next((one for one in alike if np.array_equal(one.view(np.uint8), bits)), None)
        if equal is None:
            alike.append(array)
        return array if equal is None else equal


_LEAST_SHARED = 4096
"""Bytes of the smallest array that is looked for. Our choice: smaller ones are a page of memory at most."""
_SAMPLES = 64
"""Elements that are compared first: arrays that are not equal mostly differ in these."""


def _engine_name(fused: FusedGroup, lowered: LoweredNetwork) -> str:
    """The user's layers, joined as TensorRT joins them; what was put between them for INT8 is part of their step."""
    own = [layer.name for layer in fused.group.layers if layer.name not in lowered.owners]
    is_step = own and not isinstance(fused.group, SegmentGroup)
    return " + ".join(own) if is_step else fused.group.name


def _pool_sizes(memory: DeviceMemory, segments: Sequence[Segment]) -> dict[str, int]:
    """`device/pool` to bytes, over all segments; also for pools that hold weights."""
    sizes = dict(memory.pool_sizes)
    for segment in segments:
        for pool, size in segment.pools.items():
            key = f"{segment.device}/{pool}"
            if key not in memory.pool_sizes:
                sizes[key] = sizes.get(key, 0) + size
    return dict(sorted(sizes.items()))


def used_packages(network: Network, operations: Iterable[Operation]) -> dict[str, str]:
    """`Plan.packages`: each device, plugin layer and quantize method of an engine with its package, sorted.

    A layer plugin that the user registered by hand comes from no package, and is left out.
    """
    found = {target_key(device): registry.target_package(device) for device in {one.device for one in operations}}
    for layer in with_bodies(network.layers):
        if isinstance(layer, Plugin):
            key = (layer.plugin_name, layer.plugin_version, layer.plugin_namespace)
            found[layer_key(*key)] = layer_plugin_package(key)
        elif isinstance(layer, QuantizedOperator):
            found[method_key(layer.method)] = quantize_method_package(layer.method)
    return {what: package for what, package in sorted(found.items()) if package}
