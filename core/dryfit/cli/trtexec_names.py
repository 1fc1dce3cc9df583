"""trtexec's options and what says the same here: hints for those that a command does not know."""

from __future__ import annotations

from collections.abc import Mapping

import click

from dryfit.attrs_classes import frozen

_MODEL_COMMANDS = "check, build, explain, estimate, place, export trtexec"


@frozen
class Counterpart:
    """What says here what an option of trtexec says.

    Attributes:
        commands: those that take it, in words.
        option: the option here; "" where there is none.
        advice: what to do instead, or what is different; a sentence without its full stop.
        is_accepted: whether these commands take trtexec's spelling too.
    """

    commands: str
    option: str = ""
    advice: str = ""
    is_accepted: bool = True


def _shared(option: str, advice: str = "") -> Counterpart:
    return Counterpart(_MODEL_COMMANDS, option, advice)


def _other(commands: str, option: str, advice: str) -> Counterpart:
    return Counterpart(commands, option, advice, is_accepted=False)


def _none(advice: str) -> Counterpart:
    return Counterpart("", "", advice, is_accepted=False)


_ALWAYS_KEPT = "Leave it out: it does not change what is computed here"
_FLAG_OF_EXPORT = "Set the flag in Python; `dryfit export trtexec` writes the option for the board"
_RUN_TIMES = "dryfit does not measure devices; see `dryfit estimate`, or repeat a run here with `run --repeat N`"

_ONLY_EXEC = "`dryfit exec` takes trtexec's command lines"

COUNTERPARTS: Mapping[str, Counterpart] = {
    "--onnx": _other("every command", "MODEL", "Pass the model without an option: `dryfit build MODEL.onnx`"),
    "--saveEngine": Counterpart("build, export trtexec", "--output", "In export trtexec it is the path on the board"),
    "--loadEngine": Counterpart("run", "MODEL", "Or without an option: `dryfit run ENGINE`"),
    "--calib": _shared("--calibration-cache"),
    "--timingCacheFile": Counterpart("build, export trtexec", "--timing-cache"),
    "--fp16": _shared("--precision fp16"),
    "--int8": _shared("--precision int8"),
    "--bf16": _shared("--precision bf16"),
    "--fp8": _shared("--precision fp8"),
    "--best": _shared("--precision best"),
    "--int4": _none("INT4 weights are part of a model with Q/DQ; no option is needed"),
    "--stronglyTyped": _shared("--strongly-typed"),
    "--noTF32": _shared("--no-tf32"),
    "--precisionConstraints": _shared("--precision-constraints"),
    "--layerPrecisions": _shared("--layer-precisions"),
    "--layerOutputTypes": _shared("--layer-output-types"),
    "--layerDeviceTypes": _shared("--layer-device-types"),
    "--useDLACore": _shared("--use-dla-core", "Without --device it makes the DLA the device of all layers"),
    "--allowGPUFallback": _shared("--fallback GPU"),
    "--buildDLAStandalone": _shared("--standalone"),
    "--safe": _shared("--standalone"),
    "--restricted": _none(_FLAG_OF_EXPORT),
    "--directIO": _shared("--direct-io"),
    "--inputIOFormats": _shared("--input-io-formats"),
    "--outputIOFormats": _shared("--output-io-formats"),
    "--memPoolSize": _shared("--mem-pool-size"),
    "--workspace": _other(_MODEL_COMMANDS, "--mem-pool-size", "Write --memPoolSize=workspace:MIB"),
    "--shapes": _shared("--shape"),
    "--minShapes": _shared("--min-shapes", "Or in one option: --shape NAME=MIN:OPT:MAX"),
    "--optShapes": _shared("--opt-shapes", "Or in one option: --shape NAME=MIN:OPT:MAX"),
    "--maxShapes": _shared("--max-shapes", "Or in one option: --shape NAME=MIN:OPT:MAX"),
    "--profile": _none("The command line supports one optimization profile; use Python for more"),
    "--sparsity": _shared("--sparsity"),
    "--refit": Counterpart("build", "--refit"),
    "--stripWeights": Counterpart("build", "--stripped"),
    "--skipInference": _none("Leave it out: `dryfit build` does not run the engine"),
    "--buildOnly": _none("Leave it out: `dryfit build` does not run the engine"),
    "--versionCompatible": _none(_FLAG_OF_EXPORT),
    "--excludeLeanRuntime": _none(_FLAG_OF_EXPORT),
    "--noBuilderCache": _none(_ALWAYS_KEPT),
    "--noCompilationCache": _none(_ALWAYS_KEPT),
    "--errorOnTimingCacheMiss": _none(_FLAG_OF_EXPORT),
    "--allowWeightStreaming": _none(_FLAG_OF_EXPORT),
    "--monitorMemory": _none(_FLAG_OF_EXPORT),
    "--distributiveIndependence": _none(_FLAG_OF_EXPORT),
    "--profilingVerbosity": _none("Leave it out: `dryfit inspect ENGINE` shows every layer in detail"),
    "--builderOptimizationLevel": _none(_ALWAYS_KEPT),
    "--loadInputs": _other("run", "--input", "Write --input NAME=FILE, with .npy, .npz or a picture"),
    "--iterations": _other("run", "--repeat", _RUN_TIMES),
    "--warmUp": _other("run", "--repeat", _RUN_TIMES),
    "--duration": _other("run", "--repeat", _RUN_TIMES),
    "--avgRuns": _other("run", "--repeat", _RUN_TIMES),
    "--percentile": _none(_RUN_TIMES),
    "--sleepTime": _none(_RUN_TIMES),
    "--idleTime": _none(_RUN_TIMES),
    "--infStreams": _none(_RUN_TIMES),
    "--streams": _none(_RUN_TIMES),
    "--exposeDMA": _none(_RUN_TIMES),
    "--noDataTransfers": _none(_RUN_TIMES),
    "--useManagedMemory": _none(_RUN_TIMES),
    "--useSpinWait": _none(_RUN_TIMES),
    "--useCudaGraph": _none(_RUN_TIMES),
    "--timeDeserialize": _none(_RUN_TIMES),
    "--timeRefit": _none(_RUN_TIMES),
    "--separateProfileRun": _none(_RUN_TIMES),
    "--persistentCacheRatio": _none(_RUN_TIMES),
    "--allocationStrategy": _none(_RUN_TIMES),
    "--useProfile": _none("An engine chooses the optimization profile that fits its inputs"),
    "--threads": Counterpart("run", "--threads", "Here it is the number of host threads"),
    "--verbose": Counterpart("check, build", "--verbose"),
    "--dumpOutput": _other("run", "--output-dir", "Write the outputs as .npy files with --output-dir DIR"),
    "--dumpRawBindingsToFile": _other("run", "--output-dir", "Write the outputs as .npy files with --output-dir DIR"),
    "--exportOutput": _other("run", "--output-dir", "Write the outputs as .npy files with --output-dir DIR"),
    "--dumpProfile": Counterpart("run", "--profile", "Times are measured on this machine"),
    "--exportProfile": _other("run", "--profile --json", "Print the times as JSON with --profile --json"),
    "--exportTimes": _other("run", "--json", "Print the time per run as JSON with --json"),
    "--dumpRefit": _other("refit", "--list", "Use `dryfit refit ENGINE --list`"),
    "--dumpLayerInfo": _other("inspect", "", "Use `dryfit inspect ENGINE`"),
    "--exportLayerInfo": _other("inspect", "--json", "Use `dryfit inspect ENGINE --json`"),
    "--dumpOptimizationProfile": _other("inspect", "", "Use `dryfit inspect ENGINE`"),
    "--device": _other(_MODEL_COMMANDS, "--platform", "Here --device names DLA, GPU or CPU, and --platform the board"),
}
"""Options of trtexec to what says the same in commands other than `exec`."""

COMMAND_ADVICE = (
    "`dryfit exec OPTIONS` takes trtexec's command lines; `dryfit check MODEL.onnx` shows where layers run, and "
    "`dryfit export trtexec MODEL.onnx` writes trtexec's command line for the board"
)
COMMANDS = frozenset({"trtexec"})
"""Words that a user of trtexec may try as commands."""


def explained(error: click.NoSuchOption) -> click.NoSuchOption:
    """The error about an unknown option; where it is one of trtexec's, with what says the same here."""
    found = COUNTERPARTS.get(error.option_name)
    if found is None:
        from dryfit.board.trtexec_options import OPTION_ALIASES, TRTEXEC_OPTIONS

        if error.option_name not in TRTEXEC_OPTIONS and error.option_name not in OPTION_ALIASES:
            return error
        found = _none(_ONLY_EXEC)
    parts = [found.advice] if found.advice else []
    if found.is_accepted:
        parts.insert(0, f"It is an option of {found.commands}")
    elif found.option.startswith("--") and found.option not in found.advice:
        parts.insert(0, f"The option here is {found.option}")
    message = f"No such option {error.option_name!r}, an option of trtexec. {'. '.join(parts)}."
    return click.NoSuchOption(error.option_name, message, ctx=error.ctx)
