"""`dryfit.tune` and `dryfit.sensitivity` on the workers of a dask cluster on this machine: what one process gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.answers.test_tune import files_of, four

import dryfit

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'dryfit[dask]'")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture
def model_and_samples(tmp_path):
    onnx.save(four("Relu(a)"), tmp_path / "four.onnx")
    np.save(tmp_path / "samples.npy", np.random.default_rng(5).standard_normal((12, 8, 6, 6)).astype(np.float32))
    return tmp_path / "four.onnx", tmp_path / "samples.npy"


def test_a_cluster_makes_the_plan_of_one_process(client, model_and_samples, tmp_path):
    plans = {}
    for name, executor in (("alone", None), ("cluster", client.get_executor())):
        dryfit.tune(
            *model_and_samples,
            tmp_path / name,
            steps=["scales", "mixed-precision"],
            target=100.0,
            max_macs=0.3,
            threads=1,
            executor=executor,
        )
        plans[name] = files_of(tmp_path / name)
    assert {"model.onnx", "model.cache", "plan.json"} <= set(plans["alone"])
    assert plans["cluster"] == plans["alone"]


def test_a_cluster_finds_the_sensitivity_of_one_process(client, model_and_samples):
    alone, cluster = (
        dryfit.sensitivity(*model_and_samples, threads=1, executor=executor).to_json()
        for executor in (None, client.get_executor())
    )
    assert cluster == alone
