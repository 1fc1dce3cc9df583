"""Reports of many models on a cluster of dask: the same files as in one process; a lost worker costs its model only."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dryfit
from dryfit.reporting import fleet

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'dryfit[dask]'")
dask = pytest.importorskip("dask")
pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

OPTIONS: dict[str, Any] = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}, "edits": False, "command": "-"}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # else a lost worker is replaced three times
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def models(folder: Path, digits_model: Path, *names: str) -> list[Path]:
    """Copies of a model."""
    folder.mkdir()
    return [Path(shutil.copy(digits_model, folder / f"{name}.onnx")) for name in names]


def test_a_cluster_writes_the_files_of_one_process(client: Any, digits_model: Path, tmp_path: Path) -> None:
    paths = models(tmp_path / "models", digits_model, "first")
    (tmp_path / "models" / "broken.onnx").write_bytes(b"no model")
    paths.append(tmp_path / "models" / "broken.onnx")
    found = dryfit.report_all(paths, tmp_path / "cluster", executor=client.get_executor(), **OPTIONS)
    expected = dryfit.report_all(paths, tmp_path / "here", **OPTIONS)
    assert found.models == expected.models
    assert [Path(one.model).name for one in found.failed] == ["broken.onnx"]
    for page in (tmp_path / "here").iterdir():
        assert (tmp_path / "cluster" / page.name).read_bytes() == page.read_bytes()


def _deadly(model: str, path: str, page: str, options: Any) -> Any:
    if Path(model).stem == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return fleet.FleetModel(model, page)


def test_a_lost_worker_is_the_error_of_its_model(
    client: Any, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_one", _deadly)
    paths = models(tmp_path / "models", digits_model, "first", "deadly")
    found = dryfit.report_all(paths, tmp_path / "site", executor=client.get_executor(), **OPTIONS)
    assert [(one.name, bool(one.error)) for one in found.models] == [("first.onnx", False), ("deadly.onnx", True)]
    assert "deadly.onnx" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
