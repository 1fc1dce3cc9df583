"""Parts of a report from one answer: what a notebook shows of it, and what `answer.report(path)` writes.

`dryfit.report` asks all questions about a model; an answer alone has the parts for which it is enough.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dryfit.answers.calibration import CalibrationAnswer
from dryfit.answers.check import CheckAnswer
from dryfit.answers.comparison.answer import CompareAnswer
from dryfit.answers.estimate import EstimateAnswer
from dryfit.answers.explain import ExplainAnswer
from dryfit.answers.explain_quantization import QuantizationAnswer
from dryfit.answers.lint import LintAnswer
from dryfit.answers.text import Answer, Line, html_text
from dryfit.errors import ConfigError
from dryfit.reporting.facts import ReportFacts, Variant
from dryfit.reporting.figures import Part
from dryfit.reporting.numerics import Numerics, tensor_ranges
from dryfit.reporting.pages import fragment_text, page_text, write_page
from dryfit.reporting.parts import arithmetic, cost, graph, outcome, qdq, quantization, reasons, timeline
from dryfit.reporting.report import ReportAnswer, layer_data
from dryfit.short_text import count_text


def parts_of_answer(answer: Answer) -> list[Part]:
    """Return the parts of a report that an answer is enough for; none for answers that are not about a model.

    Raises:
        ConfigError: The packages that draw pictures are not installed.
    """
    return list(answer.parts) if isinstance(answer, ReportAnswer) else [one for one in _parts(answer) if one]


def _parts(answer: Answer) -> Iterator[Part | None]:
    match answer:
        case CheckAnswer():
            facts = _facts(answer)
            yield from (outcome.part(facts), graph.part(facts))
        case EstimateAnswer():
            facts = ReportFacts([Variant("", "", "", None, answer, "")])
            yield from (timeline.part(facts), cost.part(facts))
        case ExplainAnswer():
            yield reasons.part(ReportFacts([], answer))
        case QuantizationAnswer():
            assumes = any("--assume-scales" in one for one in answer.assumed)
            found = Numerics(quantization=answer, assumes_scales=assumes)
            yield quantization.part(ReportFacts([], numerics=found))
        case CalibrationAnswer():
            found = Numerics(calibration=answer, tensors=tensor_ranges(answer, None))
            yield quantization.part(ReportFacts([], numerics=found))
        case CompareAnswer():
            found = Numerics(comparison=answer, inputs=count_text(len(answer.samples), "sample"))
            yield arithmetic.part(ReportFacts([], numerics=found))
        case LintAnswer():
            yield qdq.part(ReportFacts([], numerics=Numerics(lint=answer)))


def _facts(answer: CheckAnswer) -> ReportFacts:
    return ReportFacts([Variant("", "", "", answer, None, "")])


def answer_html(answer: Answer) -> str:
    """Return an answer as HTML for a notebook: its parts of a report; its tables where it has none.

    Without the packages that draw pictures, it is the tables and a line that names the packages.
    """
    try:
        parts = parts_of_answer(answer)
    except ConfigError as error:
        return html_text([*answer.blocks(), Line(f"No pictures: {error}")])
    if not parts:
        return html_text(answer.blocks())
    # Cells of a notebook share one page: names of anchors in it must differ.
    prefix = f"d{hashlib.sha256(answer.to_json().encode()).hexdigest()[:8]}-"
    return fragment_text(parts, prefix)


def write_answer(answer: Answer, path: str | os.PathLike[str]) -> None:
    """Write an answer as one HTML file, with its parts of a report, or with its tables where it has none.

    Raises:
        ConfigError: The file cannot be written, or the packages that draw pictures are not installed.
    """
    title = Path(str(getattr(answer, "model", ""))).name or f"dryfit {answer.COMMAND}"
    parts: Sequence[Part] = parts_of_answer(answer)
    if not parts:
        blocks = list(answer.blocks())
        parts = [Part(answer.COMMAND.split()[0], f"dryfit {answer.COMMAND}", answer.summary_line(), blocks=blocks)]
    data = layer_data(answer.facts) if isinstance(answer, ReportAnswer) else {}
    if isinstance(answer, CheckAnswer):
        data = layer_data(_facts(answer))
    write_page(Path(path), page_text(title, answer.summary_line(), parts, data))
