"""TensorRT's documented defaults: what a new object of a class has, in 8.6.1, 10.16 and 11.1.

One class a paragraph: `NAME: MEMBER VALUE; ...`. A value is a number, True, False, None, "", [], (1, 1), a member of an
enumeration, or `mask:MEMBER` for the bit mask of one. A member that a version lacks is left out there. For layers these
are the values of a layer that was just added to a network, on an input of rank 4.
Source: TensorRT's headers, tags v8.6.1, v10.16 and v11.1.
"""

from __future__ import annotations

import ast
from typing import Any

from dryfit_tensorrt.surface.tables import paragraph_items

DEFAULTS = """
Builder: max_threads 1
INetworkDefinition: num_layers 0; num_inputs 0; num_outputs 0; has_implicit_batch_dimension False
IBuilderConfig: flags mask:BuilderFlag.TF32; quantization_flags 0; int8_calibrator None; num_optimization_profiles 0;
    default_device_type DeviceType.GPU; DLA_core -1; engine_capability EngineCapability.STANDARD;
    avg_timing_iterations 1; min_timing_iterations 1; profiling_verbosity ProfilingVerbosity.LAYER_NAMES_ONLY;
    builder_optimization_level 3; hardware_compatibility_level HardwareCompatibilityLevel.NONE;
    plugins_to_serialize []; progress_monitor None; runtime_platform RuntimePlatform.SAME_AS_BUILD;
    max_num_tactics -1; tiling_optimization_level TilingOptimizationLevel.NONE; remote_auto_tuning_config None;
    algorithm_selector None
IOptimizationProfile: extra_memory_target 1.0
Logger: min_severity Severity.WARNING
ITensor: location TensorLocation.DEVICE; is_shape_tensor False; is_execution_tensor True; dynamic_range None
ILayer: metadata ""; precision_is_set False; num_ranks 1
IConvolutionLayer: stride_nd (1, 1); dilation_nd (1, 1); padding_nd (0, 0); pre_padding (0, 0); post_padding (0, 0);
    num_groups 1; padding_mode PaddingMode.EXPLICIT_ROUND_DOWN
IDeconvolutionLayer: stride_nd (1, 1); dilation_nd (1, 1); padding_nd (0, 0); num_groups 1;
    padding_mode PaddingMode.EXPLICIT_ROUND_DOWN
IPoolingLayer: stride_nd (1, 1); padding_nd (0, 0); blend_factor 0.0; average_count_excludes_padding True;
    padding_mode PaddingMode.EXPLICIT_ROUND_DOWN
ISoftMaxLayer: axes 2
IConcatenationLayer: axis 1
IShuffleLayer: zero_is_placeholder True
ISliceLayer: mode SampleMode.STRICT_BOUNDS
ITopKLayer: indices_type DataType.INT32
IGatherLayer: num_elementwise_dims 0; mode GatherMode.DEFAULT
IResizeLayer: resize_mode InterpolationMode.NEAREST;
    coordinate_transformation ResizeCoordinateTransformation.ASYMMETRIC;
    selector_for_single_pixel ResizeSelector.FORMULA; nearest_rounding ResizeRoundMode.FLOOR; exclude_outside False;
    cubic_coeff -0.75
IFillLayer: alpha 0.0; beta 1.0; to_type DataType.FLOAT
IQuantizeLayer: axis -1; to_type DataType.INT8
IDequantizeLayer: axis -1; to_type DataType.FLOAT
IGridSampleLayer: interpolation_mode InterpolationMode.LINEAR; align_corners False; sample_mode SampleMode.FILL
INormalizationLayer: epsilon 1e-05; num_groups 1; compute_precision DataType.FLOAT; is_v2 False
IReverseSequenceLayer: batch_axis 1; sequence_axis 0
INonZeroLayer: indices_type DataType.INT32
IIteratorLayer: axis 0; reverse False
IAttention: norm_op AttentionNormalizationOp.SOFTMAX; causal False; decomposable False; num_ranks 1;
    normalization_quantize_to_type DataType.FLOAT
IRotaryEmbeddingLayer: interleaved False; rotary_embedding_dim 0
Runtime: engine_host_code_allowed False; max_threads 1
IExecutionContext: enqueue_emits_profile True; persistent_cache_limit 0; active_optimization_profile 0; profiler None
Refitter: max_threads 1; weights_validation True
"""


def documented_defaults(api: Any) -> dict[tuple[str, str], Any]:
    """Return the default by (class, member), with the enumerations of a version.

    Args:
        api: names of the version.
    """
    return {
        (owner, member): _value(api, text)
        for owner, items in paragraph_items(DEFAULTS)
        if api.has(owner)
        for member, _, text in (item.partition(" ") for item in items)
        if hasattr(getattr(api, owner), member)
    }


def _value(api: Any, text: str) -> Any:
    kind, dot, name = text.removeprefix("mask:").partition(".")
    if dot and kind.isidentifier():
        found = getattr(api, kind)[name]
        return 1 << int(found) if text.startswith("mask:") else found
    return ast.literal_eval(text)
