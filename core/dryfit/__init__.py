"""dryfit: a hardware-target framework for neural-network inference that needs no hardware.

This is the one front door: every public name is here, and is loaded at first use, so that `import dryfit` is quick. One
import line makes a name public: type checkers and packagers read it, and at run time it says where the name is found.
"""

from __future__ import annotations

from dryfit.front_door import public_names

with public_names(__name__):
    from dryfit.answers.calibrate import calibrate as calibrate
    from dryfit.answers.calibrate import compare_calibrators as compare_calibrators
    from dryfit.answers.check import CheckAnswer as CheckAnswer
    from dryfit.answers.check import check as check
    from dryfit.answers.compare import compare as compare
    from dryfit.answers.compare_methods import compare_methods as compare_methods
    from dryfit.answers.estimate import estimate as estimate
    from dryfit.answers.explain import explain as explain
    from dryfit.answers.explain_quantization import explain_quantization as explain_quantization
    from dryfit.answers.explain_rule import explain_rule as explain_rule
    from dryfit.answers.lint import lint as lint
    from dryfit.answers.model_edits import apply_edits as apply_edits
    from dryfit.answers.place import place as place
    from dryfit.answers.pruned_model import prune as prune
    from dryfit.answers.quantize_methods import quantize_methods as quantize_methods
    from dryfit.answers.sparsity import find_sparsity as find_sparsity
    from dryfit.answers.targets import compare_targets as compare_targets
    from dryfit.answers.targets import describe_target as describe_target
    from dryfit.answers.targets import targets as targets
    from dryfit.answers.translate import translate as translate
    from dryfit.builder.config.builder_config import BuilderConfig as BuilderConfig
    from dryfit.builder.config.enumerations import BuilderFlag as BuilderFlag
    from dryfit.builder.config.enumerations import DeviceType as DeviceType
    from dryfit.builder.config.enumerations import EngineCapability as EngineCapability
    from dryfit.builder.config.enumerations import MemoryPoolType as MemoryPoolType
    from dryfit.builder.config.enumerations import ProfilingVerbosity as ProfilingVerbosity
    from dryfit.builder.config.enumerations import QuantizationFlag as QuantizationFlag
    from dryfit.builder.config.layer_rules import PlacementRules as PlacementRules
    from dryfit.builder.config.optimization_profile import OptimizationProfile as OptimizationProfile
    from dryfit.builder.config.timing_cache import TimingCache as TimingCache
    from dryfit.builder.refit.refitter import Refitter as Refitter
    from dryfit.building import Builder as Builder
    from dryfit.engine.engine import Engine as Engine
    from dryfit.engine.engine import TensorIOMode as TensorIOMode
    from dryfit.engine.execution_context import ExecutionContext as ExecutionContext
    from dryfit.engine.inspector import EngineInspector as EngineInspector
    from dryfit.engine.inspector import LayerInformationFormat as LayerInformationFormat
    from dryfit.engine.profiler import LayerTimes as LayerTimes
    from dryfit.engine.profiler import Profiler as Profiler
    from dryfit.engine.progress import ProgressMonitor as ProgressMonitor
    from dryfit.engine.progress import TerminalProgress as TerminalProgress
    from dryfit.engine.progress import run_many as run_many
    from dryfit.engine.runtime import Runtime as Runtime
    from dryfit.errors import BuildError as BuildError
    from dryfit.errors import CalibrationError as CalibrationError
    from dryfit.errors import ConfigError as ConfigError
    from dryfit.errors import DryfitError as DryfitError
    from dryfit.errors import EngineFileError as EngineFileError
    from dryfit.errors import ExecutionError as ExecutionError
    from dryfit.errors import NetworkError as NetworkError
    from dryfit.errors import OnnxImportError as OnnxImportError
    from dryfit.errors import PlacementError as PlacementError
    from dryfit.errors import PluginError as PluginError
    from dryfit.errors import UnknownNameError as UnknownNameError
    from dryfit.network.creation_flags import NetworkDefinitionCreationFlag as NetworkDefinitionCreationFlag
    from dryfit.network.data_types import DataType as DataType
    from dryfit.network.layer import Layer as Layer
    from dryfit.network.layer_plugin import LayerPlugin as LayerPlugin
    from dryfit.network.layer_plugin import PluginField as PluginField
    from dryfit.network.layers.activation import ActivationType as ActivationType
    from dryfit.network.layers.elementwise import ElementWiseOperation as ElementWiseOperation
    from dryfit.network.layers.elementwise import UnaryOperation as UnaryOperation
    from dryfit.network.layers.generators import FillOperation as FillOperation
    from dryfit.network.layers.indexing import GatherMode as GatherMode
    from dryfit.network.layers.indexing import ScatterMode as ScatterMode
    from dryfit.network.layers.matrix import MatrixOperation as MatrixOperation
    from dryfit.network.layers.pooling import PoolingType as PoolingType
    from dryfit.network.layers.ranking import BoundingBoxFormat as BoundingBoxFormat
    from dryfit.network.layers.ranking import TopKOperation as TopKOperation
    from dryfit.network.layers.reduction import CumulativeOperation as CumulativeOperation
    from dryfit.network.layers.reduction import ReduceOperation as ReduceOperation
    from dryfit.network.layers.resize import InterpolationMode as InterpolationMode
    from dryfit.network.layers.resize import ResizeCoordinateTransformation as ResizeCoordinateTransformation
    from dryfit.network.layers.resize import ResizeRoundMode as ResizeRoundMode
    from dryfit.network.layers.resize import ResizeSelector as ResizeSelector
    from dryfit.network.layers.scale import ScaleMode as ScaleMode
    from dryfit.network.layers.slice import SampleMode as SampleMode
    from dryfit.network.layers.window_layer import PaddingMode as PaddingMode
    from dryfit.network.network import Network as Network
    from dryfit.network.plugin_function import layer_plugin as layer_plugin
    from dryfit.network.plugin_table import register_layer_plugin as register_layer_plugin
    from dryfit.network.tensor import Tensor as Tensor
    from dryfit.network.tensor import TensorLocation as TensorLocation
    from dryfit.network.tensor import TensorSpec as TensorSpec
    from dryfit.network.tensor_format import TensorFormat as TensorFormat
    from dryfit.network.weights import Weights as Weights
    from dryfit.network.weights_role import WeightsRole as WeightsRole
    from dryfit.onnx.parser import OnnxParser as OnnxParser
    from dryfit.onnx.parser import network_from_onnx as network_from_onnx
    from dryfit.onnx.refitter import OnnxParserRefitter as OnnxParserRefitter
    from dryfit.plugins.hookspecs import hookimpl as hookimpl
    from dryfit.quantization.calibration import calibrate_ranges as calibrate_ranges
    from dryfit.quantization.calibration_stream import CalibrationAlgoType as CalibrationAlgoType
    from dryfit.quantization.calibration_stream import IInt8Calibrator as IInt8Calibrator
    from dryfit.quantization.calibration_stream import IInt8EntropyCalibrator as IInt8EntropyCalibrator
    from dryfit.quantization.calibration_stream import IInt8EntropyCalibrator2 as IInt8EntropyCalibrator2
    from dryfit.quantization.calibration_stream import IInt8LegacyCalibrator as IInt8LegacyCalibrator
    from dryfit.quantization.calibration_stream import IInt8MinMaxCalibrator as IInt8MinMaxCalibrator
    from dryfit.quantization.calibrator import Calibrator as Calibrator
    from dryfit.quantization.calibrator import Solution as Solution
    from dryfit.quantization.collector import Collector as Collector
    from dryfit.quantization.dynamic_range import DynamicRange as DynamicRange
    from dryfit.target.kernels import kernel as kernel
    from dryfit.target.target import Platform as Platform
    from dryfit.target.target import Target as Target
    from dryfit.target.verdict import Verdict as Verdict
    from dryfit.target.verdict import Violation as Violation
