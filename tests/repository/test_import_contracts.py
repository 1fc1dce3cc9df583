"""Imports run one way; what starts fast stays fast."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from tests.repository.source_trees import nodes_of, tree_of


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after running some code."""
    program = f"import sys\n{code}\nprint('\\n'.join(['MODULES', *sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("MODULES\n")[2].split())


def test_imports_run_one_way(repository: Path) -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


SOURCE_ROOTS = ("core", "targets/cpu", "targets/gpu", "targets/dla", "plugins", "frontends/tensorrt")


def name_of(node: ast.expr) -> str:
    """The last name of `a.b.name`; "" for any other expression."""
    return getattr(node, "attr", getattr(node, "id", ""))


def run_time_imports(tree: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """Modules of the house that a module imports when it is loaded or run, also within functions; types left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        yield from run_time_imports(node, modules)


def first_circle(imports: Mapping[str, Collection[str]]) -> list[str]:
    """Modules that import one another in a circle; [] where there is none."""
    left = {name: set(needed) & imports.keys() - {name} for name, needed in imports.items()}
    while free := {name for name, needed in left.items() if not needed}:
        left = {name: needed - free for name, needed in left.items() if name not in free}
    path = [min(left)] if left else []
    while path and path[-1] not in path[:-1]:
        path.append(min(left[path[-1]]))
    return path[path.index(path[-1]) :] if path else []


def test_no_module_imports_itself_through_others(repository: Path) -> None:
    """Not even from within a function: whoever changes one module of a circle changes them all."""
    files: dict[str, Path] = {}
    for root in SOURCE_ROOTS:
        for file in (repository / root).rglob("*.py"):
            parts = file.relative_to(repository / root).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    circle = first_circle({name: set(run_time_imports(tree_of(file), files)) for name, file in files.items()})
    assert not circle, " -> ".join(circle)


def test_a_circle_is_noticed() -> None:
    assert first_circle({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}) == ["b", "c", "b"]
    assert not first_circle({"a": ["b", "c"], "b": ["c"], "c": []})
    within = ast.parse("def f():\n    from house import room\nif TYPE_CHECKING:\n    from house import roof")
    assert list(run_time_imports(within, {"house.room", "house.roof"})) == ["house.room"]


@pytest.mark.parametrize("arguments", [["--help"], ["targets", "list"], ["check", "--help"], ["--version"]])
def test_help_and_the_list_of_targets_import_neither_numpy_nor_numba(arguments: list[str]) -> None:
    code = f"""
from dryfit.cli.main import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code
"""
    assert not modules_after(code) & {"numpy", "numba", "onnx", "llvmlite", "ml_dtypes"}


def test_importing_dryfit_loads_nothing_heavy() -> None:
    assert not modules_after("import dryfit") & {"numpy", "numba", "onnx", "click", "rich"}


def test_every_public_name_exists_and_is_listed() -> None:
    import dryfit

    assert dryfit.__all__ == sorted(dryfit.__all__)
    for name in dryfit.__all__:
        assert getattr(dryfit, name) is not None
        assert name in dir(dryfit)


def test_the_version_is_that_of_the_installed_package() -> None:
    import dryfit

    assert dryfit.__version__ == importlib.metadata.version("dryfit")
    assert "__version__" not in dryfit.__all__


def test_a_name_that_is_not_public_is_refused_by_name() -> None:
    import dryfit

    with pytest.raises(AttributeError, match="'dryfit' has no attribute 'Bilder'"):
        _ = dryfit.Bilder


def test_what_is_imported_is_declared_and_what_is_declared_is_imported(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        one for name in ("testing", "images", "report", "tflite") for one in project["optional-dependencies"][name]
    ]
    declared = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in (*project["dependencies"], *extras)}
    ours = {"dryfit", "dryfit_cpu", "dryfit_gpu", "dryfit_dla", "dryfit_plugins", "dryfit_tensorrt", "dryfit_tflite"}
    found: set[str] = set()
    for folder in ("core", "targets", "plugins", "frontends"):
        for path in (repository / folder).rglob("*.py"):
            for node in nodes_of(path):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                is_lazy = isinstance(node, ast.Call) and name_of(node.func) == "import_module"
                names += [a.value for a in node.args if isinstance(a, ast.Constant)] if is_lazy else []
                found |= {name.partition(".")[0] for name in names}
    distributions = {"google": "protobuf", "PIL": "pillow", "vl_convert": "vl-convert-python"}
    of_users = {"pycocotools", "torch", "torchmetrics"}  # installed by users who ask for a metric that needs them
    third_party = {distributions.get(name, name) for name in found - ours - of_users - sys.stdlib_module_names}
    assert third_party == declared


def test_only_the_conformance_kits_import_pytest(repository: Path) -> None:
    kits = repository / "core" / "dryfit" / "testing"
    found = [
        path
        for folder in ("core", "targets", "plugins", "frontends")
        for path in (repository / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) pytest\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert kits / "kit.py" in found
    assert not [path for path in found if not path.is_relative_to(kits)]


def test_only_the_doctor_of_plugins_asks_the_conformance_kits(repository: Path) -> None:
    kits = repository / "core" / "dryfit" / "testing"
    assert [
        path.relative_to(repository)
        for folder in ("core", "targets", "plugins", "frontends")
        for path in (repository / folder).rglob("*.py")
        if not path.is_relative_to(kits) and "dryfit.testing" in path.read_text(encoding="utf-8")
    ] == [Path("core/dryfit/answers/target_examination.py")]
