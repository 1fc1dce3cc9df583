"""The base class of each of TensorRT's classes that has one, and the name of each kind of layer.

Source: TensorRT's open binding sources, tags v8.6.1, v10.16 and v11.1.
"""

from __future__ import annotations

LAYER_CLASSES = {
    "CONVOLUTION": "IConvolutionLayer",
    "FULLY_CONNECTED": "IFullyConnectedLayer",
    "CAST": "ICastLayer",
    "ACTIVATION": "IActivationLayer",
    "POOLING": "IPoolingLayer",
    "LRN": "ILRNLayer",
    "SCALE": "IScaleLayer",
    "SOFTMAX": "ISoftMaxLayer",
    "DECONVOLUTION": "IDeconvolutionLayer",
    "CONCATENATION": "IConcatenationLayer",
    "ELEMENTWISE": "IElementWiseLayer",
    "PLUGIN_V2": "IPluginV2Layer",
    "PLUGIN_V3": "IPluginV3Layer",
    "UNARY": "IUnaryLayer",
    "PADDING": "IPaddingLayer",
    "SHUFFLE": "IShuffleLayer",
    "REDUCE": "IReduceLayer",
    "TOPK": "ITopKLayer",
    "GATHER": "IGatherLayer",
    "MATRIX_MULTIPLY": "IMatrixMultiplyLayer",
    "RAGGED_SOFTMAX": "IRaggedSoftMaxLayer",
    "CONSTANT": "IConstantLayer",
    "RNN_V2": "IRNNv2Layer",
    "IDENTITY": "IIdentityLayer",
    "SLICE": "ISliceLayer",
    "SHAPE": "IShapeLayer",
    "PARAMETRIC_RELU": "IParametricReLULayer",
    "RESIZE": "IResizeLayer",
    "TRIP_LIMIT": "ITripLimitLayer",
    "RECURRENCE": "IRecurrenceLayer",
    "ITERATOR": "IIteratorLayer",
    "LOOP_OUTPUT": "ILoopOutputLayer",
    "SELECT": "ISelectLayer",
    "ASSERTION": "IAssertionLayer",
    "FILL": "IFillLayer",
    "QUANTIZE": "IQuantizeLayer",
    "DEQUANTIZE": "IDequantizeLayer",
    "CONDITION": "IConditionLayer",
    "CONDITIONAL_INPUT": "IIfConditionalInputLayer",
    "CONDITIONAL_OUTPUT": "IIfConditionalOutputLayer",
    "SCATTER": "IScatterLayer",
    "EINSUM": "IEinsumLayer",
    "ONE_HOT": "IOneHotLayer",
    "NON_ZERO": "INonZeroLayer",
    "GRID_SAMPLE": "IGridSampleLayer",
    "NMS": "INMSLayer",
    "REVERSE_SEQUENCE": "IReverseSequenceLayer",
    "NORMALIZATION": "INormalizationLayer",
    "SQUEEZE": "ISqueezeLayer",
    "UNSQUEEZE": "IUnsqueezeLayer",
    "CUMULATIVE": "ICumulativeLayer",
    "DYNAMIC_QUANTIZE": "IDynamicQuantizeLayer",
    "ATTENTION_INPUT": "IAttentionInputLayer",
    "ATTENTION_OUTPUT": "IAttentionOutputLayer",
    "ROTARY_EMBEDDING": "IRotaryEmbeddingLayer",
    "KV_CACHE_UPDATE": "IKVCacheUpdateLayer",
    "MOE": "IMoELayer",
    "DIST_COLLECTIVE": "IDistCollectiveLayer",
}
"""Member of `LayerType` to the class of its layers."""

PARENTS = {
    **dict.fromkeys(LAYER_CLASSES.values(), "ILayer"),
    **dict.fromkeys(
        ("ITripLimitLayer", "IRecurrenceLayer", "IIteratorLayer", "ILoopOutputLayer"), "ILoopBoundaryLayer"
    ),
    **dict.fromkeys(
        ("IConditionLayer", "IIfConditionalInputLayer", "IIfConditionalOutputLayer"), "IIfConditionalBoundaryLayer"
    ),
    **dict.fromkeys(("IAttentionInputLayer", "IAttentionOutputLayer"), "IAttentionBoundaryLayer"),
    **dict.fromkeys(("ILoopBoundaryLayer", "IIfConditionalBoundaryLayer", "IAttentionBoundaryLayer"), "ILayer"),
    **dict.fromkeys(("Dims2", "Dims3", "Dims4"), "Dims"),
    "DimsHW": "Dims2",
    "Logger": "ILogger",
    "Profiler": "IProfiler",
    **dict.fromkeys(
        ("IInt8EntropyCalibrator", "IInt8EntropyCalibrator2", "IInt8LegacyCalibrator", "IInt8MinMaxCalibrator"),
        "IInt8Calibrator",
    ),
    "IGpuAsyncAllocator": "IGpuAllocator",
    **dict.fromkeys(
        ("IPluginV3", "IPluginCapability", "IPluginResource", "IPluginCreatorInterface"), "IVersionedInterface"
    ),
    **dict.fromkeys(
        ("IPluginV3OneCore", "IPluginV3OneBuild", "IPluginV3OneRuntime", "IPluginV3QuickCore", "IPluginV3QuickBuild"),
        "IPluginCapability",
    ),
    **dict.fromkeys(("IPluginV3QuickAOTBuild", "IPluginV3QuickRuntime"), "IPluginCapability"),
    "IPluginV3OneBuildV2": "IPluginV3OneBuild",
    **dict.fromkeys(("IPluginCreatorV3One", "IPluginCreatorV3Quick", "IPluginCreator"), "IPluginCreatorInterface"),
    "IPluginV2Ext": "IPluginV2",
    "IPluginV2DynamicExtBase": "IPluginV2Ext",
    "IPluginV2DynamicExt": "IPluginV2DynamicExtBase",
}
"""Class to its base class. A base class that a version lacks is left out there."""
