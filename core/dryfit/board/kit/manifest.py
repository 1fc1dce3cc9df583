"""What a kit contains: its models, how each is built by each version of TensorRT, and what is measured.

The manifest is `kit.json` in the kit, and again in the results, so that both files are read by themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.engine.records import RecordError, record_from_plain, record_to_plain
from dryfit.errors import ConfigError

FORMAT = "dryfit-board-kit"
VERSION = 1
"""The version of the form; a reader refuses every other one."""

MODEL, PROBE = "model", "probe"
BUILD_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
FILE_NAME = re.compile(r"(?:models|scales)/[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")

OPTIONS = frozenset(
    (
        *("device", "fallback", "use_dla_core", "precision", "precision_constraints", "no_tf32", "strongly_typed"),
        *("assume_scales", "calibration_cache", "shape", "shape_values", "layer_device_types", "layer_precisions"),
        *("layer_output_types", "input_io_formats", "output_io_formats", "direct_io", "mem_pool_size", "sparsity"),
    )
)
"""Options that a manifest may have: none of them runs anything, and the one that names a file names one of the kit."""


@frozen
class KitLine:
    """How some versions of trtexec build a model.

    Attributes:
        since: first version with this line, such as [8, 5].
        until: first version without it; None for no end.
        arguments: words after the name of the program, with paths in the folder of the kit.
    """

    since: Sequence[int]
    until: Sequence[int] | None
    arguments: Sequence[str]


@frozen
class KitInput:
    """An input of a model, whose values the kit generates on the board.

    Attributes:
        name: name of the tensor.
        type: name of its data type, as in `dryfit.DataType`.
        shape: shape of the measured runs.
        file: path of the raw values in the folder of the kit.
        seed: seed of the generator; see `dryfit.board.kit.on_board.generated_bytes`.
    """

    name: str
    type: str
    shape: Sequence[int]
    file: str
    seed: int


@frozen
class KitBuild:
    """One build of one model.

    Attributes:
        id: name of the build, which is also the folder of its results.
        title: what it is, for people.
        purpose: `model` or `probe`.
        model: path of the ONNX model in the kit.
        model_sha256: digest of that file.
        options: options of dryfit that describe the build, without board and version.
        lines: the command lines, by version.
        inputs: the inputs of the measured runs; empty if nothing is measured.
        layers: number of layers of the model.
        estimated_microseconds: estimated latency of one run; None if a device on its way has no estimate.
    """

    id: str
    title: str
    purpose: str
    model: str
    model_sha256: str
    options: Mapping[str, Any]
    lines: Sequence[KitLine]
    inputs: Sequence[KitInput]
    layers: int
    estimated_microseconds: float | None


@frozen
class KitOption:
    """An option that the kit adds to each line where the version has it.

    Attributes:
        name: name of the option, such as `--exportLayerInfo`.
        value: its value, in which `{build}` is the folder of the results; "" for a switch.
        since: first version with the option.
        until: first version without it; None for no end.
        needs_inputs: whether it is for builds that are measured only.
    """

    name: str
    value: str
    since: Sequence[int]
    until: Sequence[int] | None
    needs_inputs: bool


@frozen
class KitManifest:
    """The table of contents of a kit.

    Attributes:
        format: always `dryfit-board-kit`.
        version: version of the form.
        dryfit: version of dryfit that wrote the kit.
        platform: board for which it was written.
        is_anonymous: whether names and weights were replaced.
        measured_seconds: how long each measurement lasts at least.
        seconds_per_layer: estimated duration of a build per layer, until the first build on the board has ended.
        contents: what the results contain, in sentences; the kit prints them before it packs.
        options: options that are added to every line.
        builds: the builds, in their order.
    """

    format: str
    version: int
    dryfit: str
    platform: str
    is_anonymous: bool
    measured_seconds: float
    seconds_per_layer: float
    contents: Sequence[str]
    options: Sequence[KitOption]
    builds: Sequence[KitBuild]

    def to_json(self) -> bytes:
        """Return the contents of `kit.json`: the same bytes for the same kit."""
        return (json.dumps(record_to_plain(self), indent=1, sort_keys=True) + "\n").encode()

    def build(self, name: str) -> KitBuild | None:
        """Return the build of an id; None if there is none."""
        return next((one for one in self.builds if one.id == name), None)


def manifest_of(data: bytes, where: str) -> KitManifest:
    """Read a manifest that a stranger may have written.

    Args:
        data: contents of `kit.json`.
        where: name of the file, for errors.

    Raises:
        ConfigError: It is not a manifest, or has another version, or its names are not those of files in a kit.
    """
    plain = parsed_json(data, where)
    found = plain.get("format") if isinstance(plain, dict) else None
    if found != FORMAT:
        raise damaged(where, f"format {str(found)[:80]!r} instead of {FORMAT!r}")
    if plain.get("version") != VERSION:
        raise ConfigError(
            "The kit has another version",
            where=where,
            found=str(plain.get("version"))[:20],
            allowed=VERSION,
            remedy="Pack the kit and read its results with the same version of dryfit",
        )
    try:
        manifest = record_from_plain(KitManifest, plain, "kit")
    except RecordError as error:
        raise damaged(where, str(error)) from error
    ids = [one.id for one in manifest.builds]
    wrong = [one for one in ids if not BUILD_ID.fullmatch(one) or ids.count(one) > 1]
    wrong += [one.model for one in manifest.builds if not FILE_NAME.fullmatch(one.model)]
    wrong += [one.purpose for one in manifest.builds if one.purpose not in (MODEL, PROBE)]
    if wrong:
        raise damaged(where, f"name {wrong[0][:80]!r}")
    for build in manifest.builds:
        for name, value in build.options.items():
            if not _is_option(name, value):
                raise damaged(where, f"option {name[:40]!r}: {str(value)[:80]!r}")
    return manifest


def _is_option(name: str, value: Any) -> bool:
    """Whether an option of a manifest can be passed on: a stranger may have written it."""
    if name not in OPTIONS:
        return False
    if name == "calibration_cache":
        return isinstance(value, str) and FILE_NAME.fullmatch(value) is not None
    if name in ("shape", "shape_values"):
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if name == "precision":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    # A text that begins with @ would name a file.
    return isinstance(value, bool | int) or (isinstance(value, str) and not value.startswith("@"))


def parsed_json(data: bytes, where: str) -> Any:
    """Parse JSON of a stranger.

    Raises:
        ConfigError: It is not JSON, or nested too deeply.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(where, f"no JSON: {error}"[:200]) from error


def sha256(data: bytes) -> str:
    """Return the digest of a file in a kit."""
    return hashlib.sha256(data).hexdigest()


def damaged(where: str, found: str) -> ConfigError:
    """Return the error about a file of a kit or of results that is not as a kit writes it."""
    return ConfigError(
        "The file is damaged or was not written by a kit",
        where=where,
        found=found,
        remedy="Copy the file from the board again, or run the kit again: it continues where it was stopped",
    )
