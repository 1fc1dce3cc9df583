"""Messages about layers that cannot run on the DLA, through the wordings of TensorRT 5 to 10.

Each was read in a public log; `source` has the thread. The lines themselves are not kept, only what they state.
"""

from __future__ import annotations

from dryfit.board.logs.message import FALLBACK, NOTE, PROBLEM, REASON, REFUSAL, KnownMessage, threads

_YOLO_11 = "ultralytics/ultralytics#18012"
_YOLO_26 = "ultralytics/ultralytics#23488"
_YOLO_8 = "ultralytics/ultralytics#16449"
_TUTORIAL = "NVIDIA-AI-IOT/jetson_dla_tutorial#3"
_DEEPSTREAM = "marcoslucianops/DeepStream-Yolo#27"
_YOLO_3 = "lewes6369/TensorRT-Yolov3#86"
_NMT = "NVIDIA/TensorRT#2318"
_SHUFFLENET = "onnx/tensorflow-onnx#1632"

_FIND_RULE = (
    "`dryfit explain MODEL --device DLA` lists the rules that the layer violates, and the model edits that keep it on "
    "the DLA"
)
_NEIGHBOURS = "Change the layers next to it, or assign it to the GPU yourself (--layerDeviceTypes)"
_STATIC = "Export the model with fixed shapes, or pass --shapes instead of a range"

FALLBACK_MESSAGES = (
    KnownMessage(
        id="fallback.default_dla",
        role=FALLBACK,
        anchor="falling back to GPU",
        pattern=r"Default DLA is enabled but layer (?P<layer>.+?) is not (?:supported|running) on DLA, "
        r"falling back to GPU",
        versions="5 to 8.2",
        meaning="The layer cannot run on the DLA and runs on the GPU; the line does not state which limit it violates",
        remedy=_FIND_RULE,
        source=threads(_YOLO_3, _DEEPSTREAM, _NMT, _SHUFFLENET, "NVIDIA/TensorRT#899"),
    ),
    KnownMessage(
        id="fallback.unsupported",
        role=FALLBACK,
        anchor="Unsupported on DLA",
        pattern=r"Layer '(?P<layer>.+)' \((?P<kind>\w+)\): Unsupported on DLA\. Switching this layer's device type "
        r"to GPU",
        versions="8.4 to 10",
        meaning="The layer cannot run on the DLA and runs on the GPU; a line before it may state the limit",
        remedy=_FIND_RULE,
        source=threads(_TUTORIAL, _YOLO_11, _YOLO_8, _YOLO_26),
    ),
    KnownMessage(
        id="fallback.precision",
        role=FALLBACK,
        anchor="DLA only supports FP16 and Int8",
        pattern=r"DLA only supports FP16 and Int8 precision type\. Switching (?P<layer>.+?) device type to GPU",
        versions="7.1 to 8.2",
        meaning="The layer computes in FP32 or in integers other than INT8, such as shapes and indices",
        rules=("dla.precision", "dla.types"),
        source=threads(_SHUFFLENET),
    ),
    KnownMessage(
        id="fallback.loadable_limit",
        role=FALLBACK,
        anchor="subgraphs per DLA core",
        pattern=r"DLA supports only (?P<limit>\d+) subgraphs per DLA core\. Switching to GPU for layer (?P<layer>.+)",
        versions="5 to 10: 8 subgraphs up to 8.4, 16 from 8.5 on",
        meaning="The network has more DLA segments than a core can load, so the later ones run on the GPU, whether or "
        "not their layers are supported",
        remedy="Reduce the number of segments: keep the layers between two segments on the DLA, or assign small "
        "segments to the GPU yourself (`dryfit place` searches for a placement)",
        source=threads(_YOLO_3, _DEEPSTREAM),
    ),
    KnownMessage(
        id="fallback.validation",
        role=FALLBACK,
        anchor="Validation failed for DLA layer",
        pattern=r"Validation failed for DLA layer: (?P<layer>.+?)\. Switching to GPU fallback",
        versions="8.5 to 10",
        meaning="The layer meets the limits by itself, but the DLA compiler rejects it next to its neighbours; it "
        "runs on the GPU",
        remedy=_NEIGHBOURS,
        source=threads(_YOLO_11, _YOLO_26),
    ),
    KnownMessage(
        id="fallback.split",
        role=FALLBACK,
        anchor="Splitting DLA subgraph at",
        pattern=r"Splitting DLA subgraph at: (?P<layer>.+?) because DLA validation failed for this layer",
        versions="8.5 to 10",
        meaning="The layer runs on the GPU, and the DLA segment that it was in becomes two",
        remedy=_NEIGHBOURS,
        source=threads(_YOLO_11),
    ),
    KnownMessage(
        id="fallback.profiles",
        role=PROBLEM,
        anchor="DLA requests all profiles",
        pattern=r"DLA requests all profiles have same min, max, and opt value\. All dla layers are falling back to GPU",
        versions="7.1 to 10",
        meaning="An input has a range of shapes, so the whole network runs on the GPU",
        rules=("dla.dynamic_dimensions",),
        remedy=_STATIC,
        source=threads("open-mmlab/mmdeploy#2376"),
    ),
    KnownMessage(
        id="fallback.missing_scale",
        role=FALLBACK,
        anchor="will not run on DLA",
        pattern=r"(?:Node|Layer): (?P<layer>.+?) cannot run in INT8 mode due to missing scale and zero point\. "
        r"This node will not run on DLA",
        versions="8.5 to 8.6",
        meaning="The build allows INT8 but not FP16, and the layer has a tensor without a scale",
        rules=("dla.int8.scales",),
        remedy="Allow FP16 too (--fp16), or calibrate the model so that every tensor has a scale",
        source=threads("Deci-AI/super-gradients#1760"),
    ),
    KnownMessage(
        id="fallback.internal",
        role=FALLBACK,
        anchor="Internal DLA error for layer",
        pattern=r"Internal DLA error for layer (?P<layer>.+?)\.(?: .*)?$",
        versions="7 to 8.2",
        meaning="The DLA compiler rejected the layer after TensorRT's own checks had accepted it",
        remedy=f"Allow fallback (--allowGPUFallback); {_FIND_RULE}",
        source="no public log was found; the wording is as users cite it",
    ),
    KnownMessage(
        id="fallback.cbuf",
        role=FALLBACK,
        anchor="CBUF",
        pattern=r"DLA LAYER: CBUF validation fail\w*(?: for(?: layer)?)?:? ?'?(?P<layer>[^']+?)'?(?:\.(?: .*)?)?$",
        versions="not dated",
        meaning="The weights of one kernel and the rows of the input that it reads exceed the convolution buffer",
        rules=("dla.convolution.cbuf", "dla.fully_connected.cbuf"),
        source="no public log was found; the wording is as users cite it",
    ),
    KnownMessage(
        id="refusal.default_dla",
        role=REFUSAL,
        anchor="falling back to GPU is not enabled",
        pattern=r"Default DLA is enabled but layer (?P<layer>.+?) is not supported on DLA and falling back to GPU is "
        r"not enabled",
        versions="7.1 to 8.2",
        meaning="The layer cannot run on the DLA, and fallback is disabled, so the build fails",
        remedy=f"Allow fallback (--allowGPUFallback); {_FIND_RULE}",
        source=threads("NVIDIA/TensorRT#1529"),
    ),
    KnownMessage(
        id="refusal.no_fallback",
        role=REFUSAL,
        anchor="GPU fallback is not enabled",
        pattern=r"Layer '(?P<layer>[^']+)' is not supported on DLA but GPU fallback is not enabled",
        versions="8.5 to 10.3",
        meaning="The layer cannot run on the DLA, and fallback is disabled, so the build fails",
        remedy=f"Allow fallback (--allowGPUFallback); {_FIND_RULE}",
        source="public build reports of detectors on Jetson Orin NX (TensorRT 10.3)",
    ),
    KnownMessage(
        id="refusal.standalone",
        role=REFUSAL,
        anchor="DLA Standalone is enabled",
        pattern=r"DLA Standalone is enabled but layer: '(?P<layer>.+)' is not supported on DLA",
        versions="8.4 to 8.6",
        meaning="A standalone loadable must run entirely on the DLA, and this layer cannot",
        rules=("standalone.device", "standalone.left_over_constants"),
        remedy="Change or remove the layer; Q/DQ layers must become a calibration cache first (`dryfit translate`)",
        source=threads("NVIDIA-AI-IOT/cuDLA-samples#19"),
    ),
    KnownMessage(
        id="refusal.safe",
        role=PROBLEM,
        anchor="not all layers are running on DLA",
        pattern=r"Safe DLA is enabled but not all layers are running on DLA",
        versions="8.2",
        meaning="A standalone loadable must run entirely on the DLA, and at least one layer cannot",
        rules=("standalone.device",),
        remedy="`dryfit check MODEL --standalone` lists the layers and the rules that they violate",
        source=threads("NVIDIA/TensorRT#2190"),
    ),
    KnownMessage(
        id="refusal.compilation",
        role=PROBLEM,
        anchor="DLA Node compilation Failed",
        pattern=r"DLA Node compilation Failed",
        versions="7 to 8",
        meaning="The DLA compiler could not make a loadable of a segment that had passed TensorRT's checks",
        rules=("memory_pool.segment", "dla.convolution.cbuf_estimate"),
        remedy="Raise the limits of the DLA memory pools (--memPoolSize), reduce the size of the layers, or assign the "
        "segment to the GPU",
        source="no public log was found; the wording is as users cite it",
    ),
    KnownMessage(
        id="fallback.nothing_on_dla",
        role=PROBLEM,
        anchor="setDefaultDeviceType was called",
        pattern=r"setDefaultDeviceType was called but no layer in the network can run on DLA",
        versions="7 to 8.4",
        meaning="The DLA is the default device, but the whole network runs on the GPU",
        remedy=_FIND_RULE,
        source=threads(_NMT),
    ),
)

REASON_MESSAGES = (
    KnownMessage(
        id="reason.concatenation_axis",
        role=REASON,
        anchor="concatenation on the C dimension",
        pattern=r"(?P<layer>.+): DLA only supports concatenation on the C dimension",
        versions="7.1 to 10",
        meaning="The DLA concatenates along channels only",
        rules=("dla.concatenation.axis",),
        source=threads(_SHUFFLENET, _YOLO_11, _YOLO_26),
    ),
    KnownMessage(
        id="reason.concatenation_inputs",
        role=REASON,
        anchor="Concatenation on DLA requires",
        pattern=r"(?P<layer>.+): Concatenation on DLA requires at least two inputs",
        versions="5 to 7",
        meaning="A concatenation of one input, such as a route layer of YOLO, cannot run on the DLA",
        rules=("dla.concatenation.inputs",),
        source=threads(_YOLO_3, _DEEPSTREAM),
    ),
    KnownMessage(
        id="reason.slice_rank",
        role=REASON,
        anchor="slicing 4 dimensional",
        pattern=r"(?P<layer>.+): DLA only supports slicing 4 dimensional tensors",
        versions="8.4 to 10",
        meaning="The DLA slices tensors of rank 4 only",
        rules=("dla.slice.rank",),
        source=threads(_YOLO_8, _YOLO_26),
    ),
    KnownMessage(
        id="reason.slice_mode",
        role=REASON,
        anchor="out-of-bounds slice",
        pattern=r"(?P<layer>.+): DLA does not support out-of-bounds slice operation",
        versions="8.5 to 10.3",
        meaning="The slice repeats or pads the tensor, as a Tile does; the DLA slices within bounds only",
        rules=("dla.slice.mode_10_4", "dla.slice.mode"),
        source=threads(_YOLO_26),
    ),
    KnownMessage(
        id="reason.elementwise",
        role=REASON,
        anchor="ElementWise operation",
        pattern=r"(?P<layer>.+): DLA cores do not support (?P<operation>\w+) ElementWise operation",
        versions="8.4 to 10",
        meaning="The DLA of this version does not support the elementwise operation",
        rules=("dla.elementwise.operation", "dla.elementwise.operation_8_6_11", "dla.elementwise.operation_xavier"),
        operation_rules={
            "DIV": ("dla.elementwise.div_types", "dla.elementwise.div_constant"),
            "POW": ("dla.elementwise.pow_operands",),
        },
        source=threads(_TUTORIAL, _YOLO_8),
    ),
    KnownMessage(
        id="reason.reduce",
        role=REASON,
        anchor="Reduce operation",
        pattern=r"(?P<layer>.+): DLA cores do not support (?P<operation>\w+) Reduce operation",
        versions="8.4 to 10",
        meaning="Of the reductions, the DLA supports the maximum only; a global average pool is a reduction",
        rules=("dla.reduce.operation",),
        remedy="Replace a global average pool by average pools with windows of at most 8 x 8",
        source="public build reports of ResNet-50 on Jetson Orin (TensorRT 10.3)",
    ),
    KnownMessage(
        id="reason.unary",
        role=REASON,
        anchor="Unary operation:",
        pattern=r"(?P<layer>.+?): Unary operation: (?P<operation>\w+) is not supported on DLA",
        versions="8.4 to 10",
        meaning="The DLA does not support the unary operation",
        rules=("dla.unary.operation", "dla.unary.operation_8_6_11", "dla.unary.operation_xavier"),
        source=threads("NVIDIA/TensorRT#4486"),
    ),
    KnownMessage(
        id="reason.activation",
        role=REASON,
        anchor="ActivationType",
        pattern=r"(?P<layer>.+?): ActivationLayer \(with ActivationType = (?P<operation>\w+)\) not supported "
        r"(?:for|on) DLA",
        versions="5 to 8.0",
        meaning="The DLA of this version does not support the activation",
        rules=("dla.activation.type", "dla.activation.type_8_1"),
        source=threads(_DEEPSTREAM),
    ),
    KnownMessage(
        id="reason.matrix_multiply",
        role=REASON,
        anchor="MatMul is unsupported on DLA",
        pattern=r"(?P<layer>.+?): MatMul is unsupported on DLA",
        versions="8.4 to 10",
        meaning="Both operands of the product are computed, as in attention; the DLA needs one of them to be constant",
        rules=("dla.matrix_multiply.constant", "dla.matrix_multiply.rank"),
        source=threads(_YOLO_26),
    ),
    KnownMessage(
        id="reason.reshape_neighbour",
        role=REASON,
        anchor="reshape layers directly connected",
        pattern=r"This version of DLA does not support reshape layers directly connected to Slice or Concat",
        versions="8.5 to 8.6",
        meaning="The layer named by the next line reshapes a tensor that comes from, or goes to, a slice or a "
        "concatenation",
        rules=("dla.shuffle.neighbours",),
        source=threads(_YOLO_11, _YOLO_26),
    ),
    KnownMessage(
        id="reason.rank",
        role=REASON,
        anchor="less than 4 dimensions",
        pattern=r"Input tensor has less than 4 dimensions for (?P<layer>.+?)\. At least one shuffle layer will be "
        r"inserted which cannot run on DLA",
        versions="8.4 to 10",
        meaning="The layer has an operand of less than 4 dimensions; the reshape that TensorRT adds runs on the GPU",
        rules=("dla.elementwise.rank",),
        remedy="Reshape the constant or tensor to 4 dimensions (batch, channels, height, width) in the model",
        source=threads(_YOLO_26),
    ),
    KnownMessage(
        id="reason.dynamic_tensor",
        role=REASON,
        anchor="does not support dynamic shape tensor",
        pattern=r"DLA does not support dynamic shape tensor: (?P<tensor>.+)",
        versions="8.5 to 10",
        meaning="The tensor's shape is only known at run time, or the tensor holds indices or sizes",
        rules=("dla.dynamic_dimensions",),
        remedy=_STATIC,
        source=threads(_YOLO_26),
    ),
    KnownMessage(
        id="reason.dynamic_layer",
        role=REASON,
        anchor="does not support dynamic shapes in any",
        pattern=r"DLA Layer (?P<layer>.+?) does not support dynamic shapes in any dimension",
        versions="7.1 to 8.2",
        meaning="A tensor of the layer has a dimension that is not fixed",
        rules=("dla.dynamic_dimensions",),
        remedy=_STATIC,
        source=threads(_SHUFFLENET),
    ),
    KnownMessage(
        id="reason.batch",
        role=REASON,
        anchor="exceeds max batch size allowed",
        pattern=r"DLA LAYER: Batch size \(combined volume except for CHW dimensions\) (?P<found>\d+) for layer "
        r"(?P<layer>.+?) exceeds max batch size allowed of (?P<limit>\d+)",
        versions="7 to 8.4",
        meaning="The product of all dimensions before channels, height and width exceeds the limit of the DLA",
        rules=("dla.batch", "dla.batch_7"),
        source=threads(_NMT),
    ),
    KnownMessage(
        id="reason.other",
        role=REASON,
        anchor="DLA",
        pattern=r"(?P<layer>.+?): (?P<text>(?=.*\bDLA\b).*(?:not support|unsupported|only supports?|must be|exceeds"
        r"|out of range|requires).*)",
        versions="all",
        meaning="The DLA does not accept the layer for the reason that the line states",
        remedy=_FIND_RULE,
        source="a form that the reasons above share",
    ),
)

PLACEMENT_NOTES = (
    KnownMessage(
        id="note.offloaded",
        role=NOTE,
        anchor="successfully offloaded to DLA",
        pattern=r"(?P<layer>\{ForeignNode\[.*\]\}) successfully offloaded to DLA",
        versions="8.4 to 10",
        meaning="The DLA compiler made a loadable of the segment",
        source="https://forums.developer.nvidia.com/t/337313",
    ),
    KnownMessage(
        id="note.candidates",
        role=NOTE,
        anchor="node candidates offloaded",
        pattern=r"Number of DLA node candidates offloaded\s*: (?P<found>\d+) out of (?P<limit>\d+)",
        versions="8.4 to 10",
        meaning="How many of the segments for the DLA became loadables; the others run on the GPU",
        remedy="If some did not: raise the limits of the DLA memory pools (--memPoolSize)",
        source="public build reports of ResNet-50 on Jetson Orin (TensorRT 10.3)",
    ),
)
