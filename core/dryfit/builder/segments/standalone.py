"""What a standalone loadable asks of a network, its config and the design: the engine capability DLA_STANDALONE.

The rules are a table, as those on modes are. Those that need no design are looked at before anything is placed, and all
that are broken are told together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dryfit.builder.config.builder_config import BuilderConfig, EngineCapability
from dryfit.builder.explicit_quantization.mode_rule import ModeRule
from dryfit.builder.placement.cutter import LayerRun
from dryfit.builder.segments import standalone_checks
from dryfit.engine.plan import Reformat
from dryfit.errors import BuildError

CHAPTER = "TensorRT 10 developer guide, Working with DLA"
MODE = f"{CHAPTER}: DLA Standalone Mode"

STANDALONE_RULES: Sequence[ModeRule] = (
    ModeRule(
        "standalone.device",
        "The layers of a standalone loadable are all for the default device, which has loadables",
        standalone_checks.other_devices,
        MODE,
        "Set default_device_type to DLA, and reset the device types of single layers",
    ),
    ModeRule(
        "standalone.fallback",
        "A standalone loadable is built without fallback: nothing else runs beside it",
        standalone_checks.fallback,
        MODE,
        "Clear the flag GPU_FALLBACK (on the command line: leave out --fallback)",
    ),
    ModeRule(
        "standalone.precision",
        "A standalone loadable computes in FP16 or INT8, which a flag permits",
        standalone_checks.no_precision,
        MODE,
        "Set the flag FP16 or INT8 (on the command line: --precision fp16)",
    ),
    ModeRule(
        "standalone.direct_io",
        "A standalone loadable is built with the flag DIRECT_IO: nothing converts formats around it",
        standalone_checks.no_direct_io,
        MODE,
        "Set the flag DIRECT_IO (on the command line: --direct-io)",
    ),
    ModeRule(
        "standalone.formats",
        "Each input and output of a standalone loadable has a type of the device, and states formats of it only",
        standalone_checks.open_formats,
        MODE,
        "Set type and allowed_formats of these tensors (on the command line: --input-io-formats, --output-io-formats)",
    ),
    ModeRule(
        "standalone.fixed_shapes",
        "A standalone loadable has fixed shapes",
        standalone_checks.open_shapes,
        f"{CHAPTER}: general restrictions",
        "Give the inputs one shape, or one profile whose minimum, optimum and maximum are equal",
    ),
    ModeRule(
        "standalone.left_over_constants",
        "A standalone loadable has no layers of explicit quantization, and no constants left over from them",
        standalone_checks.left_over_constants,
        "reports of TensorRT builders: a constant left over from Q/DQ makes a standalone build fail (inferred)",
        "Turn Q/DQ into a calibration cache (`dryfit translate`), and remove what nobody reads",
    ),
    ModeRule(
        "standalone.constraints",
        "The flags OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS are not both set",
        standalone_checks.two_constraints,
        "trtexec, which refuses both",
        "Clear one of them",
    ),
)
"""What is known before anything is placed."""

ONE_LOADABLE = "standalone.one_loadable"
NO_REFORMATS = "standalone.no_reformats"


def is_standalone(config: BuilderConfig) -> bool:
    """Whether a config asks for a standalone loadable."""
    return config.engine_capability is EngineCapability.DLA_STANDALONE


def refuse_standalone_engine(config: BuilderConfig) -> None:
    """Refuse to make an engine of what is to be a loadable.

    Raises:
        BuildError: the engine capability is DLA_STANDALONE.
    """
    if is_standalone(config):
        raise BuildError(
            "The engine capability DLA_STANDALONE gives a loadable, and no engine",
            source=MODE,
            remedy="Call build_serialized_network, which gives the loadable's bytes, or set the capability STANDARD",
        )


def standalone_problems(runs: Sequence[LayerRun], reformats: Sequence[Reformat], config: BuilderConfig) -> list[str]:
    """Why segments and the copies around them are no standalone loadable, in words; none where no such is asked for."""
    if not is_standalone(config):
        return []
    problems = []
    if len(runs) != 1:
        counts = Counter(run.device for run in runs)
        told = ", ".join(f"{count} on {device}" for device, count in sorted(counts.items())) or "none"
        causes = [f"segment {index}: {run.cut_cause}" for index, run in enumerate(runs) if run.cut_cause]
        found = f"{len(runs)} segments ({told})" + "".join(f"; {cause}" for cause in causes)
        problems.append(f"It has to be exactly one segment; found {found} [{ONE_LOADABLE}; source: {MODE}]")
    problems += [
        f"No copy may stand around it; tensor {one.tensor!r} needs one from {one.source} to {one.destination}: "
        f"{one.cause} [{NO_REFORMATS}; source: {MODE}]"
        for one in reformats
    ]
    return problems
