"""Names of TensorRT's Python API that dryfit does not have, and what serves in their place.

Read by `dryfit.network.attribute_names`, which refuses them with these remedies. Names in backticks exist: a test
resolves each. A name that dryfit gets leaves this table.
"""

from __future__ import annotations

from collections.abc import Mapping

_ERRORS = "There is no error recorder: what fails raises a `DryfitError` that says why"
_NO_ALLOCATOR = "There is no allocator to set: memory is the host's"
_RUN = "Call `ExecutionContext.run`: run({'input': array}) returns a dict of the outputs"
_RUN_THREADS = "`Engine.create_execution_context` takes num_threads, the threads of a run"
_PLUGINS = "Call `register_layer_plugin`, or install a package whose entry point names the plugin"
_EXPLICIT_BATCH = "A batch is always explicit: state it in the shapes of `Network.add_input`"
_NO_STREAMING = "Weights are not streamed: an engine file is memory-mapped"
_DEBUG_TENSORS = "Call `Network.mark_output` on the tensors to look at"
_NO_STREAMS = "There are no CUDA streams and events: `ExecutionContext.run` returns when the outputs are there"
_CONFIG_PLACEMENT = "It is a member of the config: `BuilderConfig.{}`"


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
        "Kernels are excluded by `forbid_kernels` and named by `set_kernel`",
        *("set_tactic_sources", "get_tactic_sources", "max_num_tactics", "algorithm_selector"),
    ),
    **_all("There are no preview features", "set_preview_feature", "get_preview_feature"),
    "hardware_compatibility_level": "Call `set_platform` to choose the hardware that the engine is built for",
    "runtime_platform": "Call `set_platform` to choose the hardware that the engine is built for",
    "plugins_to_serialize": "An engine lists the plugins that it needs; they are loaded by their entry points",
    **_all(_NO_STREAMS, "max_aux_streams", "profile_stream"),
    **_all(
        "There is no tiling to set; `builder_optimization_level` says how much a build tries",
        *("tiling_optimization_level", "l2_limit_for_tiling"),
    ),
    "can_run_on_dla": "TensorRT's spelling is `can_run_on_DLA`",
}

_NETWORK = {
    "add_convolution": "Call `add_convolution_nd`",
    "add_deconvolution": "Call `add_deconvolution_nd`",
    "add_pooling": "Call `add_pooling_nd`",
    "add_padding": "Call `add_padding_nd`",
    **_all(
        "Call `add_normalization`, whose scale and bias have the shape that its docstring states",
        "add_normalization_v2",
    ),
    "add_dynamic_quantize_v2": "Call `add_dynamic_quantize`, which takes one axis and a block size",
    "add_plugin_v2": "Call `add_plugin` with the plugin's name, or `add_plugin_v3`",
    **_all(
        "Loops and conditionals are not supported: unroll them, or let the model's exporter do it",
        *("add_loop", "add_if_conditional", "add_rnn_v2"),
    ),
    "add_assertion": "Assertions are not supported: leave it out",
    "add_ragged_softmax": "Call `add_softmax`",
    **_all(
        "Not supported as one layer: build it of `add_matrix_multiply`, `add_softmax` and `add_elementwise`",
        *("add_attention", "add_attention_v2", "add_rotary_embedding", "add_kv_cache_update", "add_moe"),
    ),
    "add_dist_collective": "Collectives between devices are not supported",
    "has_implicit_batch_dimension": _EXPLICIT_BATCH,
    "has_explicit_precision": "Read `is_strongly_typed`",
    "remove_tensor": "Call `unmark_output`; a tensor that nobody reads costs nothing",
    **_all("Call `mark_output`", "mark_output_for_shapes"),
    **_all("Call `unmark_output`", "unmark_output_for_shapes"),
    **_all(
        _DEBUG_TENSORS,
        *("mark_debug", "unmark_debug", "is_debug_tensor"),
        *("mark_unfused_tensors_as_debug_tensors", "unmark_unfused_tensors_as_debug_tensors"),
    ),
    "builder": "A network belongs to no builder; any `Builder` builds it",
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
    "get_binding_index": "Tensors go by their names: call `get_tensor_name`",
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
    "is_execution_binding": "Call `is_shape_inference_io` with the tensor's name, and take the opposite",
    **_all(_EXPLICIT_BATCH, "max_batch_size", "has_implicit_batch_dimension"),
    "max_workspace_size": "Read `device_memory_size`",
    "create_execution_context_without_device_memory": "Call `create_execution_context`",
    "create_runtime_config": "`create_execution_context` takes what is to be set of a run",
    **_all("Read `device_memory_size`", "get_device_memory_size_for_profile", "get_device_memory_size_for_profile_v2"),
    **_all("Call `serialize`", "create_serialization_config", "serialize_with_config"),
    **_all(
        _NO_STREAMING,
        *("streamable_weights_size", "weight_streaming_budget", "weight_streaming_budget_v2"),
        *("minimum_weight_streaming_budget", "get_weight_streaming_automatic_budget"),
        *("weight_streaming_scratch_memory_size",),
    ),
    "tactic_sources": "Call `create_engine_inspector`: it shows the kernel of each layer",
    "get_engine_stat": "Call `create_engine_inspector`: it shows the weights of each layer",
    "hardware_compatibility_level": "An engine runs on the host, for the platform that it was built for",
    "get_aliased_input_tensor": "No output shares the memory of an input",
    "is_debug_tensor": _DEBUG_TENSORS,
    "num_aux_streams": _NO_STREAMS,
    "error_recorder": _ERRORS,
}

_EXECUTION_CONTEXT = {
    **_all(_RUN, "execute_v2", "execute_async", "execute_async_v2", "execute_async_v3", "enqueue_v2", "enqueue_v3"),
    "set_tensor_address": "Call `set_tensor` with the name and an array, then `execute`; or `run` with arrays",
    "get_tensor_address": "Call `get_tensor`",
    "set_binding_shape": "Call `set_input_shape` with the input's name; `run` takes the shapes of its arrays",
    "get_binding_shape": "Call `get_tensor_shape` with the tensor's name",
    "set_shape_input": "Give the values to `run` as an array, like any other input",
    "get_shape": "Call `get_tensor` with the tensor's name",
    "set_optimization_profile_async": "Call `set_optimization_profile` with the profile's number",
    "all_shape_inputs_specified": "Read `all_binding_shapes_specified`",
    **_all(
        "`run` returns outputs in new arrays of their size, or writes to the arrays of its argument out",
        *("set_output_allocator", "get_output_allocator", "get_max_output_size", "temporary_allocator"),
    ),
    **_all("Set `profiler`: it is told of each layer after each run", "report_to_profiler", "enqueue_emits_profile"),
    **_all(
        "An execution context owns its memory",
        *("device_memory", "set_device_memory", "update_device_memory_size_for_shapes", "persistent_cache_limit"),
    ),
    **_all(_NO_STREAMS, "debug_sync", "set_input_consumed_event", "get_input_consumed_event", "set_aux_streams"),
    **_all(
        _DEBUG_TENSORS,
        *("set_debug_listener", "get_debug_listener", "set_tensor_debug_state", "get_debug_state"),
        *("set_all_tensors_debug_state", "unfused_tensors_debug_state"),
    ),
    "nvtx_verbosity": "Set `profiler`: it is told of each layer after each run",
    "get_runtime_config": "`Engine.create_execution_context` takes what is to be set of a run",
    "set_communicator": "An engine runs on one machine; there is nothing to communicate with",
    "error_recorder": _ERRORS,
}

_RUNTIME = {
    "engine_host_code_allowed": "An engine file holds no code",
    **_all("Loading an engine writes no temporary files", "temporary_directory", "tempfile_control_flags"),
    "load_runtime": "There is one runtime, this one",
    "max_threads": _RUN_THREADS,
    "get_plugin_registry": _PLUGINS,
    "gpu_allocator": _NO_ALLOCATOR,
    "error_recorder": _ERRORS,
}

_OPTIMIZATION_PROFILE = {
    "extra_memory_target": "There is no such target: an execution context takes the memory that it needs",
    "profile_stream": _NO_STREAMS,
}

_ONNX_PARSER = {
    **_all(
        "Call `parse`: what is not supported is listed by `num_errors` and `get_error`",
        *("supports_model", "supports_model_v2", "num_subgraphs", "is_subgraph_supported", "get_subgraph_nodes"),
        *("parse_with_weight_descriptors", "load_model_proto", "load_initializer", "parse_model_proto"),
    ),
    "get_used_vc_plugin_libraries": _PLUGINS,
    "set_builder_config": "Not needed: the parser does not ask what a device can run; `BuilderConfig.can_run_on` does",
    "error_recorder": _ERRORS,
}

_REFITTER = {
    "refit_cuda_engine_async": "Call `refit_cuda_engine`",
    "release_refit_resources": "Not needed: a refitter frees its memory as it is dropped",
    "error_recorder": _ERRORS,
}


def _interfaces(**names: str) -> dict[str, str]:
    """TensorRT's `I...` classes and the names here."""
    return {f"I{theirs}": f"The name here is `{ours}`" for theirs, ours in names.items()}


_MODULE = {
    **{
        name: f"Write `DataType.{member}`"
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
    **_all("Write a tuple of integers", "Dims", "Dims2", "Dims3", "Dims4", "DimsHW", "DimsExprs", "Permutation"),
    **_all(
        "Not needed: `Builder` may be left without a logger; messages go to logging.getLogger('dryfit.builder')",
        *("Logger", "ILogger"),
    ),
    "nptype": "Read the property numpy of a `DataType`, such as DataType.FLOAT.numpy",
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
    "LayerType": "`Layer.type` is a name in capitals, such as 'CONVOLUTION'",
    **_all(_ERRORS, "IErrorRecorder", "ErrorCodeTRT"),
    **_all(_NO_ALLOCATOR, "IGpuAllocator", "IOutputAllocator"),
    "IAlgorithmSelector": "Kernels are named by `BuilderConfig.set_kernel`",
    "TacticSource": "Kernels are excluded by `BuilderConfig.forbid_kernels`",
    "PreviewFeature": "There are no preview features",
    "HardwareCompatibilityLevel": "Call `BuilderConfig.set_platform`",
}

INSTEAD: Mapping[str, Mapping[str, str]] = {
    "Builder": _BUILDER,
    "BuilderConfig": _BUILDER_CONFIG,
    "Network": _NETWORK,
    "Tensor": _TENSOR,
    "Layer": {"num_ranks": "A layer runs on one device; there are no ranks"},
    "Engine": _ENGINE,
    "ExecutionContext": _EXECUTION_CONTEXT,
    "Runtime": _RUNTIME,
    "OptimizationProfile": _OPTIMIZATION_PROFILE,
    "OnnxParser": _ONNX_PARSER,
    "Refitter": _REFITTER,
    "dryfit": _MODULE,
}
"""Class, or the module itself, to TensorRT's name to what serves here in its place."""
