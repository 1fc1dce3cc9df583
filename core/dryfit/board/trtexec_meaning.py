"""How trtexec interprets a build: what it adds on its own, and what it cannot express.

Source: trtexec in NVIDIA/TensorRT, network and config setup. trtexec continues with OBEY_PRECISION_CONSTRAINTS if
TensorRT rejects the other flag, according to a log of TensorRT 8.4 in issue 34 of NVIDIA-AI-IOT/cuDLA-samples, whose
script obeys constraints for a DLA.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dryfit.board.board_build import BoardBuild, api_problems
from dryfit.board.trtexec_options import missing_option
from dryfit.board.trtexec_values import FLAG_OPTIONS, STANDALONE_FORMATS, STANDALONE_INPUT_FORMATS
from dryfit.board.versions import FIRST_REFUSED, layers_by_name, strayed_names
from dryfit.builder.config.enumerations import BuilderFlag, DeviceType, EngineCapability, MemoryPoolType
from dryfit.builder.config.layer_rules import PRECISION_WORDS, layer_list
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.network.data_types import DataType
from dryfit.network.network import Network

OBEY, PREFER = BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS

LARGEST_SRAM = 1 << 30
"""Bytes; trtexec takes no more for the managed SRAM. Source: trtexec."""

PRECISION_FLAGS = frozenset(
    {BuilderFlag.FP16, BuilderFlag.BF16, BuilderFlag.INT8, BuilderFlag.FP8, BuilderFlag.INT4, BuilderFlag.FP4}
)


def as_trtexec_builds(build: BoardBuild) -> tuple[BoardBuild, list[str]]:
    """Return (build as trtexec performs it, without settings that have no effect there; changes in sentences)."""
    notes: list[str] = []
    if not build.uses_dla:
        if build.dla_core >= 0:
            notes.append("The DLA core is left out: with --useDLACore trtexec puts every layer on the DLA")
        if BuilderFlag.GPU_FALLBACK in build.flags:
            notes.append("GPU_FALLBACK is left out: layers are on the GPU, and trtexec looks at it only for a DLA")
        build = attrs.evolve(build, dla_core=-1, flags=build.flags - {BuilderFlag.GPU_FALLBACK})
    elif build.dla_core < 0:
        notes.append("No --useDLACore was given: core 0 is used")
        build = attrs.evolve(build, dla_core=0)
    added = dict(_added_flags(build))
    notes += added.values()
    return attrs.evolve(build, flags=build.flags | added.keys()), notes


def trtexec_complaints(build: BoardBuild) -> list[str]:
    """Return the harmless errors that are printed on the board, in sentences."""
    if not build.uses_dla or OBEY not in build.flags:
        return []
    told = (
        "trtexec sets PREFER_PRECISION_CONSTRAINTS for a DLA, which TensorRT refuses beside "
        "OBEY_PRECISION_CONSTRAINTS: an error line says so, and constraints are obeyed all the same"
    )
    return [told]


def _added_flags(build: BoardBuild) -> Iterator[tuple[BuilderFlag, str]]:
    """Return the flags that trtexec sets although the build does not, with the reason."""
    flags = build.flags
    is_weak = build.software < FIRST_REFUSED
    if build.has_layer_types and not flags & {OBEY, PREFER}:
        yield PREFER, "PREFER_PRECISION_CONSTRAINTS is set: without it types of single layers do not count"
    elif is_weak and build.uses_dla and not flags & {OBEY, PREFER}:
        yield PREFER, "trtexec sets PREFER_PRECISION_CONSTRAINTS for a DLA"
    if build.uses_dla and not flags & {BuilderFlag.GPU_FALLBACK, BuilderFlag.DIRECT_IO}:
        yield BuilderFlag.DIRECT_IO, "trtexec sets DIRECT_IO for a DLA without fallback: copies would be the GPU's"
    if is_weak and build.uses_dla and not flags & {BuilderFlag.INT8, BuilderFlag.FP16}:
        yield BuilderFlag.FP16, "trtexec sets FP16 for a DLA without INT8"


def trtexec_problems(build: BoardBuild, network: Network) -> list[str]:
    """Return all reasons why trtexec cannot express a build; empty if it can."""
    return [
        *api_problems(build),
        *_flag_problems(build),
        *_device_problems(build),
        *_scale_problems(build, network),
        *_capability_problems(build),
        *_list_problems(build, network),
        *_shape_problems(build, network),
        *_pool_problems(build),
    ]


def _flag_problems(build: BoardBuild) -> Iterator[str]:
    without_option = build.flags - FLAG_OPTIONS.keys() - {BuilderFlag.TF32, OBEY, PREFER}
    for flag in sorted(without_option):
        yield f"it has no option for the flag {flag.name}"
    for other in build.quantization_flags:
        yield f"it has no option for the quantization flag {other.name}"
    if {OBEY, PREFER} <= build.flags:
        yield "OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS cannot be combined"
    if {BuilderFlag.FP8, BuilderFlag.INT8} <= build.flags:
        yield "--fp8 and --int8 cannot be combined"
    given = sorted(build.flags & PRECISION_FLAGS) if build.is_strongly_typed else []
    if given:
        why = ", which it sets for a DLA" if build.uses_dla else ""
        yield f"a strongly typed network excludes {', '.join(flag.name for flag in given)}{why}"


def _device_problems(build: BoardBuild) -> Iterator[str]:
    on_dla = [name for name, device in build.devices.items() if device == DeviceType.DLA]
    if on_dla and not build.uses_dla:
        yield (
            f"it reaches the DLA by --useDLACore alone, which makes it the default device: put {on_dla[0]!r} there by "
            "--device DLA, with the other layers on the GPU (--layer-device-types '*:GPU,NAME:DLA')"
        )
    if build.devices:
        yield from filter(None, [missing_option("--layerDeviceTypes", build.software)])


def _scale_problems(build: BoardBuild, network: Network) -> Iterator[str]:
    needs = BuilderFlag.INT8 in build.flags and not is_explicit(network)
    if needs and build.scales is None and not build.assumes_scales:
        yield (
            "it invents scales for --int8 without --calib: give a calibration cache, or ask for that by --assume-scales"
        )


def _capability_problems(build: BoardBuild) -> Iterator[str]:
    capability = build.capability
    if capability is EngineCapability.SAFETY and build.uses_dla:
        yield "--safe with --useDLACore is for a loadable, the engine capability DLA_STANDALONE"
    if capability is not EngineCapability.DLA_STANDALONE:
        return
    if not build.uses_dla:
        yield "a loadable is for the DLA, and the default device is the GPU"
    if BuilderFlag.GPU_FALLBACK in build.flags:
        yield "a loadable has no fallback to the GPU"
    for side, formats, taken in (
        ("inputs", build.input_formats, standalone_formats(build, of_input=True)),
        ("outputs", build.output_formats, standalone_formats(build, of_input=False)),
    ):
        wrong = [str(one) for one in formats if len(one.formats) != 1 or one.formats[0] not in taken.get(one.dtype, ())]
        if wrong or not formats:
            allowed = ", ".join(
                str(IoFormat(dtype, (name,))) for dtype, names in taken.items() for name in sorted(names)
            )
            yield f"for a loadable, {side} have one of {allowed}, and here {', '.join(wrong) or 'none is stated'}"


def standalone_formats(build: BoardBuild, *, of_input: bool) -> dict[DataType, frozenset[str]]:
    """Return the formats that trtexec accepts for the inputs or outputs of a loadable, by type."""
    since = max(version for version in STANDALONE_FORMATS if build.software >= version)
    more = STANDALONE_INPUT_FORMATS.get(since, frozenset()) if of_input else frozenset()
    return {dtype: names | more for dtype, names in STANDALONE_FORMATS[since].items()}


def _list_problems(build: BoardBuild, network: Network) -> Iterator[str]:
    """Return names that a list cannot represent, and values that have no trtexec syntax."""
    names = list(layers_by_name(network))
    types = [
        *build.precisions.items(),
        *((name, one) for name, several in build.output_types.items() for one in several),
    ]
    for name, dtype in types:
        if dtype not in PRECISION_WORDS.values():
            yield f"it does not support the type {dtype.text} of layer {name!r}"
    for option, listed in (
        ("--layerDeviceTypes", build.devices),
        ("--layerPrecisions", build.precisions),
        ("--layerOutputTypes", build.output_types),
    ):
        yield from _name_problems(option, list(listed))
        for stray in strayed_names(names, listed):
            yield f"{option} has a name with a `*` in it, which would also match {stray!r}"
    if build.has_layer_types:
        yield from filter(None, [missing_option("--layerPrecisions", build.software)])


def _name_problems(option: str, names: list[str]) -> Iterator[str]:
    _, unfit = layer_list((name, "") for name in names)
    for name in unfit:
        yield f"{option} cannot have the name {name!r}: a comma ends an entry, and single quotes are left out"


def _shape_problems(build: BoardBuild, network: Network) -> Iterator[str]:
    dynamic = [tensor.name for tensor in network.inputs if -1 in tensor.shape]
    stated = [profile.shapes for profile in build.profiles] or [{}]
    for name in dynamic:
        if any(name not in shapes for shapes in stated):
            yield f"it takes 1 for the dynamic dimensions of input {name!r}, which has no shapes"
    if len(build.profiles) > 1:
        yield from filter(None, [missing_option("--profile", build.software)])
    for profile in build.profiles:
        yield from _name_problems("--optShapes", [*profile.shapes, *profile.values])
        for name in profile.shapes.keys() & profile.values.keys():
            yield f"--optShapes has one entry for {name!r}, which has both shapes and values"


def _pool_problems(build: BoardBuild) -> Iterator[str]:
    for pool, limit in build.pools.items():
        if pool == MemoryPoolType.DLA_MANAGED_SRAM and limit > LARGEST_SRAM:
            yield f"it takes no more than {LARGEST_SRAM} bytes for {pool}, and {limit} are requested"
        elif missing_option("--memPoolSize", build.software) and limit % (1 << 20):
            yield f"--workspace is in whole MiB, and {limit} bytes are requested"
