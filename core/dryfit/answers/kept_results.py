"""Results of a long run in a file, which a later run goes on with."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.network.tensor import Array


def kept_bytes(fingerprint: Mapping[str, str], arrays: Mapping[str, Array], **head: Any) -> bytes:
    """Return the contents of a file with arrays.

    Args:
        fingerprint: texts of all that the results depend on, by what they are.
        arrays: by name.
        head: what else is kept, as JSON takes it.
    """
    stated = json.dumps({"fingerprint": dict(fingerprint), **head})
    target = io.BytesIO()
    named = {f"array{index}": one for index, one in enumerate(arrays.values())}
    np.savez(target, head=np.array(stated), names=np.array(list(arrays), np.str_), **named)  # type: ignore[arg-type]
    return target.getvalue()


def kept_results(data: bytes, fingerprint: Mapping[str, str], where: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what `kept_bytes` was given: the head, and the arrays by name.

    Raises:
        CalibrationError: The file is damaged, or belongs to another run.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            head = json.loads(str(loaded["head"]))
            arrays = {str(name): loaded[f"array{index}"] for index, name in enumerate(loaded["names"])}
        found = dict(head["fingerprint"])
    except Exception as error:  # numpy and zipfile raise many kinds of errors on damaged files
        raise CalibrationError(
            "The stored results cannot be read", where=where, found=error, remedy="Remove the file and run again"
        ) from error
    if found != dict(fingerprint):
        raise CalibrationError(
            "The stored results belong to another run",
            where=where,
            found=", ".join(name for name, text in fingerprint.items() if found.get(name) != text),
            allowed="results of this model, these samples and these options",
            remedy="Choose another file, or remove this one",
        )
    return head, arrays
