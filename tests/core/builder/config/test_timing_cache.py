"""Timing caches as text, in files, and among builds that run at once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.core.builder.networks import chain
from tests.core.builder.rival_kernels import install

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.timing_cache import (
    SharedTimingCache,
    TimingCache,
    TimingCacheKey,
    load_timing_cache,
    save_timing_cache,
)
from dryfit.building import Builder
from dryfit.errors import ConfigError
from dryfit.target.tactics import TIER_VARIABLE, processor_name, timing_file

KEY = TimingCacheKey("activation(%0) FLOAT[8] -> FLOAT[8]", "acme.relu", 1, "any")
OTHER = TimingCacheKey("activation(%0) FLOAT[8] -> FLOAT[8]", "acme.other", 1, "any")
HEADER = '{"dryfit timing cache": 1, "processor": "p"}'
LINE = '{"group": "g", "kernel": "acme.relu", "version": 1, "layout": "any", "microseconds": 2}'


def cache_of(*entries, name=None):
    cache = TimingCache(name)
    for key, time in entries:
        cache.update(key, time)
    return cache


# Text -----------------------------------------------------------------------------------------------------------------


def test_a_cache_survives_being_written_and_read():
    cache = cache_of((KEY, 2.5), (OTHER, 7.0))
    read = TimingCache.parse(cache.serialize())
    assert {key: read.query(key) for key in read.query_keys()} == {KEY: 2.5, OTHER: 7.0}
    assert read.processor == processor_name()
    assert read.serialize() == cache.serialize()


def test_the_text_is_sorted_whatever_the_order_of_measuring():
    assert cache_of((KEY, 1.0), (OTHER, 2.0)).serialize() == cache_of((OTHER, 2.0), (KEY, 1.0)).serialize()


def test_a_number_may_be_edited():
    text = cache_of((KEY, 2.5)).serialize().replace(b"2.5", b"9")
    assert TimingCache.parse(text).query(KEY) == 9.0


def test_an_empty_text_is_an_empty_cache_of_this_machine():
    config = BuilderConfig()
    cache = config.create_timing_cache(b"")
    assert not cache.query_keys()
    assert cache.query(KEY) is None
    assert config.set_timing_cache(cache)
    assert config.get_timing_cache() is cache


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("not a cache", "f.jsonl, line 1: The line is not a timing cache entry"),
        ('{"dryfit timing cache": 2, "processor": "p"}', "line 1: The timing cache has an unsupported format (found 2"),
        (f"{HEADER}\n{LINE}\n{LINE}", "line 3: Duplicate timing cache entry"),
        (f"{HEADER}\n{LINE}\n[1]", "line 3: The line is not a timing cache entry"),
        (f"{HEADER}\n{LINE.replace('2}', '-1}')}", "line 2: A kernel's time must be greater than 0 (found -1.0"),
        (f"{HEADER}\n{LINE.replace('2}', 'NaN}')}", "line 2: A kernel's time must be greater than 0 (found nan"),
        (f"{HEADER}\n{LINE.replace('2}', 'true}')}", "line 2: The line is not a timing cache entry"),
        (f"{HEADER}\n{LINE.replace('group', 'gruop')}", "line 2: The line is not a timing cache entry"),
        (f"{HEADER}\n{LINE.replace('1,', '1.0,')}", "line 2: The line is not a timing cache entry"),
        (f"{HEADER}\n{'[' * 100_000}", "line 2: The line is not a timing cache entry"),
        (
            f"{HEADER}\n{LINE.replace('2}', '1' * 400 + '}')}",
            "line 2: A kernel's time must be greater than 0 (found inf",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_file_and_number(text, told, tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_timing_cache(path)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_bytes_that_are_no_text_are_no_timing_cache():
    with pytest.raises(ConfigError, match="The file is not a timing cache"):
        TimingCache.parse(b"\xff\xfe\x00")


def test_what_a_cache_knows_wins_over_what_is_combined_with_it():
    cache = cache_of((KEY, 1.0))
    assert cache.combine(cache_of((KEY, 5.0), (OTHER, 6.0)))
    assert (cache.query(KEY), cache.query(OTHER)) == (1.0, 6.0)
    cache.reset()
    assert not cache.query_keys()


def test_caches_of_two_processors_are_not_combined_unless_asked():
    cache, foreign = cache_of(), cache_of((KEY, 1.0), name="another")
    with pytest.raises(ConfigError, match=r"The timing cache must be measured on this processor.*found another"):
        cache.combine(foreign)
    assert cache.combine(foreign, ignore_mismatch=True)
    assert cache.query(KEY) == 1.0


def test_no_kernel_takes_no_time():
    with pytest.raises(ConfigError, match=r"acme\.relu.*greater than 0"):
        cache_of((KEY, 0.0))


# Files ----------------------------------------------------------------------------------------------------------------


def test_saving_completes_a_file_and_changes_nothing_in_it(tmp_path):
    path = tmp_path / "deep" / "times.jsonl"
    save_timing_cache(cache_of((KEY, 1.0)), path)
    save_timing_cache(cache_of((KEY, 5.0), (OTHER, 6.0)), path)
    found = load_timing_cache(path)
    assert (found.query(KEY), found.query(OTHER)) == (1.0, 6.0)
    before = path.stat().st_mtime_ns
    save_timing_cache(cache_of((KEY, 9.0)), path)
    assert path.stat().st_mtime_ns == before


def test_a_file_of_another_processor_is_not_added_to(tmp_path):
    path = tmp_path / "times.jsonl"
    save_timing_cache(cache_of((KEY, 1.0), name="another"), path)
    with pytest.raises(ConfigError, match="The timing cache must be measured on this processor"):
        save_timing_cache(cache_of((OTHER, 1.0)), path)
    assert load_timing_cache(path).query(OTHER) is None


def test_a_folder_is_no_timing_cache(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_timing_cache(tmp_path)


def test_processes_that_save_at_once_lose_nothing(tmp_path):
    path = tmp_path / "times.jsonl"
    program = (
        "import sys; from pathlib import Path\n"
        "from dryfit.builder.config.timing_cache import TimingCache, TimingCacheKey\n"
        "from dryfit.builder.config.timing_cache import save_timing_cache\n"
        "for n in range(10):\n"
        "    cache = TimingCache(); cache.update(TimingCacheKey(f'{sys.argv[2]} {n}', 'acme.relu', 1, 'any'), 1.0)\n"
        "    save_timing_cache(cache, Path(sys.argv[1]))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(path), str(n)]) for n in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(load_timing_cache(path).query_keys()) == 30


def test_the_tier_that_is_asked_for_is_part_of_the_processor(monkeypatch):
    plain = processor_name()
    monkeypatch.setenv(TIER_VARIABLE, "avx2")
    assert processor_name() == f"{plain}, tier avx2"


# The shared cache -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An own cache folder, and a process that has measured nothing."""
    monkeypatch.setattr("dryfit.target.tactics.cache_folder", lambda: tmp_path)
    monkeypatch.setattr(SharedTimingCache, "_measured", {})
    return tmp_path


def acme_plan():
    config = BuilderConfig()
    config.default_device_type = "ACME_FAST"
    return Builder().build_plan(chain("r"), config)


def test_builds_share_a_file_of_the_users_cache_folder(folder, monkeypatch):
    install(monkeypatch)
    acme_plan()
    (path,) = folder.rglob("*.jsonl")
    assert path == timing_file()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("kernel") for line in lines] == [None, "acme.brisk", "acme.toilsome"]
    text = path.read_text().replace(f'"microseconds": {lines[1]["microseconds"]}', '"microseconds": 1e9')
    path.write_text(text)
    assert acme_plan().operations[0].kernel == "acme.toilsome"


def test_a_build_without_rival_kernels_neither_reads_nor_writes_it(folder):
    Builder().build_plan(chain("c", "r"), BuilderConfig())
    assert not list(folder.iterdir())


def test_a_damaged_shared_file_is_set_aside_with_a_warning_and_measured_again(folder, monkeypatch, caplog):
    install(monkeypatch)
    timing_file().parent.mkdir()
    timing_file().write_text("damage")
    acme_plan()
    assert timing_file().with_suffix(".damaged").read_text() == "damage"
    assert "line 1: The line is not a timing cache entry" in caplog.text
    assert "renamed to" in caplog.text
    assert len(load_timing_cache(timing_file()).query_keys()) == 2


def test_a_folder_that_cannot_be_written_costs_measuring_only(folder, monkeypatch):
    install(monkeypatch)
    (folder / "timing").write_text("no folder")
    first = acme_plan().operations[0].kernel
    shared = SharedTimingCache()
    assert [key.kernel for key in shared.cache.query_keys()] == ["acme.brisk", "acme.toilsome"]
    assert acme_plan().operations[0].kernel == first
