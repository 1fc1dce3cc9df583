"""Runs the examples in the guides, so that what they show is what happens.

In a guide, a ```console block is a dialogue: lines that begin with `$ ` are commands, the others what they print. A
```python block is run in the page's own namespace; where a ```text block follows directly, it is what it prints. A
block of any kind that begins with `# file: path` is written to that file. Other blocks are not run. A page's examples
run in order, in an empty folder that has `examples` of the repository in it and that Python finds modules in.

Each page and each command has a process of its own, because examples may register layers and devices. These are forks
of one process that has imported dryfit: `python docs/guides.py` reads requests, one per line of JSON, and answers each
with a line of JSON. A request is the path of a page, or a command for `run_command`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from forked_commands import Ended, exit_code, fork, import_everything, run_command

REPOSITORY = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^```(?P<kind>\w+)\n(?P<body>.*?)^```\n(?P<printed>\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE
)
FILE_MARK = "# file: "
_ENGINE_SIZE = re.compile(r"(?<=engine layers, )\d+\.\d KiB")
_NUMBER = re.compile(r"\d+\.(?P<decimals>\d+)(e[+-]\d+)?")


def guide_pages() -> list[Path]:
    """The pages whose examples are run."""
    docs = REPOSITORY / "docs"
    return [REPOSITORY / "README.md", *sorted(docs.glob("tutorial/*.md")), *sorted(docs.glob("how-to/*.md"))]


def is_same_page(one: str, other: str) -> bool:
    """Whether two texts of a page are the same but for what differs between processors and versions of NumPy.

    Sums of FP32 values are added in another order where vectors are longer, so that the last of six digits may differ,
    and with it the width of a column. So may the last of three digits with one decimal, as in a ratio in dB. A ratio
    above 100 dB compares FP32 with its own rounding errors, and differs more. The size of an engine depends on the
    kernels that were the fastest when it was built.
    """
    one, other = _ENGINE_SIZE.sub("KiB", one), _ENGINE_SIZE.sub("KiB", other)
    texts = [re.sub(r" {2,}", "  ", _NUMBER.sub("0.0", text)) for text in (one, other)]
    pairs = zip(_NUMBER.finditer(one), _NUMBER.finditer(other), strict=False)
    return texts[0] == texts[1] and all(_is_same_number(*pair) for pair in pairs)


def _is_same_number(one: re.Match[str], other: re.Match[str]) -> bool:
    if one[0] == other[0]:
        return True
    decimals, smaller = {len(one["decimals"]), len(other["decimals"])}, min(float(one[0]), float(other[0]))
    if max(decimals) > 4:
        return math.isclose(float(one[0]), float(other[0]), rel_tol=1e-4)
    tolerance = 2e-3 if smaller < 100 else 5e-3
    return (
        decimals == {1}
        and smaller >= 10
        and math.isclose(float(one[0]), float(other[0]), rel_tol=tolerance, abs_tol=0.11)
    )


RunCommand = Callable[[list[str], str, dict[str, str]], Ended]
"""From a command's words, its folder and its environment to how it ended."""


def refreshed(page: Path, run: RunCommand) -> str:
    """The text of a page with the outputs that its examples have now.

    Args:
        page: the page.
        run: runs `dryfit` in a process that no example of the page has changed.

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
            body = _dialogue(body, run)
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


def _dialogue(body: str, run: RunCommand) -> str:
    commands = [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_output(command, run)}" for command in commands)


def _output(command: str, run: RunCommand) -> str:
    words, folder = shlex.split(command), str(Path.cwd())
    environment = {**os.environ, "PYTHONPATH": folder, "COLUMNS": "120"}
    ended = (run if words[0] in {"dryfit", "python"} else _in_new_process)(words, folder, environment)
    if ended.code not in (0, 1):
        raise RuntimeError(f"`{command}` ended with {ended.code}: {ended.err}")
    return "".join(f"{line.rstrip()}\n" for line in ended.out.splitlines())


def _in_new_process(words: list[str], folder: str, environment: dict[str, str]) -> Ended:
    program = Path(sys.executable).with_name(words[0])
    done = subprocess.run(  # noqa: S603  the guides are ours
        [program, *words[1:]], capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    return Ended(done.returncode, done.stdout, done.stderr)


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
    text, error = _asked(str(page))
    if text is None:
        raise RuntimeError(f"{page.name}: {error}")
    return str(text)


def run_in_fork(words: list[str], folder: str, environment: dict[str, str]) -> Ended:
    """`run_command`, in a fork of the process whose forks run pages."""
    return Ended(*_asked([words, folder, environment]))


def _asked(request: object) -> Any:
    asking, answers = _server()
    asking.write(json.dumps(request) + "\n")
    asking.flush()
    return json.loads(answers.readline())


@functools.cache
def _server() -> tuple[Any, Any]:
    """What the process reads and writes whose forks run pages; it ends with this one."""
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  this script
    return server.stdin, server.stdout


def _answer(page: Path) -> tuple[str | None, str]:
    """The text of a page, or None and why there is none. The page's fork asks this process to run its commands."""
    ours, theirs = Pipe()

    def work() -> None:
        ours.close()
        sys.stdout = sys.stderr  # this process's own answer is all that goes there
        theirs.send(("answer", _tried(page, theirs)))

    child = fork(work)
    theirs.close()
    answer: tuple[str | None, str] = (None, "the process that ran its examples ended")
    with contextlib.suppress(EOFError), ours:
        while (asked := ours.recv())[0] == "command":
            ours.send(run_command(*asked[1:]))
        answer = asked[1]
    exit_code(child)
    return answer


def _tried(page: Path, server: Connection) -> tuple[str | None, str]:
    def run(*command: Any) -> Ended:
        server.send(("command", *command))
        ended: Ended = server.recv()
        return ended

    try:
        return refreshed(page, run), ""
    except Exception:  # noqa: BLE001  whatever a python block raises
        return None, traceback.format_exc()


if __name__ == "__main__":
    import_everything()
    for line in sys.stdin:
        request = json.loads(line)
        answer = _answer(Path(request).resolve()) if isinstance(request, str) else run_command(*request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
