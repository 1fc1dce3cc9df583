"""What every answer can do: be read as a record, as data, as JSON, as text, and in a notebook."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, ClassVar

from dryfit.answers.json_data import json_schema, json_text, plain
from dryfit.answers.text import Block, html_text, plain_text


class Answer(abc.ABC):
    """The base of answers: frozen attrs records with the fields that their JSON has.

    Derive with `@attrs.frozen(repr=False)`, so that the short representation here counts.
    """

    COMMAND: ClassVar[str]
    """The command that prints the answer."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain dictionaries, lists, texts and numbers: what `--json` prints."""
        data: dict[str, Any] = plain(self)
        return data

    def to_json(self) -> str:
        """The answer as one JSON document."""
        return json_text(self.to_dict())

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON Schema of `to_json`."""
        return json_schema(cls, f"dryfit {cls.COMMAND} --json")

    @abc.abstractmethod
    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """The answer as lines, tables and lists: what the command prints.

        Args:
            verbose: also what `--verbose` shows.
        """

    @abc.abstractmethod
    def summary_line(self) -> str:
        """The answer in one line."""

    def __str__(self) -> str:
        return plain_text(self.blocks())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary_line()}>"

    def _repr_html_(self) -> str:
        return html_text(self.blocks())
