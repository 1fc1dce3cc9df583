"""Files that commands write: only regular files are replaced, and a full disk is an error that keeps the old file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHAPE = ("--shape", "image=1x1x8x8")
WRITERS = {
    "build": ("build", "MODEL", *SHAPE, "--output", "OUT"),
    "calibrate": ("calibrate", "MODEL", *SHAPE, "--data", "DATA", "--output", "OUT"),
    "state": ("calibrate", "MODEL", *SHAPE, "--data", "DATA", "--output", "CACHE", "--state", "OUT"),
    "place": ("place", "MODEL", *SHAPE, "--output", "OUT", "--force"),
    "prune": ("sparsity", "prune", "MODEL", *SHAPE, "--output", "OUT", "--force"),
    "export": ("export", "trtexec", "MODEL", *SHAPE, "--output", "OUT"),
    "run": ("run", "ENGINE", "--random", "1", "--output-dir", "FOLDER"),
}


@pytest.fixture(scope="module")
def engine(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dryfit.cli.main import main

    path = tmp_path_factory.mktemp("engine") / "digits.engine"
    with pytest.raises(SystemExit):
        main(["build", str(digits_model), *SHAPE, "--output", str(path)])
    return path


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A device of our own that is always full."""
    node = tmp_path / "folder" / "probabilities.npy"
    node.parent.mkdir()
    try:
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        os.close(os.open(node, os.O_WRONLY))
    except PermissionError:
        pytest.skip("device nodes cannot be made or opened here")
    return node


@pytest.mark.skipif(os.name != "posix", reason="devices are those of POSIX")
@pytest.mark.parametrize("command", WRITERS)
def test_a_full_device_is_an_error_and_stays_what_it_is(
    dryfit_command: Any, digits_model: Path, engine: Path, full: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "one.npy", np.random.default_rng(1).random((1, 1, 8, 8), np.float32))
    places = {
        "MODEL": digits_model,
        "OUT": full,
        "DATA": tmp_path / "data",
        "CACHE": tmp_path / "cache",
        "ENGINE": engine,
        "FOLDER": full.parent,
    }
    ended = dryfit_command(*(places.get(word, word) for word in WRITERS[command]))
    assert ended.code == 2, ended
    assert "No space left on device" in ended.err
    assert "Traceback" not in ended.err
    assert stat.S_ISCHR(full.stat().st_mode)
    assert list(full.parent.iterdir()) == [full]


def test_an_engine_goes_through_a_link(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    ended = dryfit_command("build", digits_model, *SHAPE, "--output", tmp_path / "link")
    assert ended.code == 0
    assert (tmp_path / "link").is_symlink()
    assert dryfit_command("inspect", tmp_path / "file").code == 0
