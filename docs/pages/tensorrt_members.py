"""The page of what the TensorRT modules do not support, and what they accept without effect, from their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dryfit_tensorrt.namespace import Namespace, namespace
from dryfit_tensorrt.settings import API_LEVELS
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.unsupported import reason
from dryfit_tensorrt.surface.without_effect import CALLS_WITHOUT_EFFECT, WITHOUT_EFFECT

_HEAD = """# Members of the TensorRT modules

Written by `make docs` from the tables of `dryfit_tensorrt.surface`.

The modules `dryfit_tensorrt.trt8`, `trt10` and `trt11` have every class, member, enumeration and value of the Python
modules of TensorRT 8.6.1, 10.16 and 11.1, and no other: a member that a version lacks is absent. Everything is
simulated.
[Run TensorRT programs](../how-to/run-tensorrt-programs.md) shows how programs get them.
"""


def members_page() -> str:
    """The page, in Markdown."""
    spaces = {level.version: namespace(level) for level in API_LEVELS}
    return "\n".join(
        [
            _HEAD,
            *_counts(spaces),
            "",
            "## Not supported",
            "",
            "Each of these raises `UnsupportedError`, which is a `NotImplementedError` and a `DryfitError`.",
            "",
            "| class | members | versions | reason |",
            "|---|---|---|---|",
            *_rows(spaces, Origin.REFUSED),
            "",
            "## Accepted without effect",
            "",
            "Each of these can be set, read or called, and changes nothing.",
            "",
            "| class | members | versions | reason |",
            "|---|---|---|---|",
            *_rows(spaces, Origin.STORED),
            "",
        ]
    )


def _counts(spaces: dict[str, Namespace]) -> Iterator[str]:
    yield f"| | {' | '.join(spaces)} |"
    yield "|---|" + "---|" * len(spaces)
    counted = [Counter(space.origins.values()) for space in spaces.values()]
    for origins, text in (
        ((Origin.OWN, Origin.FORWARDED), "members that work"),
        ((Origin.STORED,), "accepted without effect"),
        ((Origin.REFUSED,), "not supported"),
    ):
        yield f"| {text} | {' | '.join(str(sum(one[origin] for origin in origins)) for one in counted)} |"


def _rows(spaces: dict[str, Namespace], origin: Origin) -> Iterator[str]:
    versions: dict[tuple[str, str], list[str]] = {}
    for version, space in spaces.items():
        for place, found in space.origins.items():
            if found is origin:
                versions.setdefault(place, []).append(version)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for (owner, member), found_in in sorted(versions.items()):
        groups.setdefault((owner, ", ".join(found_in), _why(owner, member, origin)), []).append(f"`{member}`")
    for (owner, shown, why), members in groups.items():
        yield f"| `{owner}` | {', '.join(members)} | {shown} | {why} |"


def _why(owner: str, member: str, origin: Origin) -> str:
    if origin is Origin.REFUSED:
        return reason(owner, member)
    return (WITHOUT_EFFECT.get((owner, member)) or CALLS_WITHOUT_EFFECT[owner, member])[1]
