"""The texts of a model: each is UTF-8, which protobuf does not check when it reads a message of this syntax."""

from __future__ import annotations

import functools
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

from dryfit.errors import OnnxImportError


def check_texts(model: onnx.ModelProto, where: str) -> None:
    """Check every text field of a model: names, operators, domains, locations of external data.

    Raises:
        OnnxImportError: one is not UTF-8.
    """
    waiting: list[tuple[Any, str]] = [(model, "")]
    while waiting:
        message, path = waiting.pop()
        for name, is_list, is_text in _fields(message.DESCRIPTOR):
            if not is_list and not is_text and not message.HasField(name):
                continue
            here = f"{path}.{name}" if path else name
            try:
                found = getattr(message, name)
                values = list(found) if is_list else [found]
            except UnicodeDecodeError as error:
                raise _problem(where, here, error.object) from error
            for index, value in enumerate(values):
                place = f"{here}[{index}]" if is_list else here
                if not is_text:
                    waiting.append((value, place))
                elif isinstance(value, bytes):
                    raise _problem(where, place, value)


def _problem(where: str, place: str, found: bytes) -> OnnxImportError:
    return OnnxImportError(
        "A text of the model is not UTF-8",
        where=where,
        found=f"{place} is {found[:64]!r}",
        remedy="The file is damaged",
    )


@functools.cache
def _fields(descriptor: Any) -> list[tuple[str, bool, bool]]:
    """(name, whether it is a list, whether it is a text) of each field of a message that is a text or a message."""
    kinds = {FieldDescriptor.TYPE_MESSAGE: False, FieldDescriptor.TYPE_STRING: True}
    return [(field.name, _is_list(field), kinds[field.type]) for field in descriptor.fields if field.type in kinds]


def _is_list(field: Any) -> bool:
    # Newer protobufs have the property, and warn of the label; older ones have the label only.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)
