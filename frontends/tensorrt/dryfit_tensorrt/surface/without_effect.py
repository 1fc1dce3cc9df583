"""Settings that are stored, can be read back and change nothing, each with its default and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import Member

_HOST = "memory is allocated on the host"
_STREAMS = "a run is done when its call returns, so that there is nothing to order"
_TIMING = "dryfit measures its own kernels as often as it needs"
_BOARD = "chooses kernels of a GPU; the simulated device has none to choose from"
_STREAMING = "weights are never streamed: an engine file is mapped into memory"
_BATCH = "the batch is explicit"
_RANKS = "there is one device"

WITHOUT_EFFECT: Mapping[tuple[str, str], tuple[Any, str]] = {
    ("Builder", "max_threads"): (1, "a build uses the threads that it needs"),
    ("Builder", "gpu_allocator"): (None, _HOST),
    ("Builder", "max_batch_size"): (1, _BATCH),
    ("IBuilderConfig", "avg_timing_iterations"): (1, _TIMING),
    ("IBuilderConfig", "min_timing_iterations"): (1, _TIMING),
    ("IBuilderConfig", "profile_stream"): (0, _STREAMS),
    ("IBuilderConfig", "hardware_compatibility_level"): ("HardwareCompatibilityLevel.NONE", _BOARD),
    ("IBuilderConfig", "plugins_to_serialize"): ((), "an engine finds its plugins by name"),
    ("IBuilderConfig", "max_aux_streams"): (-1, _STREAMS),
    ("IBuilderConfig", "max_num_tactics"): (-1, _BOARD),
    ("IBuilderConfig", "runtime_platform"): ("RuntimePlatform.SAME_AS_BUILD", "an engine runs on any platform"),
    ("IBuilderConfig", "tiling_optimization_level"): ("TilingOptimizationLevel.NONE", _BOARD),
    ("IBuilderConfig", "l2_limit_for_tiling"): (-1, _BOARD),
    ("IBuilderConfig", "remote_auto_tuning_config"): (None, "no board is asked during a build"),
    ("IBuilderConfig", "build_route"): ("", "the same network and config always give the same engine"),
    ("IBuilderConfig", "all_build_routes"): ((), "the same network and config always give the same engine"),
    ("ITensor", "broadcast_across_batch"): (False, _BATCH),
    ("ILayer", "num_ranks"): (1, _RANKS),
    ("IAttention", "num_ranks"): (1, _RANKS),
    ("Runtime", "gpu_allocator"): (None, _HOST),
    ("Runtime", "max_threads"): (1, "loading an engine uses one thread"),
    ("Runtime", "temporary_directory"): ("", "no file is written to load an engine"),
    ("Runtime", "tempfile_control_flags"): (3, "no file is written to load an engine"),
    ("Refitter", "max_threads"): (1, "a refit uses the threads that it needs"),
    ("ICudaEngine", "num_aux_streams"): (0, _STREAMS),
    ("ICudaEngine", "weight_streaming_budget"): (0, _STREAMING),
    ("ICudaEngine", "weight_streaming_budget_v2"): (0, _STREAMING),
    ("ICudaEngine", "minimum_weight_streaming_budget"): (0, _STREAMING),
    ("ICudaEngine", "streamable_weights_size"): (0, _STREAMING),
    ("ICudaEngine", "weight_streaming_scratch_memory_size"): (0, _STREAMING),
    ("IExecutionContext", "debug_sync"): (False, _STREAMS),
    ("IExecutionContext", "device_memory"): (0, _HOST),
    ("IExecutionContext", "temporary_allocator"): (None, _HOST),
    ("IExecutionContext", "persistent_cache_limit"): (0, "there is no persistent cache"),
    ("IExecutionContext", "nvtx_verbosity"): ("ProfilingVerbosity.LAYER_NAMES_ONLY", "there is no NVTX"),
    ("IOutputAllocator", "tensorrt_version"): (8601, "it is the version of the module"),
    ("ISerializationConfig", "flags"): (0, "the whole engine is serialized"),
    ("IPluginRegistry", "error_recorder"): (None, "errors of plugins are raised and logged"),
    ("IPluginRegistry", "parent_search_enabled"): (True, "there is one registry"),
}
"""(class, member) to (default, reason). A default `Enumeration.MEMBER` is that of the version."""

CALLS_WITHOUT_EFFECT: Mapping[tuple[str, str], tuple[Any, str]] = {
    ("IExecutionContext", "set_input_consumed_event"): (True, _STREAMS),
    ("IExecutionContext", "get_input_consumed_event"): (0, _STREAMS),
    ("IExecutionContext", "set_aux_streams"): (None, _STREAMS),
    ("IExecutionContext", "set_device_memory"): (None, _HOST),
    ("IExecutionContext", "update_device_memory_size_for_shapes"): (0, _HOST),
    ("IExecutionContext", "get_runtime_config"): (None, "a context has no strategy of allocation"),
    ("ISerializationConfig", "set_flag"): (True, "the whole engine is serialized"),
    ("ISerializationConfig", "clear_flag"): (True, "the whole engine is serialized"),
    ("ISerializationConfig", "get_flag"): (False, "the whole engine is serialized"),
    ("IRuntimeConfig", "set_execution_context_allocation_strategy"): (None, _HOST),
    ("IRuntimeConfig", "get_execution_context_allocation_strategy"): (
        "ExecutionContextAllocationStrategy.STATIC",
        _HOST,
    ),
    ("IGpuAllocator", "allocate"): (0, _HOST),
    ("IGpuAllocator", "reallocate"): (0, _HOST),
    ("IGpuAllocator", "deallocate"): (True, _HOST),
    ("IGpuAllocator", "free"): (None, _HOST),
    ("IGpuAllocator", "allocate_async"): (0, _HOST),
    ("IGpuAllocator", "deallocate_async"): (True, _HOST),
    ("IGpuAsyncAllocator", "allocate"): (0, _HOST),
    ("IGpuAsyncAllocator", "deallocate"): (True, _HOST),
    ("IGpuAsyncAllocator", "allocate_async"): (0, _HOST),
    ("IGpuAsyncAllocator", "deallocate_async"): (True, _HOST),
}
"""(class, method) to (what it returns, reason)."""


def stored(owner: str, member: Member) -> Any:
    """Return a member that only stores or returns a value; None if it is not one of these."""
    if member.is_method:
        return (
            _call(member, *CALLS_WITHOUT_EFFECT[owner, member.name])
            if (owner, member.name) in CALLS_WITHOUT_EFFECT
            else None
        )
    if (owner, member.name) not in WITHOUT_EFFECT:
        return None
    default, reason = WITHOUT_EFFECT[owner, member.name]
    key = f"_stored_{member.name}"

    def get(self: Any) -> Any:
        return vars(self).get(key, _value(self._api, default))

    def set_(self: Any, value: Any) -> None:
        vars(self)[key] = value

    get.origin = Origin.STORED  # type: ignore[attr-defined]
    return property(get, None if member.is_read_only else set_, doc=f"Stored without effect: {reason}.")


def _call(member: Member, result: Any, reason: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return _value(self._api, result)

    call.__name__ = member.name
    call.__doc__ = f"No effect: {reason}."
    call.origin = Origin.STORED  # type: ignore[attr-defined]
    return call


def _value(api: Any, default: Any) -> Any:
    if isinstance(default, tuple):
        return list(default)
    if isinstance(default, str) and "." in default:
        kind, _, name = default.partition(".")
        return getattr(api, kind)[name]
    return default
