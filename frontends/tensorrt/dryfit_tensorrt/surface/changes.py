"""What to write instead of what newer versions of TensorRT removed or changed, and what of it dryfit translates.

Which members are gone, renumbered or read only follows from the tables of classes and enumerations; here are the words
for each. A name is `Class.member`, `Enumeration.MEMBER`, or one of the module: a class, for all of it, or a function.
Source: TensorRT's migration guides 8.x to 10.x and 10.x to 11.x, and the open binding sources of both versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dryfit.attrs_classes import frozen


@frozen
class Advice:
    """What to do about one name.

    Attributes:
        since: version of TensorRT with the change.
        instead: what to write in the newer version.
        translation: what dryfit translates; "" for nothing.
    """

    since: str
    instead: str
    translation: str = ""


SOURCES = {
    "10.0": "TensorRT 10 documentation, Migrating from TensorRT 8.x to 10.x",
    "11.0": "TensorRT 11 documentation, Migrating from TensorRT 10.x to 11.x",
}
"""Version with changes to the document that lists them."""

QDQ = (
    "`dryfit calibrate` computes the scales, and `dryfit translate MODEL --to qdq --calibration-cache FILE -o QDQ.onnx`"
    " writes them, or those of an existing calibration cache, as Q/DQ nodes"
)
PRECISIONS = (
    "`dryfit translate MODEL --to qdq` follows --layer-precisions and --layer-output-types: layers that are kept in "
    "floating point get no Q/DQ nodes"
)

_WORKSPACE = "config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, size)"
_EXPLICIT_BATCH = (
    "Make the batch the first dimension of each input, dynamic (-1) with an optimization profile if it varies"
)
_TYPED_MODEL = "Define the types in the model: cast its tensors to FP16 or BF16, for example with ModelOpt AutoCast"
_QDQ_MODEL = "Define INT8 in the model, with QuantizeLinear and DequantizeLinear nodes"
_NAMES = "Use tensor names: `engine.get_tensor_name(i)` for i below `engine.num_io_tensors`"
_RNN = "Build the recurrence with `network.add_loop()`, or import the ONNX model"
_ONNX = "Convert the model to ONNX, and read it with `trt.OnnxParser`"
_ALGORITHMS = (
    "Set BuilderFlag.EDITABLE_TIMING_CACHE, and select tactics in the timing cache: `cache.query`, `cache.update`"
)

REMOVED_IN_10 = {
    "Builder.max_batch_size ICudaEngine.max_batch_size": _EXPLICIT_BATCH,
    "Builder.build_engine": (
        "Write `trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))`"
    ),
    "IBuilderConfig.max_workspace_size": f"Write `{_WORKSPACE}`",
    "IBuilderConfig.min_timing_iterations": "Use `config.avg_timing_iterations`",
    "INetworkDefinition.add_convolution": "Use `add_convolution_nd` with the same arguments",
    "INetworkDefinition.add_deconvolution": "Use `add_deconvolution_nd` with the same arguments",
    "INetworkDefinition.add_pooling": "Use `add_pooling_nd` with the same arguments",
    "INetworkDefinition.add_padding": "Use `add_padding_nd` with the same arguments",
    "INetworkDefinition.add_fully_connected IFullyConnectedLayer LayerType.FULLY_CONNECTED": (
        "Use `add_constant` for the weights, `add_matrix_multiply`, and `add_elementwise` for the bias; on the DLA, "
        "a 1x1 `add_convolution_nd`"
    ),
    "INetworkDefinition.add_rnn_v2 IRNNv2Layer LayerType.RNN_V2": _RNN,
    "RNNOperation RNNDirection RNNInputMode RNNGateType": _RNN,
    "INetworkDefinition.has_explicit_precision NetworkDefinitionCreationFlag.EXPLICIT_PRECISION": (
        "Remove it: networks with Q/DQ nodes are recognized as such"
    ),
    "IConvolutionLayer.kernel_size IDeconvolutionLayer.kernel_size": "Use `kernel_size_nd`",
    "IConvolutionLayer.stride IDeconvolutionLayer.stride IPoolingLayer.stride": "Use `stride_nd`",
    "IConvolutionLayer.padding IDeconvolutionLayer.padding IPoolingLayer.padding": "Use `padding_nd`",
    "IConvolutionLayer.dilation": "Use `dilation_nd`",
    "IPoolingLayer.window_size": "Use `window_size_nd`",
    "IPaddingLayer.pre_padding": "Use `pre_padding_nd`",
    "IPaddingLayer.post_padding": "Use `post_padding_nd`",
    "PaddingMode.CAFFE_ROUND_DOWN": "Use PaddingMode.EXPLICIT_ROUND_DOWN, and compare the output shape",
    "PaddingMode.CAFFE_ROUND_UP": "Use PaddingMode.EXPLICIT_ROUND_UP, and compare the output shape",
    "ICudaEngine.num_bindings ICudaEngine.__len__": "Use `engine.num_io_tensors`",
    "ICudaEngine.get_binding_name": "Use `engine.get_tensor_name(i)`",
    "ICudaEngine.get_binding_index": _NAMES,
    "ICudaEngine.binding_is_input": "Write `engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT`",
    "ICudaEngine.get_binding_shape": "Use `engine.get_tensor_shape(name)`",
    "ICudaEngine.get_binding_dtype": "Use `engine.get_tensor_dtype(name)`",
    "ICudaEngine.get_location": "Use `engine.get_tensor_location(name)`",
    "ICudaEngine.get_profile_shape": "Use `engine.get_tensor_profile_shape(name, profile)`",
    "ICudaEngine.get_profile_shape_input": "Use `engine.get_tensor_profile_values(name, profile)`",
    "ICudaEngine.is_shape_binding": "Use `engine.is_shape_inference_io(name)`",
    "ICudaEngine.is_execution_binding": "Write `not engine.is_shape_inference_io(name)`",
    "ICudaEngine.get_binding_bytes_per_component": "Use `engine.get_tensor_bytes_per_component(name)`",
    "ICudaEngine.get_binding_components_per_element": "Use `engine.get_tensor_components_per_element(name)`",
    "ICudaEngine.get_binding_format": "Use `engine.get_tensor_format(name)`",
    "ICudaEngine.get_binding_format_desc": "Use `engine.get_tensor_format_desc(name)`",
    "ICudaEngine.get_binding_vectorized_dim": "Use `engine.get_tensor_vectorized_dim(name)`",
    "IExecutionContext.execute": "Use `context.execute_v2(bindings)`; the batch is a dimension of the inputs",
    "IExecutionContext.execute_async IExecutionContext.execute_async_v2": (
        "Call `context.set_tensor_address(name, address)` for each input and output, then "
        "`context.execute_async_v3(stream_handle)`"
    ),
    "IExecutionContext.active_optimization_profile": (
        "Call `context.set_optimization_profile_async(index, stream_handle)`"
    ),
    "IExecutionContext.get_strides": "Use `context.get_tensor_strides(name)`",
    "IExecutionContext.set_binding_shape": "Use `context.set_input_shape(name, shape)`",
    "IExecutionContext.get_binding_shape": "Use `context.get_tensor_shape(name)`",
    "IExecutionContext.set_shape_input": (
        "Call `context.set_tensor_address(name, address)` with the address of the values on the host"
    ),
    "IExecutionContext.get_shape": "Read the values at `context.get_tensor_address(name)`",
    "IGpuAllocator.free": "Override `deallocate(memory)`, and return whether it succeeded",
    "IAlgorithmIOInfo.tensor_format": "Use `strides`, `vectorized_dim` and `components_per_element`",
    "IPluginCreator.tensorrt_version IOutputAllocator.tensorrt_version": "Use `trt.__version__`",
    "EngineCapability.DEFAULT": "Use EngineCapability.STANDARD",
    "EngineCapability.SAFE_GPU": "Use EngineCapability.SAFETY",
    "EngineCapability.SAFE_DLA": "Use EngineCapability.DLA_STANDALONE",
    "BuilderFlag.STRICT_TYPES": (
        "Use BuilderFlag.OBEY_PRECISION_CONSTRAINTS or PREFER_PRECISION_CONSTRAINTS and, for formats, DIRECT_IO"
    ),
    "BuilderFlag.ENABLE_TACTIC_HEURISTIC": "Set `config.builder_optimization_level = 2`",
    "ProfilingVerbosity.DEFAULT": "Use ProfilingVerbosity.LAYER_NAMES_ONLY",
    "ProfilingVerbosity.VERBOSE": "Use ProfilingVerbosity.DETAILED",
    "PreviewFeature.FASTER_DYNAMIC_SHAPES_0805 PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": (
        "Remove it: this is the only behavior now"
    ),
    "SampleMode.DEFAULT": "Use SampleMode.STRICT_BOUNDS",
    "SliceMode": "Use `trt.SampleMode`",
    "ResizeMode": "Use `trt.InterpolationMode`",
    "CaffeParser IBlobNameToTensor IPluginFactoryV2 shutdown_protobuf_library": _ONNX,
    "UffParser UffInputOrder": _ONNX,
}
"""Names that 10.0 removed to what to write; several names are separated by spaces."""

REMOVED_IN_11: Mapping[str, tuple[str, str]] = {
    "Builder.platform_has_tf32 Builder.platform_has_fast_fp16 Builder.platform_has_fast_int8": (
        "Remove the check: the types are those of the model",
        "",
    ),
    "BuilderFlag.FP16 BuilderFlag.BF16": (_TYPED_MODEL, ""),
    "BuilderFlag.INT8": (_QDQ_MODEL, QDQ),
    "BuilderFlag.FP8 BuilderFlag.INT4 BuilderFlag.FP4": (
        "Remove it: the Q/DQ nodes of the model state these types",
        "",
    ),
    "BuilderFlag.OBEY_PRECISION_CONSTRAINTS BuilderFlag.PREFER_PRECISION_CONSTRAINTS": (
        "Remove it: the builder keeps the types of the model",
        PRECISIONS,
    ),
    "ILayer.precision ILayer.precision_is_set ILayer.reset_precision ILayer.set_output_type": (
        "Cast the layer's inputs and outputs, with `network.add_cast(tensor, dtype)` or in the ONNX model",
        PRECISIONS,
    ),
    "ILayer.output_type_is_set ILayer.reset_output_type": (
        "Cast the layer's outputs, with `network.add_cast(tensor, dtype)` or in the ONNX model",
        PRECISIONS,
    ),
    "INormalizationLayer.compute_precision": ("Cast the layer's inputs with `network.add_cast(tensor, dtype)`", ""),
    "ITensor.dtype": (
        "Cast the tensor with `network.add_cast(tensor, dtype)`; give inputs their type in `add_input`",
        "",
    ),
    "IInt8Calibrator IInt8EntropyCalibrator IInt8EntropyCalibrator2 IInt8LegacyCalibrator IInt8MinMaxCalibrator": (
        "Calibrate before the build, and build a model with Q/DQ nodes",
        QDQ,
    ),
    "CalibrationAlgoType IBuilderConfig.int8_calibrator": ("Build a model with Q/DQ nodes", QDQ),
    "IBuilderConfig.set_calibration_profile IBuilderConfig.get_calibration_profile": (
        "Calibrate before the build, with the shapes of the profile",
        "`dryfit calibrate --shape` calibrates with given shapes",
    ),
    "QuantizationFlag IBuilderConfig.quantization_flags IBuilderConfig.set_quantization_flag": (
        "Remove it: there is no calibration in the build",
        "",
    ),
    "IBuilderConfig.clear_quantization_flag IBuilderConfig.get_quantization_flag": (
        "Remove it: there is no calibration in the build",
        "",
    ),
    "ITensor.dynamic_range ITensor.set_dynamic_range ITensor.reset_dynamic_range": (
        "Add Q/DQ with the scale max(abs(min), abs(max)) / 127",
        "`dryfit translate MODEL --to qdq --ranges FILE` writes dynamic ranges as Q/DQ nodes",
    ),
    "Refitter.get_dynamic_range Refitter.set_dynamic_range Refitter.get_tensors_with_dynamic_range": (
        "Refit the scales of the Q/DQ nodes as weights",
        "",
    ),
    "IAlgorithm IAlgorithmContext IAlgorithmIOInfo IAlgorithmSelector IAlgorithmVariant": (_ALGORITHMS, ""),
    "IBuilderConfig.algorithm_selector BuilderFlag.REJECT_EMPTY_ALGORITHMS": (_ALGORITHMS, ""),
    "TacticSource.CUBLAS TacticSource.CUBLAS_LT TacticSource.CUDNN": (
        "Remove it: TensorRT does not use this library",
        "",
    ),
    "NetworkDefinitionCreationFlag.EXPLICIT_BATCH": (
        "Write `builder.create_network()`: the batch is always explicit",
        "",
    ),
    "OnnxParser.supports_model": (
        "Use `parser.supports_model_v2(model)`, and `num_subgraphs`, `is_subgraph_supported`, `get_subgraph_nodes`",
        "",
    ),
    "OnnxParser.parse_with_weight_descriptors": (
        "Use `load_model_proto`, `load_initializer` and `parse_model_proto`",
        "",
    ),
    "BuilderFlag.WEIGHTLESS": ("Use BuilderFlag.STRIP_PLAN, which has the same effect", ""),
    "PreviewFeature.PROFILE_SHARING_0806 PreviewFeature.MULTIDEVICE_RUNTIME_10_16": (
        "Remove it: this is the only behavior now",
        "",
    ),
    "ICudaEngine.create_execution_context_without_device_memory": (
        "Write `engine.create_execution_context(trt.ExecutionContextAllocationStrategy.USER_MANAGED)`",
        "",
    ),
    "ICudaEngine.device_memory_size": ("Use `engine.device_memory_size_v2`", ""),
    "ICudaEngine.get_device_memory_size_for_profile": (
        "Use `engine.get_device_memory_size_for_profile_v2(profile)`",
        "",
    ),
    "ICudaEngine.has_implicit_batch_dimension": ("Remove the check: it is always False", ""),
    "ICudaEngine.weight_streaming_budget": ("Use `engine.weight_streaming_budget_v2`", ""),
    "ICudaEngine.minimum_weight_streaming_budget": ("Remove it: every budget from 0 on is allowed", ""),
    "IExecutionContext.all_shape_inputs_specified": ("Call `context.infer_shapes()`, which names missing inputs", ""),
    "IPluginRegistry.get_plugin_creator": ("Use `registry.get_creator(name, version, namespace)`", ""),
    "IPluginRegistry.plugin_creator_list": ("Use `registry.all_creators`", ""),
    "IStreamReader": (
        "Derive from `trt.IStreamReaderV2`, with `read(num_bytes, stream)` and `seek(offset, where)`",
        "",
    ),
}
"""Names that 11.0 removed, or whose setter it removed, to what to write and what dryfit translates."""

REMOVED_SINCE = {
    "BuilderFlag.STRICT_TYPES": Advice("11.0", "Remove it: the builder keeps the types of the model", PRECISIONS),
}
"""Names whose replacement in 10.0 was removed as well, to advice for the version without it."""

SIGNATURES = {
    "INetworkDefinition.add_quantize": Advice("11.0", "Pass the type: `add_quantize(input, scale, trt.int8)`"),
    "INetworkDefinition.add_dequantize": Advice("11.0", "Pass the type: `add_dequantize(input, scale, trt.float32)`"),
}
"""Methods whose newer form needs more arguments."""

BEHAVIOR = {
    "INetworkDefinition.add_shape": Advice("10.0", "Expect INT64 values: before 10.0 they were INT32"),
    "ICudaEngine.__getitem__": Advice("10.0", "An index gives a tensor's name; a name no longer gives an index"),
    "EngineInspector.get_engine_information": Advice(
        "11.0", "Read `I/O Tensors` instead of `Bindings`, and `Format` and `Datatype` as two keys"
    ),
    "EngineInspector.get_layer_information": Advice(
        "11.0", "Read `Format` and `Datatype` as two keys instead of `Format/Datatype`"
    ),
    "IInt8Calibrator.get_batch_size": Advice("10.0", "Return 1: the batch is a dimension of the inputs"),
}
"""Names that both versions have, with another meaning in the newer one."""

DEPRECATED = {
    "NetworkDefinitionCreationFlag.STRONGLY_TYPED": Advice("11.0", "Leave it out: every network is strongly typed"),
    "INetworkDefinition.add_plugin_v2": Advice("10.8", "Derive the plugin from `trt.IPluginV3`; use `add_plugin_v3`"),
    "INetworkDefinition.add_normalization": Advice("10.15", "Use `add_normalization_v2`, with scales as in ONNX 21"),
    "BuilderFlag.DIRECT_IO": Advice("10.7", "Leave it out, except for DLA_STANDALONE"),
    "BuilderFlag.SAFETY_SCOPE": Advice("10.16", "Leave it out"),
    "ITensor.broadcast_across_batch": Advice("10.0", "Leave it out: it has no effect with explicit batch"),
    "INetworkDefinition.has_implicit_batch_dimension": Advice("10.0", "Leave the check out: it is always False"),
    "IPluginV2DynamicExt": Advice("10.0", "Derive the plugin from `trt.IPluginV3`"),
    "IPluginCreator": Advice("10.10", "Derive the creator from `trt.IPluginCreatorV3One`"),
}
"""Names that the newer version has and discourages."""

STRONG_TYPING = Advice(
    "11.0",
    "Every network is strongly typed: make sure that the model states the types of its layers; no flag lowers them",
)
"""For a network that is created without STRONGLY_TYPED."""

IMPLICIT_BATCH = Advice("10.0", f"{_EXPLICIT_BATCH}: networks are always created with explicit batch")
"""For a network that is created without EXPLICIT_BATCH."""


def _each(table: Mapping[str, str | tuple[str, str]], since: str) -> Iterator[tuple[str, Advice]]:
    for names, words in table.items():
        instead, translation = (words, "") if isinstance(words, str) else words
        for name in names.split():
            yield name, Advice(since, instead, translation)


REMOVED = dict([*_each(REMOVED_IN_10, "10.0"), *_each(REMOVED_IN_11, "11.0")])
"""Name to advice, for everything that was removed."""


def removal_text(name: str, major: int) -> str:
    """Return, for a message, when TensorRT removed a name, what to write instead and what dryfit translates.

    Args:
        name: as in the tables.
        major: the major version that lacks it.

    Returns:
        "" for a name that the version did not remove.
    """
    advice = REMOVED.get(name)
    if advice is None or int(advice.since.partition(".")[0]) > major:
        return ""
    translated = f"; {advice.translation}" if advice.translation else ""
    return f"removed in TensorRT {advice.since}. {advice.instead}{translated}"
