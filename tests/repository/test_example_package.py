"""The example of a stranger's package is what the guide shows, and as small as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MODULES = ("__init__", "device", "kernels")


@pytest.mark.parametrize("module", MODULES)
def test_the_guide_shows_the_files_of_the_example(repository: Path, module: str) -> None:
    guide = (repository / "docs/tutorial/write-a-target.md").read_text(encoding="utf-8")
    shown = re.search(rf"```python\n# file: dryfit_npu/{module}\.py\n(.*?)```", guide, re.DOTALL)
    assert shown is not None
    assert shown[1] == (repository / f"examples/dryfit-npu/dryfit_npu/{module}.py").read_text(encoding="utf-8")


def test_the_example_is_under_a_hundred_lines(repository: Path) -> None:
    files = sorted((repository / "examples/dryfit-npu/dryfit_npu").glob("*.py"))
    assert {file.stem for file in files} == set(MODULES)
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert sum(lengths.values()) < 100
    readme = (repository / "examples/dryfit-npu/README.md").read_text(encoding="utf-8")
    for name, length in lengths.items():
        assert re.search(rf"`dryfit_npu/{name}` \| .* \| {length} \|", readme), name
