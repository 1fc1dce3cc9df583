"""Options that trtexec refuses together, or with a value that it does not know."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from dryfit.board.trtexec_arguments import TrtexecArguments
from dryfit.board.versions import FIRST_REFUSED, Version
from dryfit.errors import ConfigError

_TACTIC_SOURCES = ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")
_LIBRARIES = ("CUBLAS", "CUBLASLT", "CUBLAS_LT", "CUDNN")
"""Tactic sources that TensorRT 11 no longer has."""
_PREVIEW: Mapping[Version, Collection[str]] = {
    (8, 6): ("profileSharing0806", "fasterDynamicShapes0805", "disableExternalTacticSourcesForCore0805"),
    (10, 16): ("profileSharing0806", "aliasedPluginIO1003", "runtimeActivationResize"),
}
"""Preview features by version."""
_COMPATIBILITY = ("none", "ampere+")
_SAME_CAPABILITY = "samecomputecapability"
"""The level of compatibility that TensorRT 8 does not have."""
_FILES = tuple(f"{kind}:{word}" for kind in ("in_memory", "temporary") for word in ("allow", "deny"))
_NUMBERS = ("--avgTiming", "--minTiming", "--maxTactics", "--maxAuxStreams", "--l2LimitForTiling", "--device")
"""Options without effect whose value is a whole number."""
_BUDGET = re.compile(r"-[12]|(\d+|\d*\.\d+)[BKMGbkmg]?|(100|\d?\d)(\.\d*)?%")
"""A size, a share, -1 for automatic, or -2 for off."""
_WORDS = {
    "--useRuntime": ("full", "lean", "dispatch"),
    "--allocationStrategy": ("static", "profile", "runtime"),
    "--runtimePlatform": ("SameAsBuild", "WindowsAMD64"),
    "--sparsity": ("disable", "enable", "force"),
    "--accuracyAlgorithm": ("l0", "l1", "l2", "lInf", "cos"),
}
_NEEDED = {
    "--weightStreamingBudget": "--allowWeightStreaming",
    "--uint8AsymmetricQuantizationDLA": "--useDLACore",
    "--getPlanVersionOnly": "--loadEngine",
    "--reportCapabilityDLA": "--useDLACore",
}
"""Option to the one that it requires."""


def refuse_conflicts(read: TrtexecArguments, software: Version) -> None:
    """Reject options that trtexec does not take together.

    Raises:
        ConfigError: The message lists all conflicts.
        UnknownNameError: An option has a value that trtexec does not know.
    """
    for option, known in _WORDS.items():
        if read.has(option):
            read.word(option, known[0], known)
    for option in _NUMBERS:
        read.number(option, 0)
    problems = [*_conflicts(read, software), *_unknown_values(read, software)]
    if problems:
        raise ConfigError(
            "trtexec rejects this command line",
            where="trtexec",
            found="; ".join(problems),
            remedy="Change the options named here",
        )


def _conflicts(read: TrtexecArguments, software: Version) -> Iterator[str]:
    if not read.has("--onnx") and not read.has("--loadEngine"):
        yield "neither --onnx nor --loadEngine is given"
    if read.has("--loadEngine") and read.has("--saveEngine"):
        yield "--loadEngine and --saveEngine cannot be combined"
    for option, other in _NEEDED.items():
        if read.has(option) and not read.has(other):
            yield f"{option} requires {other}"
    typed = software >= FIRST_REFUSED or read.has("--stronglyTyped") or read.has("--loadEngine")
    if read.has("--allowWeightStreaming") and not typed:
        yield "--allowWeightStreaming requires --stronglyTyped"
    if read.text("--useRuntime", "full") != "full" and not read.has("--loadEngine"):
        yield "only the runtime full builds an engine (--useRuntime)"
    if read.has("--pluginInstanceNorm") and (
        read.has("--versionCompatible") or read.text("--hardwareCompatibilityLevel").lower() == "ampere+"
    ):
        yield "--pluginInstanceNorm cannot be combined with a compatible engine"
    if read.has("--loadRefOutputs") and read.decimal("--accuracyThreshold", 0.0) <= 0:
        yield "--loadRefOutputs requires --accuracyThreshold with a value greater than 0"


def _unknown_values(read: TrtexecArguments, software: Version) -> Iterator[str]:
    """Return the values of options without effect that trtexec does not know."""
    sources = _TACTIC_SOURCES if software >= FIRST_REFUSED else (*_TACTIC_SOURCES, *_LIBRARIES)
    enabled = dict[str, str]()
    for entry in read.listed("--tacticSources"):
        name = entry[1:].upper()
        if entry[0] not in "+-" or name not in sources:
            yield f"--tacticSources has the entry {entry!r}"
        elif enabled.setdefault(name.replace("_", ""), entry[0]) != entry[0]:
            yield f"--tacticSources enables and disables {name}"
    features = _PREVIEW.get(software, ())
    for entry in read.listed("--preview"):
        if entry[0] not in "+-" or (features and entry[1:] not in features):
            yield f"--preview has the entry {entry!r}"
    for entry in read.listed("--tempfileControls"):
        if entry not in _FILES:
            yield f"--tempfileControls has the entry {entry!r}"
    level = read.text("--hardwareCompatibilityLevel", "none")
    if level.lower() not in (*_COMPATIBILITY, *([_SAME_CAPABILITY] if software >= (10, 0) else [])):
        yield f"--hardwareCompatibilityLevel has the value {level!r}"
    budget = read.text("--weightStreamingBudget", "-2")
    if not _BUDGET.fullmatch(budget):
        yield f"--weightStreamingBudget has the value {budget!r}"
