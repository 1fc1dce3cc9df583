"""What members do that no table can say, one file a family; `class_of` finds a class by its TensorRT name."""

from __future__ import annotations

import importlib
from typing import Any

_FILES = {
    "values": ("Dims", "DimsHW", "Permutation", "Weights", "IHostMemory"),
    "monitoring": (
        *("ILogger", "Logger", "IErrorRecorder", "IProfiler", "Profiler", "IProgressMonitor", "IDebugListener"),
        *("IGpuAllocator", "IOutputAllocator", "IStreamReader", "IStreamReaderV2", "IStreamWriter"),
    ),
    "network": ("ITensor", "ILayer", "INetworkDefinition", "INormalizationLayer"),
    "build": ("Builder", "IBuilderConfig", "IOptimizationProfile", "ITimingCache"),
    "calibrators": (
        *("IInt8Calibrator", "IInt8EntropyCalibrator", "IInt8EntropyCalibrator2", "IInt8LegacyCalibrator"),
        "IInt8MinMaxCalibrator",
    ),
    "parsers": ("ParserError", "OnnxParser", "OnnxParserRefitter"),
    "engines": ("Runtime", "ICudaEngine", "Refitter"),
    "inspectors": ("EngineInspector",),
    "contexts": ("IExecutionContext",),
    "algorithms": (
        *("IAlgorithmSelector", "IAlgorithm", "IAlgorithmVariant", "IAlgorithmIOInfo", "IAlgorithmContext"),
        *("TimingCacheKey", "TimingCacheValue"),
    ),
    "dimension_expressions": ("IDimensionExpr", "IExprBuilder", "DimsExprs"),
    "plugin_fields": ("PluginField", "PluginFieldCollection_"),
    "plugins": (
        *("InterfaceInfo", "IVersionedInterface", "IPluginV3", "IPluginV3OneCore", "IPluginV3OneBuild"),
        *(
            "IPluginV3OneBuildV2",
            "IPluginV3OneRuntime",
            "IPluginV3QuickCore",
            "IPluginV2",
            "IPluginV2DynamicExt",
            "PluginTensorDesc",
        ),
        *("DynamicPluginTensorDesc", "IPluginCreator", "IPluginCreatorV3One", "IPluginCreatorV3Quick"),
        *("IPluginResource", "IPluginResourceContext", "IPluginRegistry", "IPluginV2Layer", "IPluginV3Layer"),
    ),
}

_PLACES = {name: file for file, names in _FILES.items() for name in names}


def class_of(name: str) -> Any:
    """Return the class that a class of TensorRT's gets its behaviour from; None if it has none of its own."""
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name) if name in _PLACES else None
