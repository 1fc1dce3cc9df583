"""Hostile names in every place of a model: no command prints what steers a terminal or looks like a line of its own."""

from __future__ import annotations

import io
import json
import logging
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit.answers.json_data import json_text
from dryfit.answers.text import Entries, Table
from dryfit.cli import console
from dryfit.cli.log import log_to_stderr
from dryfit.engine.progress import TerminalProgress

STEERING = "\x1b[31m\x1b]0;title\x07\b\x7f\x9b\x85\u061c\u200e\u202e\u2066\u2028\ufeff[/]\r"
"""A colour, a title, C0, DEL, C1, bidirectional controls, a line separator, rich's markup, a carriage return."""

FORGED = f"{STEERING}\nError: forged\0"
"""With what a calibration cache in text cannot hold: line ends."""


def steered(text: str) -> list[str]:
    """What a terminal might obey, and lines that a name began."""
    raw = {repr(one) for one in text if not one.isprintable() and one not in "\n\t"}
    return sorted(raw) + re.findall(r"^\s*Error: forged", text, re.MULTILINE)


class Names:
    """Makes models whose every name ends in a hostile text."""

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def __call__(self, name: str) -> str:
        return name + self.ending

    def node(self, operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(
            operator, [self(one) for one in inputs.split()], [self(output)], name=self(operator), **attributes
        )

    def model(
        self, *more: onnx.NodeProto, shape: Any = (1, 3, 8, 8), output: str = "y", functions: Any = (), **sets: int
    ) -> onnx.ModelProto:
        rng = np.random.default_rng(0)
        weights = {"w": rng.standard_normal((8, 3, 3, 3)), "b": np.ones(8), "s": np.array(0.02)}
        tensors = [numpy_helper.from_array(np.zeros((), np.int8), self("zp"))]
        tensors += [numpy_helper.from_array(array.astype(np.float32), self(name)) for name, array in weights.items()]
        graph = helper.make_graph(
            [
                self.node("Conv", "x w b", "a", pads=[1] * 4),
                self.node("Relu", "a", "r"),
                self.node("Elu", "r", "e"),
                self.node("GlobalAveragePool", "e", "y"),
                *more,
            ],
            self("graph"),
            [helper.make_tensor_value_info(self("x"), TensorProto.FLOAT, list(shape))],
            [helper.make_tensor_value_info(self(output), TensorProto.FLOAT, None)],
            tensors,
        )
        opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(self(name), 1) for name in sets)]
        return helper.make_model(
            graph, opset_imports=opsets, functions=list(functions), producer_name=self("p"), ir_version=8
        )

    def refused(self) -> dict[str, onnx.ModelProto]:
        """Models that are mostly refused, each for another reason."""
        within = [helper.make_node(self("Frobnicate"), [self("i")], [self("o")])]
        function = helper.make_function(
            self("d"), self("F"), [self("i")], [self("o")], within, [helper.make_opsetid("", 17)]
        )
        external = self.model()
        external.graph.initializer[0].ClearField("raw_data")
        external.graph.initializer[0].data_location = TensorProto.EXTERNAL
        entry = external.graph.initializer[0].external_data.add()
        entry.key, entry.value = "location", self("file")
        return {
            "operator": self.model(self.node(self("Frobnicate"), "y", "z"), output="z"),
            "domain": self.model(self.node("Frobnicate", "y", "z", domain=self("d")), output="z", d=1),
            "attribute": self.model(self.node("Resize", "y", "z", mode=self("m")), output="z"),
            "attribute name": self.model(self.node("Relu", "y", "z", **{self("k"): self("v")}), output="z"),
            "equation": self.model(self.node("Einsum", "y y", "z", equation=self("ab,ab->ab")), output="z"),
            "missing": self.model(self.node("Add", "y nowhere", "z"), output="z"),
            "twice": self.model(self.node("Relu", "y", "a")),
            "no output": self.model(output="nowhere"),
            "dimension": self.model(shape=(self("n"), 3, self("n"), 8)),
            "function": self.model(
                self.node(self("F"), "y", "z", domain=self("d")), output="z", d=1, functions=[function]
            ),
            "external": external,
        }

    def quantized(self) -> onnx.ModelProto:
        model = self.model(self.node("QuantizeLinear", "y s zp", "q"), self.node("DequantizeLinear", "q s zp", "z"))
        model.graph.output[0].name = self("z")
        return model


@pytest.mark.parametrize("ending", [STEERING, FORGED], ids=["steering", "forged"])
@pytest.mark.parametrize("reason", list(Names("").refused()))
def test_why_a_model_is_refused_steers_no_terminal(
    dryfit_command: Any, tmp_path: Path, reason: str, ending: str
) -> None:
    onnx.save(Names(ending).refused()[reason], tmp_path / "m.onnx")
    for options in (["--precision", "fp16"], ["--precision", "int8", "--verbose"]):
        ended = dryfit_command("check", tmp_path / "m.onnx", "--device", "DLA", *options)
        assert ended.code in {0, 2}
        assert not steered(ended.out)
        assert not steered(ended.err)


COMMANDS = """
check M --device DLA --precision fp16 --verbose
check M --device DLA --precision fp16 --format junit
check M --device DLA --precision fp16 --format sarif
check M --quantize-method onnx
check M --device NAME
check NAME
estimate M --device DLA --fallback GPU
explain M
place M
place M --output T/place.json
check M --placement T/place.json
build M --output T/cpu.engine --verbose --refit
build M --output T/dla.engine --device DLA --precision fp16 --fallback GPU --verbose
inspect T/cpu.engine
run T/cpu.engine --random 1 --profile
run T/cpu.engine --random 1 --output-dir T/outputs
export trtexec M
export loadables M --output T --device DLA --precision fp16 --fallback GPU
calibrate M --data T/data --output T/cache
cache show T/cache
cache check T/cache M
cache convert T/cache --to json --output T/cache.json
cache show T/cache.json
cache diff T/cache T/cache.json
cache merge T/cache T/cache.json --output T/merged
compare M --data T/data
qdq lint M
qdq lint M --format junit
sparsity check M
sparsity prune M --output T/pruned.onnx
translate M --to implicit --output T/translated
refit T/cpu.engine --onnx M --output T/refitted.engine
""".strip().splitlines()
WITH_JSON = {"check", "estimate", "explain", "inspect", "run", "compare", "calibrate", "sparsity"}


@pytest.mark.parametrize("ending", [STEERING, FORGED], ids=["steering", "forged"])
@pytest.mark.parametrize("is_quantized", [False, True], ids=["floats", "quantized"])
def test_no_command_prints_what_steers_a_terminal(
    dryfit_command: Any, tmp_path: Path, ending: str, is_quantized: bool
) -> None:
    names = Names(ending)
    onnx.save(names.quantized() if is_quantized else names.model(), tmp_path / "m.onnx")
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "one.npy", np.random.default_rng(1).random((1, 3, 8, 8), np.float32))
    places = {"M": str(tmp_path / "m.onnx"), "NAME": ending.replace("\0", "")}
    refused = {}
    for line in COMMANDS:
        words = [places.get(word, word.replace("T/", f"{tmp_path}/")) for word in line.split()]
        words = [str(tmp_path) if word == "T" else word for word in words]
        ended = dryfit_command(*words)
        assert ended.code in {0, 1, 2}, ended.err
        assert not steered(ended.out), line
        assert not steered(ended.err), line
        if ended.code:
            refused[line] = ended.err
        if "junit" in line and ended.code == 0:
            assert ET.fromstring(ended.out).tag == "testsuites"  # noqa: S314  our own document
        if not is_quantized and words[0] in WITH_JSON and "--format" not in words and ended.code == 0:
            document = dryfit_command(*words, "--json")
            assert not steered(document.out), line
            assert document.code == 2 or document.json
    assert len(refused) <= (10 if ending == FORGED or is_quantized else 2), list(refused)


def test_json_keeps_every_name_as_it_is() -> None:
    data = {"name": f"naïve 名 \U0001f600 \U000e0041 {FORGED}", "list": ["\x85"]}
    printed = json_text(data)
    assert json.loads(printed) == data
    assert not steered(printed)
    assert "naïve 名 \U0001f600 \\udb40\\udc41 " in printed


@pytest.mark.parametrize("is_terminal", [False, True])
def test_tables_lists_and_notes_escape_and_read_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    terminal = io.StringIO()
    if is_terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "400")
    table = Table(f"title {FORGED}", ["one", "two"], [[f"cell {FORGED}", [FORGED, FORGED]]])
    console.show([table, Entries(f"title {FORGED}", [(FORGED, FORGED, FORGED)])])
    console.print_line(STEERING)
    console.print_note(STEERING)
    printed = capsys.readouterr()
    out = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()) if is_terminal else printed.out
    assert not [one for one in steered(out) if "forged" not in one]
    assert out.count("\\x1b[31m") == 9
    assert not steered(printed.err)


def test_the_log_and_the_progress_escape(capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_stderr(logging.INFO):
        logging.getLogger("dryfit.test").warning("layer %s", STEERING)
    assert not steered(capsys.readouterr().err)
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    with TerminalProgress(terminal) as progress:
        progress.phase_start(FORGED, None, 1)
        progress.step_complete(FORGED, 0)
        progress.phase_finish(FORGED)
    assert "]0;title" not in terminal.getvalue().replace("\\x1b]0;title", "")
    assert not {"\x9b", "\u202e", "\x07"} & set(terminal.getvalue())
