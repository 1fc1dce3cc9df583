"""Show what versions of TensorRT make of a model: `dryfit.compare_versions` and `dryfit compare --api`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from dryfit.answers.asked import Asked, Model, asked, no_defaults, quiet_log
from dryfit.answers.compare import Samples, samples_of
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import Options
from dryfit.answers.text import Answer, Block, Entries, Line, Table, overlay_lines
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, DryfitError, UnknownNameError
from dryfit.network.tensor import Array
from dryfit.short_text import count_text


@frozen
class TensorRTVersion:
    """What distinguishes a version of TensorRT in a build.

    Attributes:
        name: name of the version.
        is_strongly_typed: whether the types of the model hold, and there are neither precision flags nor implicit
            quantization.
        source: document and section.
    """

    name: str
    is_strongly_typed: bool
    source: str


VERSIONS: Mapping[str, TensorRTVersion] = MappingProxyType(
    {
        "8.6": TensorRTVersion("8.6", False, "TensorRT 8.6 developer guide, Reduced Precision"),
        "10.16": TensorRTVersion("10.16", False, "TensorRT 10 developer guide, Weakly typed networks (deprecated)"),
        "11.1": TensorRTVersion("11.1", True, "TensorRT 11 migration guide, Removed: weakly typed networks"),
    }
)
"""The versions by name."""

_ONLY_WEAKLY_TYPED = (
    *("precision", "precision_constraints", "layer_precisions", "layer_output_types"),
    *("calibration_cache", "ranges", "assume_scales"),
)
"""Options that version 11 does not have, by keyword."""


@frozen
class VersionSide:
    """What one version makes of the model.

    Attributes:
        api: version of TensorRT.
        source: document and section that describes how the version chooses types.
        can_be_built: whether an engine can be built.
        errors: why no engine can be built.
        notes: options that do not exist in the version and were left out.
        layers_by_device: number of layers by device; "" for unplaced layers.
        layers_by_precision: number of layers by computation type.
        segments: number of segments by device.
    """

    api: str
    source: str
    can_be_built: bool
    errors: Sequence[str]
    notes: Sequence[str]
    layers_by_device: Mapping[str, Count]
    layers_by_precision: Mapping[str, Count]
    segments: Mapping[str, Count]


@frozen
class VersionPlacement:
    """Where a version runs a layer.

    Attributes:
        device: device that runs the layer; "" if it was not placed.
        precision: computation type of the layer.
    """

    device: str
    precision: str

    def __str__(self) -> str:
        return f"{self.device or '-'} {self.precision}"


@frozen
class VersionLayer:
    """One layer in all versions.

    Attributes:
        layer: name of the layer.
        kind: kind of the layer.
        placements: device and precision by version.
        differs: whether the versions differ.
    """

    layer: str
    kind: str
    placements: Mapping[str, VersionPlacement]
    differs: bool


@frozen
class VersionOutput:
    """An output of the model in all versions that can be built.

    Attributes:
        tensor: name of the output.
        largest_differences: largest difference between elements, compared with the first version that can be built.
        top_changes: number of samples whose largest element is at another place than in that version.
    """

    tensor: str
    largest_differences: Mapping[str, float]
    top_changes: Mapping[str, Count]


@frozen(repr=False, kw_only=True)
class CompareVersionsAnswer(Answer):
    """Placement, precisions and outputs of one model in several versions of TensorRT. Everything is simulated.

    Attributes:
        model: path of the model, or name of the network.
        overlays: active overlays, each with its author, its board and a digest.
        samples: names of the samples.
        reference: version that the outputs are compared with; "" if the model can be built for none.
        versions: versions in the requested order.
        layers: layers in network order.
        outputs: outputs of the model.

    Example:
        >>> answer = dryfit.compare_versions("digits.onnx", ["8.6", "11.1"], data="images.npy", precision="fp16")
        >>> [side.layers_by_precision["FP16"] for side in answer.versions if side.api == "8.6"]
        [14]
    """

    COMMAND: ClassVar[str] = "compare --api"

    model: str
    overlays: Sequence[str]
    samples: Sequence[str]
    reference: str
    versions: Sequence[VersionSide]
    layers: Sequence[VersionLayer]
    outputs: Sequence[VersionOutput]
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the outcome of each version, then the layers that differ, then the outputs."""
        yield Line(f"{self.model} in TensorRT {', '.join(one.api for one in self.versions)}, simulated")
        yield from overlay_lines(self.overlays)
        yield Line(count_text(len(self.samples), "sample"))
        columns = ["version", "builds", "layers by device", "layers by precision", "segments"]
        rows = [(one.api, "yes" if one.can_be_built else "no", *map(_counted, _counts(one))) for one in self.versions]
        yield Table("Versions", columns, rows)
        yield Entries("Not built", [(one.api, error, "") for one in self.versions for error in one.errors])
        reason = "not available in strongly typed networks: the types of the model hold"
        left_out = [(one.api, f"{', '.join(one.notes)}: {reason}", "") for one in self.versions if one.notes]
        yield Entries("Options that were left out", left_out)
        shown = [layer for layer in self.layers if verbose or layer.differs]
        apis = [one.api for one in self.versions]
        if shown:
            title = "Layers" if verbose else "Layers that differ"
            placed = [(one.layer, one.kind, *(str(one.placements.get(api, "-")) for api in apis)) for one in shown]
            yield Table(title, ["layer", "kind", *apis], placed)
        else:
            yield Line("All layers run on the same device in the same precision")
        others = [one.api for one in self.versions if one.can_be_built and one.api != self.reference]
        for output in self.outputs if others else ():
            found = [(api, output.largest_differences[api], output.top_changes[api]) for api in others]
            title = f"Output {output.tensor}, compared with {self.reference}"
            yield Table(title, ["version", "largest difference", "top-1 changes"], found)

    def summary_line(self) -> str:
        """Return how many layers differ, and which versions cannot build the model."""
        failed = [one.api for one in self.versions if not one.can_be_built]
        differing = count_text(sum(one.differs for one in self.layers), "layer")
        return f"{differing} differ" + (f"; not built: {', '.join(failed)}" if failed else "")


def _counts(side: VersionSide) -> tuple[Mapping[str, int], ...]:
    return side.layers_by_device, side.layers_by_precision, side.segments


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name or 'unplaced'}" for name, count in counts.items())


def compare_versions(
    model: Model,
    apis: Sequence[str] = tuple(VERSIONS),
    *,
    data: Samples,
    threads: int | None = None,
    **options: Unpack[Options],
) -> CompareVersionsAnswer:
    """Compare placement, precisions and outputs of a model in several versions of TensorRT.

    Versions 8.6 and 10.16 are weakly typed: the options allow precisions. Version 11.1 is strongly typed: the types of
    the model hold, and options that only weakly typed networks have are left out, with a note.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        apis: versions of `VERSIONS`.
        data: samples; see `Samples`.
        threads: number of host threads; None for one per CPU.
        options: keyword arguments named like the options of `dryfit compare`. `software` cannot be given: it is the
            version.

    Raises:
        UnknownNameError: A version does not exist.
        ConfigError: The options conflict, or a version is named twice.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network's inputs.

    Example:
        >>> answer = dryfit.compare_versions("digits.onnx", ["10.16", "11.1"], data="images.npy", precision="fp16")
        >>> answer.versions[1].notes
        ['--precision']
    """
    _check(apis, options)
    trials = [_trial(VERSIONS[api], model, options) for api in apis]
    outputs, names, reference = _outputs(trials, data, threads)
    return CompareVersionsAnswer(
        model=trials[0].subject.name,
        overlays=list(dict.fromkeys(label for one in trials for label in one.overlays)),
        samples=names,
        reference=reference,
        versions=[_side(trial) for trial in trials],
        layers=_layers(trials),
        outputs=outputs,
        notes=trials[0].subject.notes,
    )


def _check(apis: Sequence[str], options: Mapping[str, Any]) -> None:
    for api in apis:
        if api not in VERSIONS:
            raise UnknownNameError("TensorRT version", api, VERSIONS)
    if not apis or len(set(apis)) != len(apis):
        raise ConfigError(
            "Each version must be listed once",
            found=", ".join(apis),
            remedy="List at least one version, each only once",
        )
    if options.get("software"):
        raise ConfigError(
            "The software version is that of each compared version",
            found=f"--software {options['software']}",
            remedy="Leave it out, or compare devices with `--against dla@8.6,dla@10.16`",
        )


@frozen
class _Trial:
    """A version with what it makes of the model.

    Attributes:
        version: the version.
        subject: model and config.
        notes: options that were left out.
        errors: why it cannot be built.
        overlays: active overlays.
        assessment: the decisions; None if there are none.
        engine: the engine; None if it cannot be built.
    """

    version: TensorRTVersion
    subject: Asked
    notes: Sequence[str]
    errors: Sequence[str]
    overlays: Sequence[str]
    assessment: Assessment | None
    engine: Engine | None


def _trial(version: TensorRTVersion, model: Model, options: Mapping[str, Any]) -> _Trial:
    said = {name: value for name, value in options.items() if value not in (None, (), "")}
    notes: list[str] = []
    if version.is_strongly_typed:
        notes = [f"--{name.replace('_', '-')}" for name in _ONLY_WEAKLY_TYPED if said.pop(name, None)]
        said["strongly_typed"] = True
    subject = asked(model, None, said, defaults=no_defaults)
    errors, overlays = list[str](), list[str]()
    assessment, engine = None, None
    with quiet_log():
        try:
            if "DLA" in (
                subject.config.default_device_type,
                *subject.config.explicit_device_types(subject.network).values(),
            ):
                subject.config.set_software("DLA", version.name)
            overlays = subject.config.overlay_labels
            assessment = assess(subject.network, subject.config)
            errors = [str(error) for error in assessment.errors]
            if assessment.can_be_built:
                engine = Builder().build_engine(subject.network, subject.config)
        except DryfitError as error:
            errors.append(str(error))
    return _Trial(version, subject, notes, list(dict.fromkeys(errors)), overlays, assessment, engine)


def _side(trial: _Trial) -> VersionSide:
    layers = () if trial.assessment is None else trial.assessment.layers
    segments = () if trial.assessment is None else trial.assessment.segments
    return VersionSide(
        api=trial.version.name,
        source=trial.version.source,
        can_be_built=trial.engine is not None,
        errors=trial.errors,
        notes=trial.notes,
        layers_by_device=dict(Counter(one.device for one in layers)),
        layers_by_precision=dict(Counter(one.precision.text for one in layers)),
        segments=dict(Counter(one.device for one in segments)),
    )


def _layers(trials: Sequence[_Trial]) -> list[VersionLayer]:
    """The layers of all versions by name; conversions that only one version has are among them."""
    kinds: dict[str, str] = {}
    placements: dict[str, dict[str, VersionPlacement]] = {}
    for trial in trials:
        for one in () if trial.assessment is None else trial.assessment.layers:
            kinds.setdefault(one.layer, one.kind)
            placed = VersionPlacement(one.device, one.precision.text)
            placements.setdefault(one.layer, {})[trial.version.name] = placed
    count = sum(trial.assessment is not None for trial in trials)
    return [
        VersionLayer(name, kinds[name], found, differs=len(set(found.values())) > 1 or len(found) < count)
        for name, found in placements.items()
    ]


def _outputs(
    trials: Sequence[_Trial], data: Samples, threads: int | None
) -> tuple[list[VersionOutput], list[str], str]:
    """(the compared outputs, names of the samples, the version that they are compared with)."""
    built = [trial for trial in trials if trial.engine is not None]
    if not built:
        return [], [], ""
    first = built[0]
    assert first.engine is not None  # noqa: S101  it was built
    names: list[str] = []
    largest: dict[str, dict[str, float]] = {}
    changes: dict[str, dict[str, int]] = {}
    contexts = {one.version.name: one.engine.create_execution_context(threads) for one in built if one.engine}
    for name, feeds in samples_of(data, first.subject.network, first.engine.plan, None):
        names.append(name)
        results = {api: context.run(feeds) for api, context in contexts.items()}
        own = results[first.version.name]
        for api in list(contexts)[1:]:
            for tensor, expected in own.items():
                found = results[api][tensor]
                by_version = largest.setdefault(tensor, {})
                by_version[api] = max(by_version.get(api, 0.0), _largest_difference(expected, found))
                counted = changes.setdefault(tensor, {})
                counted[api] = counted.get(api, 0) + int(_top(expected) != _top(found))
    outputs = [VersionOutput(tensor, largest[tensor], changes[tensor]) for tensor in largest]
    return outputs, names, first.version.name


def _largest_difference(expected: Array, found: Array) -> float:
    if expected.shape != found.shape:
        return float("inf")
    difference = np.abs(expected.astype(np.float64) - found.astype(np.float64))
    return float(difference.max(initial=0.0))


def _top(array: Array) -> int:
    return int(np.argmax(array.astype(np.float64))) if array.size else -1


__all__ = ["VERSIONS", "CompareVersionsAnswer", "TensorRTVersion", "compare_versions"]
