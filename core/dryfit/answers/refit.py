"""List the weights of an engine that can be refitted, and refit them: `dryfit refit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from dryfit.answers.json_data import Count
from dryfit.answers.text import Answer, Block, Line, Table, bytes_text
from dryfit.attrs_classes import frozen
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.engine.refit_record import RefittableWeights
from dryfit.errors import OnnxImportError
from dryfit.onnx.refitter import OnnxParserRefitter

LISTED_REASONS = 20
"""Reasons against a model that are listed."""


@frozen(repr=False)
class RefitAnswer(Answer):
    """The refittable weights of an engine.

    Attributes:
        engine: path of the engine file that was written; with --list, of the file that was read.
        engine_bytes: size of the engine file in bytes.
        stripped: whether the engine has no weights.
        weights: the refittable weights.
    """

    COMMAND: ClassVar[str] = "refit"

    engine: str
    engine_bytes: Count
    stripped: bool
    weights: Sequence[RefittableWeights]
    _summary: str

    def summary_line(self) -> str:
        """Return a one-line summary: the weights that can be refitted, or that were."""
        return self._summary

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit refit --list` prints."""
        yield Line(self.summary_line())
        rows = [
            (one.name, one.dtype.text, one.shape, ", ".join(f"{at.layer} {at.role.name}" for at in one.places))
            for one in self.weights
        ]
        yield Table("Weights", ["name", "type", "shape", "layer and role"], rows)


def refittable_weights(engine_file: Path) -> RefitAnswer:
    """Return the weights of an engine that can be refitted.

    Raises:
        EngineFileError: The file is corrupt, or belongs to another version.
        ConfigError: The engine was built without the flag REFIT.
    """
    engine = Engine.load(engine_file)
    Refitter(engine)  # refuses an engine whose weights stay
    return _answer(engine, engine_file, refit_line(engine.plan))


def refit(engine_file: Path, model: Path, output: Path) -> RefitAnswer:
    """Write an engine with the weights of another model.

    Args:
        engine_file: path of an engine that was built with the flag REFIT or STRIP_PLAN.
        model: path of the ONNX model that the engine was built from, possibly retrained.
        output: path of the engine to write; may be the same as `engine_file`.

    Raises:
        EngineFileError: The file is corrupt or belongs to another version, or the new file cannot be written.
        ConfigError: The engine was built without the flag REFIT.
        OnnxImportError: The model does not match the engine; the message lists all reasons.
    """
    engine = Engine.load(engine_file)
    refitter = Refitter(engine)
    parser = OnnxParserRefitter(refitter)
    if not parser.refit_from_file(model):
        reasons = [parser.get_error(index).desc() for index in range(parser.num_errors)]
        raise OnnxImportError(
            "The model does not match the engine",
            where=f"file {str(model)!r}",
            found="".join(f"\n  {reason}" for reason in reasons[:LISTED_REASONS]),
            remedy="Use the model that the engine was built from (retrained or not), or build an engine from this one",
        )
    refitter.refit_cuda_engine()
    engine.save(output)
    weights = 0 if engine.plan.refit is None else len(engine.plan.refit.weights)
    return _answer(engine, output, f"{output}: {weights} weights from {model}, {bytes_text(output.stat().st_size)}")


def _answer(engine: Engine, file: Path, summary: str) -> RefitAnswer:
    record = engine.plan.refit
    return RefitAnswer(
        engine=str(file),
        engine_bytes=file.stat().st_size,
        stripped=engine.is_stripped,
        weights=[] if record is None else list(record.weights),
        summary=summary,
    )


def refit_line(plan: Plan) -> str:
    """Return one line on what a refit of the engine can change; "" for nothing."""
    record = plan.refit
    if record is None:
        return ""
    size = sum(one.dtype.bytes_of(one.size) for one in record.weights)
    which = "takes the weights that it was built with" if record.is_identical else "takes new weights"
    state = ", and has none before a refit" if record.is_stripped else ""
    return f"Refittable: {which}, {len(record.weights)} of {bytes_text(size)} in all{state}"
