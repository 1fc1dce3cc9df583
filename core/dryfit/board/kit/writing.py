"""The kit as an archive: scripts, manifest, models and a README, the same bytes for the same kit."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from importlib.resources import files

from dryfit.board.kit.archive import MANIFEST
from dryfit.board.kit.manifest import KitManifest
from dryfit.short_text import count_text

TOP = "dryfit-kit"
"""The folder that the archive unpacks to."""
_TIME = (2020, 1, 1, 0, 0, 0)
_FILE, _PROGRAM = 0o644, 0o755
_README = """# Kit for {platform}

Builds {models} on the board with trtexec and measures them, to compare dryfit's expectations with it.
It needs JetPack 4.6, 5 or 6 with TensorRT (`apt install libnvinfer-bin`), and neither root nor a network. TensorRT's
Python module (`apt install python3-libnvinfer`) is used where it is installed.

## On the board

```sh
python3 -m zipfile -e kit.zip .     # or: unzip kit.zip
cd {top}
sh run.sh --list                    # what is built, how long it takes, what the results contain
sh run.sh                           # builds, measures and packs results.zip
```

A call continues where an earlier one was stopped: by Ctrl+C, a reboot or a full disk. `sh run.sh --again ID` runs a
build again. For times that can be compared, choose the power mode first (`nvpmodel -m`) and fix the clocks
(`jetson_clocks`); the board requires root for both, and the kit only reads the mode.

Before the first build has ended, its duration is estimated: {runs} of measurement for each build, and {per_layer} s
for each layer (trtexec took 14.7 s for a network of some 50 layers on an AGX Orin: dusty-nv/jetson-inference, issue
1838). Then it follows from the builds that have ended.

## What results.zip contains

{contents}

Nothing is sent anywhere. The files are in `work`, to be looked at before.

## Back at dryfit

```sh
dryfit board read results.zip{kit_option}
```

## Builds

{builds}
"""


def kit_bytes(manifest: KitManifest, data: Mapping[str, bytes]) -> bytes:
    """Return the archive.

    Args:
        manifest: the table of contents.
        data: models and scales by their paths in the kit.
    """
    contents: dict[str, tuple[bytes, int]] = {
        "README.md": (readme(manifest).encode(), _FILE),
        "run.sh": (_script("run.sh"), _PROGRAM),
        "on_board.py": (_script("on_board.py"), _FILE),
        MANIFEST: (manifest.to_json(), _FILE),
        **{name: (data[name], _FILE) for name in sorted(data)},
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (text, permissions) in contents.items():
            entry = zipfile.ZipInfo(f"{TOP}/{name}", _TIME)
            entry.external_attr = (0o100000 | permissions) << 16
            entry.create_system = 3  # Unix, whose permissions these are
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return stream.getvalue()


def readme(manifest: KitManifest) -> str:
    """Return the README of a kit."""
    builds = "\n".join(f"* `{one.id}`: {one.title} ({count_text(one.layers, 'layer')})" for one in manifest.builds)
    needs_kit = any(one.purpose == "model" for one in manifest.builds)
    return _README.format(
        platform=manifest.platform,
        models=count_text(len({one.model for one in manifest.builds}), "model"),
        top=TOP,
        runs=f"{manifest.measured_seconds:g} s",
        per_layer=f"{manifest.seconds_per_layer:g}",
        contents="\n".join(f"* {line}" for line in manifest.contents),
        kit_option=" --kit kit.zip" if needs_kit else "",
        builds=builds,
    )


def _script(name: str) -> bytes:
    return files("dryfit.board.kit").joinpath(name).read_bytes()
