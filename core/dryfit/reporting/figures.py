"""Parts and pictures of a report. Charts are Vega-Lite specifications, drawn as SVG without a browser.

Colors are names of CSS variables, so that a picture follows the light or dark theme of its page; a picture that is
written as a file of its own carries their values for the light theme.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.text import Block
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.json_names import json_names
from dryfit.reporting.chart_drawing import drawing, is_installed
from dryfit.short_text import printable, short_name

WIDTH = 500
"""Pixels of a chart's plotting area; the page scales it to the width of its column."""
SMALL_WIDTH = 328
"""Pixels of a small picture with its axes."""


@frozen
class Figure:
    """A picture.

    Attributes:
        name: name of its file, without the ending.
        title: what it shows, in a few words.
        description: what can be seen in it, for readers who do not see it.
        svg: the SVG element, which may still be being drawn.
        is_map: whether the page lets the reader zoom, pan and search in it.
        is_small: whether several fit beside each other; at most `SMALL_WIDTH` wide, so that phones need not shrink it.
    """

    name: str
    title: str
    description: str
    _svg: str | Future[str]
    is_map: bool = False
    is_small: bool = False

    @property
    def svg(self) -> str:
        """The SVG element, once it is drawn."""
        return self._svg if isinstance(self._svg, str) else _scaled(self._svg.result())

    @property
    def markup(self) -> str:
        """The SVG element with its title and description."""
        label = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        role = "group" if self.is_map else "img"  # an image has no links inside
        return re.sub(r"^<svg([^>]*)>", rf'<svg role="{role}"\1>{_literal(label)}', self.svg, count=1)

    def file_text(self) -> str:
        """An SVG file with the colors of the light theme."""
        style = f"<style>svg{{background:#fff}}\n{theme()}</style>"
        return re.sub(r"^<svg([^>]*)>", rf"<svg\1>{_literal(style)}", self.markup, count=1) + "\n"


@frozen
class Part:
    """A part of a report.

    Attributes:
        name: name of its anchor, and beginning of the names of its pictures.
        title: heading.
        finding: one sentence with what was found.
        figures: pictures.
        blocks: lines and tables below the pictures.
        details: lines and tables that are shown on request.
        basis: what is estimated or simulated in this part; "" if nothing is.
        numbers: what the part states besides the numbers of its answers: sums, shares and ratios of them, by name.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("name title finding basis numbers")

    name: str
    title: str
    finding: str
    figures: Sequence[Figure] = ()
    blocks: Sequence[Block] = ()
    details: Sequence[Block] = ()
    basis: str = ""
    numbers: Mapping[str, Any] = attrs.field(factory=dict)


def _literal(text: str) -> str:
    return text.replace("\\", r"\\")


# Charts ---------------------------------------------------------------------------------------------------------------

_AXIS = {
    "domainColor": "var(--line)",
    "gridColor": "var(--line)",
    "tickColor": "var(--line)",
    "labelColor": "var(--text)",
    "titleColor": "var(--text)",
    "titleFontWeight": "normal",
    "labelFontSize": 12,
    "titleFontSize": 12,
}
_CONFIG = {
    "aria": False,  # the picture has one title and one description
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisQuantitative": {"tickCount": 6},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelColor": "var(--text)",
        "titleColor": "var(--text)",
        "titleFontWeight": "normal",
    },
    "header": {"labelColor": "var(--text)", "titleColor": "var(--text)"},
    "text": {"color": "var(--text)"},
    "bar": {"color": "var(--device-0)"},
    "rule": {"color": "var(--text)"},
    "point": {"color": "var(--device-0)", "filled": True},
}


def chart(name: str, title: str, description: str, specification: Mapping[str, Any]) -> Figure:
    """Return a Vega-Lite chart, which is drawn in a process of its own.

    Args:
        name: name of its file, without the ending.
        title: what it shows, in a few words.
        description: what can be seen in it, for readers who do not see it.
        specification: Vega-Lite specification with its data, without `$schema` and `config`.

    Raises:
        ConfigError: vl-convert is not installed.
    """
    if not is_installed():
        raise ConfigError(
            "Reports need vl-convert, which draws charts",
            found="it is not installed",
            remedy="Run: pip install 'dryfit[report]'",
        )
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **specification, "config": _CONFIG}
    return Figure(name, title, description, drawing(json.dumps(whole)))


@frozen
class Legend:
    """What the colors of a chart mean.

    Attributes:
        field: name of the values' field.
        colors: color by value of that field, in order.
        title: heading; "" for none.
        is_shown: whether the picture has the legend, or says the same otherwise.
    """

    field: str
    colors: Mapping[str, str]
    title: str = ""
    is_shown: bool = True

    @property
    def encoding(self) -> dict[str, Any]:
        """The color encoding of Vega-Lite."""
        return {
            "field": self.field,
            "type": "nominal",
            "title": self.title or None,
            "scale": {"domain": list(self.colors), "range": list(self.colors.values())},
            "legend": {"orient": "top", "symbolType": "square", "symbolOpacity": 1} if self.is_shown else None,
        }


def bars(
    values: Sequence[Mapping[str, Any]],
    rows: str,
    amount: str,
    title: str,
    *,
    legend: Legend | None = None,
    order: Sequence[str] | str | None = None,
    stacked_by: str = "",
    width: int = WIDTH,
    row_height: int = 20,
    longest_label: int = 300,
    has_names: bool = True,
    **axis: Any,
) -> dict[str, Any]:
    """Return the specification of a chart of horizontal bars.

    Values of the same row are stacked.

    Args:
        values: data of the bars.
        rows: field with the names of the rows.
        amount: field with the lengths.
        title: title of the axis, with its unit.
        legend: what the colors mean; None for one color.
        order: names of all rows in order, or `-x` for the longest first; None for the order of `values`.
        stacked_by: field by which the pieces of a bar are ordered; "" for none.
        width: pixels of the plotting area.
        row_height: pixels of a row.
        longest_label: pixels of the names.
        has_names: whether the names are shown; not in a panel beside one that shows them.
        axis: properties of the axis of the lengths.
    """
    names = {"labelLimit": longest_label} if has_names else None
    encoding: dict[str, Any] = {
        "y": {"field": rows, "type": "nominal", "title": None, "sort": order, "axis": names},
        "x": {"field": amount, "type": "quantitative", "title": title, "axis": axis},
    }
    if order is not None and not isinstance(order, str):
        encoding["y"]["scale"] = {"domain": list(order)}
    if legend is not None:
        encoding["color"] = legend.encoding
    if stacked_by:
        encoding["order"] = {"field": stacked_by, "type": "nominal"}
    return {
        "width": width,
        "height": {"step": row_height},
        "data": {"values": list(values)},
        "mark": "bar",
        "encoding": encoding,
    }


def _scaled(svg: str) -> str:
    """Remove fixed sizes, so that the page decides; the view box keeps the shape.

    On a narrow page the picture is as small as its text stays readable, and can be scrolled.
    """
    head, rest = svg.split(">", 1)
    width = re.search(r' width="([\d.]+)"', head)
    head = re.sub(r' (?:width|height|version|class)="[^"]*"', "", head)
    head += (
        f' style="max-width:{1.25 * float(width[1]):.0f}px;min-width:{0.75 * float(width[1]):.0f}px"' if width else ""
    )
    # Roles of single marks, which Vega writes for its groups: the picture is one image with one description.
    return f"{head}>{re.sub(_ROLES, '', rest)}"


_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')


def device_color(device: str | None, devices: Sequence[str]) -> str:
    """Return the color of a device: each has the same one in all pictures of a report."""
    place = next((index for index, one in enumerate(devices) if one == device), None)
    return "var(--unplaced)" if place is None else f"var(--device-{place % COLORS})"


LONGEST_LABEL = 44
"""Characters of a name in a picture; tables have more of it."""


def label(name: str) -> str:
    """Return a name as pictures show it: short, and without control characters."""
    return short_name(printable(name, kept=""), LONGEST_LABEL)


def percent(share: float, decimals: int = 0) -> str:
    """Return a share as text: `87 %`."""
    if not share:
        return "0 %"
    least = 10.0**-decimals
    return f"less than {least:g} %" if 0 < 100 * share < least / 2 else f"{100 * share:.{decimals}f} %"


def time_unit(nanoseconds: float) -> tuple[str, float]:
    """Return the unit of an axis up to this time, and its length in nanoseconds."""
    return ("ms", 1e6) if nanoseconds >= 1e6 else ("us", 1e3)


COLORS = 6
"""Number of device colors of the style sheet."""


def color_scale(devices: Sequence[str]) -> dict[str, Any]:
    """Return a Vega-Lite color scale for devices."""
    return {"domain": list(devices), "range": [device_color(one, devices) for one in devices]}


def theme() -> str:
    """Return the variables of the light theme from the style sheet."""
    text = (Path(__file__).parent / "page" / "report.css").read_text(encoding="utf-8")
    return text[text.index(":root {") : text.index("}") + 1]
