"""The folder of caches and the secret: only what this user made is believed, and nothing stands in the way of a run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dryfit.errors import ConfigError
from dryfit.target import cache_folder, kept_files

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no numbers of users")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache folder and a secret that are not there yet, and a folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv(cache_folder.ENVIRONMENT_VARIABLE, str(tmp_path / "home" / "cache"))
    monkeypatch.setenv(kept_files.ENVIRONMENT_VARIABLE, str(tmp_path / "home" / "data" / "cache.key"))
    monkeypatch.setattr(cache_folder.tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "home" / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_that_are_made_are_private_whatever_the_umask(cache):
    before = os.umask(0)
    try:
        assert cache_folder.cache_folder() == cache
        kept_files.write(cache / "kernels" / "salt" / "a.o", b"code")
        kept_files.cache_key()
    finally:
        os.umask(before)
    made = [cache.parent, cache, cache / "kernels", cache / "kernels" / "salt", cache.parent / "data"]
    assert [mode(path) for path in made] == [0o700] * 5
    assert mode(cache / "kernels" / "salt" / "a.o") == mode(cache.parent / "data" / "cache.key") == 0o600


def test_what_was_kept_is_read_again(cache):
    kept_files.write(cache / "kernels" / "a.o", b"code")
    assert kept_files.read(cache / "kernels" / "a.o") == b"code"


def test_a_folder_that_others_can_write_to_is_not_used(cache, caplog):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    used = cache_folder.cache_folder()
    assert used.parent.name == "temporary"
    assert mode(used) == 0o700
    cache_folder.cache_folder()
    (told,) = caplog.messages
    assert "others can write to it (mode 0777)" in told
    assert str(used) in told
    assert cache_folder.ENVIRONMENT_VARIABLE in told
    with pytest.raises(ConfigError, match="others can write"):
        cache_folder.require_usable()


@pytest.mark.parametrize("obstacle", ["link", "writable", "file"])
def test_a_folder_among_temporary_files_that_somebody_prepared_is_not_used(cache, tmp_path, obstacle):
    cache.parent.mkdir()
    cache.write_text("no folder")
    prepared = tmp_path / "temporary" / f"dryfit-{os.geteuid()}"
    if obstacle == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        prepared.symlink_to(tmp_path / "elsewhere")
    elif obstacle == "writable":
        prepared.mkdir()
        prepared.chmod(0o777)
    else:
        prepared.write_text("no folder")
    used = cache_folder.cache_folder()
    assert used != prepared
    assert used.parent == prepared.parent
    assert mode(used) == 0o700


def test_what_a_process_keeps_for_itself_is_gone_with_it(cache, tmp_path):
    cache.parent.mkdir()
    cache.write_text("no folder")
    (tmp_path / "temporary" / f"dryfit-{os.geteuid()}").write_text("no folder")
    program = "from dryfit.target.cache_folder import cache_folder as f; assert f().is_dir(); print(f())"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path / "temporary"))
    assert not Path(done.stdout.strip()).exists()


def test_nowhere_to_keep_anything_is_told_and_stops_nothing(cache, tmp_path, monkeypatch, caplog):
    cache.parent.mkdir()
    cache.write_text("no folder")
    monkeypatch.setattr(cache_folder.tempfile, "tempdir", "/dev/null")
    assert cache_folder.cache_folder() == cache
    assert "each process compiles them again" in caplog.text
    assert kept_files.read(cache / "a.o") is None


@pytest.mark.parametrize("place", ["file", "its folder"])
@pytest.mark.parametrize("rights", [0o770, 0o702])
def test_a_file_that_others_can_write_to_is_not_read(cache, place, rights):
    path = cache / "kernels" / "a.o"
    kept_files.write(path, b"code")
    (path if place == "file" else path.parent).chmod(rights)
    assert kept_files.read(path) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("place", ["file", "its folder"])
def test_what_belongs_to_another_user_is_not_read(cache, place):
    path = cache / "kernels" / "a.o"
    kept_files.write(path, b"code")
    os.chown(path if place == "file" else path.parent, 4711, -1)
    assert kept_files.read(path) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_cache_that_belongs_to_another_user_is_not_used(cache, caplog):
    cache.mkdir(parents=True, mode=0o700)
    os.chown(cache, 4711, -1)
    assert cache_folder.cache_folder() != cache
    assert "it belongs to user 4711, not 0" in caplog.text


def test_files_cannot_be_added_to_a_folder_that_others_can_write_to(cache):
    (cache / "kernels").mkdir(parents=True)
    (cache / "kernels").chmod(0o777)
    with pytest.raises(PermissionError, match="others can write"):
        kept_files.write(cache / "kernels" / "a.o", b"code")
    assert list((cache / "kernels").iterdir()) == []


def test_a_file_that_was_signed_with_another_secret_is_not_read(cache, tmp_path, monkeypatch):
    kept_files.write(cache / "kernels" / "a.o", b"code")
    monkeypatch.setenv(kept_files.ENVIRONMENT_VARIABLE, str(tmp_path / "other.key"))
    assert kept_files.read(cache / "kernels" / "a.o") is None


def test_a_file_in_the_place_of_another_is_not_read(cache):
    kept_files.write(cache / "kernels" / "a.o", b"code")
    (cache / "kernels" / "a.o").rename(cache / "kernels" / "b.o")
    assert kept_files.read(cache / "kernels" / "b.o") is None


def test_a_link_in_the_place_of_a_file_is_not_followed(cache):
    kept_files.write(cache / "kernels" / "a.o", b"code")
    (cache / "kernels" / "a.o").rename(cache / "kernels" / "b.o")
    (cache / "kernels" / "a.o").symlink_to(cache / "kernels" / "b.o")
    assert kept_files.read(cache / "kernels" / "a.o") is None


@pytest.mark.parametrize("damage", ["readable by all", "too short", "a folder"])
def test_a_secret_that_is_none_is_not_used(cache, tmp_path, damage):
    path = cache.parent / "data" / "cache.key"
    path.parent.mkdir(parents=True)
    if damage == "a folder":
        path.mkdir()
    else:
        path.write_bytes(bytes(32 if damage == "readable by all" else 31))
        path.chmod(0o644 if damage == "readable by all" else 0o600)
    assert kept_files.cache_key() not in (bytes(32), bytes(31))
    assert kept_files.cache_key() == (cache / "cache.key").read_bytes(), "it lies in the user's own cache folder then"


def test_processes_that_start_at_once_have_one_secret(cache):
    program = "from dryfit.target.kept_files import cache_key; print(cache_key().hex())"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({one.communicate()[0] for one in started}) == 1
    assert [path.name for path in (cache.parent / "data").iterdir()] == ["cache.key"]


def test_systems_without_numbers_of_users_are_not_asked(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert cache_folder.distrust(tmp_path.stat()) == ""
