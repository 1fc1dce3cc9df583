"""Calibration on the workers of a dask cluster on this machine, with the bytes of one process."""

import pytest
from tests.core.builder.shard_work import Pictures, network
from tests.core.calibration.test_shards import CALIBRATOR, COUNT, NAMES, task

from dryfit.calibration.calibrate import calibrate_shards
from dryfit.calibration.shards import collect_shards
from dryfit.errors import CalibrationError

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'dryfit[dask]'")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def test_a_cluster_gives_the_bytes_of_one_process(client):
    found = collect_shards(task(), NAMES, client.get_executor(), samples_per_shard=2)
    assert found.to_bytes() == task().run(NAMES).to_bytes()
    assert list(calibrate_shards(network, CALIBRATOR, Pictures(COUNT), client.get_executor())) == list(found.collectors)


def test_a_killed_worker_of_a_cluster_loses_its_shard_only(client, tmp_path):
    source = Pictures(COUNT, tmp_path, deadly="04")
    found = collect_shards(task(source), NAMES, client.get_executor(), samples_per_shard=3)
    assert found.to_bytes() == task().run(NAMES).to_bytes()
    assert len(source.tellings("04")) == 2


def test_a_shard_that_always_kills_is_given_up_and_named(client, tmp_path):
    source = Pictures(COUNT, tmp_path, deadly="04", deaths=99)
    with pytest.raises(CalibrationError, match=r"shard 2 of 3, samples '03' to '05': The worker was lost 3 times"):
        collect_shards(task(source), NAMES, client.get_executor(), samples_per_shard=3)


def test_what_a_sample_is_to_blame_for_comes_back_from_a_cluster(client, tmp_path):
    source = Pictures(COUNT, tmp_path, nan="05")
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample '05': Values must be finite"):
        collect_shards(task(source), NAMES, client.get_executor(), samples_per_shard=3)
