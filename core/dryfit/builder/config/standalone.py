"""What a standalone loadable asks of a network, its config and the design: the engine capability DLA_STANDALONE.

The rules are a table, as those on modes are. Those that need no design are looked at before anything is placed, and all
that are broken are told together.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config import standalone_checks
from dryfit.builder.config.builder_config import BuilderConfig, EngineCapability
from dryfit.errors import BuildError
from dryfit.rule import Rule

CHAPTER = "TensorRT 10 developer guide, Working with DLA"
MODE = f"{CHAPTER}: DLA Standalone Mode"

STANDALONE_RULES: Sequence[Rule] = (
    Rule(
        "standalone.device",
        "The layers of a standalone loadable are all for the default device, which has loadables",
        MODE,
        "Set default_device_type to DLA, and reset the device types of single layers",
        "SA-01",
        finder=standalone_checks.other_devices,
    ),
    Rule(
        "standalone.fallback",
        "A standalone loadable is built without fallback: nothing else runs beside it",
        MODE,
        "Clear the flag GPU_FALLBACK (on the command line: leave out --fallback)",
        "SA-02",
        finder=standalone_checks.fallback,
    ),
    Rule(
        "standalone.precision",
        "A standalone loadable computes in FP16 or INT8, which a flag permits",
        MODE,
        "Set the flag FP16 or INT8 (on the command line: --precision fp16)",
        "SA-01",
        finder=standalone_checks.no_precision,
    ),
    Rule(
        "standalone.direct_io",
        "A standalone loadable is built with the flag DIRECT_IO: nothing converts formats around it",
        MODE,
        "Set the flag DIRECT_IO (on the command line: --direct-io)",
        "SA-01",
        finder=standalone_checks.no_direct_io,
    ),
    Rule(
        "standalone.formats",
        "Each input and output of a standalone loadable has a type of the device, and states formats of it only",
        MODE,
        "Set type and allowed_formats of these tensors (on the command line, for example: --input-io-formats "
        "fp16:chw16 --output-io-formats fp16:chw16)",
        "SA-01",
        finder=standalone_checks.open_formats,
    ),
    Rule(
        "standalone.fixed_shapes",
        "A standalone loadable has fixed shapes",
        f"{CHAPTER}: general restrictions",
        "Give the inputs one shape, or one profile whose minimum, optimum and maximum are equal",
        "SA-03",
        finder=standalone_checks.open_shapes,
    ),
    Rule(
        "standalone.left_over_constants",
        "A standalone loadable has no layers of explicit quantization, and no constants left over from them",
        "reports of TensorRT builders: a constant left over from Q/DQ makes a standalone build fail (inferred)",
        "Turn Q/DQ into a calibration cache (`dryfit translate`), and remove what nobody reads",
        "SA-08",
        finder=standalone_checks.left_over_constants,
    ),
)
"""What is known before anything is placed."""

ONE_LOADABLE = Rule(
    "standalone.one_loadable",
    "A standalone loadable is exactly one segment",
    MODE,
    "Take out what cuts the network in two: another batch, or layers that do not hang together",
    "SA-02",
)
NO_REFORMATS = Rule(
    "standalone.no_reformats",
    "No copy between types or formats stands around a standalone loadable",
    MODE,
    "Give inputs and outputs the types and formats that the layers at the border read and write",
    "SA-01",
)

STANDALONE_OUTCOMES: Sequence[Rule] = (ONE_LOADABLE, NO_REFORMATS)
"""What is known only when the segments and the copies around them are."""


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
