"""Engine files as somebody would forge them: changed, with all digests made right again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.engine.container import ArrayEntry, chunks, json_text


def split(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header without metadata, manifest, and data of an engine file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    manifest = json.loads(header.pop("__metadata__")["manifest"])
    return header, manifest, data[8 + length :]


def forged(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with a changed manifest. Arrays stay as they were, whatever the manifest now says of them."""
    header, manifest, contents = split(data)
    names = [entry["name"] for entry in manifest["arrays"]]
    arrays = [np.frombuffer(contents[slice(*header[name]["data_offsets"])], np.uint8) for name in names]
    honest = [ArrayEntry(e["name"], e["dtype"], tuple(e["shape"]), e["sha256"]) for e in manifest["arrays"]]
    change(manifest)
    return b"".join(chunks(json_text(manifest), honest, arrays))


def with_header(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with a changed safetensors header, metadata included; the manifest's digest stays as it was."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]
