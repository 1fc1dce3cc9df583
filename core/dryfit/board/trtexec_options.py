"""Every option of trtexec 8.6, 10.16 and 11.1: what it does there, and what `dryfit exec` answers to it.

The lists of other modules follow from this table: which versions have an option, whether it takes a value, and what the
reference page shows.

Source: the option parser and the help text of trtexec in NVIDIA/TensorRT, releases 8.0 to 11.1, and logs of 8.2.5 and
8.5.2, which list all options of these versions.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from dryfit.attrs_classes import frozen
from dryfit.board.versions import FIRST_REFUSED, Version, Versions, version_text
from dryfit.errors import UnknownNameError

API_VERSIONS: Mapping[str, Version] = {"8.6": (8, 6), "10.16": (10, 16), "11.1": (11, 1)}
"""The versions of trtexec whose command lines are executed, oldest first."""

API_ALIASES: Mapping[str, str] = {"8.6.1": "8.6", "10": "10.16", "10.16.1": "10.16", "11": "11.1", "11.1.0": "11.1"}
DEFAULT_API = "10.16"


def api_version(name: str) -> Version:
    """Return the version of trtexec of a name, such as `10.16` or `11`.

    Raises:
        UnknownNameError: The command lines of this version are not executed.
    """
    known = API_ALIASES.get(name, name)
    if known not in API_VERSIONS:
        raise UnknownNameError("TensorRT version", name, [*API_VERSIONS, *API_ALIASES], where="--api")
    return API_VERSIONS[known]


class OptionGroup(enum.StrEnum):
    """The group of an option in trtexec's help text."""

    MODEL = "Model"
    BUILD = "Build"
    INFERENCE = "Inference"
    REPORTING = "Reporting"
    SYSTEM = "System"


class OptionAnswer(enum.StrEnum):
    """What `dryfit exec` does with an option."""

    WORKS = "works"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@frozen
class TrtexecOption:
    """An option of trtexec.

    Attributes:
        name: name of the option, such as `--onnx`.
        group: group in trtexec's help text.
        versions: versions that have the option.
        value: syntax of its value; "" for a switch.
        default: what applies without the option; "" for off or none.
        text: what the option does in trtexec, as a sentence without its full stop.
        answer: what `dryfit exec` does with it.
        why: why it has no effect, or why it is refused and what to do instead; "" if it works.
        aliases: other names.
        is_repeatable: whether the option can occur several times.
        no_effect_since: first version in which the option has no effect in trtexec itself; None for none.
    """

    name: str
    group: OptionGroup
    versions: Versions
    value: str
    text: str
    default: str = ""
    answer: OptionAnswer = OptionAnswer.WORKS
    why: str = ""
    aliases: tuple[str, ...] = ()
    is_repeatable: bool = False
    no_effect_since: Version | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the option takes no value."""
        return not self.value

    def effect_problem(self, software: Version) -> str:
        """Return why the option has no effect in a version; "" if it has one."""
        if self.no_effect_since is not None and software >= self.no_effect_since:
            return f"trtexec of TensorRT {version_text(self.no_effect_since)} and later ignores it"
        return self.why if self.answer is OptionAnswer.NO_EFFECT else ""


_ALL = Versions()
_WEAK = Versions(until=FIRST_REFUSED)
_8 = Versions(until=(10, 0))
_8_6 = Versions((8, 6))
_10 = Versions((10, 0))
_11 = Versions((11, 0))
_11_1 = Versions((11, 1))

_NO_TACTICS = "kernels are those of this host, which dryfit measures in its own way"
_NO_CUDA = "there is no CUDA on this host"
_ONE_RUNTIME = "dryfit has one runtime, which loads every engine file of its own"
_NATIVE_PLUGINS = (
    "native libraries do not run here; layer plugins in Python, installed as packages, are found by their names"
)
_FLAG_ONLY = "the engine records the flag, and is the same without it"
_IMPORTER = "the importer has one implementation of each operator"
_NO_CAFFE = "Caffe and UFF models are not supported; convert the model to ONNX and give it with --onnx"
_IMPLICIT_BATCH = "an ONNX model has an explicit batch; set input shapes with --optShapes and --shapes"
_SAFE_TOOL = "it is an option of the separate safety builder, not of trtexec"
_SAFETY_FLOW = "kernels of the safety flow are compiled for a device; build the engine without it"
_ROUTES = (
    "build routes are settings of TensorRT's own compiler; `dryfit place` searches for the best device of each layer"
)


def _table(group: OptionGroup, *rows: TrtexecOption) -> tuple[TrtexecOption, ...]:
    return tuple(attrs.evolve(row, group=group) for row in rows)


def _works(
    name: str,
    versions: Versions,
    value: str,
    text: str,
    default: str = "",
    *,
    aliases: tuple[str, ...] = (),
    is_repeatable: bool = False,
    no_effect_since: Version | None = None,
) -> TrtexecOption:
    return TrtexecOption(
        name,
        OptionGroup.MODEL,
        versions,
        value,
        text,
        default,
        aliases=aliases,
        is_repeatable=is_repeatable,
        no_effect_since=no_effect_since,
    )


def _idle(
    name: str,
    versions: Versions,
    value: str,
    text: str,
    default: str = "",
    *,
    why: str,
    aliases: tuple[str, ...] = (),
    is_repeatable: bool = False,
) -> TrtexecOption:
    """Return the record of an option without effect here."""
    return TrtexecOption(
        name,
        OptionGroup.MODEL,
        versions,
        value,
        text,
        default,
        OptionAnswer.NO_EFFECT,
        why,
        aliases=aliases,
        is_repeatable=is_repeatable,
    )


def _refused(name: str, versions: Versions, value: str, text: str, default: str = "", *, why: str) -> TrtexecOption:
    return TrtexecOption(name, OptionGroup.MODEL, versions, value, text, default, OptionAnswer.REFUSED, why)


_MODEL = _table(
    OptionGroup.MODEL,
    _works("--onnx", _ALL, "FILE", "Reads the ONNX model to build"),
    _refused("--model", _8, "FILE", "Reads the weights of a Caffe model", why=_NO_CAFFE),
    _refused("--deploy", _8, "FILE", "Reads the layers of a Caffe model", why=_NO_CAFFE),
    _refused("--output", _8, "NAME,...", "Names the outputs of a Caffe or UFF model", why=_NO_CAFFE),
    _refused("--uff", _8, "FILE", "Reads a UFF model", why=_NO_CAFFE),
    _refused("--uffInput", _8, "NAME,X,Y,Z", "Names an input of a UFF model with its shape", why=_NO_CAFFE),
    _refused("--uffNHWC", _8, "", "Says that the inputs of a UFF model are in NHWC order", why=_NO_CAFFE),
)

_SHAPES = "NAME:1x3x224x224,..."
_BUILD = _table(
    OptionGroup.BUILD,
    # Shapes
    _works("--minShapes", _ALL, _SHAPES, "Sets the smallest shapes of the optimization profile", "--optShapes"),
    _works("--optShapes", _ALL, _SHAPES, "Sets the shapes that the optimization profile is tuned for"),
    _works("--maxShapes", _ALL, _SHAPES, "Sets the largest shapes of the optimization profile", "--optShapes"),
    _works("--minShapesCalib", _WEAK, _SHAPES, "Sets the smallest shapes of the calibration profile"),
    _works("--optShapesCalib", _WEAK, _SHAPES, "Sets the shapes that are calibrated with", "--optShapes"),
    _works("--maxShapesCalib", _WEAK, _SHAPES, "Sets the largest shapes of the calibration profile"),
    _works("--profile", _10, "N", "Starts the shapes of optimization profile N", is_repeatable=True),
    _works(
        "--calibProfile", Versions((10, 0), FIRST_REFUSED), "N", "Selects the optimization profile to calibrate", "0"
    ),
    _refused("--maxBatch", _8, "N", "Sets the largest implicit batch", why=_IMPLICIT_BATCH),
    _refused("--batch", _8, "N", "Sets the implicit batch of the run", why=_IMPLICIT_BATCH),
    _idle("--explicitBatch", _8, "", "Builds with an explicit batch", why="every ONNX model has an explicit batch"),
    _idle(
        "--explicitPrecision",
        _8,
        "",
        "Builds in the types of the model",
        why="trtexec ignores it since TensorRT 8.5; models with Q/DQ nodes are quantized explicitly without it",
    ),
    # Inputs, outputs and memory
    _works("--inputIOFormats", _ALL, "TYPE:FORMAT[+FORMAT],...", "Sets type and formats of each input", "fp32:chw"),
    _works("--outputIOFormats", _ALL, "TYPE:FORMAT[+FORMAT],...", "Sets type and formats of each output", "fp32:chw"),
    _works("--directIO", _ALL, "", "Forbids reformatting at inputs and outputs"),
    _works(
        "--memPoolSize", Versions((8, 4)), "POOL:SIZE,...", "Limits memory pools, in MiB or with a suffix B, K, M, G"
    ),
    _works("--workspace", _8, "MIB", "Limits the workspace"),
    # What the engine is
    _works(
        "--profilingVerbosity",
        _ALL,
        "layer_names_only|detailed|none",
        "Sets the level of detail that the engine reports about its layers",
        "layer_names_only",
        aliases=("--nvtxMode",),
    ),
    _works("--refit", _ALL, "", "Builds an engine whose weights can be refitted"),
    _works("--stripWeights", _10, "", "Leaves out the weights that a refit can restore", aliases=("--weightless",)),
    _works("--stripAllWeights", _10, "", "Does the same as --refit and --stripWeights"),
    _idle(
        "--versionCompatible",
        _8_6,
        "",
        "Builds an engine that later versions of TensorRT load",
        why=_FLAG_ONLY,
        aliases=("--vc",),
    ),
    _idle("--excludeLeanRuntime", _8_6, "", "Leaves the lean runtime out of the engine", why=_FLAG_ONLY),
    _idle(
        "--useRuntime",
        _8_6,
        "full|lean|dispatch",
        "Selects the runtime that loads the engine",
        "full",
        why=_ONE_RUNTIME,
    ),
    _idle("--leanDLLPath", _8_6, "FILE", "Names the library of the lean runtime", why=_ONE_RUNTIME),
    _works("--sparsity", _ALL, "disable|enable|force", "Controls the use of structured sparsity", "disable"),
    _idle("--allowWeightStreaming", _10, "", "Builds an engine that can stream its weights", why=_FLAG_ONLY),
    # The importer
    _idle(
        "--pluginInstanceNorm",
        _8_6,
        "",
        "Imports instance normalization as a plugin",
        why=_IMPORTER,
        aliases=("--pi",),
    ),
    _idle(
        "--uint8AsymmetricQuantizationDLA",
        Versions((10, 11)),
        "",
        "Imports UINT8 and zero points for the DLA",
        why="they are imported without it, and the rules of each device decide",
    ),
    _idle(
        "--reportCapabilityDLA",
        Versions((10, 15)),
        "",
        "Reports which nodes the DLA supports",
        why="`dryfit check` reports it for every layer",
    ),
    _idle(
        "--adjustForDLA",
        Versions((10, 16)),
        "",
        "Lets the parser change the network for the DLA",
        why="the network stays as it is; `dryfit explain --apply` edits a model for the DLA",
    ),
    _idle("--enablePluginOverride", Versions((10, 15)), "", "Lets plugins replace operators of ONNX", why=_IMPORTER),
    _idle(
        "--decomposableAttentions",
        Versions((10, 16)),
        "NAME,...",
        "Permits decomposing these attention layers",
        why="every attention layer is decomposed here",
    ),
    # Types
    _works("--noTF32", _ALL, "", "Disables TF32"),
    _works("--fp16", _WEAK, "", "Enables FP16"),
    _works("--bf16", Versions((10, 0), FIRST_REFUSED), "", "Enables BF16"),
    _works("--int8", _WEAK, "", "Enables INT8"),
    _works("--fp8", Versions((8, 6), FIRST_REFUSED), "", "Enables FP8"),
    _works("--int4", Versions((10, 3), FIRST_REFUSED), "", "Enables INT4"),
    _works("--best", _WEAK, "", "Enables FP16 and INT8, and from TensorRT 10 on BF16"),
    _works("--stronglyTyped", _10, "", "Builds in the types of the model", no_effect_since=(11, 0)),
    _works(
        "--precisionConstraints", _WEAK, "none|obey|prefer", "Controls whether types of layers are constraints", "none"
    ),
    _works(
        "--layerPrecisions",
        Versions((8, 4), FIRST_REFUSED),
        "NAME:TYPE,...",
        "Sets the computation type of layers; needs --precisionConstraints",
    ),
    _works(
        "--layerOutputTypes",
        Versions((8, 4), FIRST_REFUSED),
        "NAME:TYPE[+TYPE],...",
        "Sets the output types of layers; needs --precisionConstraints",
    ),
    _works("--calib", _WEAK, "FILE", "Reads the INT8 scales of a calibration cache"),
    # Devices
    _works("--layerDeviceTypes", _8_6, "NAME:GPU|DLA,...", "Sets the device of layers"),
    _works("--buildDLAStandalone", _8_6, "", "Builds a DLA loadable instead of an engine; implies --skipInference"),
    _works("--allowGPUFallback", _ALL, "", "Sends layers that the DLA does not support to the GPU"),
    _works(
        "--safe",
        _ALL,
        "",
        "Builds for the safety flow; with --useDLACore, the same as --buildDLAStandalone",
    ),
    _idle("--consistency", _WEAK, "", "Checks the engine of the safety flow", why="there is no safety checker here"),
    _idle("--restricted", _WEAK, "", "Limits the network to the safety scope", why=_FLAG_ONLY),
    _refused("--std", _ALL, "", "Builds a standard engine", why=_SAFE_TOOL),
    _refused("--serialized", _WEAK, "FILE", "Saves the serialized network", why=_SAFE_TOOL),
    _refused("--dumpKernelText", Versions((10, 13)), "", "Writes the text of kernels", why=_SAFETY_FLOW),
    _refused(
        "--remoteAutoTuningConfig",
        Versions((10, 13)),
        "URL",
        "Measures kernels on another machine",
        why="dryfit does not connect to other machines; times of the board come from the board",
    ),
    _idle("--cpuOnly", Versions((10, 13)), "", "Builds without a GPU", why="every build here is without a device"),
    # Files
    _works("--saveEngine", _ALL, "FILE", "Saves the engine or the loadable"),
    _works("--loadEngine", _ALL, "FILE", "Runs an engine or a loadable instead of building one"),
    _idle("--asyncFileReader", _10, "", "Reads the engine asynchronously", why="the file is mapped into memory"),
    _works("--getPlanVersionOnly", _10, "", "Prints the version that the engine was built with, and ends"),
    _works("--refitFromOnnx", _10, "FILE", "Refits the loaded engine with the weights of a model"),
    # Kernels
    _works("--timingCacheFile", _ALL, "FILE", "Reads and updates a timing cache"),
    _works("--noBuilderCache", _ALL, "", "Measures kernels without a timing cache"),
    _works("--errorOnTimingCacheMiss", _10, "", "Fails if the timing cache lacks a kernel; needs --timingCacheFile"),
    _idle("--noCompilationCache", _10, "", "Compiles kernels again", why=_FLAG_ONLY),
    _works("--builderOptimizationLevel", _8_6, "N", "Sets the effort of the builder, 0 to 5", "3"),
    _idle("--avgTiming", _ALL, "N", "Sets the number of averaged measurements of a kernel", "8", why=_NO_TACTICS),
    _idle("--minTiming", _8, "N", "Sets the number of measurements of a kernel", "1", why=_NO_TACTICS),
    _idle("--tacticSources", _ALL, "±LIBRARY,...", "Selects the libraries of kernels", why=_NO_TACTICS),
    _idle("--maxTactics", Versions((10, 8)), "N", "Limits the number of measured kernels", "-1", why=_NO_TACTICS),
    _idle("--heuristic", _8, "", "Chooses kernels by a heuristic", why=_NO_TACTICS),
    _idle(
        "--tilingOptimizationLevel", Versions((10, 8)), "N", "Sets the effort of tiling, 0 to 3", "0", why=_NO_TACTICS
    ),
    _idle("--l2LimitForTiling", Versions((10, 8)), "N", "Limits the L2 cache used by tiling", "-1", why=_NO_TACTICS),
    _idle("--maxAuxStreams", _8_6, "N", "Limits the streams of parallel kernels", "-1", why=_NO_CUDA),
    _idle(
        "--preview", _ALL, "±FEATURE,...", "Enables or disables preview features", why="they change GPU kernels only"
    ),
    _idle("--distributiveIndependence", Versions((10, 13)), "", "Requires batch-independent results", why=_FLAG_ONLY),
    _idle(
        "--hardwareCompatibilityLevel",
        _8_6,
        "none|ampere+|sameComputeCapability",
        "Builds an engine for several kinds of GPU",
        "none",
        why="an engine file of dryfit does not depend on the kind of GPU",
    ),
    _idle(
        "--runtimePlatform",
        Versions((10, 3)),
        "SameAsBuild|WindowsAMD64",
        "Builds an engine for another system; implies --skipInference",
        "SameAsBuild",
        why="an engine file of dryfit is the same on every system; the run is skipped as in trtexec",
    ),
    _idle("--tempdir", _8_6, "FOLDER", "Sets the folder of temporary files", why="a build needs no temporary files"),
    _idle(
        "--tempfileControls",
        _8_6,
        "in_memory|temporary:allow|deny,...",
        "Permits temporary files with code",
        why="a build needs no temporary files",
    ),
    _idle("--monitorMemory", Versions((10, 8)), "", "Reports the memory of the device", why="there is no device"),
    # Debug tensors
    _works("--markDebug", _10, "TENSOR,...", "Marks tensors as debug tensors"),
    _works("--markUnfusedTensorsAsDebugTensors", Versions((10, 8)), "", "Marks all stored tensors as debug tensors"),
    # Build routes
    *(
        _refused(name, _11_1, value, text, why=_ROUTES)
        for name, value, text in (
            ("--tuneBuildRoutes", "EXPRESSION", "Searches for the best build route"),
            ("--tuneBuildRouteFile", "FILE", "Searches among the build routes of a file"),
            ("--setBuildRoute", "ROUTE", "Builds with one build route"),
            ("--helpBuildRoute", "[KNOB]", "Lists the settings of build routes"),
            ("--tuningSearch", "fast|full|mixed", "Sets how build routes are searched"),
            ("--tuningCacheFile", "FILE", "Records the results of the search"),
            ("--tuningResultFile", "FILE", "Writes the result of one build route"),
            ("--tuningTimeOut", "SECONDS", "Limits the time of the search"),
            ("--saveAllEngines", "", "Saves the engine of each build route"),
            ("--dryRun", "", "Lists the build routes without building"),
            ("--continue", "", "Continues an interrupted search"),
        )
    ),
)

_INFERENCE = _table(
    OptionGroup.INFERENCE,
    _works("--shapes", _ALL, _SHAPES, "Sets the input shapes of the run", "--optShapes"),
    _works("--loadInputs", _ALL, "NAME:FILE,...", "Reads inputs from raw files", "random values"),
    _works("--iterations", _ALL, "N", "Sets the smallest number of iterations", "10"),
    _works("--warmUp", _ALL, "MS", "Sets the time of unmeasured runs at the start", "200"),
    _works("--duration", _ALL, "SECONDS", "Sets the smallest time of the measurement; -1 for endless", "3"),
    _works("--sleepTime", _ALL, "MS", "Sleeps between launch and computation", "0"),
    _works("--idleTime", _ALL, "MS", "Sleeps between iterations", "0"),
    _works("--infStreams", _ALL, "N", "Runs N execution contexts at once", "1", aliases=("--streams",)),
    _idle("--exposeDMA", _ALL, "", "Serializes copies and computation", why="they are always sequential here"),
    _works("--noDataTransfers", _ALL, "", "Leaves the copies of inputs and outputs out", no_effect_since=(11, 0)),
    _works("--includeDataTransfers", _11, "", "Includes the copies of inputs and outputs"),
    _idle("--useManagedMemory", _ALL, "", "Uses unified memory", why=_NO_CUDA),
    _idle("--useSpinWait", _ALL, "", "Waits actively for the device", why=_NO_CUDA),
    _idle("--noSpinWait", _11, "", "Waits for the device without spinning", why=_NO_CUDA),
    _idle("--useCudaGraph", _ALL, "", "Launches the run as a CUDA graph", why=_NO_CUDA),
    _idle("--noCudaGraph", _11, "", "Launches the run without a CUDA graph", why=_NO_CUDA),
    _works("--threads", _ALL, "", "Drives each stream in a thread of its own"),
    _works("--timeDeserialize", _ALL, "", "Measures how long loading the engine takes, and ends"),
    _works("--timeRefit", _ALL, "", "Measures how long a refit takes"),
    _works("--separateProfileRun", _ALL, "", "Profiles layers in a second run", no_effect_since=(11, 0)),
    _works("--skipInference", _8_6, "", "Ends after the build"),
    _works("--buildOnly", _8, "", "Ends after the build"),
    _idle("--persistentCacheRatio", _ALL, "RATIO", "Limits the persistent L2 cache", "0", why=_NO_CUDA),
    _works("--useProfile", _10, "N", "Selects the optimization profile of the run", "0"),
    _idle(
        "--allocationStrategy",
        _10,
        "static|profile|runtime",
        "Sets how the memory of the run is allocated",
        "static",
        why="memory is allocated for the shapes of each run",
    ),
    _idle(
        "--weightStreamingBudget",
        _10,
        "SIZE",
        "Limits the memory of streamed weights",
        "-2",
        why="no weights are streamed",
    ),
    _works("--saveDebugTensors", _10, "NAME:FILE,...", "Writes debug tensors to raw files"),
    _works("--saveAllDebugTensors", _10, "summary|numpy|string|raw,...", "Writes all debug tensors to files"),
    _works("--loadRefOutputs", _11_1, "NAME:FILE,...", "Compares the outputs with those in raw files"),
    _refused(
        "--refPair",
        _11_1,
        "N",
        "Starts another pair of inputs and reference outputs",
        why="a command line has one pair here; run it once for each pair",
    ),
    _works("--accuracyAlgorithm", _11_1, "l0|l1|l2|lInf|cos", "Sets the measure of the comparison", "l0"),
    _works("--atol", _11_1, "X", "Sets the absolute tolerance of l0", "1e-5"),
    _works("--rtol", _11_1, "X", "Sets the relative tolerance of l0", "1e-5"),
    _works("--accuracyThreshold", _11_1, "X", "Fails if the loss of an output is larger"),
)

_REPORTING = _table(
    OptionGroup.REPORTING,
    _works("--verbose", _ALL, "", "Prints the log of the build", aliases=("-v",)),
    _works("--avgRuns", _ALL, "N", "Prints an average after every N iterations", "10"),
    _works("--percentile", _ALL, "P,...", "Sets the percentiles of the summary", "90,95,99"),
    _works("--dumpRefit", _ALL, "", "Lists the weights that can be refitted"),
    _works("--dumpOutput", _ALL, "", "Prints the outputs of the last iteration"),
    _works("--dumpRawBindingsToFile", _8_6, "", "Writes inputs and outputs of the last iteration to raw files"),
    _works("--dumpProfile", _ALL, "", "Prints the time of each layer"),
    _works("--dumpLayerInfo", _ALL, "", "Prints the layers of the engine"),
    _works("--dumpOptimizationProfile", _10, "", "Prints the optimization profiles"),
    _works("--exportTimes", _ALL, "FILE", "Writes the times of each iteration as JSON"),
    _works("--exportOutput", _ALL, "FILE", "Writes the outputs of the last iteration as JSON"),
    _works("--exportProfile", _ALL, "FILE", "Writes the time of each layer as JSON"),
    _works("--exportLayerInfo", _ALL, "FILE", "Writes the layers of the engine as JSON"),
)

_SYSTEM = _table(
    OptionGroup.SYSTEM,
    _idle("--device", _ALL, "N", "Selects the GPU", "0", why="there is no GPU; `--platform` selects the board"),
    _works("--useDLACore", _ALL, "N", "Puts layers on this DLA core by default"),
    _idle(
        "--staticPlugins",
        _ALL,
        "FILE",
        "Loads a library of plugins",
        why=_NATIVE_PLUGINS,
        aliases=("--plugins",),
        is_repeatable=True,
    ),
    _idle(
        "--dynamicPlugins",
        _8_6,
        "FILE",
        "Loads a library of plugins at run time",
        why=_NATIVE_PLUGINS,
        is_repeatable=True,
    ),
    _idle(
        "--setPluginsToSerialize",
        _8_6,
        "FILE",
        "Stores a library of plugins in the engine",
        why=_NATIVE_PLUGINS,
        is_repeatable=True,
    ),
    _idle("--ignoreParsedPluginLibs", _8_6, "", "Ignores libraries that the model names", why=_NATIVE_PLUGINS),
    _idle(
        "--safetyPlugins",
        Versions((10, 13)),
        "FILE[PLUGIN,...]",
        "Loads a library of safety plugins",
        why=_NATIVE_PLUGINS,
        is_repeatable=True,
    ),
    _works("--help", _ALL, "", "Lists the options", aliases=("-h",)),
)

TRTEXEC_OPTIONS: Mapping[str, TrtexecOption] = {
    one.name: one for one in (*_MODEL, *_BUILD, *_INFERENCE, *_REPORTING, *_SYSTEM)
}
"""Every option by name, in the order of trtexec's help text."""

OPTION_ALIASES: Mapping[str, str] = {alias: one.name for one in TRTEXEC_OPTIONS.values() for alias in one.aliases}
"""Name of an option by each of its other names."""

ALIAS_VERSIONS: Mapping[str, Versions] = {"--nvtxMode": _8}
"""The versions that have an alias, where its option has more."""

BUILD_OPTIONS: Mapping[str, Versions] = {
    one.name: one.versions
    for one in TRTEXEC_OPTIONS.values()
    if one.group not in (OptionGroup.INFERENCE, OptionGroup.REPORTING)
    or one.name in ("--shapes", "--skipInference", "--buildOnly")
}
"""What decides on an engine, or where its files are."""

RUN_OPTIONS = frozenset(TRTEXEC_OPTIONS.keys() - BUILD_OPTIONS.keys())
"""Options that define how the engine is run, measured and shown: they change nothing in it."""

SWITCHES = frozenset(one.name for one in TRTEXEC_OPTIONS.values() if one.is_switch)
"""Options that have no value."""

OTHER_SPELLINGS: Mapping[str, str] = {
    "--skipInference": "--buildOnly before 8.6",
    "--buildOnly": "--skipInference",
    "--buildDLAStandalone": "--safe with --useDLACore before 8.6",
    "--memPoolSize": "--workspace before 8.4, for the workspace alone",
    "--workspace": "--memPoolSize=workspace:SIZE",
    "--includeDataTransfers": "the default before 11",
}
"""How versions without an option express the same."""


def missing_option(option: str, software: Version) -> str:
    """Return why a version does not support an option, or an alias; "" if it does."""
    name = OPTION_ALIASES.get(option, option)
    versions = ALIAS_VERSIONS.get(option, TRTEXEC_OPTIONS[name].versions)
    if software in versions:
        return ""
    instead = name if option in ALIAS_VERSIONS else OTHER_SPELLINGS.get(name)
    hint = f"; it is {instead}" if instead else ""
    return f"trtexec of TensorRT {version_text(software)} has no {option} ({versions}{hint})"
