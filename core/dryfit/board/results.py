"""The results that a kit packs on a board, read from an archive that may be damaged or hostile.

`results.zip` has `kit.json` (the manifest of the kit), `board.json` (`BoardFacts`) and for each build a folder
`builds/ID` with `state.json` (`BuildState`) and the files of trtexec: `log.txt`, `layers.json`, `profile.json`,
`times.json`, `output.json`, and `verdicts.json` of TensorRT's Python module. The generated networks of probes are in
`models`. Nothing is extracted: files are read from the archive, each up to a limit.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from dryfit.attrs_classes import frozen
from dryfit.board.kit.archive import Archive, digest_of
from dryfit.board.kit.manifest import KitBuild, KitManifest, damaged, parsed_json
from dryfit.board.logs.raw_lines import RawLine
from dryfit.errors import ConfigError

BOARD = "board.json"
LOG, LAYERS, PROFILE, TIMES, OUTPUT, VERDICTS, STATE = (
    "log.txt",
    "layers.json",
    "profile.json",
    "times.json",
    "output.json",
    "verdicts.json",
    "state.json",
)
BUILD_FILES = (LOG, LAYERS, PROFILE, TIMES, OUTPUT, VERDICTS, STATE)
DONE, FAILED, MISSING = "done", "failed", "missing"
"""States of a build: trtexec succeeded, trtexec failed, or the kit was stopped before it."""


@frozen
class BoardFacts:
    """What the kit found out about its board, without root.

    Attributes:
        model: name of the board in the device tree; "" if unknown.
        release: release of Jetson Linux, such as `R35 (release), REVISION: 4.1`.
        kernel: release of the kernel.
        tensorrt: version of trtexec, such as `8.5.2`; "" if unknown.
        python_tensorrt: version of TensorRT's Python module; "" if there is none.
        power_mode: name of the power mode that `nvpmodel -q` prints; "" if unknown.
        power_limits: limits of clocks in that mode, in Hz, by the names of `/etc/nvpmodel.conf`.
        clocks: clocks that the kernel shows without root, in Hz, by name.
        memory_bytes: memory of the board; 0 if unknown.
    """

    model: str
    release: str
    kernel: str
    tensorrt: str
    python_tensorrt: str
    power_mode: str
    power_limits: Mapping[str, int]
    clocks: Mapping[str, int]
    memory_bytes: int


@frozen
class BuildState:
    """What the kit noted about one build.

    Attributes:
        state: `done`, `failed` or `missing`.
        exit_code: exit code of trtexec; None if it was not run to its end.
        seconds: duration of the build with its measurements.
        arguments: words after the name of the program.
        note: why a part is missing; "" for none.
    """

    state: str
    exit_code: int | None
    seconds: float
    arguments: Sequence[str]
    note: str


@frozen
class PythonVerdict:
    """The answer of `can_run_on_DLA` of TensorRT's Python module for a layer.

    Attributes:
        layer: name of the layer.
        type: TensorRT's type of the layer, such as `CONVOLUTION`.
        on_dla: whether the DLA can run it.
    """

    layer: str
    type: str
    on_dla: bool


@frozen
class InspectedTensor:
    """A tensor at a layer of the engine, as TensorRT's inspector shows it.

    Attributes:
        name: name of the tensor.
        form: its format and type in TensorRT's words; "" if the inspector does not show them.
    """

    name: str
    form: str


@frozen
class InspectedLayer:
    """A layer of the engine, as TensorRT's inspector shows it.

    Attributes:
        name: name of the layer.
        type: TensorRT's type of the layer; "" if the engine was not built with details.
        inputs, outputs: its tensors.
        weights: type of its weights in TensorRT's words; "" if the inspector shows none.
        nodes: ONNX nodes that it was made of; empty if the inspector does not show them.
    """

    name: str
    type: str
    inputs: Sequence[InspectedTensor]
    outputs: Sequence[InspectedTensor]
    weights: str = ""
    nodes: Sequence[str] = ()

    @property
    def computation_type(self) -> str:
        """The type that it computes in: that of its weights, or of its first input; "" if neither is shown."""
        return type_of(self.weights) or next((kind for one in self.inputs if (kind := type_of(one.form))), "")


_TYPES = {
    "fp32": "FP32",
    "float": "FP32",
    "fp16": "FP16",
    "half": "FP16",
    "bfloat16": "BF16",
    "bf16": "BF16",
    "int8": "INT8",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
    "fp8": "FP8",
}
"""TensorRT's words for types in the inspector's JSON, to ours."""


def type_of(text: str) -> str:
    """Return the data type that a text of the inspector names; "" if it names none.

    Example:
        >>> type_of("Channel major FP16 format where channel % 8 == 0")
        'FP16'
    """
    return next((_TYPES[word] for word in re.findall(r"[a-z]+[0-9]*", text.lower()) if word in _TYPES), "")


@frozen
class MeasuredLayer:
    """The measured time of an engine layer.

    Attributes:
        name: name of the layer; a segment of the DLA is one.
        microseconds: median, or mean where the version has no median.
    """

    name: str
    microseconds: float


@frozen
class MeasuredRuns:
    """The measured times of whole runs, without the copies between host and device.

    Attributes:
        count: number of runs.
        median: median in us.
        low, high: 5th and 95th percentile in us.
    """

    count: int
    median: float
    low: float
    high: float


@frozen(eq=False)
class BoardResults:
    """An archive of results, open for reading; use it in a `with` statement.

    Attributes:
        archive: the archive.
        manifest: the kit.
        board: the board.
        digest: SHA-256 of the archive, by which overlays and collections cite it.
    """

    archive: Archive
    manifest: KitManifest
    board: BoardFacts
    digest: str

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> BoardResults:
        """Open an archive.

        Raises:
            ConfigError: It is not an archive of results, it is damaged, or it exceeds the limits.
            OSError: The file cannot be read.
        """
        archive = Archive.open(path)
        try:
            return cls(archive, archive.manifest, archive.record(BoardFacts, BOARD), digest_of(path))
        except BaseException:
            archive.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.__exit__()

    def state(self, build: KitBuild) -> BuildState:
        """Return what the kit noted about a build; a build that it did not come to is `missing`.

        Raises:
            ConfigError: The note is damaged.
        """
        if not self.has(build, STATE):
            return BuildState(MISSING, None, 0.0, (), "the kit was stopped before this build")
        found: BuildState = self.archive.record(BuildState, _path(build, STATE))
        if found.state not in (DONE, FAILED):
            raise self._damaged(build, STATE, f"state {found.state[:40]!r}")
        return found

    def log(self, build: KitBuild) -> Iterator[RawLine]:
        """Iterate over the lines of trtexec's log; none if there is no log."""
        return self.archive.lines(_path(build, LOG))

    def verdicts(self, build: KitBuild) -> Sequence[PythonVerdict]:
        """Return the verdicts of TensorRT's Python module; empty if there are none."""
        data = self._json(build, VERDICTS, list)
        return [self.archive.structured(PythonVerdict, one, _path(build, VERDICTS)) for one in data]

    def layers(self, build: KitBuild) -> Sequence[InspectedLayer]:
        """Return the layers of the engine from the inspector's JSON; empty if there is none."""
        data = self._json(build, LAYERS, dict)
        listed = data.get("Layers", [])
        if not isinstance(listed, list):
            raise self._damaged(build, LAYERS, "Layers is not a list")
        return [self._inspected(build, one) for one in listed]

    def profile(self, build: KitBuild) -> Sequence[MeasuredLayer]:
        """Return the measured times of the engine's layers; empty if there are none."""
        found = []
        for one in self._json(build, PROFILE, list):
            if not isinstance(one, dict) or "name" not in one:
                continue  # the number of runs
            time = one.get("medianMs", one.get("averageMs"))
            found.append(MeasuredLayer(str(one["name"]), self._number(build, PROFILE, time) * 1e3))
        return found

    def runs(self, build: KitBuild) -> MeasuredRuns | None:
        """Return the measured times of whole runs on the device; None if there are none."""
        listed = self._json(build, TIMES, list)
        times = sorted(
            self._number(build, TIMES, one.get("computeMs")) * 1e3 for one in listed if isinstance(one, dict)
        )
        if not times:
            return None
        last = len(times) - 1
        return MeasuredRuns(len(times), statistics.median(times), times[round(0.05 * last)], times[round(0.95 * last)])

    def outputs(self, build: KitBuild) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]:
        """Return shape and values of each output of the last run, by name; empty if there are none."""
        found = {}
        for one in self._json(build, OUTPUT, list):
            try:
                shape = tuple(int(part) for part in str(one["dimensions"]).split("x") if part)
                found[str(one["name"])] = shape, [float(value) for value in one["values"]]
            except (KeyError, TypeError, ValueError) as error:
                raise self._damaged(build, OUTPUT, str(error)) from error
        return found

    def has(self, build: KitBuild, file: str) -> bool:
        """Return whether there is a file of a build."""
        return _path(build, file) in self.archive.files

    # Parts ------------------------------------------------------------------------------------------------------------

    def _inspected(self, build: KitBuild, one: Any) -> InspectedLayer:
        if isinstance(one, str):
            return InspectedLayer(one, "", (), ())
        if not isinstance(one, dict):
            raise self._damaged(build, LAYERS, "a layer is neither a name nor an object")

        def tensors(key: str) -> Sequence[InspectedTensor]:
            listed = one.get(key) or []
            return [InspectedTensor(str(one.get("Name", "")), _form(one)) for one in listed if isinstance(one, dict)]

        weights = one.get("Weights")
        return InspectedLayer(
            name=str(one.get("Name", "")),
            type=str(one.get("LayerType", "")),
            inputs=tensors("Inputs"),
            outputs=tensors("Outputs"),
            weights=str(weights.get("Type", "")) if isinstance(weights, dict) else "",
            nodes=_NODE.findall(str(one.get("Metadata", ""))),
        )

    def _json(self, build: KitBuild, file: str, kind: type) -> Any:
        if not self.has(build, file):
            return kind()
        data, where = self.archive.contents(_path(build, file)), self.archive.where(_path(build, file))
        found = parsed_json(data if file != OUTPUT else _with_numbers(data), where)
        if not isinstance(found, kind):
            raise self._damaged(build, file, f"{type(found).__name__} instead of {kind.__name__}")
        return found

    def _number(self, build: KitBuild, file: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise self._damaged(build, file, f"time {str(value)[:40]}")
        return float(value)

    def _damaged(self, build: KitBuild, file: str, found: str) -> ConfigError:
        return damaged(self.archive.where(_path(build, file)), found)


_NODE = re.compile(r"\[ONNX Layer: ([^\]\x1e]*)\]")
"""An ONNX node in the inspector's `Metadata`, since TensorRT 8.6."""


def _form(tensor: Mapping[str, Any]) -> str:
    """Format and type of a tensor, which TensorRT 11 shows as two members."""
    one = tensor.get("Format/Datatype")
    return str(one) if one is not None else f"{tensor.get('Format', '')} {tensor.get('Datatype', '')}".strip()


def _path(build: KitBuild, file: str) -> str:
    return f"builds/{build.id}/{file}"


def _with_numbers(data: bytes) -> bytes:
    """Return the outputs of trtexec, which writes `nan` and `inf` where Python's reader of JSON knows other words."""
    if not any(word in data for word in (b"nan", b"inf")):
        return data
    text = data.decode("utf-8", "replace")
    before, values, rest = text.partition('"values"')
    parts = [before]
    while values:
        numbers, close, after = rest.partition("]")
        words = numbers.replace("-nan", "NaN").replace("nan", "NaN").replace("inf", "Infinity")
        before, found, rest = after.partition('"values"')
        parts += [values, words, close, before]
        values = found
    return "".join(parts).encode()
