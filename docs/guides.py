"""Runs the examples in the guides, so that what they show is what happens.

In a guide, a ```console block is a dialogue: lines that begin with `$ ` are commands, the others what they print. A
```python block is run in the page's own namespace; where a ```text block follows directly, it is what it prints. A
block of any kind that begins with `# file: path` is written to that file. Other blocks are not run. A page's examples
run in order, in an empty folder that has `examples` of the repository in it and that Python finds modules in.

`python docs/guides.py PAGE` prints a page as it should be: each page needs a process of its own, because examples may
register layers and devices.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^```(?P<kind>\w+)\n(?P<body>.*?)^```\n(?P<printed>\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE
)
FILE_MARK = "# file: "
_LONG_NUMBER = re.compile(r"\d+\.\d{5,}(e[+-]\d+)?")


def guide_pages() -> list[Path]:
    """The pages whose examples are run."""
    docs = REPOSITORY / "docs"
    return [REPOSITORY / "README.md", *sorted(docs.glob("tutorial/*.md")), *sorted(docs.glob("how-to/*.md"))]


def is_same_page(one: str, other: str) -> bool:
    """Whether two texts of a page are the same but for what differs between processors.

    Sums of FP32 values are added in another order where vectors are longer, so that the last of six digits may differ,
    and with it the width of a column.
    """
    return _on_any_processor(one) == _on_any_processor(other)


def _on_any_processor(text: str) -> str:
    rounded = _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.4g}", text)
    return re.sub(r" {2,}", "  ", rounded)


def refreshed(page: Path) -> str:
    """The text of a page with the outputs that its examples have now.

    Raises:
        RuntimeError: a command ended with 2, which is an error. (1 is an answer that --fail-on asks about.)
        Exception: whatever a python block raises.
    """
    namespace: dict[str, Any] = {"__name__": page.stem}

    def run_block(match: re.Match[str]) -> str:
        body, printed = match["body"], match["printed"] or ""
        if body.startswith(FILE_MARK):
            _write_file(body)
        elif match["kind"] == "console":
            body = _dialogue(body)
        elif match["kind"] == "python":
            output = _printed(body, namespace, page)
            printed = f"\n```text\n{output}```\n" if printed else ""
        return f"```{match['kind']}\n{body}```\n{printed}"

    with _folder_with_examples():
        return BLOCK.sub(run_block, page.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _folder_with_examples() -> Iterator[None]:
    before, path = Path.cwd(), os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(REPOSITORY / "examples")
        os.chdir(folder)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            os.environ["PATH"] = path
            os.chdir(before)


def _write_file(body: str) -> None:
    first, _, text = body.partition("\n")
    path = Path(first.removeprefix(FILE_MARK))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _dialogue(body: str) -> str:
    commands = [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_output(command)}" for command in commands)


def _output(command: str) -> str:
    words = shlex.split(command)
    program = Path(sys.executable).with_name(words[0])
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "COLUMNS": "120"}
    done = subprocess.run(  # noqa: S603  the guides are ours
        [program, *words[1:]], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"`{command}` ended with {done.returncode}: {done.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def _printed(code: str, namespace: dict[str, Any], page: Path) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(page), "exec"), namespace)  # noqa: S102  the guides are ours
    return output.getvalue()


def page_as_it_should_be(page: Path) -> str:
    """`refreshed` in a process of its own.

    Raises:
        RuntimeError: an example failed.
    """
    command = [sys.executable, __file__, page]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  this script
    if done.returncode:
        raise RuntimeError(f"{page.name}: {done.stderr.decode()}")
    return done.stdout.decode("utf-8")


if __name__ == "__main__":
    sys.stdout.buffer.write(refreshed(Path(sys.argv[1]).resolve()).encode("utf-8"))
