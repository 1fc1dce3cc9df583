"""Options that trtexec refuses together, or with a value that it does not know."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.board.trtexec_arguments import TrtexecArguments
from dryfit.errors import ConfigError

_TACTIC_SOURCES = ("CUBLAS", "CUBLASLT", "CUBLAS_LT", "CUDNN", "EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")
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


def refuse_conflicts(read: TrtexecArguments) -> None:
    """Reject options that trtexec does not take together.

    Raises:
        ConfigError: The message lists all conflicts.
        UnknownNameError: An option has a value that trtexec does not know.
    """
    for option, known in _WORDS.items():
        if read.has(option):
            read.word(option, known[0], known)
    problems = list(_conflicts(read))
    if problems:
        raise ConfigError(
            "trtexec rejects this command line",
            where="trtexec",
            found="; ".join(problems),
            remedy="Change the options named here",
        )


def _conflicts(read: TrtexecArguments) -> Iterator[str]:
    if not read.has("--onnx") and not read.has("--loadEngine"):
        yield "neither --onnx nor --loadEngine is given"
    if read.has("--loadEngine") and read.has("--saveEngine"):
        yield "--loadEngine and --saveEngine cannot be combined"
    for option, other in _NEEDED.items():
        if read.has(option) and not read.has(other):
            yield f"{option} requires {other}"
    if read.text("--useRuntime", "full") != "full" and not read.has("--loadEngine"):
        yield "only the runtime full builds an engine (--useRuntime)"
    if read.has("--pluginInstanceNorm") and (
        read.has("--versionCompatible") or read.text("--hardwareCompatibilityLevel").lower() == "ampere+"
    ):
        yield "--pluginInstanceNorm cannot be combined with a compatible engine"
    for option, words in (("--tacticSources", _TACTIC_SOURCES), ("--preview", ())):
        for word in read.listed(option):
            if word[0] not in "+-" or (words and word[1:].upper() not in words):
                yield f"{option} has the entry {word!r}"
    if read.has("--hardwareCompatibilityLevel"):
        word = read.text("--hardwareCompatibilityLevel").lower()
        if word not in ("none", "ampere+", "samecomputecapability"):
            yield f"--hardwareCompatibilityLevel has the value {word!r}"
    if read.has("--loadRefOutputs") and read.decimal("--accuracyThreshold", 0.0) <= 0:
        yield "--loadRefOutputs requires --accuracyThreshold with a value greater than 0"
