"""The ResNet-50 example: the notebook is the script, and the script goes all the way on small pictures."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def example(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = repository / "examples" / "resnet-50"
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("resnet50", "pictures"):
        sys.modules.pop(name, None)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("resnet_50_notebook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_has_the_cells_of_the_script(example: Path) -> None:
    writer = load(example / "notebook.py")
    kept = json.loads((example / "deploy.ipynb").read_text(encoding="utf-8"))
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in kept["cells"]]
    assert cells == writer.cells((example / "deploy.py").read_text(encoding="utf-8"))


def test_the_notebook_shows_what_a_run_printed(example: Path) -> None:
    kept = json.loads((example / "deploy.ipynb").read_text(encoding="utf-8"))
    shown = "".join("".join(output["text"]) for cell in kept["cells"] for output in cell.get("outputs", ()))
    assert "120 on DLA, 2 on GPU" in shown
    assert "121 on DLA, 1 on GPU" in shown
    assert "--useDLACore=0" in shown


@pytest.mark.nightly  # the guide `calibrate-and-export` takes the same steps, by commands
def test_the_script_goes_from_the_model_to_the_files_for_the_board(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'dryfit[images]'")
    monkeypatch.chdir(tmp_path)
    script = (example / "deploy.py").read_text(encoding="utf-8")
    assert "SIZE, PICTURES = 224, 16" in script
    outputs = load(example / "notebook.py").run(script.replace("SIZE, PICTURES = 224, 16", "SIZE, PICTURES = 64, 4"))
    assert "avgpool" in outputs[1]
    files = tmp_path / "resnet-50-files"
    assert (files / "resnet50.engine").is_file()
    assert "--useDLACore=0" in (files / "build.sh").read_text(encoding="utf-8")
