"""Make a report about a model, as one HTML file: `dryfit.report` and `dryfit report`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dryfit.answers.anonymous import anonymous as anonymous_model
from dryfit.answers.asked import Model, loaded_model
from dryfit.answers.explain import ExplainAnswer
from dryfit.answers.json_data import plain
from dryfit.answers.memory_use import MemoryUse
from dryfit.answers.text import Answer, Block, Line, overlay_lines
from dryfit.attrs_classes import frozen
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.json_names import json_names
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.picture_preparation import PicturePreparation
from dryfit.reporting.chart_drawing import start_drawing
from dryfit.reporting.facts import ReportFacts, Variant, gather, with_edits
from dryfit.reporting.figures import Part
from dryfit.reporting.numerics import Numerics, NumericsRequest
from dryfit.reporting.pages import page_text, write_page
from dryfit.reporting.parts import parts_before_search, parts_of
from dryfit.target.limits import shared_answers


@frozen(repr=False)
class ReportAnswer(Answer):
    """The answers about a model that a report shows.

    Attributes:
        model: path of the model file, or name of the network.
        facts: the answers.
        parts: parts of the report, in their order, with the sums, shares and ratios that they state.

    Example:
        >>> answer = dryfit.report("digits.onnx", platform="agx-orin-64", software=["8.6", "10.3"])
        >>> answer.parts[0].finding
        'The model builds on DLA (agx-orin-64 8.6): 10 of 14 layers run on DLA; estimated latency ~690 us ...'
    """

    COMMAND: ClassVar[str] = "report"
    JSON_NAMES = json_names("model variants explanation memory numerics parts")

    model: str
    facts: ReportFacts
    parts: Sequence[Part]

    @property
    def variants(self) -> Sequence[Variant]:
        """The model on each requested board, version and precision; the first one is that of all other answers."""
        return self.facts.variants

    @property
    def explanation(self) -> ExplainAnswer:
        """Why layers leave the device, and which edits would help."""
        return self.facts.explanation

    @property
    def memory(self) -> MemoryUse:
        """What the segments need of their memory pools, and what is live at each step."""
        return self.facts.memory

    @property
    def numerics(self) -> Numerics:
        """What INT8 and the arithmetic of devices do to the numbers of the model."""
        return self.facts.numerics

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the finding of each part; with `verbose` its tables too."""
        yield from overlay_lines(self.facts.check.overlays)
        for part in self.parts:
            yield Line(f"{part.title}: {part.finding}")
            if verbose:
                yield from part.blocks

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{self.model}: {self.parts[0].finding}"

    def to_html(self) -> str:
        """Return the report as one HTML document that needs no other file."""
        return page_text(Path(self.model).name, self.facts.variants[0].title, self.parts, layer_data(self.facts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one HTML file.

        Raises:
            ConfigError: The file cannot be written.
        """
        write_page(Path(path), self.to_html())

    def save_pictures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each picture as an SVG file, named after its part and what it shows; return the files.

        Raises:
            ConfigError: The folder or a file cannot be written.
        """
        written = []
        for part in self.parts:
            for figure in part.figures:
                written.append(Path(folder) / f"{part.name}-{figure.name}.svg")
                write_page(written[-1], figure.file_text())
        return written


def report(
    model: Model,
    *,
    platform: str | Sequence[str] = (),
    software: str | Sequence[str] = (),
    precision: str | Sequence[str] = (),
    edits: bool = True,
    anonymous: bool = False,
    data: str | os.PathLike[str] | SampleSource | None = None,
    limit: int | None = None,
    preparation: PicturePreparation | None = None,
    against: str | Sequence[str] = (),
    engine: str | os.PathLike[str] | None = None,
    command: str = "",
    progress: ProgressMonitor | None = None,
    **options: Any,
) -> ReportAnswer:
    """Answer the questions about a model that decide whether it can ship on a board, as a report.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        platform: board, or several, which are compared; all parts but the comparison are about the first.
        software: version, or several.
        precision: allowed types such as `"fp16,int8"`, or several such lists.
        edits: whether to search for model edits, which takes most of the time.
        anonymous: whether to replace the names of layers and tensors by numbers, and to omit the command line.
        data: samples, for the parts about INT8 and arithmetic: a folder, a file, `module:function`, or a source of
            samples.
        limit: maximum number of samples to read from the start.
        preparation: how pictures become inputs.
        against: sides whose arithmetic is compared, as for `dryfit.compare`. Without `data`, inputs are random.
        engine: engine file to compare instead of an engine that is built from the model.
        command: command line to print in the report; "" for the call that makes it.
        progress: monitor that receives the progress of the search, and can cancel.
        options: other keyword arguments named like the options of `dryfit check`, with the same defaults.

    Raises:
        ConfigError: The options and the model conflict, or the packages that draw pictures are not installed.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        CalibrationError: Samples cannot be read or do not match the network's inputs.
        UnknownNameError: A device, platform or option value does not exist.
        ExecutionError: `progress` cancelled the work.
    """
    if anonymous:
        if data is not None or engine is not None:
            raise ConfigError(
                "A report without names takes neither samples nor an engine, which name tensors",
                where="anonymous",
                found="data" if engine is None else "engine",
                remedy="Leave it out, or the anonymity; `against` compares with random inputs",
            )
        with anonymous_model(model, options) as (renamed, given):
            return report(
                renamed,
                platform=platform,
                software=software,
                precision=precision,
                edits=edits,
                against=against,
                progress=progress,
                command="(omitted)",
                **given,
            )
    start_drawing()
    values = [[one] if isinstance(one, str) else list(one) for one in (platform, software, precision)]
    loaded, options = loaded_model(model, options)
    with shared_answers():
        facts = gather(
            loaded,
            platforms=values[0],
            software=values[1],
            precisions=values[2],
            options=options,
            command=command or f"dryfit.report({model if isinstance(model, str) else '...'})",
            numerics=NumericsRequest(
                data=os.fspath(data) if isinstance(data, os.PathLike) else data,
                limit=limit,
                preparation=preparation,
                against=[against] if isinstance(against, str) else list(against),
                engine=None if engine is None else os.fspath(engine),
            ),
        )
        if not edits:
            return ReportAnswer(facts.check.model, facts, parts_of(facts))
        made = parts_before_search(facts)
        facts = with_edits(facts, loaded, options, progress)
        return ReportAnswer(facts.check.model, facts, parts_of(facts, made))


def layer_data(facts: ReportFacts) -> Any:
    """Return what the page shows of a layer that is chosen: its placement and its verdicts, in the order of `check`."""
    return {"layers": [plain(layer) for layer in facts.check.layers]}
