"""Draws the pictures of the documentation from what commands print, into `docs/pictures`.

`make pictures`. Terminals and the placement are SVG files; the report is a screenshot, for which `chromium` is needed.
"""

from __future__ import annotations

import html
import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import dryfit

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
MODEL = "examples/digits/digits.onnx"
DIGITS = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}, "precision": "fp16"}

TERMINALS = {
    "check.svg": f"dryfit check {MODEL} --platform agx-orin-64 --fp16 --shape image=1x1x8x8",
    "explain-rule.svg": "dryfit explain-rule dla.convolution.kernel",
}
"""Picture to the command that it shows."""

COLUMNS = 100
THEME = TerminalTheme(
    (27, 31, 36),
    (222, 226, 230),
    [
        (27, 31, 36),
        (224, 108, 117),
        (125, 219, 168),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (222, 226, 230),
    ],
    [
        (92, 99, 112),
        (224, 108, 117),
        (125, 219, 168),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (255, 255, 255),
    ],
)

# Rich's own format loads a font from the network, which no picture inside a page may do.
TERMINAL = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 16px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""  # noqa: E501  a stylesheet

DEVICE_COLORS = {"DLA": "#1f8a5b", "GPU": "#b4690e", "CPU": "#4a6fa5"}


def main() -> None:
    """Draw all of them."""
    os.chdir(REPOSITORY)
    PICTURES.mkdir(exist_ok=True)
    for name, command in TERMINALS.items():
        console = Console(record=True, width=COLUMNS, file=io.StringIO())
        console.print(Text.assemble(("$ ", "bold"), command, "\n"), Text.from_ansi(terminal_output(command)), sep="")
        console.save_svg(str(PICTURES / name), title="", theme=THEME, code_format=TERMINAL, unique_id=Path(name).stem)
    answer = dryfit.check(MODEL, **DIGITS)
    (PICTURES / "placement.svg").write_text(placement_picture(answer), encoding="utf-8")
    (PICTURES / "pipeline.svg").write_text(pipeline_picture(), encoding="utf-8")
    (PICTURES / "house.svg").write_text(house_picture(), encoding="utf-8")
    screenshot(notebook_page(answer), PICTURES / "report.png")


def terminal_output(command: str) -> str:
    """What a command prints on a terminal of `COLUMNS` columns, escape codes included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    program, *words = command.split()
    process = subprocess.Popen(  # noqa: S603  our own command
        [Path(sys.executable).with_name(program), *words], stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    pieces = []
    while piece := _read(ours):
        pieces.append(piece)
    if process.wait():
        raise RuntimeError(f"`{command}` ended with {process.returncode}")
    return b"".join(pieces).decode().replace("\r\n", "\n").rstrip("\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the terminal's other end is closed
        return b""


# The placement --------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, GAP, PER_ROW = 132, 54, 12, 7


def placement_picture(answer: dryfit.CheckAnswer) -> str:
    """The layers of a network as boxes in the colors of their devices, with the rules that refused some."""
    layers = answer.layers
    rows = -(-len(layers) // PER_ROW)
    width, height = PER_ROW * (WIDTH + GAP) + GAP, rows * (HEIGHT + 46) + 56
    boxes = "\n".join(piece for index, layer in enumerate(layers) for piece in _box(index, layer))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
        f'<rect width="{width}" height="{height}" rx="10" fill="#f6f8fa"/>\n{boxes}\n'
        f"{''.join(_legend(answer, height - 22))}</svg>\n"
    )


def _box(index: int, layer: object) -> Iterator[str]:
    row, column = divmod(index, PER_ROW)
    x, y = GAP + column * (WIDTH + GAP), GAP + 6 + row * (HEIGHT + 46)
    middle = x + WIDTH / 2
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{DEVICE_COLORS[layer.device]}"/>'
    yield _text(middle, y + 23, layer.name, 14 if len(layer.name) < 15 else 12, "#ffffff", "bold")
    yield _text(middle, y + 42, f"{layer.kind.replace('_', ' ')} · {layer.device}", 11, "#ffffff")
    for violation in layer.violations("DLA")[:1]:
        yield _text(middle, y + HEIGHT + 16, violation.rule.removeprefix("dla."), 11, "#8a4b00")
    if column < PER_ROW - 1:
        yield f'<path d="M{x + WIDTH} {y + HEIGHT / 2} h{GAP}" stroke="#57606a" stroke-width="2"/>'


def _legend(answer: dryfit.CheckAnswer, y: float) -> Iterator[str]:
    counts = answer.summary.layers_by_device
    words = ", ".join(f"{count} layers on {device}" for device, count in counts.items())
    yield _text(
        GAP,
        y,
        f"digits.onnx on Jetson AGX Orin 64 GB, FP16: {words}; below a box: the DLA rule that refused it",
        13,
        "#24292f",
        anchor="start",
    )


def _text(x: float, y: float, text: str, size: int, color: str, weight: str = "normal", anchor: str = "middle") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{html.escape(text)}</text>\n"
    )


# Diagrams ------------------------------------------------------------------------------------------------------------

PIPELINE = (
    ("ONNX model", "or add_* methods"),
    ("Network", "verified"),
    ("canonicalise", "fold, remove, claim"),
    ("find scales", "INT8"),
    ("place", "verdicts, votes"),
    ("cut and try", "segments and formats"),
    ("choose kernels", "by measurement"),
    ("pack weights", "per kernel"),
    ("compile kernels", "for this CPU"),
    ("plan memory", "and write the plan"),
    ("Engine", "one file"),
    ("check stops here", "assessment"),
)
"""The stages of a build in their order; the last is where `check` leaves it, after *cut and try*."""

HOUSE = (
    ("cli", "one file for each command"),
    ("answers", "one public function and record for each question"),
    ("board", "what trtexec and TensorRT's API take"),
    ("onnx", "import, edits, translation"),
    ("building · calibration · builder", "a network becomes a plan"),
    ("engine", "plan, file, execution"),
    ("passes · plugins", "rewrites; installed packages"),
    ("target · quantization", "records of devices; calibrators, Q/DQ"),
    ("network · reference", "layers; what each kind means, in numpy"),
)
"""Floors of the core from the top: each imports only those below it."""


def pipeline_picture() -> str:
    """The stages of a build, from the model to the engine."""
    width, height, step = 1010, 250, 166
    pieces = [f'<rect width="{width}" height="{height}" rx="10" fill="#f6f8fa"/>\n']
    for index, (title, note) in enumerate(PIPELINE):
        row, column = divmod(index, 6)
        x, y = 12 + column * step, 22 + row * 114
        is_end = title in {"ONNX model", "Engine", "check stops here"}
        pieces.append(
            f'<rect x="{x}" y="{y}" width="146" height="72" rx="6" fill="{"#1f8a5b" if is_end else "#4a6fa5"}"/>'
        )
        pieces.append(_text(x + 73, y + 32, title, 14, "#ffffff", "bold") + _text(x + 73, y + 52, note, 11, "#ffffff"))
        if column < 5 and index < len(PIPELINE) - 2:
            pieces.append(_arrow(f"M{x + 146} {y + 36} h14"))
    pieces += [_arrow("M915 94 v20 H85 v16"), _arrow("M915 94 v36")]
    return _picture(width, height, pieces)


def house_picture() -> str:
    """The packages: targets, plugins and frontends above the floors of the core."""
    width, floor = 1010, 44
    height = 110 + len(HOUSE) * floor
    pieces = [f'<rect width="{width}" height="{height}" rx="10" fill="#f6f8fa"/>\n']
    above = (
        ("cpu · gpu · dla", "devices as records", 12),
        ("plugins", "calibrators, layers, methods", 261),
        ("tensorrt", "TensorRT's modules, on public names", 510),
        ("others", "packages of strangers", 759),
    )
    for title, note, x in above:
        pieces.append(f'<rect x="{x}" y="14" width="239" height="52" rx="6" fill="#b4690e"/>')
        pieces.append(_text(x + 120, 36, title, 14, "#ffffff", "bold") + _text(x + 120, 54, note, 11, "#ffffff"))
        pieces.append(_arrow(f"M{x + 120} 66 v14"))
    for index, (title, note) in enumerate(HOUSE):
        y = 88 + index * floor
        pieces.append(f'<rect x="12" y="{y}" width="986" height="{floor - 6}" rx="5" fill="#4a6fa5"/>')
        pieces.append(
            _text(28, y + 24, title, 14, "#ffffff", "bold", "start")
            + _text(330, y + 24, note, 12, "#ffffff", anchor="start")
        )
    return _picture(width, height, pieces)


def _arrow(path: str) -> str:
    return f'<path d="{path}" stroke="#57606a" stroke-width="2" fill="none" marker-end="url(#tip)"/>\n'


def _picture(width: float, height: float, pieces: Sequence[str]) -> str:
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
        f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#57606a"/></marker></defs>\n{"".join(pieces)}</svg>\n'
    )


# The report -----------------------------------------------------------------------------------------------------------


def notebook_page(answer: dryfit.CheckAnswer) -> str:
    """A page that shows an answer as a notebook does."""
    code = f"dryfit.check({MODEL!r}, {', '.join(f'{name}={value!r}' for name, value in DIGITS.items())})"
    style = """body { font: 13px/1.45 sans-serif; margin: 16px; color: #24292f; width: 1068px }
        pre { background: #f6f8fa; border: 1px solid #d0d7de; border-radius: 6px; padding: 10px; font-size: 13px }
        table { border-collapse: collapse; margin: 8px 0 } th, td { text-align: left; padding: 3px 10px }
        tr:nth-child(even) td { background: #f6f8fa } th { border-bottom: 1px solid #8c959f }"""
    return f"<!doctype html><style>{style}</style><pre>{html.escape(code)}</pre>{answer._repr_html_()}"


def screenshot(page: str, picture: Path) -> None:
    """Save a page as a picture."""
    chromium: Sequence[str] = [name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)]
    if not chromium:
        print(f"{picture.name} is left as it is: chromium is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
        command = [chromium[0], *options, "--window-size=1100,740", f"--screenshot={picture}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  our own page


if __name__ == "__main__":
    main()
