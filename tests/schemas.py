"""Answers against their JSON Schemas, each of which is itself checked once: that takes longer than any answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import jsonschema


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    found = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def validate(answer: object, schema: Mapping[str, Any]) -> None:
    """Raise jsonschema.ValidationError for an answer that does not fit, and SchemaError for a schema that is none."""
    _validator(json.dumps(schema)).validate(answer)
