"""dryfit: a hardware-target framework for neural-network inference that needs no hardware.

This is the one front door: every public name is here, and is loaded at first use, so that `import dryfit` is quick.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from dryfit.network.attribute_names import KnownNames, unknown_in_module
from dryfit.target.copying import host_copy

if TYPE_CHECKING:
    from dryfit.builder.builder import Builder
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.builder.config.enumerations import (
        BuilderFlag,
        DeviceType,
        EngineCapability,
        MemoryPoolType,
        ProfilingVerbosity,
        QuantizationFlag,
    )
    from dryfit.builder.config.optimization_profile import OptimizationProfile
    from dryfit.builder.kernels.timing_cache import TimingCache
    from dryfit.builder.placement.rules import PlacementRules
    from dryfit.builder.refit.refitter import Refitter
    from dryfit.engine.engine import Engine, TensorIOMode
    from dryfit.engine.execution_context import ExecutionContext
    from dryfit.engine.inspector import (
        EngineInspector,
        LayerInformationFormat,
    )
    from dryfit.engine.profiler import LayerTimes, Profiler
    from dryfit.engine.progress import (
        ProgressMonitor,
        TerminalProgress,
        run_many,
    )
    from dryfit.engine.runtime import Runtime
    from dryfit.errors import (
        BuildError,
        CalibrationError,
        ConfigError,
        DryfitError,
        EngineFileError,
        ExecutionError,
        NetworkError,
        OnnxImportError,
        PlacementError,
        PluginError,
        UnknownNameError,
    )
    from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
    from dryfit.network.data_types import DataType
    from dryfit.network.layer import Layer
    from dryfit.network.layer_plugin import LayerPlugin, PluginField
    from dryfit.network.layers.activation import ActivationType
    from dryfit.network.layers.cumulative import CumulativeOperation
    from dryfit.network.layers.elementwise import ElementWiseOperation
    from dryfit.network.layers.fill import FillOperation
    from dryfit.network.layers.gather import GatherMode
    from dryfit.network.layers.matrix_multiply import MatrixOperation
    from dryfit.network.layers.nms import BoundingBoxFormat
    from dryfit.network.layers.pooling import PoolingType
    from dryfit.network.layers.reduce import ReduceOperation
    from dryfit.network.layers.resize import (
        InterpolationMode,
        ResizeCoordinateTransformation,
        ResizeRoundMode,
        ResizeSelector,
    )
    from dryfit.network.layers.sample_mode import SampleMode
    from dryfit.network.layers.scale import ScaleMode
    from dryfit.network.layers.scatter import ScatterMode
    from dryfit.network.layers.spatial_window import PaddingMode
    from dryfit.network.layers.top_k import TopKOperation
    from dryfit.network.layers.unary import UnaryOperation
    from dryfit.network.network import Network
    from dryfit.network.plugin_function import layer_plugin
    from dryfit.network.plugin_table import register_layer_plugin
    from dryfit.network.tensor import Tensor, TensorLocation, TensorSpec
    from dryfit.network.tensor_format import TensorFormat
    from dryfit.network.weights import Weights
    from dryfit.network.weights_role import WeightsRole
    from dryfit.onnx.parser import OnnxParser, network_from_onnx
    from dryfit.onnx.refitter import OnnxParserRefitter
    from dryfit.plugins.hookspecs import hookimpl
    from dryfit.quantization.calibration import calibrate_ranges
    from dryfit.quantization.calibration_stream import CalibrationAlgoType
    from dryfit.quantization.calibrator import Calibrator, Solution
    from dryfit.quantization.collector import Collector
    from dryfit.quantization.dynamic_range import DynamicRange
    from dryfit.quantization.int8_calibrators import (
        IInt8Calibrator,
        IInt8EntropyCalibrator,
        IInt8EntropyCalibrator2,
        IInt8LegacyCalibrator,
        IInt8MinMaxCalibrator,
    )
    from dryfit.target.copying import CopyArray
    from dryfit.target.kernels import kernel
    from dryfit.target.target import Platform, Target
    from dryfit.target.verdict import Verdict, Violation

__all__ = [
    "ActivationType",
    "BoundingBoxFormat",
    "BuildError",
    "Builder",
    "BuilderConfig",
    "BuilderFlag",
    "CalibrationAlgoType",
    "CalibrationError",
    "Calibrator",
    "Collector",
    "ConfigError",
    "CumulativeOperation",
    "DataType",
    "DeviceType",
    "DryfitError",
    "DynamicRange",
    "ElementWiseOperation",
    "Engine",
    "EngineCapability",
    "EngineFileError",
    "EngineInspector",
    "ExecutionContext",
    "ExecutionError",
    "FillOperation",
    "GatherMode",
    "IInt8Calibrator",
    "IInt8EntropyCalibrator",
    "IInt8EntropyCalibrator2",
    "IInt8LegacyCalibrator",
    "IInt8MinMaxCalibrator",
    "InterpolationMode",
    "Layer",
    "LayerInformationFormat",
    "LayerPlugin",
    "LayerTimes",
    "MatrixOperation",
    "MemoryPoolType",
    "Network",
    "NetworkDefinitionCreationFlag",
    "NetworkError",
    "OnnxImportError",
    "OnnxParser",
    "OnnxParserRefitter",
    "OptimizationProfile",
    "PaddingMode",
    "PlacementError",
    "PlacementRules",
    "Platform",
    "PluginError",
    "PluginField",
    "PoolingType",
    "Profiler",
    "ProfilingVerbosity",
    "ProgressMonitor",
    "QuantizationFlag",
    "ReduceOperation",
    "Refitter",
    "ResizeCoordinateTransformation",
    "ResizeRoundMode",
    "ResizeSelector",
    "Runtime",
    "SampleMode",
    "ScaleMode",
    "ScatterMode",
    "Solution",
    "Target",
    "Tensor",
    "TensorFormat",
    "TensorIOMode",
    "TensorLocation",
    "TensorSpec",
    "TerminalProgress",
    "TimingCache",
    "TopKOperation",
    "UnaryOperation",
    "UnknownNameError",
    "Verdict",
    "Violation",
    "Weights",
    "WeightsRole",
    "calibrate_ranges",
    "hookimpl",
    "kernel",
    "layer_plugin",
    "network_from_onnx",
    "register_layer_plugin",
    "run_many",
]

_NAMES_BY_MODULE = {
    "dryfit.builder.builder": ("Builder",),
    "dryfit.builder.config.builder_config": ("BuilderConfig",),
    "dryfit.builder.config.enumerations": (
        "BuilderFlag",
        "DeviceType",
        "EngineCapability",
        "MemoryPoolType",
        "ProfilingVerbosity",
        "QuantizationFlag",
    ),
    "dryfit.builder.config.optimization_profile": ("OptimizationProfile",),
    "dryfit.builder.placement.rules": ("PlacementRules",),
    "dryfit.builder.refit.refitter": ("Refitter",),
    "dryfit.builder.kernels.timing_cache": ("TimingCache",),
    "dryfit.engine.engine": (
        "Engine",
        "TensorIOMode",
    ),
    "dryfit.engine.execution_context": ("ExecutionContext",),
    "dryfit.engine.inspector": (
        "EngineInspector",
        "LayerInformationFormat",
    ),
    "dryfit.engine.profiler": (
        "LayerTimes",
        "Profiler",
    ),
    "dryfit.engine.progress": (
        "ProgressMonitor",
        "TerminalProgress",
        "run_many",
    ),
    "dryfit.engine.runtime": ("Runtime",),
    "dryfit.errors": (
        "BuildError",
        "CalibrationError",
        "ConfigError",
        "DryfitError",
        "EngineFileError",
        "ExecutionError",
        "NetworkError",
        "OnnxImportError",
        "PlacementError",
        "PluginError",
        "UnknownNameError",
    ),
    "dryfit.network.creation_flags": ("NetworkDefinitionCreationFlag",),
    "dryfit.network.data_types": ("DataType",),
    "dryfit.network.layer": ("Layer",),
    "dryfit.network.layer_plugin": (
        "LayerPlugin",
        "PluginField",
    ),
    "dryfit.network.layers.activation": ("ActivationType",),
    "dryfit.network.layers.cumulative": ("CumulativeOperation",),
    "dryfit.network.layers.elementwise": ("ElementWiseOperation",),
    "dryfit.network.layers.fill": ("FillOperation",),
    "dryfit.network.layers.gather": ("GatherMode",),
    "dryfit.network.layers.matrix_multiply": ("MatrixOperation",),
    "dryfit.network.layers.nms": ("BoundingBoxFormat",),
    "dryfit.network.layers.pooling": ("PoolingType",),
    "dryfit.network.layers.reduce": ("ReduceOperation",),
    "dryfit.network.layers.resize": (
        "InterpolationMode",
        "ResizeCoordinateTransformation",
        "ResizeRoundMode",
        "ResizeSelector",
    ),
    "dryfit.network.layers.sample_mode": ("SampleMode",),
    "dryfit.network.layers.scale": ("ScaleMode",),
    "dryfit.network.layers.scatter": ("ScatterMode",),
    "dryfit.network.layers.spatial_window": ("PaddingMode",),
    "dryfit.network.layers.top_k": ("TopKOperation",),
    "dryfit.network.layers.unary": ("UnaryOperation",),
    "dryfit.network.network": ("Network",),
    "dryfit.network.plugin_function": ("layer_plugin",),
    "dryfit.network.plugin_table": ("register_layer_plugin",),
    "dryfit.network.tensor": (
        "Tensor",
        "TensorLocation",
        "TensorSpec",
    ),
    "dryfit.network.tensor_format": ("TensorFormat",),
    "dryfit.network.weights": ("Weights",),
    "dryfit.network.weights_role": ("WeightsRole",),
    "dryfit.onnx.parser": (
        "OnnxParser",
        "network_from_onnx",
    ),
    "dryfit.onnx.refitter": ("OnnxParserRefitter",),
    "dryfit.plugins.hookspecs": ("hookimpl",),
    "dryfit.quantization.calibration": ("calibrate_ranges",),
    "dryfit.quantization.calibration_stream": ("CalibrationAlgoType",),
    "dryfit.quantization.calibrator": ("Calibrator", "Solution"),
    "dryfit.quantization.collector": ("Collector",),
    "dryfit.quantization.dynamic_range": ("DynamicRange",),
    "dryfit.quantization.int8_calibrators": (
        "IInt8Calibrator",
        "IInt8EntropyCalibrator",
        "IInt8EntropyCalibrator2",
        "IInt8LegacyCalibrator",
        "IInt8MinMaxCalibrator",
    ),
    "dryfit.target.kernels": ("kernel",),
    "dryfit.target.target": (
        "Platform",
        "Target",
    ),
    "dryfit.target.verdict": (
        "Verdict",
        "Violation",
    ),
}
_PLUGIN_TABLE = "dryfit.network.plugin_table"
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise unknown_in_module(__name__, name, __all__)
    found = getattr(importlib.import_module(_MODULES[name]), name)
    if _PLUGIN_TABLE in sys.modules:
        # Networks are loaded, which know no packages: from here on they find layer plugins, quantize methods and tensor
        # formats of installed ones.
        from dryfit.plugins import format_names, layer_plugins, quantize_methods

        format_names.connect()
        layer_plugins.connect()
        quantize_methods.connect()
    return found


def __dir__() -> list[str]:
    return [*__all__]


def _copy_of_host() -> CopyArray | None:
    """What copies arrays for tensor formats, which know no packages; None where no host is installed."""
    from dryfit.errors import PluginError
    from dryfit.plugins import registry

    try:
        return registry.host().copy_array
    except PluginError:
        return None


host_copy.find_by(_copy_of_host)
sys.modules[__name__].__class__ = KnownNames
