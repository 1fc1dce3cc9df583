r"""Command lines of trtexec that people published, and what each is expected to do.

Each line is written as its source has it, without what is the shell's: output that is sent into files, and programs
around it. A variable of the shell that a line takes its files from is given a value in `PublicLine.variables`, and the
folder of a person is written as $HOME. The facts are read from the line and from what its source says about it; the
sentences are ours.

The version is the nearest of the three that `dryfit exec` speaks: 8.6 for lines of TensorRT 7 and 8, 10.16 for those of
TensorRT 10, 11.1 for those of TensorRT 11. What trtexec takes, and what it adds, is as in NVIDIA/TensorRT,
samples/common/sampleOptions.cpp, of these versions.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

Version = tuple[int, ...]

V8: Version = (8, 6)
V10: Version = (10, 16)
V11: Version = (11, 1)


@attrs.frozen
class Source:
    """Where lines were found.

    Attributes:
        address: repository and path, thread, or page.
        kind: "documentation", "readme", "script", "issue", "forum" or "article".
        version: the version for which its lines are taken.
        why: what this version was chosen by.
    """

    address: str
    kind: str
    version: Version
    why: str


@attrs.frozen(kw_only=True)
class Facts:
    """What a line is expected to do; what is not given is as trtexec has it without options.

    Attributes:
        types: precision flags that are set, without those that a DLA adds.
        tf32: whether TF32 is left on.
        flags: other builder flags that the line sets.
        strongly_typed: whether the network is built strongly typed.
        constraints: "obey" or "prefer"; "" for neither.
        core: DLA core; -1 for none.
        falls_back: whether the GPU takes what the DLA cannot.
        loadable: whether a loadable is built and no engine.
        shapes: shape by input: one for all three, or least, best and largest separated by spaces.
        runs_at: shape by input in the run, where it is not the best one.
        inputs, outputs: types and formats, as the line has them.
        pools: bytes by memory pool.
        layer_types, layer_outputs, layer_devices: word by layer, or by a pattern with a star.
        verbosity: detail of the engine's description.
        level: builder optimization level.
        saves, loads: engine file that is written or read.
        calibration: cache of INT8 scales that is read.
        timing_cache: timing cache that is used.
        feeds: file by input.
        writes: files of times, outputs, profiles and layers.
        no_effect: options that are taken and said to have no effect.
        warns: parts of warnings that are printed.
        prints: what is printed besides the summary: "profile", "layers", "output", "verbose".
        inference: settings of the run by their names, where they differ from the defaults.
        skips_inference: whether the line only builds.
        fails: what the build's failure names, where the options are taken and the model cannot be built with them.
        refused: what the refusal names, as a pattern in which case means nothing; "" if the line is taken.
    """

    types: frozenset[str] = frozenset()
    tf32: bool = True
    flags: frozenset[str] = frozenset()
    strongly_typed: bool = False
    constraints: str = ""
    core: int = -1
    falls_back: bool = False
    loadable: bool = False
    shapes: Mapping[str, str] = attrs.field(factory=dict)
    runs_at: Mapping[str, str] = attrs.field(factory=dict)
    inputs: str = ""
    outputs: str = ""
    pools: Mapping[str, int] = attrs.field(factory=dict)
    layer_types: Mapping[str, str] = attrs.field(factory=dict)
    layer_outputs: Mapping[str, str] = attrs.field(factory=dict)
    layer_devices: Mapping[str, str] = attrs.field(factory=dict)
    verbosity: str = "layer_names_only"
    level: int = 3
    saves: str = ""
    loads: str = ""
    calibration: str = ""
    timing_cache: str = ""
    feeds: Mapping[str, str] = attrs.field(factory=dict)
    writes: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()
    warns: tuple[str, ...] = ()
    prints: frozenset[str] = frozenset()
    inference: Mapping[str, float] = attrs.field(factory=dict)
    skips_inference: bool = False
    fails: str = ""
    refused: str = ""


@attrs.frozen
class PublicLine:
    """One command line.

    Attributes:
        command: the line.
        source: where it was found.
        does: what it is said to do there, in our words.
        facts: what is expected of it.
        variables: values of the shell's variables in the line.
        also_refused_by: other versions that do not have its options, and what their refusal names.
    """

    command: str
    source: Source
    does: str
    facts: Facts
    variables: Mapping[str, str] = attrs.field(factory=lambda: {"HOME": "owner"})
    also_refused_by: Mapping[Version, str] = attrs.field(factory=dict)

    @property
    def version(self) -> Version:
        """The version for which the line is taken."""
        return self.source.version


def names(text: str) -> frozenset[str]:
    """Return the words of a string as a set."""
    return frozenset(text.split())


MIB = 1 << 20
FP16, INT8 = names("FP16"), names("INT8")
BOTH = FP16 | INT8
VERBOSE, PROFILE, LAYERS = names("verbose"), names("profile"), names("layers")
QUIET = {"data_transfers": False}

# NVIDIA's documentation --------------------------------------------------------------------------------------------

BENCHMARKING = Source(
    "docs.nvidia.com/deeplearning/tensorrt/10.16.1/performance/benchmarking.html",
    "documentation",
    V10,
    "a page of the documentation of 10.16",
)
DLA_GUIDE = Source(
    "docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/dla-build-and-run.html",
    "documentation",
    V10,
    "--fp16 for a DLA, which TensorRT 11 does not have",
)
DLA_STANDALONE_GUIDE = Source(
    "docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/dla-standalone-mode.html",
    "documentation",
    V10,
    "the chapter of TensorRT 10 on the DLA",
)
DLA_GUIDE_8 = Source(
    "developer.nvidia.com/zh-cn/blog/tensorrt-deep-learning-accelerator-cn",
    "documentation",
    V8,
    "a translation of the developer guide of TensorRT 8",
)
DLA_GUIDE_11 = Source(
    "docs.nvidia.com/deeplearning/tensorrt/11.4.0/inference-library/dla-build-and-run.html",
    "documentation",
    V11,
    "a page of the documentation of TensorRT 11",
)
MIGRATION_8_TO_10_BEFORE = Source(
    "docs.nvidia.com/deeplearning/tensorrt/10.16.1/api/tensorrt-8x-to-10x-trtexec.html, before",
    "documentation",
    V8,
    "shown as a line of TensorRT 8",
)
MIGRATION_8_TO_10_AFTER = Source(
    "docs.nvidia.com/deeplearning/tensorrt/10.16.1/api/tensorrt-8x-to-10x-trtexec.html, after",
    "documentation",
    V10,
    "shown as the same for TensorRT 10",
)
MIGRATION_10_TO_11_BEFORE = Source(
    "docs.nvidia.com/deeplearning/tensorrt/11.0.0/api/migration/tensorrt-10x-to-11x-trtexec.html, before",
    "documentation",
    V10,
    "shown as a line of TensorRT 10",
)
MIGRATION_10_TO_11_AFTER = Source(
    "docs.nvidia.com/deeplearning/tensorrt/11.0.0/api/migration/tensorrt-10x-to-11x-trtexec.html, after",
    "documentation",
    V11,
    "shown as the same for TensorRT 11",
)


def tao(page: str) -> Source:
    """A page of the TAO Toolkit's documentation."""
    address = f"docs.nvidia.com/tao/tao-toolkit/7.0.1/text/trtexec_integration/trtexec_{page}.html"
    return Source(address, "documentation", V10, "TAO 7 is for TensorRT 10, and has --fp16 and --calib")


DOCUMENTATION = [
    PublicLine(
        "trtexec --onnx=resnet50-v1-12.onnx --shapes=data:4x3x224x224 --fp16 --noDataTransfers --useCudaGraph "
        "--useSpinWait",
        BENCHMARKING,
        "measures a network in FP16 at batch 4, with what makes times steadier",
        Facts(types=FP16, shapes={"data": "4x3x224x224"}, inference=QUIET),
        also_refused_by={V11: "--fp16"},
    ),
    PublicLine(
        "./trtexec --onnx=data/resnet50/ResNet50.onnx --useDLACore=0 --fp16 --allowGPUFallback",
        DLA_GUIDE,
        "runs on DLA core 0 in FP16; the GPU takes layers that the DLA does not support",
        Facts(types=FP16, core=0, falls_back=True),
        also_refused_by={V11: "--fp16"},
    ),
    PublicLine(
        "./trtexec --onnx=model.onnx --saveEngine=model_loadable.bin --useDLACore=0 --fp16 "
        "--inputIOFormats=fp16:chw16 --outputIOFormats=fp16:chw16 --skipInference --safe",
        DLA_STANDALONE_GUIDE,
        "saves a loadable in FP16, since --safe with a DLA core is for one",
        Facts(
            types=FP16,
            core=0,
            loadable=True,
            inputs="fp16:chw16",
            outputs="fp16:chw16",
            saves="model_loadable.bin",
            skips_inference=True,
        ),
    ),
    PublicLine(
        "./trtexec --onnx=data/resnet50/ResNet50.onnx --useDLACore=0 --int8 --allowGPUFallback",
        DLA_GUIDE_8,
        "runs on DLA core 0 in INT8, with invented scales",
        Facts(types=INT8, core=0, falls_back=True),
    ),
    PublicLine(
        "./trtexec --onnx=data/resnet50/ResNet50.onnx --useDLACore=0 --allowGPUFallback",
        DLA_GUIDE_11,
        "runs a model that has its types on DLA core 0; TensorRT 11.1 itself has no DLA, as the page for it says",
        Facts(core=0, falls_back=True, fails="TensorRT 11 has no DLA"),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=/path/to/model.onnx \\\n    --saveEngine=/path/to/engine.trt \\\n"
        "    --optShapes=input:$INPUT_SHAPE \\\n    --workspace=1024 \\\n    --minTiming=1",
        MIGRATION_8_TO_10_BEFORE,
        "builds at one shape with a workspace of 1 GiB",
        Facts(saves="/path/to/engine.trt", shapes={"input": "1x3x32x32"}, pools={"WORKSPACE": 1024 * MIB}),
        variables={"INPUT_SHAPE": "1x3x32x32"},
        also_refused_by={V10: "--workspace", V11: "--workspace"},
    ),
    PublicLine(
        "trtexec \\\n    --onnx=/path/to/model.onnx \\\n    --saveEngine=/path/to/engine.trt \\\n"
        "    --optShapes=input:$INPUT_SHAPE \\\n    --memPoolSize=workspace:1024",
        MIGRATION_8_TO_10_AFTER,
        "builds at one shape with a workspace of 1 GiB",
        Facts(saves="/path/to/engine.trt", shapes={"input": "1x3x32x32"}, pools={"WORKSPACE": 1024 * MIB}),
        variables={"INPUT_SHAPE": "1x3x32x32"},
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model.onnx \\\n    --saveEngine=engine.plan \\\n    --fp16",
        MIGRATION_10_TO_11_BEFORE,
        "builds in FP16; TensorRT 11 has no option for it",
        Facts(types=FP16, saves="engine.plan"),
        also_refused_by={V11: "--fp16"},
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model_autocast.onnx \\\n    --saveEngine=engine.plan",
        MIGRATION_10_TO_11_AFTER,
        "builds a model that has FP16 in it",
        Facts(saves="engine.plan"),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=inputs:16x3x640x640 \\\n"
        "        --minShapes=inputs:1x3x640x640 \\\n        --optShapes=inputs:8x3x640x640 \\\n        --fp16 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("rtdetr"),
        "builds a detector in FP16 for batches of 1 to 16",
        Facts(
            types=FP16,
            shapes={"inputs": "1x3x640x640 8x3x640x640 16x3x640x640"},
            saves="/path/to/save/trt/model.engine",
        ),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=input_1:64x3x224x224 \\\n"
        "        --minShapes=input_1:1x3x224x224 \\\n        --optShapes=input_1:32x3x224x224 \\\n"
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n        --int8 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("classification_ds"),
        "builds a classifier in FP16 and INT8, with the scales of a calibration cache",
        Facts(
            types=BOTH,
            shapes={"input_1": "1x3x224x224 32x3x224x224 64x3x224x224"},
            calibration="/path/to/int8/calib.txt",
            saves="/path/to/save/trt/model.engine",
        ),
        also_refused_by={V11: "--calib"},
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=Input:16x3x384x1248 \\\n"
        "        --minShapes=Input:1x3x384x1248 \\\n        --optShapes=Input:8x3x384x1248 \\\n"
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n        --int8 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("ssd"),
        "builds a detector in FP16 and INT8, with the scales of a calibration cache",
        Facts(
            types=BOTH,
            shapes={"Input": "1x3x384x1248 8x3x384x1248 16x3x384x1248"},
            calibration="/path/to/int8/calib.txt",
            saves="/path/to/save/trt/model.engine",
        ),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n"
        "        --maxShapes=input_1:16x3x400x100,input_2:16x3x400x100 \\\n"
        "        --minShapes=input_1:1x3x400x100,input_2:1x3x400x100 \\\n"
        "        --optShapes=input_1:8x3x400x100,input_2:8x3x400x100 \\\n        --fp16 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("visual_changenet"),
        "builds a network of two pictures in FP16",
        Facts(
            types=FP16,
            shapes={
                "input_1": "1x3x400x100 8x3x400x100 16x3x400x100",
                "input_2": "1x3x400x100 8x3x400x100 16x3x400x100",
            },
            saves="/path/to/save/trt/model.engine",
        ),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=inputs:16x3x544x960 \\\n"
        "        --minShapes=inputs:1x3x544x960 \\\n        --optShapes=inputs:8x3x544x960 \\\n"
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("mae"),
        "builds in FP16; the cache has no effect, since --int8 is not there",
        Facts(
            types=FP16,
            shapes={"inputs": "1x3x544x960 8x3x544x960 16x3x544x960"},
            saves="/path/to/save/trt/model.engine",
        ),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=input:16x3x224x224 \\\n"
        "        --minShapes=input:1x3x224x224 \\\n        --optShapes=input:8x3x224x224 \\\n"
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n        --int8 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("mlrecognet"),
        "builds in FP16 and INT8, with the scales of a calibration cache",
        Facts(
            types=BOTH,
            shapes={"input": "1x3x224x224 8x3x224x224 16x3x224x224"},
            calibration="/path/to/int8/calib.txt",
            saves="/path/to/save/trt/model.engine",
        ),
    ),
    PublicLine(
        'trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=\\"input\\":16x512x512x3 \\\n'
        '        --minShapes=\\"input\\":1x512x512x3 \\\n        --optShapes=\\"input\\":8x512x512x3 \\\n'
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n        --int8 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("efficientdet"),
        "the double quotes reach trtexec, which looks for an input that has them in its name",
        Facts(refused='"input"'),
    ),
    PublicLine(
        "trtexec --onnx=/path/to/model.onnx \\\n        --maxShapes=input_image:16x3x544x960 \\\n"
        "        --minShapes=input_image:1x3x544x960 \\\n        --optShapes=input_image:8x3x544x960 \\\n"
        "        --calib=/path/to/int8/calib.txt \\\n        --fp16 \\\n        --int8 \\\n"
        "        --saveEngine=/path/to/save/trt/model.engine",
        tao("frcnn"),
        "builds a detector in FP16 and INT8, with the scales of a calibration cache",
        Facts(
            types=BOTH,
            shapes={"input_image": "1x3x544x960 8x3x544x960 16x3x544x960"},
            calibration="/path/to/int8/calib.txt",
            saves="/path/to/save/trt/model.engine",
        ),
    ),
]

# NVIDIA's repositories --------------------------------------------------------------------------------------------

SAMPLE = Source(
    "NVIDIA/TensorRT, samples/trtexec/README.md", "readme", V10, "has --stronglyTyped beside --fp16 and --best"
)
TRITON = Source(
    "NVIDIA/TensorRT, quickstart/deploy_to_triton/README.md", "readme", V8, "--explicitBatch is of TensorRT 7 and 8"
)
ONNX_QUICKSTART = Source(
    "NVIDIA/TensorRT, .agents/skills/trt-onnx-quickstart/SKILL.md", "readme", V11, "shown as lines of TensorRT 11"
)
COOKBOOK_OLD = Source(
    "NVIDIA/trt-samples-for-hackathon-cn, cookbook/08-Tool/trtexec/command.sh, first form",
    "script",
    V8,
    "--workspace is of TensorRT 7 and 8",
)
COOKBOOK = Source(
    "NVIDIA/trt-samples-for-hackathon-cn, cookbook/08-Tool/trtexec/command.sh, commit 091ed08f",
    "script",
    V8,
    "--workspace is of TensorRT 7 and 8",
)
DLA_TUTORIAL = Source(
    "NVIDIA-AI-IOT/jetson_dla_tutorial, README.md", "readme", V8, "its logs of 2022 are of TensorRT 8.4"
)
DLA_MODELS = Source(
    "NVIDIA/Deep-Learning-Accelerator-SW, scripts/prepare_models/README.md", "readme", V8, "says TensorRT 8.5"
)
DLA_MODELS_OLD = Source(
    "NVIDIA/Deep-Learning-Accelerator-SW, scripts/prepare_models/README.md, first form",
    "readme",
    V8,
    "says TensorRT 8.5",
)
DLA_LOADABLES = Source(
    "NVIDIA/Deep-Learning-Accelerator-SW, samples/cuDLA/cuDLALayerwiseStatsStandalone/README.md",
    "readme",
    V8,
    "says TensorRT 8.6.11",
)
DLA_QUESTIONS = Source(
    "NVIDIA/Deep-Learning-Accelerator-SW, FAQ/README.md", "readme", V8, "written beside TensorRT 8.5"
)
CUDLA = Source(
    "NVIDIA-AI-IOT/cuDLA-samples, data/model/build_dla_standalone_loadable.sh",
    "script",
    V8,
    "--buildDLAStandalone came with 8.6, and a patch beside the script adds it to 8.5",
)
CUDLA_2 = Source(
    "NVIDIA-AI-IOT/cuDLA-samples, data/model/build_dla_standalone_loadable_v2.sh", "script", V8, "as the first script"
)
MTMI = Source("NVIDIA/DL4AGX, AV-Solutions/mtmi/README.md", "readme", V8, "says DRIVE OS 6.0.8, which has 8.6")
OMNIDRIVE = Source("a README on engines of OmniDrive", "readme", V10, "--skipInference, for a model of 2025")
NANOOWL = Source("NVIDIA-AI-IOT/ROS2-NanoOWL, README.md", "readme", V10, "--maxAuxStreams on JetPack 6, with 10.3")

NVIDIA_REPOSITORIES = [
    PublicLine(
        './trtexec --onnx=model.onnx --loadInputs="data":data.bin',
        SAMPLE,
        "runs on the values of a raw file; without it values are random",
        Facts(feeds={"data": "data.bin"}),
    ),
    PublicLine(
        "./trtexec --onnx=data/mnist/mnist.onnx --useDLACore=1 --fp16 --allowGPUFallback",
        SAMPLE,
        "runs on DLA core 1 in FP16",
        Facts(types=FP16, core=1, falls_back=True),
    ),
    PublicLine(
        "./trtexec --onnx=data/mnist/mnist.onnx --useDLACore=1 --int8 --allowGPUFallback",
        SAMPLE,
        "runs on DLA core 1 in INT8",
        Facts(types=INT8, core=1, falls_back=True),
    ),
    PublicLine(
        "./trtexec --onnx=data/mnist/mnist.onnx --useDLACore=0 --fp16 --allowGPUFallback",
        SAMPLE,
        "runs on DLA core 0",
        Facts(types=FP16, core=0, falls_back=True),
    ),
    PublicLine("./trtexec --onnx=model.onnx", SAMPLE, "runs a model whose shapes are all known", Facts()),
    PublicLine(
        "./trtexec --onnx=model.onnx --shapes=input:32x3x244x244",
        SAMPLE,
        "runs a dynamic model at one shape",
        Facts(shapes={"input": "32x3x244x244"}),
    ),
    PublicLine(
        "./trtexec --onnx=model.onnx --minShapes=input:1x3x244x244 --optShapes=input:16x3x244x244 "
        "--maxShapes=input:32x3x244x244 --shapes=input:5x3x244x244",
        SAMPLE,
        "builds for a range of shapes and runs at one within it",
        Facts(shapes={"input": "1x3x244x244 16x3x244x244 32x3x244x244"}, runs_at={"input": "5x3x244x244"}),
    ),
    PublicLine(
        "./trtexec --onnx=data/mnist/mnist.onnx --exportTimes=trace.json",
        SAMPLE,
        "writes the times of each run into a JSON file",
        Facts(writes=("trace.json",)),
    ),
    PublicLine(
        "trtexec --onnx=resnet50.onnx --saveEngine=g1.trt --int8 --skipInference",
        SAMPLE,
        "saves an engine in INT8 and does not run it",
        Facts(types=INT8, saves="g1.trt", skips_inference=True),
    ),
    PublicLine(
        "trtexec --onnx=resnet50.onnx --saveEngine=g2.trt --best --skipInference",
        SAMPLE,
        "saves an engine in all types that the version has, and does not run it",
        Facts(types=names("FP16 INT8 BF16"), saves="g2.trt", skips_inference=True),
    ),
    PublicLine(
        "trtexec --loadEngine=g1.trt --streams=2",
        SAMPLE,
        "runs a saved engine on 2 streams",
        Facts(loads="g1.trt", inference={"streams": 2}),
    ),
    PublicLine(
        "trtexec --loadEngine=g1.trt --streams=3",
        SAMPLE,
        "runs a saved engine on 3 streams",
        Facts(loads="g1.trt", inference={"streams": 3}),
    ),
    PublicLine(
        "trtexec --loadEngine=g1.trt --streams=4",
        SAMPLE,
        "runs a saved engine on 4 streams",
        Facts(loads="g1.trt", inference={"streams": 4}),
    ),
    PublicLine(
        "trtexec --loadEngine=g2.trt --streams=2",
        SAMPLE,
        "runs the other saved engine on 2 streams",
        Facts(loads="g2.trt", inference={"streams": 2}),
    ),
    PublicLine(
        "./trtexec --onnx=model.onnx --stronglyTyped",
        SAMPLE,
        "builds with the types that the model has",
        Facts(strongly_typed=True),
        also_refused_by={V8: "--stronglyTyped"},
    ),
    PublicLine(
        "trtexec --onnx=resnet50.onnx \\\n        --saveEngine=model.plan \\\n        --explicitBatch \\\n"
        "        --useCudaGraph",
        TRITON,
        "saves an engine for a server",
        Facts(saves="model.plan"),
        also_refused_by={V10: "--explicitBatch", V11: "--explicitBatch"},
    ),
    PublicLine(
        "trtexec \\\n  --onnx=bert_onnx/model.fp16.onnx \\\n  --saveEngine=bert.fp16.plan \\\n"
        "  --memPoolSize=workspace:4096 \\\n"
        "  --minShapes=input_ids:1x32,attention_mask:1x32,token_type_ids:1x32 \\\n"
        "  --optShapes=input_ids:8x128,attention_mask:8x128,token_type_ids:8x128 \\\n"
        "  --maxShapes=input_ids:16x512,attention_mask:16x512,token_type_ids:16x512",
        ONNX_QUICKSTART,
        "builds a network with three dynamic inputs, whose types are in the model",
        Facts(
            saves="bert.fp16.plan",
            pools={"WORKSPACE": 4096 * MIB},
            shapes=dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), "1x32 8x128 16x512"),
        ),
    ),
    PublicLine(
        "trtexec \\\n  --onnx=resnet50_onnx/model.fp16.onnx \\\n  --saveEngine=resnet50.fp16.plan \\\n"
        "  --memPoolSize=workspace:4096 \\\n  --minShapes=pixel_values:1x3x224x224 \\\n"
        "  --optShapes=pixel_values:16x3x224x224 \\\n  --maxShapes=pixel_values:32x3x224x224",
        ONNX_QUICKSTART,
        "builds for batches of 1 to 32, with the types of the model",
        Facts(
            saves="resnet50.fp16.plan",
            pools={"WORKSPACE": 4096 * MIB},
            shapes={"pixel_values": "1x3x224x224 16x3x224x224 32x3x224x224"},
        ),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model.onnx \\\n    --minShapes=x:0:1x1x28x28 \\\n    --optShapes=x:0:4x1x28x28 \\\n"
        "    --maxShapes=x:0:16x1x28x28 \\\n    --workspace=1024 \\\n    --saveEngine=model-FP32.plan \\\n"
        "    --shapes=x:0:4x1x28x28 \\\n    --verbose",
        COOKBOOK_OLD,
        "builds and runs with an input whose name has a colon",
        Facts(
            shapes={"x:0": "1x1x28x28 4x1x28x28 16x1x28x28"},
            pools={"WORKSPACE": 1024 * MIB},
            saves="model-FP32.plan",
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model.onnx \\\n    --minShapes=x:0:1x1x28x28 \\\n    --optShapes=x:0:4x1x28x28 \\\n"
        "    --maxShapes=x:0:16x1x28x28 \\\n    --workspace=1024 \\\n    --saveEngine=model-FP16.plan \\\n"
        "    --shapes=x:0:4x1x28x28 \\\n    --verbose \\\n    --fp16",
        COOKBOOK_OLD,
        "does the same in FP16",
        Facts(
            types=FP16,
            shapes={"x:0": "1x1x28x28 4x1x28x28 16x1x28x28"},
            pools={"WORKSPACE": 1024 * MIB},
            saves="model-FP16.plan",
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model.onnx \\\n    --minShapes=tensor-0:1x1x28x28 \\\n"
        "    --optShapes=tensor-0:4x1x28x28 \\\n    --maxShapes=tensor-0:16x1x28x28 \\\n    --workspace=1024 \\\n"
        "    --saveEngine=model-FP32.plan \\\n    --shapes=tensor-0:4x1x28x28 \\\n    --verbose",
        COOKBOOK,
        "builds for batches of 1 to 16 and runs at 4",
        Facts(
            shapes={"tensor-0": "1x1x28x28 4x1x28x28 16x1x28x28"},
            pools={"WORKSPACE": 1024 * MIB},
            saves="model-FP32.plan",
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=model.onnx \\\n    --minShapes=tensor-0:1x1x28x28 \\\n"
        "    --optShapes=tensor-0:4x1x28x28 \\\n    --maxShapes=tensor-0:16x1x28x28 \\\n    --workspace=1024 \\\n"
        "    --saveEngine=model-FP16.plan \\\n    --shapes=tensor-0:4x1x28x28 \\\n    --verbose \\\n    --fp16",
        COOKBOOK,
        "does the same in FP16",
        Facts(
            types=FP16,
            shapes={"tensor-0": "1x1x28x28 4x1x28x28 16x1x28x28"},
            pools={"WORKSPACE": 1024 * MIB},
            saves="model-FP16.plan",
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec \\\n    --loadEngine=./model-FP32.plan \\\n    --shapes=tensor-0:4x1x28x28 \\\n    --verbose",
        COOKBOOK,
        "runs the saved engine at batch 4",
        Facts(loads="./model-FP32.plan", shapes={"tensor-0": "4x1x28x28"}, prints=VERBOSE),
    ),
    PublicLine(
        "trtexec \\\n    --loadEngine=./model-FP32.plan \\\n    --shapes=tensor-0:4x1x28x28 \\\n    --verbose \\\n"
        '    --exportLayerInfo="./modelInformation.txt"',
        COOKBOOK,
        "writes what the engine's layers are; only from 8.4 on, as a thread on this line found out",
        Facts(
            loads="./model-FP32.plan",
            shapes={"tensor-0": "4x1x28x28"},
            prints=VERBOSE,
            writes=("./modelInformation.txt",),
        ),
    ),
    PublicLine(
        "trtexec --onnx=model_gn.onnx --shapes=input:32x3x32x32 --saveEngine=model_gn.engine "
        "--exportProfile=model_gn.json --int8 --useDLACore=0 --allowGPUFallback --useSpinWait --separateProfileRun",
        DLA_TUTORIAL,
        "builds for DLA core 0 in INT8 with fallback, and writes times by layer from a run of their own",
        Facts(
            types=INT8,
            core=0,
            falls_back=True,
            shapes={"input": "32x3x32x32"},
            saves="model_gn.engine",
            writes=("model_gn.json",),
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --loadEngine=model_gn.engine --iterations=10 --idleTime=500 --duration=0 "
        "--useSpinWait",
        DLA_TUTORIAL,
        "runs the engine ten times, half a second apart",
        Facts(loads="model_gn.engine", inference={"iterations": 10, "idle_ms": 500, "duration_s": 0}),
    ),
    PublicLine(
        "trtexec --onnx=model_bn.onnx --shapes=input:32x3x32x32 --saveEngine=model_bn.engine "
        "--exportProfile=model_bn.json --int8 --useDLACore=0 --allowGPUFallback --useSpinWait --separateProfileRun",
        DLA_TUTORIAL,
        "does the same for a model of layers that the DLA supports",
        Facts(
            types=INT8,
            core=0,
            falls_back=True,
            shapes={"input": "32x3x32x32"},
            saves="model_bn.engine",
            writes=("model_bn.json",),
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --loadEngine=model_bn.engine --iterations=10 --idleTime=500 --duration=0 "
        "--useSpinWait",
        DLA_TUTORIAL,
        "runs that engine ten times, half a second apart",
        Facts(loads="model_bn.engine", inference={"iterations": 10, "idle_ms": 500, "duration_s": 0}),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1 --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=resnet50_v1_prepared.onnx --shapes=input_tensor:0:2x3x224x224",
        DLA_MODELS,
        "runs in INT8 on DLA core 0 alone, with its own formats at both ends and 1 MiB of SRAM",
        Facts(
            types=INT8,
            core=0,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            shapes={"input_tensor:0": "2x3x224x224"},
        ),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1MiB --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=resnet50_v1_prepared.onnx --shapes=input_tensor:0:2x3x224x224",
        DLA_MODELS_OLD,
        "does the same; trtexec of TensorRT 8 reads the number before the unit",
        Facts(
            types=INT8,
            core=0,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            shapes={"input_tensor:0": "2x3x224x224"},
        ),
    ),
    PublicLine(
        "trtexec --onnx=translated/resnet_50v1_noqdq_prepared.onnx \\\n        --useDLACore=0 \\\n        --int8 \\\n"
        "        --memPoolSize=dlaSRAM:1 \\\n"
        "        --shapes=StatefulPartitionedCall/resnet50/quant_conv1_bn/FusedBatchNormV3:0:2x3x224x224 \\\n"
        "        --inputIOFormats=int8:hwc4 --outputIOFormats=int8:chw32",
        DLA_MODELS,
        "has a format that does not exist: the DLA's is dla_hwc4",
        Facts(
            shapes={"StatefulPartitionedCall/resnet50/quant_conv1_bn/FusedBatchNormV3:0": "2x3x224x224"},
            refused="hwc4",
        ),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1 --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=resnet34-ssd1200_prepared.onnx",
        DLA_MODELS,
        "runs a detector in INT8 on DLA core 0 alone",
        Facts(types=INT8, core=0, inputs="int8:dla_hwc4", outputs="int8:chw32", pools={"DLA_MANAGED_SRAM": MIB}),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1 --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=ssd_mobilenet_v1_coco_2018_01_28_prepared.onnx "
        "--shapes=Preprocessor/sub:0:2x3x300x300",
        DLA_MODELS,
        "runs a detector in INT8 on DLA core 0 alone at batch 2",
        Facts(
            types=INT8,
            core=0,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            shapes={"Preprocessor/sub:0": "2x3x300x300"},
        ),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1 --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=resnext50_32x4d_fpn_prepared.onnx",
        DLA_MODELS,
        "runs the backbone of a detector in INT8 on DLA core 0 alone",
        Facts(types=INT8, core=0, inputs="int8:dla_hwc4", outputs="int8:chw32", pools={"DLA_MANAGED_SRAM": MIB}),
    ),
    PublicLine(
        "./trtexec --useDLACore=0 --int8 --memPoolSize=dlaSRAM:1 --inputIOFormats=int8:dla_hwc4 "
        "--outputIOFormats=int8:chw32 --onnx=backbone_rn34_1280x768_dummy.onnx --saveEngine=model_loadable.bin "
        "--buildDLAStandalone",
        DLA_LOADABLES,
        "saves a loadable in INT8, with 1 MiB of SRAM",
        Facts(
            types=INT8,
            core=0,
            loadable=True,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            saves="model_loadable.bin",
            skips_inference=True,
        ),
    ),
    PublicLine(
        "./trtexec --onnx=rn50.onnx --int8 --useDLACore=0 --dumpProfile --memPoolSize=dlaSRAM:1 "
        "--inputIOFormats=int8:dla_hwc4 --outputIOFormats=int8:chw32",
        DLA_QUESTIONS,
        "measures a network in INT8 on DLA core 0 and prints times by layer",
        Facts(
            types=INT8,
            core=0,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            prints=PROFILE,
        ),
    ),
    PublicLine(
        "${TRTEXEC} --onnx=data/model/yolov5s_trimmed_reshape_tranpose.onnx --verbose --fp16 "
        "--saveEngine=data/loadable/yolov5.fp16.fp16chw16in.fp16chw16out.standalone.bin --inputIOFormats=fp16:chw16 "
        "--outputIOFormats=fp16:chw16 --buildDLAStandalone --useDLACore=0",
        CUDLA,
        "saves a loadable in FP16",
        Facts(
            types=FP16,
            core=0,
            loadable=True,
            inputs="fp16:chw16",
            outputs="fp16:chw16",
            saves="data/loadable/yolov5.fp16.fp16chw16in.fp16chw16out.standalone.bin",
            prints=VERBOSE,
            skips_inference=True,
        ),
        variables={"TRTEXEC": "/usr/src/tensorrt/bin/trtexec"},
    ),
    PublicLine(
        "${TRTEXEC} --minShapes=images:1x3x672x672 --maxShapes=images:1x3x672x672 --optShapes=images:1x3x672x672 "
        "--shapes=images:1x3x672x672 --onnx=data/model/yolov5_trimmed_qat.onnx --useDLACore=0 --buildDLAStandalone "
        "--saveEngine=data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.bin  "
        "--inputIOFormats=int8:dla_hwc4 --outputIOFormats=fp16:chw16 --int8 --fp16 --calib=data/model/qat2ptq.cache "
        '--precisionConstraints=obey --layerPrecisions="/model.24/m.0/Conv":fp16,"/model.24/m.1/Conv":fp16,'
        '"/model.24/m.2/Conv":fp16',
        CUDLA,
        "saves a loadable in INT8 and FP16, where three layers must compute in FP16",
        Facts(
            types=BOTH,
            core=0,
            loadable=True,
            shapes={"images": "1x3x672x672"},
            inputs="int8:dla_hwc4",
            outputs="fp16:chw16",
            calibration="data/model/qat2ptq.cache",
            constraints="obey",
            layer_types=dict.fromkeys((f"/model.24/m.{n}/Conv" for n in range(3)), "fp16"),
            saves="data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.bin",
            skips_inference=True,
        ),
        variables={"TRTEXEC": "/usr/src/tensorrt/bin/trtexec"},
    ),
    PublicLine(
        "${TRTEXEC} --minShapes=images:1x3x672x672 --maxShapes=images:1x3x672x672 --optShapes=images:1x3x672x672 "
        "--shapes=images:1x3x672x672 --onnx=data/model/yolov5_trimmed_qat.onnx --useDLACore=0 --buildDLAStandalone "
        "--saveEngine=data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.bin  "
        "--inputIOFormats=int8:dla_hwc4 --outputIOFormats=fp16:chw16 --int8 --fp16 --calib=data/model/qat2ptq.cache "
        '--precisionConstraints=obey --layerPrecisions="/model.24/m.0/Conv":fp16,"/model.24/m.1/Conv":fp16,'
        '"/model.24/m.2/Conv":fp16,"/model.23/cv3/conv/Conv":fp16,"/model.23/cv3/act/Sigmoid":fp16,'
        '"/model.23/cv3/act/Mul":fp16',
        CUDLA_2,
        "does the same with six layers in FP16",
        Facts(
            types=BOTH,
            core=0,
            loadable=True,
            shapes={"images": "1x3x672x672"},
            inputs="int8:dla_hwc4",
            outputs="fp16:chw16",
            calibration="data/model/qat2ptq.cache",
            constraints="obey",
            layer_types={
                **dict.fromkeys((f"/model.24/m.{n}/Conv" for n in range(3)), "fp16"),
                **dict.fromkeys((f"/model.23/cv3/{one}" for one in ("conv/Conv", "act/Sigmoid", "act/Mul")), "fp16"),
            },
            saves="data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.bin",
            skips_inference=True,
        ),
        variables={"TRTEXEC": "/usr/src/tensorrt/bin/trtexec"},
    ),
    PublicLine(
        "trtexec --onnx=onnx_files/mtmi_encoder.onnx \\\n        --fp16 \\\n"
        "        --saveEngine=engines/mtmi_encoder_fp16.engine \\\n        --outputIOFormats=fp16:chw32 \\\n"
        "        --verbose",
        MTMI,
        "builds the encoder for the GPU, with outputs in a vectorized format",
        Facts(types=FP16, outputs="fp16:chw32", saves="engines/mtmi_encoder_fp16.engine", prints=VERBOSE),
    ),
    PublicLine(
        "trtexec --onnx=onnx_files/mtmi_depth_head.onnx \\\n        --int8 \\\n"
        "        --saveEngine=loadables/mtmi_depth_i8_dla.loadable \\\n        --useDLACore=0 \\\n"
        "        --inputIOFormats=int8:chw32 \\\n        --outputIOFormats=int8:dla_linear \\\n"
        "        --buildOnly \\\n        --verbose \\\n        --buildDLAStandalone \\\n"
        "        --calib=calibration/calibration_cache_depth.bin",
        MTMI,
        "saves a loadable in INT8 for DLA core 0, with the scales of a calibration cache",
        Facts(
            types=INT8,
            core=0,
            loadable=True,
            inputs="int8:chw32",
            outputs="int8:dla_linear",
            calibration="calibration/calibration_cache_depth.bin",
            saves="loadables/mtmi_depth_i8_dla.loadable",
            prints=VERBOSE,
            skips_inference=True,
        ),
        also_refused_by={V10: "--buildOnly"},
    ),
    PublicLine(
        "trtexec --onnx=onnx_files/mtmi_seg_head.onnx \\\n        --int8 \\\n"
        "        --saveEngine=loadables/mtmi_seg_i8_dla.loadable \\\n        --useDLACore=1 \\\n"
        "        --inputIOFormats=int8:chw32 \\\n        --outputIOFormats=int8:dla_linear \\\n"
        "        --buildOnly \\\n        --verbose \\\n        --buildDLAStandalone \\\n"
        "        --calib=calibration/calibration_cache_seg_mod.bin",
        MTMI,
        "saves a loadable in INT8 for DLA core 1, with the scales of a calibration cache",
        Facts(
            types=INT8,
            core=1,
            loadable=True,
            inputs="int8:chw32",
            outputs="int8:dla_linear",
            calibration="calibration/calibration_cache_seg_mod.bin",
            saves="loadables/mtmi_seg_i8_dla.loadable",
            prints=VERBOSE,
            skips_inference=True,
        ),
    ),
    PublicLine(
        "${TRT_HOME}/bin/trtexec --onnx=./onnxs/eva_base_tinyllama_fp16.onnx --skipInference "
        "--saveEngine=./engines/eva_base_tinyllama_fp16.engine --fp16 --precisionConstraints=obey "
        "--layerPrecisions=*_FORCEFP32:fp32 --useCudaGraph",
        OMNIDRIVE,
        "builds in FP16, where layers with an ending of their own must compute in FP32",
        Facts(
            types=FP16,
            constraints="obey",
            layer_types={"*_FORCEFP32": "fp32"},
            saves="./engines/eva_base_tinyllama_fp16.engine",
            skips_inference=True,
        ),
        variables={"TRT_HOME": "/opt/tensorrt"},
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec \\\n  --onnx=data/my_model_image_encoder_opset17.onnx \\\n"
        "  --saveEngine=data/my_model_image_encoder.engine \\\n  --fp16 \\\n  --shapes=image:1x3x768x768 \\\n"
        "  --builderOptimizationLevel=0 \\\n  --maxAuxStreams=0 \\\n"
        "  --tacticSources=-CUDNN,-EDGE_MASK_CONVOLUTIONS,-JIT_CONVOLUTIONS \\\n"
        "  --timingCacheFile=data/patch32_orin.timing \\\n  --skipInference",
        NANOOWL,
        "builds with as little memory as it can, at optimization level 0",
        Facts(
            types=FP16,
            shapes={"image": "1x3x768x768"},
            level=0,
            timing_cache="data/patch32_orin.timing",
            saves="data/my_model_image_encoder.engine",
            skips_inference=True,
        ),
    ),
]

# Threads -------------------------------------------------------------------------------------------------------------


def thread(address: str, version: Version, why: str, kind: str = "issue") -> Source:
    """An issue of NVIDIA/TensorRT by its number, or of another repository."""
    return Source(f"NVIDIA/TensorRT, issue {address}" if address.isdigit() else address, kind, version, why)


THREADS = [
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --maxAuxStreams=1 --onnx=No_upsample.onnx --verbose --int8 --useDLACore=0 "
        "--buildDLAStandalone --inputIOFormats=int8:dla_linear --outputIOFormats=int8:dla_linear",
        thread("4165", V8, "says 8.6.1"),
        "builds a loadable in INT8; there the network did not fit into one",
        Facts(
            types=INT8,
            core=0,
            loadable=True,
            inputs="int8:dla_linear",
            outputs="int8:dla_linear",
            prints=VERBOSE,
            skips_inference=True,
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --minShapes=images:1x3x640x640 --maxShapes=images:1x3x640x640 "
        "--optShapes=images:1x3x640x640 --shapes=images:1x3x640x640 "
        "--onnx=data/model/yolov5_trimmed_qat_1_25.onnx --buildDLAStandalone --useDLACore=1 "
        "--saveEngine=data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.dla1.bin "
        "--inputIOFormats=int8:dla_hwc4 --outputIOFormats=fp16:chw16 --int8 --fp16 "
        "--calib=data/model/yolov5_trimmed_qat_1_25_precision_config_calib.cache --precisionConstraints=prefer "
        "--layerPrecisions=/model.24/m.0/Conv:fp16,/model.24/m.1/Conv:fp16,/model.24/m.2/Conv:fp16,"
        "/model.23/cv3/conv/Conv:fp16,/model.23/cv3/act/Sigmoid:fp16,/model.23/cv3/act/Mul:fp16",
        thread("NVIDIA-AI-IOT/cuDLA-samples, issue 19", V8, "the log is of 8.5.2, patched for --buildDLAStandalone"),
        "saves a loadable for DLA core 1, where six layers should compute in FP16",
        Facts(
            types=BOTH,
            core=1,
            loadable=True,
            shapes={"images": "1x3x640x640"},
            inputs="int8:dla_hwc4",
            outputs="fp16:chw16",
            calibration="data/model/yolov5_trimmed_qat_1_25_precision_config_calib.cache",
            constraints="prefer",
            layer_types={
                **dict.fromkeys((f"/model.24/m.{n}/Conv" for n in range(3)), "fp16"),
                **dict.fromkeys((f"/model.23/cv3/{one}" for one in ("conv/Conv", "act/Sigmoid", "act/Mul")), "fp16"),
            },
            saves="data/loadable/yolov5.int8.int8hwc4in.fp16chw16out.standalone.dla1.bin",
            skips_inference=True,
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=translated/model_noqdq.onnx "
        "--calib=translated/model_precision_config_calib.cache --useDLACore=0 --int8 --fp16 --saveEngine=model.dla "
        "--precisionConstraints=prefer --layerPrecisions=xxx, --inputIOFormats=fp16:chw16 "
        "--outputIOFormats=fp16:chw16 --buildDLAStandalone",
        thread("NVIDIA-AI-IOT/cuDLA-samples, issue 36", V8, "the log is of 8.5.2, patched for --buildDLAStandalone"),
        "has xxx where a list was left out, which is no type",
        Facts(refused="xxx"),
    ),
    PublicLine(
        "trtexec --deploy=/usr/src/tensorrt/data/resnet50/ResNet50_N2.prototxt "
        "--model=/usr/src/tensorrt/data/resnet50/ResNet50_fp32.caffemodel --output=fc1000 --useDLACore=0 --int8 "
        "--memPoolSize=dlaSRAM:1 --inputIOFormats=int8:chw --outputIOFormats=int8:chw "
        "--saveEngine=./resnet_50_int8_chw.bin --buildOnly --safe",
        thread("NVIDIA/Deep-Learning-Accelerator-SW, issue 1", V8, "--deploy and --buildOnly are of TensorRT 8"),
        "builds a loadable of a Caffe model",
        Facts(refused="--deploy|--model|caffe"),
        also_refused_by={V10: "--deploy|--model|--output|--buildOnly"},
    ),
    PublicLine(
        "trtexec --verbose --loadEngine=dla_fusion.dla",
        thread("4106", V8, "the log is of 8.5.10"),
        "gives trtexec a loadable, which it does not run; here loadables run, too",
        Facts(loads="dla_fusion.dla", prints=VERBOSE),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=yolov8n.onnx --saveEngine=yolov8n.engine --int8 --useDLACore=0",
        thread("ultralytics/ultralytics, issue 14999", V8, "on JetPack 5, with 8.5"),
        "asks DLA core 0 alone, in INT8; its inputs and outputs in FP32 need copies, which are the GPU's",
        Facts(types=INT8, core=0, saves="yolov8n.engine", fails="Tensors need copies"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=/usr/src/tensorrt/data/mnist/mnist.onnx --saveEngine=gpu.engine",
        thread("forums.developer.nvidia.com/t/dla-and-gpu-cores-at-the-same-time/122287", V8, "of 2020", "forum"),
        "saves an engine for the GPU",
        Facts(saves="gpu.engine"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=/usr/src/tensorrt/data/mnist/mnist.onnx --useDLACore=0 "
        "--allowGPUFallback --saveEngine=dla.engine",
        thread("forums.developer.nvidia.com/t/dla-and-gpu-cores-at-the-same-time/122287", V8, "of 2020", "forum"),
        "saves an engine for DLA core 0; trtexec adds FP16, since a DLA has no FP32",
        Facts(core=0, falls_back=True, saves="dla.engine"),
    ),
    PublicLine(
        "trtexec --onnx=model/nvln.onnx --fp16 --noTF32 --saveEngine=model/nvln.exec.fp16.trt "
        "--layerPrecisions=LayerNormalization_*:fp32,Softmax_*:fp32,Conv_0:fp32 "
        "--layerOutputTypes=LayerNormalization_*:fp32,Softmax_*:fp32,Conv_0:fp32 --precisionConstraints=obey "
        "--timingCacheFile=x86.tc --exportLayerInfo=nvln.fp16.json --exportProfile=nvln.fp16.profile.json "
        "--profilingVerbosity=detailed --dumpProfile --verbose",
        thread("3889", V8, "says 8.6.11"),
        "builds in FP16, where some kinds of layers must stay in FP32, and writes what became of them",
        Facts(
            types=FP16,
            tf32=False,
            constraints="obey",
            layer_types={"LayerNormalization_*": "fp32", "Softmax_*": "fp32", "Conv_0": "fp32"},
            layer_outputs={"LayerNormalization_*": "fp32", "Softmax_*": "fp32", "Conv_0": "fp32"},
            timing_cache="x86.tc",
            verbosity="detailed",
            saves="model/nvln.exec.fp16.trt",
            writes=("nvln.fp16.json", "nvln.fp16.profile.json"),
            prints=PROFILE | VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec --onnx=resnet18-v1-7.onnx --fp16 --int8 --saveEngine=resnet18-v1-7.engine "
        "--exportProfile=resnet18-v1-7.txt --exportLayerInfo=resnet18-v1-7.json",
        thread("4020", V10, "a container of June 2024, with 10.1"),
        "writes times and names of layers; details need another verbosity, as the thread says",
        Facts(types=BOTH, saves="resnet18-v1-7.engine", writes=("resnet18-v1-7.txt", "resnet18-v1-7.json")),
    ),
    PublicLine(
        "trtexec.exe --onnx=model.onnx --saveEngine=rtdetr_f16_i8.engine  --explicitBatch --fp16 --int8 \\\n"
        "     --dumpProfile \\\n     --noDataTransfers --useCudaGraph --useSpinWait  --separateProfileRun \\\n"
        "    --dumpLayerInfo  --exportLayerInfo=li.json",
        thread("4048", V10, "says 10.0.1"),
        "has an option that TensorRT 10 no longer has, as the thread found out",
        Facts(refused="--explicitBatch"),
    ),
    PublicLine(
        "trtexec.exe --onnx=model.onnx --saveEngine=rtdetr_f16_i8.engine  --fp16 --int8 \\\n     --dumpProfile \\\n"
        "     --noDataTransfers --useCudaGraph --useSpinWait  --separateProfileRun \\\n"
        "    --dumpLayerInfo  --exportLayerInfo=li.json",
        thread("4048", V10, "says 10.0.1"),
        "is the same line without it",
        Facts(
            types=BOTH,
            saves="rtdetr_f16_i8.engine",
            prints=PROFILE | LAYERS,
            writes=("li.json",),
            inference=QUIET,
        ),
    ),
    PublicLine(
        "trtexec --verbose --noDataTransfers --useCudaGraph --separateProfileRun --useSpinWait --nvtxMode=verbose "
        "--loadEngine=yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine "
        "--exportTimes=yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine.timing.json "
        "--exportProfile=yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine.profile.json "
        "--exportLayerInfo=yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine.graph.json "
        "--timingCacheFile=./timing.cache --int8",
        thread("2514", V8, "written for 8.0, which lacks one option; the answer is to take 8.4 or later"),
        "runs an engine and writes the three files that the engine explorer reads",
        Facts(
            loads="yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine",
            prints=VERBOSE,
            inference=QUIET,
            writes=tuple(
                f"yolov5n_ptq_int8/yolov5n_ptq_detect_dynamic.onnx.engine.{one}.json"
                for one in ("timing", "profile", "graph")
            ),
        ),
        also_refused_by={V10: "--nvtxMode"},
    ),
    PublicLine(
        "./trtexec --loadEngine=debug_fp16.trt --dumpProfile --shapes=input:1x3x512x512 --exportProfile=debug_profile",
        thread("2231", V8, "of 2022"),
        "prints and writes times by layer",
        Facts(loads="debug_fp16.trt", shapes={"input": "1x3x512x512"}, prints=PROFILE, writes=("debug_profile",)),
    ),
    PublicLine(
        "../tensorrt/bin/trtexec --loadEngine=engines/bert_large_128.engine --exportProfile=bert_profile.json",
        thread("2003", V8, "says 8.2.4"),
        "writes times by layer",
        Facts(loads="engines/bert_large_128.engine", writes=("bert_profile.json",)),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=resnet.onnx --best --workspace=5000 --saveEngine=resnet.trt "
        "--inputIOFormats=fp32:chw --outputIOFormats=fp32:chw --noDataTransfers --dumpProfile --separateProfileRun",
        thread("1221", V8, "of TensorRT 7.2"),
        "builds in all types, with FP32 at both ends, and measures without copies",
        Facts(
            types=BOTH,
            pools={"WORKSPACE": 5000 * MIB},
            inputs="fp32:chw",
            outputs="fp32:chw",
            saves="resnet.trt",
            prints=PROFILE,
            inference=QUIET,
        ),
    ),
    PublicLine(
        "trtexec --useCudaGraph --iterations=1 --warmUp=0 --duration=0 --loadEngine=my_awesome_dnn.engine",
        thread("414", V8, "of TensorRT 7"),
        "runs an engine once",
        Facts(loads="my_awesome_dnn.engine", inference={"iterations": 1, "warm_up_ms": 0, "duration_s": 0}),
    ),
    PublicLine(
        '"D:\\python_workspace\\stable-diffusion-webui\\extensions\\stable-diffusion-webui-tensorrt\\'
        'TensorRT-8.6.1.6\\bin\\trtexec.exe" --onnx="D:\\python_workspace\\stable-diffusion-webui\\models\\Unet-onnx\\'
        'majicmix-Realistic_betterV2V25.onnx" --saveEngine="D:\\python_workspace\\stable-diffusion-webui\\models\\'
        'Unet-trt\\majicmix-Realistic_betterV2V25.trt" --minShapes=x:2x4x64x64,context:2x77x768,timesteps:2 '
        "--maxShapes=x:2x4x64x64,context:2x77x768,timesteps:2 --fp16 --workspace=8192",
        thread("3229", V8, "says 8.6.1"),
        "builds with least and largest shapes; trtexec takes the largest for the best, and says so",
        Facts(
            types=FP16,
            shapes={"x": "2x4x64x64", "context": "2x77x768", "timesteps": "2"},
            pools={"WORKSPACE": 8192 * MIB},
            warns=("--optShapes is not given: the shapes of --maxShapes are used",),
            saves="D:\\python_workspace\\stable-diffusion-webui\\models\\Unet-trt\\majicmix-Realistic_betterV2V25.trt",
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=model.onnx --saveEngine=model.trt --device=0 --fp16 "
        "--minShapes='input_0:1x16x80','input_1:1' --optShapes='input_0:64x32x80','input_1:64' "
        "--maxShapes='input_0:128x64x80','input_1:128' --workspace=10240",
        thread("2486", V8, "says 8.2"),
        "builds for batches of 1 to 128 and sequences of 16 to 64",
        Facts(
            types=FP16,
            shapes={"input_0": "1x16x80 64x32x80 128x64x80", "input_1": "1 64 128"},
            pools={"WORKSPACE": 10240 * MIB},
            saves="model.trt",
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=model.onnx --saveEngine=model.trt --device=0 --fp16 "
        "--minShapes='input_0:1x64x80','input_1:1' --optShapes='input_0:64x64x80','input_1:64' "
        "--maxShapes='input_0:128x64x80','input_1:128' --workspace=10240",
        thread("2486", V8, "says 8.2"),
        "does the same for sequences of 64 alone",
        Facts(
            types=FP16,
            shapes={"input_0": "1x64x80 64x64x80 128x64x80", "input_1": "1 64 128"},
            pools={"WORKSPACE": 10240 * MIB},
            saves="model.trt",
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --explicitBatch --onnx=model.onnx --minShapes=input:1x1x1539 "
        "--optShapes=input:1x200x1539 --maxShapes=input:1x500x1539 --shapes=input:1x250x1539 --verbose",
        thread("1577", V8, "of TensorRT 7.2"),
        "builds for a range of lengths and runs at one that is not the best",
        Facts(
            shapes={"input": "1x1x1539 1x200x1539 1x500x1539"},
            runs_at={"input": "1x250x1539"},
            prints=VERBOSE,
        ),
        also_refused_by={V10: "--explicitBatch"},
    ),
    PublicLine(
        "./trtexec --onnx=labse.onnx --workspace=4000  "
        "--minShapes=input_ids:1x256,attention_mask:1x256,token_type_ids:1x256 "
        "--optShapes=input_ids:16x256,attention_mask:16x256,token_type_ids:16x256 "
        "--maxShapes=input_ids:32x256,attention_mask:32x256,token_type_ids:32x256 --saveEngine=engine.trt",
        thread("1581", V8, "the log is of 8.2"),
        "builds a network with three inputs for batches of 1 to 32",
        Facts(
            shapes=dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), "1x256 16x256 32x256"),
            pools={"WORKSPACE": 4000 * MIB},
            saves="engine.trt",
        ),
    ),
    PublicLine(
        "trtexec --onnx=./kokoro-v1.0.onnx \\\n    --minShapes=tokens:1x3 \\\n    --optShapes=tokens:1x100 \\\n"
        "    --maxShapes=tokens:1x512 \\\n    --builderOptimizationLevel=1 \\\n    --saveEngine=./kokoro.engine \\\n"
        "    --verbose",
        thread("nazdridoy/kokoro-tts, issue 78", V10, "the log lists options of 10.x"),
        "builds for 3 to 512 tokens at optimization level 1",
        Facts(shapes={"tokens": "1x3 1x100 1x512"}, level=1, saves="./kokoro.engine", prints=VERBOSE),
    ),
    PublicLine(
        "trtexec --int8 --onnx=model_quantized_int8_512x512_iter4.onnx "
        "--saveEngine=model_quantized_int8_512x512_iter4.engine",
        thread("4494", V10, "says 10.3"),
        "builds in INT8",
        Facts(types=INT8, saves="model_quantized_int8_512x512_iter4.engine"),
    ),
    PublicLine(
        "trtexec --onnx=DPUNet_second_argmax_12_quan.onnx --saveEngine=fp32.engine",
        thread("4658", V10, "says 10.8"),
        "builds in FP32 and TF32",
        Facts(saves="fp32.engine"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=/videos/tinyyolov2-8.onnx --saveEngine=/tmp/yolo.engine     "
        "--optShapes=image:1x3x416x416 --skipInference",
        thread("OE4T/meta-tegra, pull request 2243", V10, "the log is of 10.16.2"),
        "builds at one shape, which the log says is taken for least and largest, too",
        Facts(
            shapes={"image": "1x3x416x416"},
            saves="/tmp/yolo.engine",  # noqa: S108
            warns=("--minShapes is not given", "--maxShapes is not given"),
            skips_inference=True,
        ),
    ),
    PublicLine(
        "trtexec.exe --onnx=models/car.onnx --saveEngine=models/car.engine --fp16",
        thread("4432", V8, "the log is of 8.5.3"),
        "builds in FP16",
        Facts(types=FP16, saves="models/car.engine"),
    ),
    PublicLine(
        "./trtexec --onnx=$HOME/Pycharm/openMMlab/mmyolo/yolo_model_dir/yolov5_s_coco-c5-n7w-dynamic/"
        "end2end.onnx --saveEngine=$HOME/Pycharm/openMMlab/engine_file/yolov5_s_mmyolo.engine --workspace=10240 "
        "--plugins=$HOME/Pycharm/openMMlab/mmdeploy/build/lib/libmmdeploy_tensorrt_ops.so "
        "--optShapes=input:1x3x640x640",
        thread("open-mmlab/mmdeploy, issue 1926", V8, "the log is of 8.4.2"),
        "loads layers from a library of NVIDIA's binary form, which does not run here",
        Facts(
            shapes={"input": "1x3x640x640"},
            pools={"WORKSPACE": 10240 * MIB},
            saves="owner/Pycharm/openMMlab/engine_file/yolov5_s_mmyolo.engine",
            no_effect=("--plugins",),
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=yolov5s.engine --plugins=./libmyplugins.so --verbose",
        thread("wang-xinyu/tensorrtx, issue 139", V8, "the log is of TensorRT 7"),
        "runs an engine that needs such a library",
        Facts(loads="yolov5s.engine", prints=VERBOSE, no_effect=("--plugins",)),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=pallet_model_v1_all.onnx --minShapes=input:1x3x192x192 "
        "--maxShapes=input:1x3x1536x1536 --optShapes=input:1x3x256x256 --saveEngine=all_pallets_out/out.onnx --fp16",
        thread("NVIDIA-AI-IOT/sdg_pallet_model, issue 4", V8, "the log is of 8.5.3"),
        "builds in FP16 for a range of picture sizes",
        Facts(types=FP16, shapes={"input": "1x3x192x192 1x3x256x256 1x3x1536x1536"}, saves="all_pallets_out/out.onnx"),
    ),
    PublicLine(
        "./trtexec --model=$HOME/agxnvme/stanford_dataset/DS_webinar_sources/stanford_resnext50.onnx --batch=1 "
        "--output=Sigmoid_4 --saveEngine=resnext50.trt",
        thread("194", V8, "of TensorRT 6"),
        "names an ONNX model by the option for Caffe's weights; trtexec misses the file with the layers",
        Facts(refused="--model|--deploy|--onnx|caffe"),
    ),
    PublicLine(
        "trtexec.exe --deploy=detect.prototxt  --model=detect.caffemodel  --output=prob --batch=1 "
        "--saveEngine=mnist16.trt",
        thread("2364", V8, "the log is of 8.2.3"),
        "builds from a Caffe model",
        Facts(refused="--deploy|--model|caffe"),
    ),
    PublicLine(
        "trtexec --onnx=./onnx/bert-sparse-ASP-qabase-sq128-b1.onnx --sparsity=force --workspace=4096",
        thread("pytorch/TensorRT, issue 1340", V8, "the log is of 8.4.2"),
        "overwrites weights so that they are sparse, and builds with them",
        Facts(flags=names("SPARSE_WEIGHTS"), pools={"WORKSPACE": 4096 * MIB}),
    ),
    PublicLine(
        "trtexec --onnx=results/SQuAD/test_finetuned_checkpoint_pruned_by_asp_then_refinetuned/"
        "1xNVIDIA_GeForce_RTX_3090/fp16/seed\\=0/pytorch_model.onnx "
        "--saveEngine=results/SQuAD/test_finetuned_checkpoint_pruned_by_asp_then_refinetuned/"
        "1xNVIDIA_GeForce_RTX_3090/fp16/seed\\=0/pytorch_model.plan --workspace=24576 "
        "--minShapes=input_ids:1x384,segment_ids:1x384,input_mask:1x384 "
        "--optShapes=input_ids:16x384,segment_ids:16x384,input_mask:16x384 "
        "--maxShapes=input_ids:16x384,segment_ids:16x384,input_mask:16x384 --fp16 --sparsity=enable",
        thread("2271", V8, "of August 2022"),
        "builds a pruned network in FP16 and looks for sparse weights; a path has an escaped sign in it",
        Facts(
            types=FP16,
            flags=names("SPARSE_WEIGHTS"),
            shapes=dict.fromkeys(("input_ids", "segment_ids", "input_mask"), "1x384 16x384 16x384"),
            pools={"WORKSPACE": 24576 * MIB},
            saves="results/SQuAD/test_finetuned_checkpoint_pruned_by_asp_then_refinetuned/1xNVIDIA_GeForce_RTX_3090/"
            "fp16/seed=0/pytorch_model.plan",
        ),
    ),
    PublicLine(
        "./trtexec --onnx=sparse.onnx --saveEngine=sparse.trt --sparsity=enable --fp16 --verbose",
        thread("4056", V8, "the thread before it says 8.4"),
        "builds in FP16 with sparse weights where there are any, and prints which layers have them",
        Facts(types=FP16, flags=names("SPARSE_WEIGHTS"), saves="sparse.trt", prints=VERBOSE),
    ),
    PublicLine(
        "./trtexec --onnx=model_weights_sparse.onnx --saveEngine=model_weights_sparse.trt --sparsity=enable --fp16",
        thread("NVIDIA/apex, issue 1780", V8, "the asker uses 8.4"),
        "does the same without details",
        Facts(types=FP16, flags=names("SPARSE_WEIGHTS"), saves="model_weights_sparse.trt"),
    ),
    PublicLine(
        "trtexec --stronglyTyped --weightStreamingBudget=1 --onnx=examples/llama2/model_files/batchful.onnx  "
        "--allowWeightStreaming --fp16",
        thread("4228", V10, "says 10.2 and 10.5"),
        "builds strongly typed with weights that can be streamed; --fp16 is left out with a warning",
        Facts(strongly_typed=True, flags=names("WEIGHT_STREAMING"), warns=("FP16 is disabled",)),
    ),
    PublicLine(
        "trtexec --onnx=test.onnx --dumpOutput --batch=1 --safe --loadInputs=Input:input.txt",
        thread("617", V8, "of TensorRT 7"),
        "gives a batch to an ONNX model, which has its own",
        Facts(refused="--batch"),
    ),
    PublicLine(
        "trtexec --onnx=./yolov8.onnx --saveEngine=yolov8.engine --int8 --calib=./calibration_data.cache",
        thread("ultralytics/ultralytics, issue 14836", V8, "the asker uses 8.6.1"),
        "builds in INT8 with the scales of a calibration cache",
        Facts(types=INT8, calibration="./calibration_data.cache", saves="yolov8.engine"),
    ),
    PublicLine(
        "trtexec --loadEngine=/workdir/TRT_OSS/TensorRT/demo/BERT/engines/bert_large_128.engine --workspace=10018 "
        "--shapes=input_ids:128x1,attension_mask:128x1,token_type_ids:128x1 --fp16 --verbose",
        thread("1103", V8, "of TensorRT 7.2"),
        "runs an engine at one shape, with options of the build that mean nothing here",
        Facts(
            loads="/workdir/TRT_OSS/TensorRT/demo/BERT/engines/bert_large_128.engine",
            shapes=dict.fromkeys(("input_ids", "attension_mask", "token_type_ids"), "128x1"),
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=FM_P_D_fp16.engine "
        "--shapes=ref_y:1x128x100x160,c1:1x48x1600x2560,c2:1x64x800x1280,c3:1x96x400x640",
        thread("4036", V10, "the log is of 10.2"),
        "runs an engine of four inputs",
        Facts(
            loads="FM_P_D_fp16.engine",
            shapes={"ref_y": "1x128x100x160", "c1": "1x48x1600x2560", "c2": "1x64x800x1280", "c3": "1x96x400x640"},
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=best.engine --shapes=1x3x416x416",
        thread("ultralytics/yolov5, issue 9076", V8, "the log is of 8.0.1"),
        "gives a shape without the input's name; later versions look for an input of that name",
        Facts(loads="best.engine", refused="1x3x416x416"),
    ),
    PublicLine(
        "trtexec model-02.plan --trt --shapes=tensorX:4x1x28x28 --noDataTransfers --useSpinWait --useCudaGraph "
        "--verbose",
        thread("NVIDIA/trt-samples-for-hackathon-cn, issue 99", V8, "the log is of 8.6.1"),
        "gives the engine without an option, and has one of another program",
        Facts(refused="model-02.plan|--trt|model"),
    ),
    PublicLine(
        "trtexec \\\n    --loadEngine=model-02.plan \\\n    --shapes=tensorX:4x1x28x28 \\\n    --noDataTransfers \\\n"
        "    --useSpinWait \\\n    --useCudaGraph \\\n    --verbose",
        thread("NVIDIA/trt-samples-for-hackathon-cn, issue 99", V8, "the log is of 8.6.1"),
        "is the same line as the answer has it",
        Facts(loads="model-02.plan", shapes={"tensorX": "4x1x28x28"}, inference=QUIET, prints=VERBOSE),
    ),
]

# Articles and public projects ----------------------------------------------------------------------------------------


def project(address: str, version: Version, why: str, kind: str = "readme") -> Source:
    """A file of a public project, or an article."""
    return Source(address, kind, version, why)


DEBERTA = "huggingface.co/nbroad/deberta-trt, file trtexec"
PLUGIN_TEMPLATE = project("MAhaitao999/TensorRT_Plugin_Template, README.md", V8, "--uff is of TensorRT 7 and 8")
SSD_UFF = project("a README on SSD MobileNet v2 for Jetson boards", V8, "--uff is of TensorRT 7 and 8")
EFFICIENTVIT = project("a README on EfficientViT-SAM with DLAs", V8, "--minTiming is not in TensorRT 10")
OMNIVLA = project("a report on DINOv2 in OmniVLA on a Jetson Orin Nano", V10, "says 10.3", "issue")
ORIN_LAB = project("a lab on the Python interface and the DLA, lab3_trt_inference", V10, "on JetPack 6", "article")
SAM = project("a README on engines of Segment Anything", V8, "--layerDeviceTypes came with 8.6")
VSGAN = project("styler00dollar/VSGAN-tensorrt-docker, README.md", V10, "--bf16 came with 10")
QUANTIZED_YOLO = project("a README on quantized YOLO11 detectors", V10, "--int4 is of TensorRT 10")
DLA_BENCHMARKS = project(
    "a script that measures networks on the DLA of an Orin", V8, "formats and pools of 8.5", "script"
)
VERSION_COMPATIBLE = project("a script that builds text encoders for a lean runtime", V10, "--maxTactics", "script")
SPARSE_RESNET = project("a README on pruned ResNets", V10, "of 2026")

PROJECTS = [
    PublicLine(
        "trtexec \\\n--fp16 \\\n--minShapes=input_ids:1x128,attention_mask:1x128 \\\n"
        "--optShapes=input_ids:8x128,attention_mask:8x128 \\\n--maxShapes=input_ids:32x128,attention_mask:32x128 \\\n"
        "--saveEngine=model.plan \\\n--shapes=input_ids:8x128,attention_mask:8x128 \\\n"
        '--inputIOFormats="int32:chw,int32:chw" \\\n--onnx=model.onnx',
        project(f"{DEBERTA}, first commit", V8, "int64 at both ends is not in TensorRT 8", "script"),
        "builds a text model in FP16, whose inputs are INT32",
        Facts(
            types=FP16,
            shapes=dict.fromkeys(("input_ids", "attention_mask"), "1x128 8x128 32x128"),
            inputs="int32:chw,int32:chw",
            saves="model.plan",
        ),
    ),
    PublicLine(
        "trtexec \\\n--fp16 \\\n--minShapes=input_ids:1x128,attention_mask:1x128 \\\n"
        "--optShapes=input_ids:8x128,attention_mask:8x128 \\\n--maxShapes=input_ids:32x128,attention_mask:32x128 \\\n"
        "--saveEngine=model.plan \\\n--shapes=input_ids:8x128,attention_mask:8x128 \\\n"
        '--inputIOFormats="int64:chw,int64:chw" \\\n--onnx=model.onnx',
        project(f"{DEBERTA}, later commit", V10, "int64 at both ends came with 10.0", "script"),
        "does the same with INT64 inputs",
        Facts(
            types=FP16,
            shapes=dict.fromkeys(("input_ids", "attention_mask"), "1x128 8x128 32x128"),
            inputs="int64:chw,int64:chw",
            saves="model.plan",
        ),
        also_refused_by={V8: "int64"},
    ),
    PublicLine(
        "trtexec --onnx=model_sim.onnx --fp16 --verbose --saveEngine=model_sim.plan --useCudaGraph  --dumpProfile "
        "--dumpLayerInfo --separateProfileRun",
        project("lix19937/tensorrt-insight, deploy/readme.md", V8, "written beside 8.5"),
        "builds in FP16 and prints layers and their times",
        Facts(types=FP16, saves="model_sim.plan", prints=VERBOSE | PROFILE | LAYERS),
    ),
    PublicLine(
        "trtexec --onnx=yolov8_test_qdq.onnx --int8 --verbose --dumpLayerInfo --dumpProfile "
        "--profilingVerbosity=detailed --exportLayerInfo=yolov8_test_qdq.onnxINT8.engine.layerInfo.json "
        "--saveEngine=yolov8_test_qdq.onnxINT8.engine",
        project("zmurder.github.io, on engines of models with Q/DQ", V8, "its log is of 8.4.12", "article"),
        "builds in INT8 and writes all that is known of the layers",
        Facts(
            types=INT8,
            verbosity="detailed",
            saves="yolov8_test_qdq.onnxINT8.engine",
            writes=("yolov8_test_qdq.onnxINT8.engine.layerInfo.json",),
            prints=VERBOSE | PROFILE | LAYERS,
        ),
    ),
    PublicLine(
        "trtexec --onnx=resnet18.onnx --saveEngine=resnet18-fp32.plan --minShapes=x:1x3x224x224 "
        "--optShapes=x:4x3x224x224 --maxShapes=x:16x3x224x224 --memPoolSize=workspace:1024MiB --verbose",
        project("rhkb.cn/news/252153.html", V8, "says 8.6.1", "article"),
        "builds with a workspace of 1 GiB; trtexec of TensorRT 8 reads the number before the unit",
        Facts(
            shapes={"x": "1x3x224x224 4x3x224x224 16x3x224x224"},
            pools={"WORKSPACE": 1024 * MIB},
            warns=("--memPoolSize=workspace:1024MiB is workspace:1024 in MiB",),
            saves="resnet18-fp32.plan",
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        'trtexec –onnx="model.onnx" –saveEngine="engine.trt"',  # noqa: RUF001
        project(
            "developer.nvidia.com/blog/end-to-end-ai-for-nvidia-based-pcs-nvidia-tensorrt-deployment",
            V8,
            "speaks of 8.6",
            "article",
        ),
        "was typeset with dashes in the place of two hyphens, and no longer has options",
        Facts(refused="–onnx|model"),  # noqa: RUF001
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --iterations=10000  --dumpProfile "
        "--exportProfile=build/googlenet_transition_plans/profiles/googlenet_gpu_transition_at_0.profile --avgRuns=1 "
        "--warmUp=5000 --duration=0 "
        "--loadEngine=build/googlenet_transition_plans/googlenet_gpu_transition_at_0.plan",
        project("ismetdagli/HaX-CoNN, README.md", V8, "says 8.4"),
        "runs an engine 10000 times, each on its own in the averages, and writes times by layer",
        Facts(
            loads="build/googlenet_transition_plans/googlenet_gpu_transition_at_0.plan",
            prints=PROFILE,
            writes=("build/googlenet_transition_plans/profiles/googlenet_gpu_transition_at_0.profile",),
            inference={"iterations": 10000, "average_runs": 1, "warm_up_ms": 5000, "duration_s": 0},
        ),
    ),
    PublicLine(
        "trtexec --uff=trained_lenet5.uff --uffInput=InputLayer,1,28,28 --output=MarkOutput_0 "
        "--plugins=../TensorRT_Plugin_Template/build/ClipPlugin.so --saveEngine=trained_lenet5.engine",
        PLUGIN_TEMPLATE,
        "builds from a UFF model",
        Facts(refused="--uff|uff|--plugins"),
        also_refused_by={V10: "--uff|--output"},
    ),
    PublicLine(
        "trtexec --loadEngine=trained_lenet5.engine --shapes=InputLayer:1x28x28 "
        "--plugins=../TensorRT_Plugin_Template/build/ClipPlugin.so",
        PLUGIN_TEMPLATE,
        "runs an engine with layers from a library of NVIDIA's binary form",
        Facts(loads="trained_lenet5.engine", shapes={"InputLayer": "1x28x28"}, no_effect=("--plugins",)),
    ),
    PublicLine(
        "trtexec --uff=$HOME/Downloads/ssd_mobilenet_v2_coco.uff \\\n--uffInput=Input,3,300,300 \\\n--int8 \\\n"
        "--output=MarkOutput_0 \\\n--workspace=4096 \\\n--saveEngine=ssd_mobilenet_v2_int8.trt",
        SSD_UFF,
        "builds from a UFF model",
        Facts(refused="--uff|uff"),
    ),
    PublicLine(
        "trtexec --loadEngine=ssd_mobilenet_v2_int8.trt \\\n--duration=600 \\\n--int8 \\\n--exportTimes=output.json",
        SSD_UFF,
        "runs an engine for ten minutes and writes the times",
        Facts(loads="ssd_mobilenet_v2_int8.trt", writes=("output.json",), inference={"duration_s": 600}),
    ),
    PublicLine(
        "./trtexec --deploy=/opt/ifm/tensorrt/data/mnist/mnist.prototxt "
        "--model=/opt/ifm/tensorrt/data/mnist/mnist.caffemodel --output=prob --batch=16 "
        "--saveEngine=/tmp/mnist16.trt",
        project("ifm, README of an image with TensorRT's samples", V8, "--deploy is of TensorRT 7 and 8"),
        "builds a Caffe model for batches of 16",
        Facts(refused="--deploy|--model|caffe"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --deploy=inception_v4.prototxt --output=prob --workspace=4096 --fp16 "
        "--saveEngine=XXXXXXXX.trt --batch=1",
        project("notes on frequencies of an AGX board", V8, "--deploy is of TensorRT 7 and 8"),
        "builds a Caffe model without weights",
        Facts(refused="--deploy|caffe"),
    ),
    PublicLine(
        "trtexec --onnx=./controlnet_one_loop_folded.onnx --exportProfile=./profile.json "
        "--exportLayerInfo=./layerinfo.json --profilingVerbosity=detailed --workspace=16384 --fp16 "
        "--saveEngine=./controlnet_one_loop_fp16.engine --infStreams=4 --maxAuxStreams=10 --useCudaGraph",
        project(
            "a script of the hackathon of 2023 on ControlNet, preprocess.sh",
            V8,
            "of 2023, with 8.6",
            "script",
        ),
        "builds in FP16, runs on 4 streams, and writes layers and their times",
        Facts(
            types=FP16,
            verbosity="detailed",
            pools={"WORKSPACE": 16384 * MIB},
            saves="./controlnet_one_loop_fp16.engine",
            writes=("./profile.json", "./layerinfo.json"),
            inference={"streams": 4},
        ),
    ),
    PublicLine(
        "./trtexec --onnx=zoe_nk.onnx --builderOptimizationLevel=3 --useSpinWait --useRuntime=full --useCudaGraph "
        "--precisionConstraints=obey --allowGPUFallback "
        "--tacticSources=+CUBLAS,+CUDNN,+JIT_CONVOLUTIONS,+CUBLAS_LT --inputIOFormats=fp32:chw "
        "--outputIOFormats=fp32:chw --sparsity=enable --layerOutputTypes=fp32 --layerPrecisions=fp32 "
        "--saveEngine=zoe_nk.trt",
        project(
            "jagennath-hari/DepthStream-Accelerator-ROS2-Integrated-Monocular-Depth-Inference, README.md",
            V8,
            "--useRuntime came with 8.6",
        ),
        "has types without layers, which trtexec takes for a layer of that name",
        Facts(
            flags=names("SPARSE_WEIGHTS"),
            constraints="obey",
            inputs="fp32:chw",
            outputs="fp32:chw",
            warns=("--layerPrecisions has an entry for 'fp32', which is not the name of a layer",),
            saves="zoe_nk.trt",
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=OUT/dino.onnx --saveEngine=OUT/dino_fp32.engine "
        "--memPoolSize=workspace:1024",
        OMNIVLA,
        "builds in FP32 with a workspace of 1 GiB",
        Facts(pools={"WORKSPACE": 1024 * MIB}, saves="OUT/dino_fp32.engine"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --loadEngine=OUT/dino_fp32.engine --loadInputs=img:OUT/input0.bin \\\n"
        "    --exportOutput=OUT/out0.json --iterations=1 --warmUp=0 --duration=0",
        OMNIVLA,
        "runs an engine once on the values of a file and writes what comes out",
        Facts(
            loads="OUT/dino_fp32.engine",
            feeds={"img": "OUT/input0.bin"},
            writes=("OUT/out0.json",),
            inference={"iterations": 1, "warm_up_ms": 0, "duration_s": 0},
        ),
    ),
    PublicLine(
        "trtexec --onnx=weights/x3d_s.onnx --int8 --saveEngine=engines/x3d_s-int8.engine --workspace=4096 "
        "--calib=/tmp/x3d.calib --calibCache=/tmp/x3d.cache",
        project("a script that builds X3D-S in INT8", V8, "--workspace is of TensorRT 7 and 8", "script"),
        "has an option that trtexec never had",
        Facts(refused="--calibCache"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec  --onnx=PP-LCNet_x1_0_doc_ori.onnx \\\n  --minShapes=x:1x3x224x224 \\\n"
        "  --optShapes=x:1x3x224x224 \\\n  --maxShapes=x:8x3x224x224 \\\n  --saveEngine=doc_ori.plan \\\n"
        "  --timingCacheFile=timing_cache.json \\\n  --fp16",
        project("a script that builds PP-LCNet for a server", V10, "of 2026", "script"),
        "builds in FP16 for batches of 1 to 8 with a timing cache",
        Facts(
            types=FP16,
            shapes={"x": "1x3x224x224 1x3x224x224 8x3x224x224"},
            timing_cache="timing_cache.json",
            saves="doc_ori.plan",
        ),
    ),
    PublicLine(
        "./tensorrt/bin/trtexec --onnx=yolov7.onnx --minShapes=images:1x3x640x640 --optShapes=images:8x3x640x640 "
        "--maxShapes=images:8x3x640x640 --fp16 --workspace=4096 --saveEngine=yolov7-fp16-1x8x8.engine "
        "--timingCacheFile=timing.cache",
        project("a README on YOLOv7 behind a Triton server", V8, "a container of June 2022, with 8.2"),
        "builds in FP16 for batches of 1 to 8 with a timing cache",
        Facts(
            types=FP16,
            shapes={"images": "1x3x640x640 8x3x640x640 8x3x640x640"},
            pools={"WORKSPACE": 4096 * MIB},
            timing_cache="timing.cache",
            saves="yolov7-fp16-1x8x8.engine",
        ),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=assets/export_models/efficientvit_sam/onnx/xl_encoder.onnx \\\n"
        "    --saveEngine=assets/export_models/efficientvit_sam/tensorrt/xl_encoder.engine \\\n"
        "    --minShapes=input_image:1x3x1024x1024 \\\n    --optShapes=input_image:1x3x1024x1024 \\\n"
        "    --maxShapes=input_image:1x3x1024x1024 \\\n    --fp16 \\\n    --builderOptimizationLevel=5 \\\n"
        "    --minTiming=8 \\\n    --avgTiming=16 \\\n    --memPoolSize=workspace:49152 \\\n    --useDLACore=1 \\\n"
        "    --allowGPUFallback \\\n    --timingCacheFile=./efficientvit_sam.cache",
        EFFICIENTVIT,
        "builds an encoder in FP16 for DLA core 1 with fallback, at the highest optimization level",
        Facts(
            types=FP16,
            core=1,
            falls_back=True,
            shapes={"input_image": "1x3x1024x1024"},
            level=5,
            pools={"WORKSPACE": 49152 * MIB},
            timing_cache="./efficientvit_sam.cache",
            saves="assets/export_models/efficientvit_sam/tensorrt/xl_encoder.engine",
        ),
        also_refused_by={V10: "--minTiming"},
    ),
    PublicLine(
        "trtexec \\\n    --onnx=assets/export_models/efficientvit_sam/onnx/xl_decoder.onnx \\\n"
        "    --saveEngine=assets/export_models/efficientvit_sam/tensorrt/xl_decoder.engine \\\n"
        "    --minShapes=point_coords:1x1x2,point_labels:1x1 \\\n"
        "    --optShapes=point_coords:16x2x2,point_labels:16x2 \\\n"
        "    --maxShapes=point_coords:16x2x2,point_labels:16x2 \\\n    --fp16 \\\n"
        "    --builderOptimizationLevel=5 \\\n    --minTiming=8 \\\n    --avgTiming=16 \\\n"
        "    --memPoolSize=workspace:49152 \\\n    --useDLACore=1 \\\n    --allowGPUFallback \\\n"
        "    --timingCacheFile=./efficientvit_sam.cache",
        EFFICIENTVIT,
        "builds a decoder with two inputs of points; the GPU takes what is dynamic",
        Facts(
            types=FP16,
            core=1,
            falls_back=True,
            shapes={"point_coords": "1x1x2 16x2x2 16x2x2", "point_labels": "1x1 16x2 16x2"},
            level=5,
            pools={"WORKSPACE": 49152 * MIB},
            timing_cache="./efficientvit_sam.cache",
            saves="assets/export_models/efficientvit_sam/tensorrt/xl_decoder.engine",
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=simple_cnn_fp32.engine \\\n        --dumpLayerInfo --exportLayerInfo=layers.json",
        ORIN_LAB,
        "prints and writes what the engine's layers are",
        Facts(loads="simple_cnn_fp32.engine", prints=LAYERS, writes=("layers.json",)),
    ),
    PublicLine(
        "trtexec --onnx=model.onnx --saveEngine=model_dla.engine \\\n        --useDLACore=0 --allowGPUFallback \\\n"
        "        --int8 --fp16 --dumpLayerInfo",
        ORIN_LAB,
        "builds for DLA core 0 in INT8 and FP16 with fallback, and prints where layers are",
        Facts(types=BOTH, core=0, falls_back=True, saves="model_dla.engine", prints=LAYERS),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=data/image_encoder.onnx \\\n"
        "    --saveEngine=data/image_encoder_fp16_native.engine \\\n    --fp16 \\\n    --layerDeviceTypes=*:GPU",
        SAM,
        "builds in FP16 with every layer on the GPU",
        Facts(types=FP16, layer_devices={"*": "GPU"}, saves="data/image_encoder_fp16_native.engine"),
    ),
    PublicLine(
        "trtexec \\\n    --onnx=data/mask_decoder.onnx \\\n"
        "    --saveEngine=data/mask_decoder_fp16_native.engine \\\n    --fp16 \\\n    --layerDeviceTypes=*:GPU \\\n"
        "    --minShapes=image_embeddings:1x256x64x64,point_coords:1x1x2,point_labels:1x1,mask_input:1x1x256x256,"
        "has_mask_input:1 \\\n"
        "    --optShapes=image_embeddings:1x256x64x64,point_coords:1x1x2,point_labels:1x1,mask_input:1x1x256x256,"
        "has_mask_input:1 \\\n"
        "    --maxShapes=image_embeddings:1x256x64x64,point_coords:1x10x2,point_labels:1x10,mask_input:1x1x256x256,"
        "has_mask_input:1",
        SAM,
        "builds a decoder with five inputs for 1 to 10 points",
        Facts(
            types=FP16,
            layer_devices={"*": "GPU"},
            shapes={
                "image_embeddings": "1x256x64x64",
                "point_coords": "1x1x2 1x1x2 1x10x2",
                "point_labels": "1x1 1x1 1x10",
                "mask_input": "1x1x256x256",
                "has_mask_input": "1",
            },
            saves="data/mask_decoder_fp16_native.engine",
        ),
    ),
    PublicLine(
        "trtexec \\\n  --tacticSources=+CUBLAS_LT \\\n  --runtimePlatform=WindowsAMD64 \\\n"
        "  --hardwareCompatibilityLevel=ampere+ \\\n  --onnx=$ONNX \\\n  --saveEngine=$ENGINE",
        project("notes on loading engines on Windows", V10, "says 10.8"),
        "builds in FP32 for another system, on which alone the engine runs",
        Facts(saves="model.engine", skips_inference=True),
        variables={"ONNX": "model.onnx", "ENGINE": "model.engine"},
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=examples/onnx/model_fixed_einsum.onnx --saveEngine=test_128_vc.engine "
        "--shapes=input_ids:1x128,attention_mask:1x128  --memPoolSize=workspace:1073741824 --fp16 "
        "--builderOptimizationLevel=0 --maxTactics=1 "
        "--tacticSources=-CUDNN,-CUBLAS,-CUBLAS_LT,-EDGE_MASK_CONVOLUTIONS --versionCompatible --excludeLeanRuntime "
        "--useSpinWait",
        VERSION_COMPATIBLE,
        "builds in FP16 for later versions, too; the workspace was meant in bytes, and is in MiB",
        Facts(
            types=FP16,
            flags=names("VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME"),
            shapes=dict.fromkeys(("input_ids", "attention_mask"), "1x128"),
            level=0,
            pools={"WORKSPACE": (1 << 30) * MIB},
            saves="test_128_vc.engine",
        ),
        also_refused_by={V8: "--maxTactics"},
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec \\\n    --onnx=examples/onnx/model_fixed_einsum.onnx \\\n"
        "    --saveEngine=test_dynamic_vc.engine \\\n    --minShapes=input_ids:1x1,attention_mask:1x1 \\\n"
        "    --optShapes=input_ids:1x1024,attention_mask:1x1024 \\\n"
        "    --maxShapes=input_ids:1x2048,attention_mask:1x2048 \\\n    --memPoolSize=workspace:1073741824 \\\n"
        "    --fp16 \\\n    --builderOptimizationLevel=0 \\\n    -maxTactics=1 \\\n"
        "    --tacticSources=-CUDNN,-CUBLAS,-CUBLAS_LT,-EDGE_MASK_CONVOLUTIONS \\\n    --versionCompatible \\\n"
        "    --excludeLeanRuntime \\\n    --useSpinWait",
        VERSION_COMPATIBLE,
        "has one hyphen where options have two",
        Facts(refused="-maxTactics"),
    ),
    PublicLine(
        "trtexec --bf16 --fp16 --onnx=model.onnx --minShapes=input:1x3x8x8 --optShapes=input:1x3x720x1280 "
        "--maxShapes=input:1x3x1080x1920 --saveEngine=model.engine --tacticSources=+CUDNN,-CUBLAS,-CUBLAS_LT "
        "--skipInference --useCudaGraph --noDataTransfers --builderOptimizationLevel=5",
        VSGAN,
        "builds in FP16 and BF16 for pictures up to full HD",
        Facts(
            types=names("FP16 BF16"),
            shapes={"input": "1x3x8x8 1x3x720x1280 1x3x1080x1920"},
            level=5,
            saves="model.engine",
            skips_inference=True,
        ),
        also_refused_by={V8: "--bf16"},
    ),
    PublicLine(
        "trtexec --bf16 --fp16 --onnx=model.onnx --minShapes=input:1x3x8x8 --optShapes=input:1x3x720x1280 "
        "--maxShapes=input:1x3x1080x1920 --saveEngine=model.engine --tacticSources=+CUDNN,-CUBLAS,-CUBLAS_LT "
        "--skipInference --useCudaGraph --noDataTransfers --builderOptimizationLevel=5 --infStreams=4",
        VSGAN,
        "does the same; streams mean nothing for a build",
        Facts(
            types=names("FP16 BF16"),
            shapes={"input": "1x3x8x8 1x3x720x1280 1x3x1080x1920"},
            level=5,
            saves="model.engine",
            skips_inference=True,
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=attn-128-128x128.fp16.engine --iterations=100 --dumpProfile --dumpLayerInfo "
        "--exportProfile=profile.json --exportLayerInfo=layer.json --verbose",
        project("an article on attention in TensorRT", V8, "its log is of January 2024", "article"),
        "runs an engine 100 times, prints and writes layers and their times",
        Facts(
            loads="attn-128-128x128.fp16.engine",
            prints=PROFILE | LAYERS | VERBOSE,
            writes=("profile.json", "layer.json"),
            inference={"iterations": 100},
        ),
    ),
    PublicLine(
        "trtexec --onnx=yolo11s_int8_dy_320.onnx --saveEngine=quant.engine --int8 --fp16 "
        "--minShapes=images:1x3x320x320 --optShapes=images:1x3x320x320 --maxShapes=images:1x3x320x320",
        QUANTIZED_YOLO,
        "builds a quantized detector in INT8 and FP16",
        Facts(types=BOTH, shapes={"images": "1x3x320x320"}, saves="quant.engine"),
    ),
    PublicLine(
        "trtexec --onnx=yolo11s_fp8_dy_320.onnx --saveEngine=quant.engine --fp8 --fp16 --stronglyTyped "
        "--minShapes=images:1x3x320x320 --optShapes=images:1x3x320x320 --maxShapes=images:1x3x320x320",
        QUANTIZED_YOLO,
        "builds strongly typed; the flags of types are left out with warnings",
        Facts(strongly_typed=True, shapes={"images": "1x3x320x320"}, saves="quant.engine"),
    ),
    PublicLine(
        "trtexec --onnx=yolo11s_dy_320.onnx --saveEngine=quant.engine --fp16 --minShapes=images:1x3x320x320 "
        "--optShapes=images:1x3x320x320 --maxShapes=images:1x3x320x320",
        QUANTIZED_YOLO,
        "builds the detector in FP16",
        Facts(types=FP16, shapes={"images": "1x3x320x320"}, saves="quant.engine"),
    ),
    PublicLine(
        "trtexec --onnx=onnx/backbone.onnx --stronglyTyped --timingCacheFile=onnx/cache.trt "
        "--shapes=sample:1x110x8x72x128,encoder_hidden_states:1x110x1024 --useCudaGraph",
        project("a script that measures the backbone of a video model", V10, "--stronglyTyped", "script"),
        "builds strongly typed at one shape, with a timing cache",
        Facts(
            strongly_typed=True,
            shapes={"sample": "1x110x8x72x128", "encoder_hidden_states": "1x110x1024"},
            timing_cache="onnx/cache.trt",
        ),
    ),
    PublicLine(
        "trtexec --onnx=turbovla_onnx/text.onnx --saveEngine=engines/text.engine --stronglyTyped --noTF32",
        project("a README on engines of TurboVLA", V10, "--stronglyTyped"),
        "builds strongly typed without TF32",
        Facts(strongly_typed=True, tf32=False, saves="engines/text.engine"),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=onnx/unet_v2.onnx --saveEngine=engines/unetv2_int8_dla0.engine "
        "--exportProfile=profiles/unetv2_int8_dla0.json --int8 --useDLACore=0 --allowGPUFallback --useSpinWait "
        "--separateProfileRun --inputIOFormats=int8:dla_hwc4 --outputIOFormats=int8:chw32 --memPoolSize=dlaSRAM:1 "
        "--verbose",
        DLA_BENCHMARKS,
        "builds for DLA core 0 in INT8 with the DLA's formats, and writes times by layer",
        Facts(
            types=INT8,
            core=0,
            falls_back=True,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            saves="engines/unetv2_int8_dla0.engine",
            writes=("profiles/unetv2_int8_dla0.json",),
            prints=VERBOSE,
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=onnx/mobilenetv2.onnx --saveEngine=engines/mobilenetv2_int8_dla0.engine "
        "--exportProfile=profiles/mobilenetv2_int8_dla0.json --int8 --useDLACore=0 --allowGPUFallback "
        "--iterations=500 --warmUp=1000 --useSpinWait --separateProfileRun --inputIOFormats=int8:dla_hwc4 --verbose",
        DLA_BENCHMARKS,
        "does the same with outputs that are as usual, 500 times",
        Facts(
            types=INT8,
            core=0,
            falls_back=True,
            inputs="int8:dla_hwc4",
            saves="engines/mobilenetv2_int8_dla0.engine",
            writes=("profiles/mobilenetv2_int8_dla0.json",),
            prints=VERBOSE,
            inference={"iterations": 500, "warm_up_ms": 1000},
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=onnx/resnet50_v1_prepared.onnx "
        "--shapes=input_tensor:0:1x3x224x224 --useSpinWait --separateProfileRun --iterations=500 --warmUp=10000 "
        "--int8 --useDLACore=0 --allowGPUFallback --inputIOFormats=int8:dla_hwc4 --outputIOFormats=int8:chw32 "
        "--memPoolSize=dlaSRAM:1 --saveEngine=engines/resnet50v1prep_int8_dla0.engine "
        "--exportProfile=profiles/resnet50v1prep_int8_dla0.json --verbose",
        DLA_BENCHMARKS,
        "runs 500 times after ten seconds of warming up",
        Facts(
            types=INT8,
            core=0,
            falls_back=True,
            inputs="int8:dla_hwc4",
            outputs="int8:chw32",
            pools={"DLA_MANAGED_SRAM": MIB},
            shapes={"input_tensor:0": "1x3x224x224"},
            saves="engines/resnet50v1prep_int8_dla0.engine",
            writes=("profiles/resnet50v1prep_int8_dla0.json",),
            prints=VERBOSE,
            inference={"iterations": 500, "warm_up_ms": 10000},
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec --onnx=model.onnx     --fp16 --best --workspace=9000 "
        "--saveEngine=model_fp16.trt     --inputIOFormats=fp32:chw --allowGPUFallback --outputIOFormats=fp32:chw "
        "--calib=calibration_file.txt",
        project("a README on a face detector for Jetson boards", V8, "--workspace is of TensorRT 7 and 8"),
        "builds in all types; without a DLA the fallback means nothing",
        Facts(
            types=BOTH,
            pools={"WORKSPACE": 9000 * MIB},
            inputs="fp32:chw",
            outputs="fp32:chw",
            calibration="calibration_file.txt",
            saves="model_fp16.trt",
        ),
    ),
    PublicLine(
        "trtexec --onnx=dst_edl_resnet18_sparse_fp16.onnx --sparsity=disable --shapes=input:64x3x224x224",
        SPARSE_RESNET,
        "measures a pruned network as if it were dense",
        Facts(shapes={"input": "64x3x224x224"}),
    ),
    PublicLine(
        "trtexec --onnx=dst_edl_resnet18_sparse_fp16.onnx --sparsity=enable --shapes=input:64x3x224x224",
        SPARSE_RESNET,
        "measures the pruned network as it is",
        Facts(flags=names("SPARSE_WEIGHTS"), shapes={"input": "64x3x224x224"}),
    ),
    PublicLine(
        "$HOME/ncai/TensorRT-7.0.0.11/bin/trtexec --fp16 --explicitBatch \\\n"
        '    --onnx="${DIR}/${FILE}" --saveEngine="${DIR}/${FILE}.trt" \\\n'
        "    --minShapes=\\'input_1:0\\':1x3x224x224 \\\n    --optShapes=\\'input_1:0\\':8x3x224x224 \\\n"
        "    --maxShapes=\\'input_1:0\\':32x3x224x224",
        project("a script that builds engines of Keras models", V8, "calls TensorRT 7.0", "script"),
        "builds in FP16 for batches of 1 to 32; the input's name has a colon and is in quotes",
        Facts(
            types=FP16,
            shapes={"input_1:0": "1x3x224x224 8x3x224x224 32x3x224x224"},
            saves="keras/model.onnx.trt",
        ),
        variables={"DIR": "keras", "FILE": "model.onnx"},
    ),
    PublicLine(
        "trtexec --onnx=weights/export.onnx --explicitBatch \\\n\t--minShapes=input_1:1x3x416x416 \\\n"
        "\t--optShapes=input_1:1x3x416x416 \\\n\t--maxShapes=input_1:32x3x416x416 \\\n\t--workspace=4096 \\\n"
        "\t--fp16 \\\n\t--saveEngine=weights/model.batch1-32.fp16.engine",
        project("a script that builds a detector of Darknet", V8, "--explicitBatch", "script"),
        "builds in FP16 for batches of 1 to 32",
        Facts(
            types=FP16,
            shapes={"input_1": "1x3x416x416 1x3x416x416 32x3x416x416"},
            pools={"WORKSPACE": 4096 * MIB},
            saves="weights/model.batch1-32.fp16.engine",
        ),
    ),
    PublicLine(
        "trtexec --onnx=yolov5n.onnx         --saveEngine=yolov5n.trt         --fp16         --workspace=2048         "
        "--useSpinWait         --streams=2         --tacticSources=-CUBLAS",
        project("notes on YOLOv5n with trtexec", V8, "--workspace is of TensorRT 7 and 8"),
        "builds in FP16 and runs on 2 streams",
        Facts(types=FP16, pools={"WORKSPACE": 2048 * MIB}, saves="yolov5n.trt", inference={"streams": 2}),
    ),
    PublicLine(
        "trtexec --loadEngine=models/tensorrt/threat_classifier_fp16.trt \\\n        --shapes=features:1x10 "
        "--iterations=1000",
        project("a README on a small classifier for a Jetson Nano", V8, "of 2026, for a board that has 8.2"),
        "runs an engine 1000 times at a shape of two dimensions",
        Facts(
            loads="models/tensorrt/threat_classifier_fp16.trt",
            shapes={"features": "1x10"},
            inference={"iterations": 1000},
        ),
    ),
    PublicLine(
        "/usr/src/tensorrt/bin/trtexec \\\n  --loadEngine=../../models/exports/best_int8_b128.engine \\\n"
        "  --shapes=images:128x3x640x640 \\\n  --warmUp=200 \\\n  --duration=10 \\\n  --noDataTransfers \\\n"
        "  --infStreams=1",
        project("BreCaspian/TRTInferX, README.md", V10, "--infStreams, on TensorRT 10"),
        "measures an engine at batch 128 for ten seconds without copies",
        Facts(
            loads="../../models/exports/best_int8_b128.engine",
            shapes={"images": "128x3x640x640"},
            inference={"duration_s": 10, **QUIET},
        ),
    ),
    PublicLine(
        "/usr/bin/trtexec --loadEngine=models/rtdetr_warehouse_v1.0.2.fp16.b1.canonical.engine "
        "--shapes=inputs:1x3x640x640 --loadInputs=inputs:results/correctness/Camera_0000_t60_input.bin --warmUp=2000 "
        "--duration=30 --infStreams=4 "
        "--exportTimes=results/local_inference_concurrency/c1_to_c7_selection_probe/c4/run01/timing.json",
        project("notes on how many streams a detector should have", V10, "--infStreams; of 2026"),
        "runs an engine on 4 streams for half a minute on the values of a file, and writes the times",
        Facts(
            loads="models/rtdetr_warehouse_v1.0.2.fp16.b1.canonical.engine",
            shapes={"inputs": "1x3x640x640"},
            feeds={"inputs": "results/correctness/Camera_0000_t60_input.bin"},
            writes=("results/local_inference_concurrency/c1_to_c7_selection_probe/c4/run01/timing.json",),
            inference={"streams": 4, "warm_up_ms": 2000, "duration_s": 30},
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=$HOME/tensorrt_test/model_hub/yolov8_640X640/yolov8n_onnx_change.engine --fp16 "
        "--warmUp=15 --verbose --workspace=4096 --streams=2",
        project("notes on YOLOv8 on an Orin Nano", V8, "--workspace is of TensorRT 7 and 8"),
        "runs an engine on 2 streams, with options of the build that mean nothing here",
        Facts(
            loads="owner/tensorrt_test/model_hub/yolov8_640X640/yolov8n_onnx_change.engine",
            prints=VERBOSE,
            inference={"warm_up_ms": 15, "streams": 2},
        ),
    ),
    PublicLine(
        "trtexec --loadEngine=weights/best.trt --dumpEngine",
        project("a guide to a detector's server, on checking engines", V8, "its other lines have --workspace"),
        "has an option that trtexec never had",
        Facts(refused="--dumpEngine"),
    ),
    PublicLine(
        "trtexec --loadEngine=weights/best.trt --warmUp=1000 --duration=30",
        project("a guide to a detector's server, on speed", V8, "its other lines have --workspace"),
        "measures an engine for half a minute after a second of warming up",
        Facts(loads="weights/best.trt", inference={"warm_up_ms": 1000, "duration_s": 30}),
    ),
    PublicLine(
        "trtexec --sparsity=enable --quantize=INT8 --layer-info",
        project("notes on tools for sensitivity by layer", V10, "of 2025"),
        "has two options that trtexec never had, and no model",
        Facts(refused="--quantize|--layer-info|model"),
    ),
    PublicLine(
        "trtexec --onnx model.trt.onnx --plugins libtrt_dit_plugins.so",
        project("zaochuan5854/trt-dit-plugins, README.md", V10, "written for TensorRT 10"),
        "has blanks where trtexec has =, which leaves the names of files for options",
        Facts(refused="--onnx|model.trt.onnx"),
    ),
]

LINES = [*DOCUMENTATION, *NVIDIA_REPOSITORIES, *THREADS, *PROJECTS]
"""All lines."""
