"""Names of TensorRT's Python API that dryfit does not have, and what serves in their place.

Read by `dryfit.network.attribute_names`, which refuses them with these remedies. Names in backticks exist: a test
resolves each. A name that dryfit gets leaves this table.
"""

from __future__ import annotations

from collections.abc import Mapping

_ERRORS = "Error recorders are not supported: catch `DryfitError`"
_NO_ALLOCATOR = "Allocators are not supported: memory is allocated on the host"
_RUN = "Call `ExecutionContext.run`: run({'input': array}) returns a dict of the outputs"
_RUN_THREADS = "Pass num_threads to `Engine.create_execution_context`"
_PLUGINS = "Call `register_layer_plugin`, or install a package that registers the plugin as an "
"entry point"
_EXPLICIT_BATCH = "The batch is always explicit: set it in the shapes of `Network.add_input`"
_NO_STREAMING = "Weight streaming is not supported: an engine file is memory-mapped"
_NO_STREAMS = "CUDA streams and events are not supported: `ExecutionContext.run` is synchronous"
_CONFIG_PLACEMENT = "It moved to the config: `BuilderConfig.{}`"


def _placed_by_config(*names: str) -> dict[str, str]:
    return {name: _CONFIG_PLACEMENT.format(name) for name in names}


def _all(remedy: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, remedy)


_BUILDER = {
    "max_batch_size": _EXPLICIT_BATCH,
    "max_workspace_size": "Call `BuilderConfig.set_memory_pool_limit` with `MemoryPoolType.WORKSPACE`",
    "fp16_mode": "Call `BuilderConfig.set_flag` with `BuilderFlag.FP16`",
    "int8_mode": "Call `BuilderConfig.set_flag` with `BuilderFlag.INT8`",
    "strict_type_constraints": "Call `BuilderConfig.set_flag` with `BuilderFlag.OBEY_PRECISION_CONSTRAINTS`",
    "build_cuda_engine": "Call `Builder.build_engine` with a network and a config",
    "build_serialized_network_to_stream": "Write the bytes that `Builder.build_serialized_network` returns",
    "max_threads": _RUN_THREADS,
    "error_recorder": _ERRORS,
    "gpu_allocator": _NO_ALLOCATOR,
    "get_plugin_registry": _PLUGINS,
    **_placed_by_config(
        *("int8_calibrator", "default_device_type", "set_device_type", "get_device_type", "is_device_type_set"),
        *("reset_device_type", "can_run_on_DLA", "DLA_core", "allow_gpu_fallback", "set_flag", "get_flag"),
        *("engine_capability", "set_memory_pool_limit", "add_optimization_profile", "profiling_verbosity"),
    ),
}

_BUILDER_CONFIG = {
    "max_workspace_size": "Call `set_memory_pool_limit` with `MemoryPoolType.WORKSPACE`",
    **_all(
        "The builder decides how often a kernel is timed; `set_timing_cache` keeps the results",
        *("avg_timing_iterations", "min_timing_iterations"),
    ),
    **_all(
        "Call `forbid_kernels` to exclude kernels, and `set_kernel` to choose one",
        *("set_tactic_sources", "get_tactic_sources", "max_num_tactics", "algorithm_selector"),
    ),
    **_all("Preview features are not supported", "set_preview_feature", "get_preview_feature"),
    "hardware_compatibility_level": "Call `set_platform` to choose the target hardware",
    "runtime_platform": "Call `set_platform` to choose the target hardware",
    "plugins_to_serialize": "Not required: an engine loads the plugins that it needs from their entry points",
    **_all(_NO_STREAMS, "max_aux_streams", "profile_stream"),
    **_all(
        "Tiling options are not supported; set `builder_optimization_level`",
        *("tiling_optimization_level", "l2_limit_for_tiling"),
    ),
    "can_run_on_dla": "TensorRT's spelling is `can_run_on_DLA`",
}

_NETWORK = {
    "add_convolution": "Call `add_convolution_nd`",
    "add_deconvolution": "Call `add_deconvolution_nd`",
    "add_pooling": "Call `add_pooling_nd`",
    "add_padding": "Call `add_padding_nd`",
    "add_plugin_v2": "Call `add_plugin` with the plugin's name, or `add_plugin_v3`",
    "add_rnn_v2": "Write the network with `add_loop`, or unroll it",
    **_all(
        "Not supported as one layer: use `add_matrix_multiply`, `add_softmax` and `add_elementwise`",
        "add_moe",
    ),
    "add_dist_collective": "Multi-device collectives are not supported",
    "has_implicit_batch_dimension": _EXPLICIT_BATCH,
    "has_explicit_precision": "Read `is_strongly_typed`",
    "remove_tensor": "Call `unmark_output`; an unused tensor has no overhead",
    **_all("Call `mark_output`", "mark_output_for_shapes"),
    **_all("Call `unmark_output`", "unmark_output_for_shapes"),
    "builder": "A network is not bound to a builder; any `Builder` builds it",
    "serialize": "Call `Builder.build_serialized_network`",
    "error_recorder": _ERRORS,
}

_TENSOR = {
    "broadcast_across_batch": _EXPLICIT_BATCH,
    "get_dynamic_range": "Read `dynamic_range`",
}

_ENGINE = {
    "num_bindings": "Read `num_io_tensors`",
    "get_binding_name": "Call `get_tensor_name`",
    "get_binding_index": "Tensors are identified by name: call `get_tensor_name`",
    "binding_is_input": "Compare `get_tensor_mode` with `TensorIOMode.INPUT`",
    "get_binding_shape": "Call `get_tensor_shape` with the tensor's name",
    "get_binding_dtype": "Call `get_tensor_dtype` with the tensor's name",
    "get_binding_format": "Call `get_tensor_format` with the tensor's name",
    "get_binding_format_desc": "Call `get_tensor_format_desc` with the tensor's name",
    "get_binding_vectorized_dim": "Call `get_tensor_vectorized_dim` with the tensor's name",
    "get_binding_components_per_element": "Call `get_tensor_components_per_element` with the tensor's name",
    "get_binding_bytes_per_component": "Call `get_tensor_bytes_per_component` with the tensor's name",
    "get_location": "Call `get_tensor_location` with the tensor's name",
    "get_profile_shape": "Call `get_tensor_profile_shape` with the tensor's name and the profile's number",
    "get_profile_shape_input": "Call `get_tensor_profile_values` with the profile's number and the tensor's name",
    "is_shape_binding": "Call `is_shape_inference_io` with the tensor's name",
    "is_execution_binding": "Call `is_shape_inference_io` with the tensor's name, and negate the result",
    **_all(_EXPLICIT_BATCH, "max_batch_size", "has_implicit_batch_dimension"),
    "max_workspace_size": "Read `device_memory_size`",
    "create_execution_context_without_device_memory": "Call `create_execution_context`",
    "create_runtime_config": "Pass the settings to `create_execution_context`",
    **_all("Read `device_memory_size`", "get_device_memory_size_for_profile", "get_device_memory_size_for_profile_v2"),
    **_all("Call `serialize` with its arguments", "create_serialization_config", "serialize_with_config"),
    **_all(
        _NO_STREAMING,
        *("streamable_weights_size", "weight_streaming_budget", "weight_streaming_budget_v2"),
        *("minimum_weight_streaming_budget", "get_weight_streaming_automatic_budget"),
        *("weight_streaming_scratch_memory_size",),
    ),
    "tactic_sources": "Call `create_engine_inspector`: it shows the kernel of each layer",
    "hardware_compatibility_level": "An engine runs on the host, for the platform that it was built for",
    "num_aux_streams": _NO_STREAMS,
    "error_recorder": _ERRORS,
}

_EXECUTION_CONTEXT = {
    **_all(_RUN, "execute_v2", "execute_async", "execute_async_v2", "execute_async_v3", "enqueue_v2", "enqueue_v3"),
    "set_tensor_address": "Call `set_tensor` with the name and an array, then `execute`; or pass arrays to `run`",
    "get_tensor_address": "Call `get_tensor`",
    "set_binding_shape": "Call `set_input_shape` with the input's name; `run` uses the shapes of its arrays",
    "get_binding_shape": "Call `get_tensor_shape` with the tensor's name",
    "set_shape_input": "Pass the values to `run` as an array, like any other input",
    "get_shape": "Call `get_tensor` with the tensor's name",
    "set_optimization_profile_async": "Call `set_optimization_profile` with the profile's number",
    "all_shape_inputs_specified": "Read `all_binding_shapes_specified`",
    **_all(
        "`run` returns new arrays, or writes to the arrays of its argument out",
        "temporary_allocator",
    ),
    **_all("Set `profiler`: it is called for each layer after each run", "report_to_profiler", "enqueue_emits_profile"),
    **_all(
        "An execution context owns its memory",
        *("device_memory", "set_device_memory", "update_device_memory_size_for_shapes", "persistent_cache_limit"),
    ),
    **_all(_NO_STREAMS, "debug_sync", "set_input_consumed_event", "get_input_consumed_event", "set_aux_streams"),
    "nvtx_verbosity": "Set `profiler`: it is called for each layer after each run",
    "get_runtime_config": "Pass the settings to `Engine.create_execution_context`",
    "set_communicator": "Multi-device execution is not supported",
    "error_recorder": _ERRORS,
}

_RUNTIME = {
    "engine_host_code_allowed": "Engine files contain no code",
    **_all(
        "Not required: loading an engine writes no temporary files", "temporary_directory", "tempfile_control_flags"
    ),
    "load_runtime": "Only one runtime exists",
    "max_threads": _RUN_THREADS,
    "get_plugin_registry": _PLUGINS,
    "gpu_allocator": _NO_ALLOCATOR,
    "error_recorder": _ERRORS,
}

_OPTIMIZATION_PROFILE = {
    "extra_memory_target": "Not supported: an execution context allocates the memory that it needs",
    "profile_stream": _NO_STREAMS,
}

_ONNX_PARSER = {
    **_all(
        "Call `parse`: `num_errors` and `get_error` list what is not supported",
        *("supports_model", "supports_model_v2", "num_subgraphs", "is_subgraph_supported", "get_subgraph_nodes"),
        *("parse_with_weight_descriptors", "load_model_proto", "load_initializer", "parse_model_proto"),
    ),
    "get_used_vc_plugin_libraries": _PLUGINS,
    "set_builder_config": "Not required: the parser does not check device support; call `BuilderConfig.can_run_on`",
    "error_recorder": _ERRORS,
}

_REFITTER = {
    "refit_cuda_engine_async": "Call `refit_cuda_engine`",
    "release_refit_resources": "Not required: a refitter frees its memory when it is deleted",
    "error_recorder": _ERRORS,
}


def _interfaces(**names: str) -> dict[str, str]:
    """TensorRT's `I...` classes and the names here."""
    return {f"I{theirs}": f"Use `{ours}`" for theirs, ours in names.items()}


_MODULE = {
    **{
        name: f"Use `DataType.{member}`"
        for name, member in {
            "float32": "FLOAT",
            "float16": "HALF",
            "bfloat16": "BF16",
            "int8": "INT8",
            "int32": "INT32",
            "int64": "INT64",
            "bool": "BOOL",
            "uint8": "UINT8",
            "fp8": "FP8",
            "int4": "INT4",
            "fp4": "FP4",
            "e8m0": "E8M0",
        }.items()
    },
    **_all("Use a tuple of integers", "Dims", "Dims2", "Dims3", "Dims4", "DimsHW", "DimsExprs", "Permutation"),
    **_all(
        "Not required by `Builder`: messages go to logging.getLogger('dryfit.builder')",
        *("Logger", "ILogger"),
    ),
    "nptype": "Read the property numpy, such as DataType.FLOAT.numpy",
    "volume": "Call math.prod(shape)",
    **_all(
        _PLUGINS,
        *("init_libnvinfer_plugins", "get_plugin_registry", "get_builder_plugin_registry", "IPluginCreator"),
        *("IPluginRegistry", "PluginFieldCollection", "PluginFieldType", "IPluginCreatorV3One"),
    ),
    **_all("Derive from `LayerPlugin`", "IPluginV2", "IPluginV2DynamicExt", "IPluginV3"),
    **_interfaces(
        NetworkDefinition="Network",
        CudaEngine="Engine",
        ExecutionContext="ExecutionContext",
        Builder="Builder",
        BuilderConfig="BuilderConfig",
        Runtime="Runtime",
        Refitter="Refitter",
        Tensor="Tensor",
        Layer="Layer",
        OptimizationProfile="OptimizationProfile",
        ProgressMonitor="ProgressMonitor",
        Profiler="Profiler",
        TimingCache="TimingCache",
        EngineInspector="EngineInspector",
    ),
    "IHostMemory": "`Builder.build_serialized_network` returns bytes",
    "LayerType": "`Layer.type` is an uppercase string, such as 'CONVOLUTION'",
    **_all(_ERRORS, "IErrorRecorder", "ErrorCodeTRT"),
    "IGpuAllocator": _NO_ALLOCATOR,
    "IOutputAllocator": "Pass a function to `ExecutionContext.set_output_allocator`",
    "IDebugListener": "Pass an object or a function to `ExecutionContext.set_debug_listener`",
    "IAlgorithmSelector": "Call `BuilderConfig.set_kernel` to choose kernels",
    "TacticSource": "Call `BuilderConfig.forbid_kernels` to exclude kernels",
    "PreviewFeature": "Preview features are not supported",
    "HardwareCompatibilityLevel": "Call `BuilderConfig.set_platform`",
}

INSTEAD: Mapping[str, Mapping[str, str]] = {
    "Builder": _BUILDER,
    "BuilderConfig": _BUILDER_CONFIG,
    "Network": _NETWORK,
    "Tensor": _TENSOR,
    "Layer": {"num_ranks": "Multi-device execution is not supported: a layer runs on one device"},
    "Engine": _ENGINE,
    "ExecutionContext": _EXECUTION_CONTEXT,
    "Runtime": _RUNTIME,
    "OptimizationProfile": _OPTIMIZATION_PROFILE,
    "OnnxParser": _ONNX_PARSER,
    "Refitter": _REFITTER,
    "dryfit": _MODULE,
}
"""Class, or the module itself, to TensorRT's name to what serves here in its place."""
