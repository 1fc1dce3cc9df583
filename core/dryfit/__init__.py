"""dryfit: a hardware-target framework for neural-network inference that needs no hardware.

This is the one front door: every public name is here, beside the module that has it, and is loaded at first use, so
that `import dryfit` is quick. Type checkers read the same names in `__init__.pyi`, which `make docs` writes from here.
"""

from __future__ import annotations

from dryfit.front_door import public_names

public_names(
    __name__,
    {
        "dryfit.answers.annotate": "annotate",
        "dryfit.answers.board.learn": "board_learn",
        "dryfit.answers.board.pack": "board_pack",
        "dryfit.answers.board.read": "board_read",
        "dryfit.answers.caches": "check_cache diff_caches show_cache",
        "dryfit.answers.asked": "LoadedModel",
        "dryfit.answers.calibrate": "calibrate compare_calibrators",
        "dryfit.answers.check": "CheckAnswer check",
        "dryfit.answers.compare": "compare",
        "dryfit.answers.compare_devices": "compare_devices",
        "dryfit.answers.compare_methods": "compare_methods",
        "dryfit.answers.compare_versions": "compare_versions",
        "dryfit.answers.estimate": "estimate",
        "dryfit.answers.explain": "explain",
        "dryfit.answers.explain_log": "explain_log",
        "dryfit.answers.explain_quantization": "explain_quantization",
        "dryfit.answers.explain_rule": "explain_rule",
        "dryfit.answers.export_loadables": "export_loadables",
        "dryfit.answers.export_trtexec": "export_trtexec",
        "dryfit.answers.installation": "doctor",
        "dryfit.answers.lint": "lint",
        "dryfit.answers.model_edits": "apply_edits",
        "dryfit.answers.place": "place",
        "dryfit.answers.pruned_model": "prune",
        "dryfit.answers.quantize_methods": "quantize_methods",
        "dryfit.answers.sensitivity.sensitivity": "sensitivity",
        "dryfit.answers.sparsity": "find_sparsity",
        "dryfit.answers.targets": "compare_targets describe_target device_formats targets",
        "dryfit.answers.translate": "translate",
        "dryfit.answers.tuning.tuning": "tune",
        "dryfit.answers.trtexec.run": "exec_trtexec",
        "dryfit.answers.written_caches": "convert_cache merge_caches",
        "dryfit.builder.config.builder_config": "BuilderConfig",
        "dryfit.builder.config.enumerations": (
            "BuilderFlag DeviceType EngineCapability MemoryPoolType ProfilingVerbosity QuantizationFlag"
        ),
        "dryfit.builder.config.kernel_selector": "EngineLayer KernelSelector SelectedKernel",
        "dryfit.builder.config.layer_rules": "PlacementRules",
        "dryfit.builder.config.optimization_profile": "OptimizationProfile",
        "dryfit.builder.config.timing_cache": "TimingCache",
        "dryfit.builder.refit.refitter": "Refitter",
        "dryfit.building": "Builder",
        "dryfit.engine.debug_tensors": "DebugListener",
        "dryfit.engine.engine": "Engine EngineStat TensorIOMode",
        "dryfit.engine.execution_context": "ExecutionContext",
        "dryfit.engine.inspector": "EngineInspector LayerInformationFormat",
        "dryfit.engine.output_allocators": "OutputAllocator",
        "dryfit.engine.profiler": "LayerSpans LayerTimes Profiler",
        "dryfit.engine.progress": "ProgressMonitor TerminalProgress run_many",
        "dryfit.engine.runtime": "Runtime",
        "dryfit.errors": (
            "BuildError CalibrationError ConfigError DryfitError EngineFileError ExecutionError NetworkError "
            "ModelImportError OnnxImportError PlacementError PluginError UnknownNameError"
        ),
        "dryfit.network.creation_flags": "NetworkDefinitionCreationFlag",
        "dryfit.network.data_types": "DataType",
        "dryfit.network.layer": "Layer",
        "dryfit.network.layer_plugin": "LayerPlugin PluginField",
        "dryfit.network.layers.activation": "ActivationType ScaleMode",
        "dryfit.network.layers.attention": "AttentionNormalizationOp CausalMaskKind KVCacheMode",
        "dryfit.network.layers.boundaries": "LoopOutput TripLimit",
        "dryfit.network.layers.elementwise": "ElementWiseOperation UnaryOperation",
        "dryfit.network.layers.generators": "FillOperation",
        "dryfit.network.layers.indexing": "GatherMode ScatterMode",
        "dryfit.network.layers.loops_and_conditionals": "IfConditional Loop",
        "dryfit.network.layers.matrix": "MatrixOperation",
        "dryfit.network.layers.ranking": "BoundingBoxFormat TopKOperation",
        "dryfit.network.layers.reduction": "CumulativeOperation ReduceOperation",
        "dryfit.network.layers.resize": (
            "InterpolationMode ResizeCoordinateTransformation ResizeRoundMode ResizeSelector"
        ),
        "dryfit.network.layers.slice": "SampleMode",
        "dryfit.network.layers.window_layer": "PaddingMode PoolingType",
        "dryfit.network.network": "Network",
        "dryfit.network.plugin_function": "layer_plugin",
        "dryfit.network.plugin_table": "installed_layer_plugins register_layer_plugin",
        "dryfit.network.tensor": "Tensor TensorLocation TensorSpec",
        "dryfit.network.tensor_format": "TensorFormat",
        "dryfit.network.weights": "Weights",
        "dryfit.network.weights_role": "WeightsRole",
        "dryfit.onnx.importer": "network_from_onnx",
        "dryfit.onnx.parser": "OnnxParser",
        "dryfit.onnx.refitter": "OnnxParserRefitter",
        "dryfit.plugins.hookspecs": "hookimpl",
        "dryfit.quantization.calibration": "calibrate_ranges",
        "dryfit.quantization.calibration_stream": (
            "CalibrationAlgoType IInt8Calibrator IInt8EntropyCalibrator IInt8EntropyCalibrator2 "
            "IInt8LegacyCalibrator IInt8MinMaxCalibrator"
        ),
        "dryfit.quantization.calibrator": "Calibrator Solution",
        "dryfit.quantization.collector": "Collector",
        "dryfit.quantization.int8_steps": "DynamicRange",
        "dryfit.quantization.picture_preparation": "PicturePreparation",
        "dryfit.reporting.fleet": "report_all",
        "dryfit.reporting.report": "report",
        "dryfit.target.kernels": "kernel",
        "dryfit.target.overlay_file": "read_overlay write_overlay",
        "dryfit.target.overlays": "Overlay",
        "dryfit.target.platform": "Platform",
        "dryfit.target.target": "Target",
        "dryfit.target.verdict": "Verdict Violation",
        "dryfit.version": "__version__",
    },
)
