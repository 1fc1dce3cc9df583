"""What public threads show of logs of TensorRT, as data: the kinds of messages, the names in them, and what follows.

No log is kept. Each entry states which messages a thread has, in which order and with which names; `PublicLog.text`
writes them again from one template per message, in the form of the program that wrote the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

TEMPLATES: Mapping[str, tuple[str, str]] = {
    "default": ("W", "Default DLA is enabled but layer {} is not supported on DLA, falling back to GPU."),
    "not_running": ("W", "Default DLA is enabled but layer {} is not running on DLA, falling back to GPU."),
    "refused": (
        "E",
        "Default DLA is enabled but layer {} is not supported on DLA and falling back to GPU is not enabled.",
    ),
    "unsupported": ("W", "Layer '{}' ({}): Unsupported on DLA. Switching this layer's device type to GPU."),
    "precision": ("W", "DLA only supports FP16 and Int8 precision type. Switching {} device type to GPU."),
    "subgraphs": ("W", "DLA supports only {} subgraphs per DLA core. Switching to GPU for layer {}"),
    "validation": ("W", "Validation failed for DLA layer: {}. Switching to GPU fallback."),
    "split": ("W", "Splitting DLA subgraph at: {} because DLA validation failed for this layer."),
    "profiles": (
        "W",
        "DLA requests all profiles have same min, max, and opt value. All dla layers are falling back to GPU",
    ),
    "no_scale_node": (
        "W",
        "Node: {} cannot run in INT8 mode due to missing scale and zero point. This node will not run on DLA.",
    ),
    "standalone": ("E", "Error[4]: DLA Standalone is enabled but layer: '{}' is not supported on DLA."),
    "safe": (
        "",
        (
            "4: [builder.cpp::validate::1] Error Code 4: Internal Error (Safe DLA is enabled but not all layers "
            "are running on DLA.)"
        ),
    ),
    "nothing": ("W", "setDefaultDeviceType was called but no layer in the network can run on DLA."),
    "concat_axis": ("W", "{}: DLA only supports concatenation on the C dimension."),
    "concat_inputs": ("W", "{}: Concatenation on DLA requires at least two inputs."),
    "slice_rank": ("W", "{}: DLA only supports slicing 4 dimensional tensors."),
    "slice_mode": ("W", "{}: DLA does not support out-of-bounds slice operation. Set slice mode to DEFAULT."),
    "elementwise": ("W", "{}: DLA cores do not support {} ElementWise operation."),
    "reduce": ("W", "{}: DLA cores do not support {} Reduce operation."),
    "unary": ("W", "{}: Unary operation: {} is not supported on DLA."),
    "activation": ("E", "{}: ActivationLayer (with ActivationType = {}) not supported for DLA."),
    "matmul": ("W", "{}: MatMul is unsupported on DLA, relax constraints or use Convolution layer instead."),
    "reshape": ("W", "This version of DLA does not support reshape layers directly connected to Slice or Concat"),
    "rank": (
        "W",
        (
            "Input tensor has less than 4 dimensions for {}. At least one shuffle layer will be inserted which cannot "
            "run on DLA."
        ),
    ),
    "dynamic_tensor": ("W", "DLA does not support dynamic shape tensor: {}"),
    "dynamic_layer": ("W", "DLA Layer {} does not support dynamic shapes in any dimension."),
    "batch": (
        "W",
        (
            "DLA LAYER: Batch size (combined volume except for CHW dimensions) {} for layer {} exceeds max batch size "
            "allowed of {}."
        ),
    ),
    "offloaded": ("V", "{} successfully offloaded to DLA."),
    "candidates": ("V", "Number of DLA node candidates offloaded : {} out of {}"),
    "pools": ("V", "DLA Memory Pool Sizes: Managed SRAM = {}, Local DRAM = {}, Global DRAM = {}"),
    "missing_scale": (
        "W",
        (
            "Missing scale and zero-point for tensor {}, expect fall back to non-int8 implementation for any layer "
            "consuming or producing given tensor"
        ),
    ),
    "no_fallback": (
        "E",
        (
            "Error[2]: [builder.cpp::check::1] Error Code 2: Internal Error (Assertion allowGPUFallback failed. "
            "Layer '{}' is not supported on DLA but GPU fallback is not enabled.)"
        ),
    ),
    "no_calibrator": (
        "W",
        "Calibrator is not being used. Users must provide dynamic range for all tensors that are not Int32 or Bool.",
    ),
    "weights": ("W", "Weights [name={}.weight] had the following issues when converted to FP16:"),
    "subnormal": ("W", " - Subnormal FP16 values detected."),
    "retrain": ("W", "If this is not the desired behavior, please modify the weights or retrain with regularization"),
    "no_formats": ("E", "{}: could not find any supported formats consistent with input/output data types"),
    "old_engine": ("E", "The engine plan file is not compatible with this version of TensorRT, expecting library {}"),
    "empty": ("E", "INVALID_ARGUMENT: Cannot deserialize with an empty memory buffer."),
    "not_loaded": ("E", "INVALID_CONFIG: Deserialize the cuda engine failed."),
    "no_core": ("E", "Cannot create DLA engine, {} not available"),
    "no_implementation": (
        "E",
        "10: [optimizer.cpp::costs::1] Error Code 10: Internal Error (Could not find any implementation for node {}.)",
    ),
    "no_context": ("", "Skipping tactic 0x3 due to exception Assertion context.dlaContext != nullptr failed."),
    "core_range": (
        "E",
        (
            "../rtExt/dla/native/dlaExecuteRunner.cpp (135) - Assertion Error in updateContextResources: 0 "
            "(execParams.dlaCore >= 0 && execParams.dlaCore < core->numEngines())"
        ),
    ),
    "submit_7": (
        "E",
        "../rtExt/dla/native/dlaUtils.cpp (194) - DLA Error in submit: 7 (Failure to submit program to DLA engine.)",
    ),
    "submit_8": ("E", "1: [nvdlaUtils.cpp::submit::198] Error Code 1: DLA (Failure to submit program to DLA engine.)"),
    "submit_cudla": (
        "E",
        "Error[1]: [cudlaUtils.cpp::submit::95] Error Code 1: DLA (Failed to submit program to DLA engine.)",
    ),
    "load": ("E", "dla/dlaUtils.cpp (171) - DLA Error in deserialize: 7 (Failure to load program.)"),
    "register": ("E", "dlaExecuteRunner.cpp (71) - DLA Error in execute: 7 (Input tensor register failed.)"),
    "driver": ("", "NVMEDIA_DLA :  {}, ERROR: {}"),
    "tensor_cache": (
        "E",
        (
            "Error[2]: [nvmediaTensorCache.cpp::registerTensor::80] Error Code 2: Internal Error "
            "(Assertion nbTensors <= capacity() failed.)"
        ),
    ),
    "engine_null": (
        "E",
        "Error[2]: [builder.cpp::build::607] Error Code 2: Internal Error (Assertion enginePtr != nullptr failed. )",
    ),
    "region": (
        "E",
        (
            "../builder/cudnnBuilder2.cpp (1757) - Assertion Error in operator(): 0 (et.region->getType() == "
            "RegionType::kNVM)"
        ),
    ),
    "standalone_io": ("E", "Error[2]: [nvmRegionOptimizer.cpp::forceToUseNvmIO::175] Error Code 2: Internal Error"),
    "standalone_load": (
        "E",
        (
            "Error[9]: Cannot deserialize serialized engine built with "
            "EngineCapability::kDLA_STANDALONE, use cuDLA APIs instead."
        ),
    ),
    "constraints": (
        "E",
        "Error[3]: kPREFER_PRECISION_CONSTRAINTS cannot be set if kOBEY_PRECISION_CONSTRAINTS is set.",
    ),
    "reformats": ("W", "No implementation obeys reformatting-free rules, at least {} reformatting nodes are needed"),
    "workspace": ("I", "Some tactics do not have sufficient workspace memory to run."),
    "parameter": ("E", "Parameter check failed at: ../builder/BuilderConfig.cpp::setDeviceType::178, condition: {}"),
    "magic": ("E", "Serialization assertion plan->header.magicTag == rt::kPLAN_MAGIC_TAG failed."),
    "int64": ("W", "Your ONNX model has been generated with INT64 weights."),
    "set_up": ("E", "Engine set up failed"),
    "creation": ("E", "Engine creation failed"),
    "inference": ("E", "Error occurred during inference"),
    "could_not": ("E", "Engine could not be created from network"),
    "old_dla": ("I", "--------------- Layers running on DLA: "),
    "old_gpu": ("I", "--------------- Layers running on GPU: "),
    "dla": ("I", "---------- Layers Running on DLA ----------"),
    "gpu": ("I", "---------- Layers Running on GPU ----------"),
    "on_dla": ("I", "[DlaLayer] {}"),
    "on_gpu": ("I", "[GpuLayer] {}"),
    "list": ("I", "{}"),
    "info": ("I", "{}"),
    "other": ("", "{}"),
}
"""Severity and words of each message, with {} for what varies."""

_STAMP = "[01/02/2024-03:04:05]"
_WORDS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "V": "VERBOSE"}

FORMS: Mapping[str, str] = {
    "trtexec": _STAMP + " [{letter}] [TRT] ",
    "sample": "[{letter}] [TRT] ",
    "python 8": _STAMP + " [TRT] [{letter}] ",
    "python 7": "[TensorRT] {word}: ",
    "deepstream": "{word}: [TRT]: ",
    "plain": "{word}: ",
    "boxed": "[{word}] ",
    "dated": "[2022-11-08 06:01:58 {word}] ",
    "torch": "{word}: [Torch-TensorRT TorchScript Conversion Context] - ",
    "jetson-inference": "[TRT]    ",
    "onnxruntime": "2023-05-04 10:00:00.123456789 [{letter}:onnxruntime:Default, ep.h:86 log] "
    "[2023-05-04 10:00:00 {word}] ",
    "polygraphy": "\x1b[38;5;11m[{letter}] ",
}
"""What precedes a message, by program."""

Line = tuple[object, ...]
"""The name of a template, and what is put in."""


def github(name: str, number: int) -> str:
    return f"https://github.com/{name}/issues/{number}"


@attrs.frozen(kw_only=True)
class PublicLog:
    """The facts of one public log.

    Attributes:
        source: thread that has the log.
        form: what precedes its messages.
        lines: its messages.
        head, tail: lines that trtexec writes before and after.
        fallen: layers that left the DLA, with the rules that the log states.
        messages: ids of messages that are not about one layer's device.
        segments: layers of each segment on the DLA.
        gpu: names of layers on the GPU.
        version, platform, outcome: what it shows about its build.
        limit: how many loadables a core can load, if the log shows it.
        unknown: number of different unknown messages.
    """

    source: str
    form: str
    lines: Sequence[Line]
    head: str = ""
    tail: str = ""
    fallen: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    messages: Sequence[str] = ()
    segments: Sequence[Sequence[str]] = ()
    gpu: Sequence[str] = ()
    version: str = ""
    platform: str | None = None
    outcome: str = ""
    limit: int | None = None
    unknown: int = 0

    @property
    def text(self) -> str:
        """The messages as the program writes them."""
        return "".join(f"{line}\n" for line in filter(None, [self.head, *map(self._line, self.lines), self.tail]))

    def _line(self, line: Line) -> str:
        name, *values = line
        letter, words = TEMPLATES[str(name)]
        prefix = FORMS[self.form].format(letter=letter, word=_WORDS[letter]) if letter else ""
        if not letter and self.form == "jetson-inference":
            prefix = FORMS[self.form]
        return prefix + words.format(*values)


def _running(version: str, arguments: str) -> str:
    shown = f" [TensorRT v{version}]" if version else ""
    return f"&&&& RUNNING TensorRT.trtexec{shown} # trtexec {arguments}"


def _ended(word: str, version: str = "") -> str:
    shown = f" [TensorRT v{version}]" if version else ""
    return f"&&&& {word} TensorRT.trtexec{shown} # trtexec"


_DETR = "/model.10/m/m.0/attn"

PUBLIC_LOGS = (
    PublicLog(
        source=github("NVIDIA/TensorRT", 2318),
        form="sample",
        lines=[
            ("default", "Embedding matrix"),
            ("default", "LSTM encoder"),
            ("batch", 128, "EltWise multiplication in likelihood calculation", 32),
            ("default", "EltWise multiplication in likelihood calculation"),
            ("nothing",),
            ("info", ""),
            ("old_dla",),
            ("info", ""),
            ("old_gpu",),
            ("list", "Embedding matrix, LSTM encoder, "),
        ],
        fallen={
            "Embedding matrix": [],
            "LSTM encoder": [],
            "EltWise multiplication in likelihood calculation": ["dla.batch", "dla.batch_7"],
        },
        messages=["fallback.nothing_on_dla"],
        gpu=["Embedding matrix", "LSTM encoder"],
    ),
    PublicLog(
        source=github("lewes6369/TensorRT-Yolov3", 86),
        form="plain",
        lines=[
            ("not_running", "layer74-act"),
            ("concat_inputs", "layer84-route"),
            ("not_running", "layer84-route"),
            ("subgraphs", 8, "layer61-conv"),
            ("subgraphs", 8, "layer63-conv"),
        ],
        fallen={
            "layer74-act": [],
            "layer84-route": ["dla.concatenation.inputs"],
            "layer61-conv": [],
            "layer63-conv": [],
        },
        limit=8,
    ),
    PublicLog(
        source=github("onnx/tensorflow-onnx", 1632),
        form="trtexec",
        lines=[
            ("precision", "(Unnamed Layer* 95) [Shape]"),
            ("concat_axis", "(Unnamed Layer* 97) [Concatenation]"),
            ("precision", "(Unnamed Layer* 97) [Concatenation]"),
            (
                "other",
                (
                    "[07/29/2021-19:44:10] [07/29/2021-19:44:10] [W] [TRT] DLA Layer stage/concat does not support "
                    "dynamic shapes in any dimension."
                ),
            ),
            ("default", "stage/concat"),
            ("default", "Transpose__560"),
        ],
        fallen={
            "(Unnamed Layer* 95) [Shape]": ["dla.precision", "dla.types"],
            "(Unnamed Layer* 97) [Concatenation]": ["dla.concatenation.axis", "dla.precision", "dla.types"],
            "stage/concat": ["dla.dynamic_dimensions"],
            "Transpose__560": [],
        },
    ),
    PublicLog(
        source=github("marcoslucianops/DeepStream-Yolo", 27),
        form="deepstream",
        lines=[
            ("activation", "leaky_1", "LEAKY_RELU"),
            ("default", "leaky_1"),
            ("concat_inputs", "route_3"),
            ("default", "route_3"),
            ("default", "(Unnamed Layer* 10) [Slice]"),
            ("info", "mm2_33: broadcasting input1 to make tensors conform"),
            ("subgraphs", 8, "conv_6"),
            ("old_dla",),
            ("list", "{conv_1,batch_norm_1}, {conv_2,batch_norm_2}, "),
            ("old_gpu",),
            ("list", "leaky_1, conv_6, "),
        ],
        fallen={
            "leaky_1": ["dla.activation.type", "dla.activation.type_8_1"],
            "route_3": ["dla.concatenation.inputs"],
            "(Unnamed Layer* 10) [Slice]": [],
            "conv_6": [],
        },
        limit=8,
        segments=[["conv_1", "batch_norm_1"], ["conv_2", "batch_norm_2"]],
        gpu=["leaky_1", "conv_6"],
    ),
    PublicLog(
        source=github("marcoslucianops/DeepStream-Yolo", 27) + " (a run on a board without DLA)",
        form="deepstream",
        lines=[
            ("core_range",),
            ("other", "Building engine failed"),
            (
                "other",
                (
                    "0:00:06.471895338 18672   0x55c26e8f30 ERROR                nvinfer "
                    "gstnvinfer.cpp:614:gst_nvinfer_logger:<gie> NvDsInferContext[UID 1]: Error in buildModel() "
                    "<context.cpp:1735> [UID = 1]: build engine file failed"
                ),
            ),
        ],
        messages=["dla.core_range"],
        unknown=1,
    ),
    PublicLog(
        source=github("NVIDIA-AI-IOT/jetson_dla_tutorial", 3),
        form="sample",
        lines=[
            ("unsupported", "/model.24/Constant_1_output_0", "CONSTANT"),
            ("unsupported", "(Unnamed Layer* 277) [Shuffle]", "SHUFFLE"),
            ("elementwise", "/model.24/Pow", "POW"),
            ("unsupported", "/model.24/Pow", "ELEMENTWISE"),
        ],
        fallen={
            "/model.24/Constant_1_output_0": [],
            "(Unnamed Layer* 277) [Shuffle]": [],
            "/model.24/Pow": [
                "dla.elementwise.operation",
                "dla.elementwise.operation_8_6_11",
                "dla.elementwise.operation_xavier",
                "dla.elementwise.pow_operands",
            ],
        },
    ),
    PublicLog(
        source=github("ultralytics/ultralytics", 18012),
        form="python 8",
        lines=[
            ("concat_axis", "/model.23/Concat_4"),
            ("unsupported", "/model.23/Concat_4", "CONCATENATION"),
            ("unsupported", "(Unnamed Layer* 388) [Shuffle]", "SHUFFLE"),
            ("reshape",),
            ("validation", f"{_DETR}/Reshape"),
            ("split", f"{_DETR}/Reshape"),
        ],
        fallen={
            "/model.23/Concat_4": ["dla.concatenation.axis"],
            "(Unnamed Layer* 388) [Shuffle]": [],
            f"{_DETR}/Reshape": ["dla.shuffle.neighbours"],
        },
    ),
    PublicLog(
        source=github("ultralytics/ultralytics", 23488),
        form="python 8",
        lines=[
            ("matmul", f"{_DETR}/MatMul_1"),
            ("unsupported", f"{_DETR}/MatMul_1", "MATRIX_MULTIPLY"),
            ("slice_rank", "/model.23/Expand_1"),
            ("unsupported", "/model.23/Expand_1", "SLICE"),
            ("slice_mode", "/model.23/Tile_1"),
            ("unsupported", "/model.23/Tile_1", "SLICE"),
            ("unsupported", "/model.23/GatherElements_1", "GATHER"),
            ("rank", "/model.23/Mod"),
            ("dynamic_tensor", "/model.23/TopK_1_output_1"),
            ("validation", "/model.23/Mod"),
            ("dla",),
            ("on_dla", f"{{ForeignNode[/model.0/conv/Conv...{_DETR}/qkv/conv/Conv]}}"),
            ("on_dla", f"{{ForeignNode[{_DETR}/Split...{_DETR}/Transpose]}}"),
            ("gpu",),
            ("on_gpu", f"MATRIX_MULTIPLY: {_DETR}/MatMul_1"),
        ],
        fallen={
            f"{_DETR}/MatMul_1": ["dla.matrix_multiply.constant", "dla.matrix_multiply.rank"],
            "/model.23/Expand_1": ["dla.slice.rank"],
            "/model.23/Tile_1": ["dla.slice.mode_10_4", "dla.slice.mode"],
            "/model.23/GatherElements_1": [],
            "/model.23/Mod": ["dla.elementwise.rank", "dla.dynamic_dimensions"],
        },
        segments=[
            ["/model.0/conv/Conv", f"{_DETR}/qkv/conv/Conv"],
            [f"{_DETR}/Split", f"{_DETR}/Transpose"],
        ],
        gpu=[f"{_DETR}/MatMul_1"],
    ),
    PublicLog(
        source=github("ultralytics/ultralytics", 16449),
        form="python 8",
        lines=[
            ("elementwise", "/model.22/Div", "DIV"),
            ("unsupported", "/model.22/Div", "ELEMENTWISE"),
            ("slice_rank", "/model.22/Slice_1"),
            ("unsupported", "/model.22/Slice_1", "SLICE"),
            ("magic",),
        ],
        fallen={
            "/model.22/Div": [
                "dla.elementwise.operation",
                "dla.elementwise.operation_8_6_11",
                "dla.elementwise.operation_xavier",
                "dla.elementwise.div_types",
                "dla.elementwise.div_constant",
            ],
            "/model.22/Slice_1": ["dla.slice.rank"],
        },
        messages=["engine.magic"],
    ),
    PublicLog(
        source=github("jkjung-avt/tensorrt_demos", 200),
        form="trtexec",
        lines=[
            ("old_dla",),
            ("list", "{Tanh_3,Mul_4,Conv_5,scale_operand_of_Sub_705}, {Tanh_8,Mul_9,Conv_10,Conv_15}, "),
            ("old_gpu",),
            (
                "list",
                (
                    "Conv_0, 2253[Constant], (Unnamed Layer* 692) [Constant] + (Unnamed Layer* 693) [Shuffle], "
                    "Softplus_2, "
                ),
            ),
        ],
        segments=[["Tanh_3", "Mul_4", "Conv_5", "scale_operand_of_Sub_705"], ["Tanh_8", "Mul_9", "Conv_10", "Conv_15"]],
        gpu=[
            "Conv_0",
            "2253[Constant]",
            "(Unnamed Layer* 692) [Constant] + (Unnamed Layer* 693) [Shuffle]",
            "Softplus_2",
        ],
    ),
    PublicLog(
        source=github("jkjung-avt/tensorrt_demos", 200) + " (a list that a terminal broke)",
        form="python 7",
        lines=[
            ("old_dla",),
            ("list", "{002_convolutional_tanh,003_convolutional}, {003_convolutional_tanh"),
            ("other", ",005_convolutional}, {0"),
            ("other", "26_convolutional_tanh,028_convolutional},"),
        ],
        segments=[
            ["002_convolutional_tanh", "003_convolutional"],
            ["003_convolutional_tanh", "005_convolutional"],
            ["026_convolutional_tanh", "028_convolutional"],
        ],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 1301),
        form="trtexec",
        head=_running("", "--deploy=googlenet.prototxt --output=prob --useDLACore=0 --fp16 --allowGPUFallback"),
        lines=[
            ("other", "[06/10/2021-13:03:44] [I] Precision: FP32+FP16"),
            ("other", "[06/10/2021-13:03:44] [I] DLACore: 0(With GPU fallback)"),
            ("default", "prob"),
            ("old_dla",),
            ("list", "{conv1/7x7_s2,conv1/relu_7x7}, "),
            ("old_gpu",),
            ("list", "prob, "),
        ],
        fallen={"prob": []},
        segments=[["conv1/7x7_s2", "conv1/relu_7x7"]],
        gpu=["prob"],
        outcome="unfinished",
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 1328),
        form="trtexec",
        lines=[
            ("parameter", "int(deviceType) >= 0 && int(deviceType) < EnumMax<DeviceType>()"),
            ("info", ""),
            ("old_dla",),
            ("info", ""),
            ("old_gpu",),
            ("list", "conv1 + relu1, norm1, prob, "),
            ("workspace",),
            ("reformats", 2),
        ],
        messages=["api.parameter", "memory.workspace", "formats.reformat_free"],
        gpu=["conv1 + relu1", "norm1", "prob"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 1529),
        form="trtexec",
        lines=[("refused", "283 copy"), ("refused", "319 copy")],
        fallen={"283 copy": [], "319 copy": []},
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2190),
        form="sample",
        lines=[("other", "DLA Cores: 2"), ("safe",), ("other", "Segmentation fault (core dumped)")],
        messages=["refusal.safe"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2252),
        form="sample",
        lines=[("driver", 528, "load from memory failed."), ("load",), ("load",)],
        messages=["dla.driver", "dla.load"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 899),
        form="trtexec",
        lines=[
            ("default", "prob0"),
            ("driver", 308, "setInputTensorDesc failed"),
            ("driver", 446, "SetInputTensorDesc failed for tensor: 7. status: 0x0."),
            ("submit_7",),
        ],
        fallen={"prob0": []},
        messages=["dla.driver", "dla.submit"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 1108),
        form="trtexec",
        head=_running("", "--onnx=./trt_pose.onnx --useDLACore=0 --allowGPUFallback --verbose"),
        lines=[
            ("info", "Detected 1 inputs and 3 output network tensors."),
            ("region",),
            ("other", "[03/09/2021-10:15:24] [E] Engine creation failed"),
            ("other", "[03/09/2021-10:15:24] [E] Engine set up failed"),
        ],
        tail=_ended("FAILED"),
        messages=["dla.region_assertion", "failure.trtexec"],
        outcome="failed",
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2426),
        form="torch",
        lines=[("submit_8",), ("engine_null",)],
        messages=["dla.submit", "failure.assertion"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2307),
        form="trtexec",
        lines=[("tensor_cache",), ("engine_null",), ("could_not",)],
        messages=["dla.tensor_cache", "failure.assertion", "failure.trtexec"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 3567),
        form="trtexec",
        lines=[("info", "Starting inference"), ("submit_cudla",), ("inference",)],
        messages=["dla.submit", "failure.trtexec"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 4106),
        form="trtexec",
        lines=[("standalone_load",), ("set_up",)],
        tail=_ended("FAILED", "8510"),
        messages=["standalone.load", "failure.trtexec"],
        version="8.5.10",
        outcome="failed",
    ),
    PublicLog(
        source=github("NVIDIA-AI-IOT/cuDLA-samples", 34),
        form="trtexec",
        lines=[("constraints",), ("standalone_io",), ("engine_null",), ("could_not",), ("set_up",)],
        tail=_ended("FAILED", "8401"),
        messages=["flags.constraints", "standalone.io", "failure.assertion", "failure.trtexec"],
        version="8.4.1",
        outcome="failed",
    ),
    PublicLog(
        source=github("NVIDIA-AI-IOT/cuDLA-samples", 19),
        form="trtexec",
        head=_running(
            "8502",
            "--onnx=yolov5.onnx --buildDLAStandalone --useDLACore=1 --int8 --fp16 "
            "--inputIOFormats=int8:dla_hwc4 --outputIOFormats=fp16:chw16",
        ),
        lines=[("standalone", "/model.0/conv/_input_quantizer/Constant_1_output_0")],
        fallen={
            "/model.0/conv/_input_quantizer/Constant_1_output_0": [
                "standalone.device",
                "standalone.left_over_constants",
            ]
        },
        version="8.5.2",
        outcome="unfinished",
    ),
    PublicLog(
        source=github("Deci-AI/super-gradients", 1760),
        form="trtexec",
        lines=[("no_scale_node", "/model/heads/head3/cls_convs/cls_convs.0/seq/act/Relu")],
        fallen={"/model/heads/head3/cls_convs/cls_convs.0/seq/act/Relu": ["dla.int8.scales"]},
    ),
    PublicLog(
        source=github("open-mmlab/mmdeploy", 2376),
        form="python 7",
        lines=[
            ("int64",),
            ("profiles",),
            ("dla",),
            ("gpu",),
            ("on_gpu", "onnx::MatMul_546 + (Unnamed Layer* 144) [Shuffle]"),
        ],
        messages=["parser.int64", "fallback.profiles"],
        gpu=["onnx::MatMul_546 + (Unnamed Layer* 144) [Shuffle]"],
    ),
    PublicLog(
        source=github("NVIDIA-ISAAC-ROS/isaac_ros_depth_segmentation", 12),
        form="trtexec",
        head=_running("8502", "--saveEngine=featnet.plan --onnx=featnet.onnx --int8 --useDLACore=0 --allowGPUFallback"),
        lines=[
            ("other", "[04/22/2023-09:32:31] [I] Selected Device: Orin"),
            ("other", "[04/22/2023-09:32:31] [I] SMs: 14"),
            ("other", "[04/22/2023-09:32:31] [E] Cannot create DLA engine, 0 not available"),
        ],
        messages=["dla.no_core"],
        version="8.5.2",
        platform="agx-orin-32",
        outcome="unfinished",
    ),
    PublicLog(
        source=github("dusty-nv/jetson-inference", 1838),
        form="jetson-inference",
        lines=[
            ("other", "*************** Autotuning format combination: Half(1572864,524288,1024,1) ***************"),
            ("no_context",),
            ("other", "Fastest Tactic: 0xd15ea5edd15ea5ed Time: inf"),
        ],
        messages=["dla.no_context"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 3847),
        form="trtexec",
        lines=[("no_implementation", "{ForeignNode[/cnn/cnn.0/Conv]}")],
        messages=["dla.no_implementation"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 3659),
        form="python 8",
        lines=[("missing_scale", f"(Unnamed Layer* {number}) [Shuffle]_output") for number in (269, 271, 272)],
        messages=["int8.missing_scale"],
    ),
    PublicLog(
        source=github("NVIDIA-ISAAC-ROS/isaac_ros_object_detection", 23),
        form="boxed",
        lines=[("missing_scale", "conv1/kernel"), ("missing_scale", "conv1/bias")],
        messages=["int8.missing_scale"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2462),
        form="dated",
        lines=[("missing_scale", "768"), ("missing_scale", "492")],
        messages=["int8.missing_scale"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 4486),
        form="trtexec",
        head=_running(
            "8612",
            "--onnx=ceil-example.onnx --useDLACore=0 --int8 --verbose "
            "--inputIOFormats=int8:dla_linear --outputIOFormats=int8:dla_linear",
        ),
        lines=[("unary", "node_of_Y", "CEIL"), ("unsupported", "node_of_Y", "UNARY")],
        fallen={"node_of_Y": ["dla.unary.operation", "dla.unary.operation_xavier"]},
        version="8.6.12",
        outcome="unfinished",
    ),
    PublicLog(
        source="https://forums.developer.nvidia.com/t/337313",
        form="trtexec",
        lines=[
            ("gpu",),
            ("info", "No layer is running on GPU"),
            ("info", "After Myelin optimization: 327 layers"),
            ("pools", "1 MiB", "1024 MiB", "512 MiB"),
            ("offloaded", "{ForeignNode[…/model/Sigmoid_4]}"),
        ],
        messages=["memory.dla_pools", "note.offloaded"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 1700),
        form="python 7",
        lines=[
            ("info", ""),
            ("old_dla",),
            ("list", "{Conv_0,Relu_1,MaxPool_2,Conv_3}, "),
            ("old_gpu",),
            ("info", ""),
        ],
        segments=[["Conv_0", "Relu_1", "MaxPool_2", "Conv_3"]],
    ),
    PublicLog(
        source=github("mlcommons/inference_results_v0.5", 34),
        form="trtexec",
        lines=[("register",), ("driver", 1599, "registerTensorBuffer failed")],
        messages=["dla.tensor_register", "dla.driver"],
    ),
    PublicLog(
        source="NVIDIA/TensorRT, samples/sampleCudla/README.md",
        form="sample",
        lines=[
            ("info", ""),
            ("old_dla",),
            ("on_dla", "{ForeignNode[(Unnamed Layer* 0) [ElementWise]]},"),
            ("old_gpu",),
            ("info", ""),
        ],
        tail="&&&& PASSED TensorRT.sample_cudla",
        segments=[["(Unnamed Layer* 0) [ElementWise]"]],
        outcome="passed",
    ),
    PublicLog(
        source="a public build report of ResNet-50 on Jetson Orin (TensorRT 10.3)",
        form="trtexec",
        head=_running("100300", "--onnx=resnet50.onnx --int8 --useDLACore=0 --allowGPUFallback --verbose"),
        lines=[
            ("reduce", "/avgpool/GlobalAveragePool", "AVG"),
            ("unsupported", "/avgpool/GlobalAveragePool", "REDUCE"),
            ("unsupported", "/Flatten", "SHUFFLE"),
            ("candidates", 2, 2),
            ("on_dla", "{ForeignNode[/conv1/Conv.../layer4/layer4.2/relu_2/Relu]}"),
            ("on_dla", "{ForeignNode[/fc/Gemm + (Unnamed Layer* 125) [ElementWise]]}"),
            ("on_gpu", "REDUCE: /avgpool/GlobalAveragePool"),
        ],
        fallen={"/avgpool/GlobalAveragePool": ["dla.reduce.operation"], "/Flatten": []},
        messages=["note.candidates"],
        segments=[
            ["/conv1/Conv", "/layer4/layer4.2/relu_2/Relu"],
            ["/fc/Gemm", "(Unnamed Layer* 125) [ElementWise]"],
        ],
        gpu=["/avgpool/GlobalAveragePool"],
        version="10.3.0",
        outcome="unfinished",
    ),
    PublicLog(
        source="a public build report of a detector on Jetson Orin NX (TensorRT 10.3)",
        form="trtexec",
        lines=[
            ("no_fallback", "644"),
            ("other", "[01/02/2024-03:04:05] [E] DLA validation failed"),
        ],
        fallen={"644": []},
        messages=["failure.trtexec"],
    ),
    PublicLog(
        source=github("RichardoMrMu/yolov5-deepsort-tensorrt", 5),
        form="trtexec",
        lines=[("empty",), ("not_loaded",), ("other", "Segmentation fault (core dumped)")],
        messages=["engine.empty", "failure.state"],
    ),
    PublicLog(
        source=github("hukkelas/DSFD-Pytorch-Inference", 15),
        form="python 7",
        lines=[
            ("empty",),
            ("not_loaded",),
            ("other", "AttributeError: 'NoneType' object has no attribute 'create_execution_context'"),
        ],
        messages=["engine.empty", "failure.state"],
    ),
    PublicLog(
        source=github("microsoft/onnxruntime", 17235),
        form="onnxruntime",
        lines=[("no_calibrator",)],
        messages=["int8.no_calibrator"],
    ),
    PublicLog(
        source=github("Linaom1214/TensorRT-For-YOLO-Series", 56),
        form="python 8",
        lines=[("weights", "Conv_620 + PWN(PWN(Sigmoid_621), Mul_622)"), ("subnormal",), ("retrain",)],
        messages=["note.weights", "note.subnormal"],
    ),
    PublicLog(
        source=github("NVIDIA/TensorRT", 2550),
        form="trtexec",
        lines=[("no_formats", "GatherElements_493"), ("creation",), ("set_up",)],
        messages=["plugin.formats", "failure.trtexec"],
    ),
    PublicLog(
        source=github("smellslikeml/ActionAI", 17),
        form="python 7",
        lines=[("old_engine", "version 5.1.5 got 5.1.6, please rebuild.")],
        messages=["engine.version"],
    ),
)
