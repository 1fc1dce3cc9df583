"""Files that are there whole or not at all: what is replaced, what is written into, and what killed writers leave."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dryfit.atomic_file import write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, links and locks are those of POSIX")

WRITER = """
import sys
from dryfit.atomic_file import write_atomically

def chunks():
    yield b"begun "
    print("writing", flush=True)
    sys.stdin.readline()
    yield b"ended"

write_atomically(sys.argv[1], chunks())
"""


def writer(path: Path) -> subprocess.Popen[str]:
    """A process in the midst of writing a file; it goes on after a line of input."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def device(path: Path, minor: int) -> Path:
    """A node of our own of a memory device: 3 is null, 7 is full."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        pytest.skip("device nodes cannot be made or opened here")
    return path


def test_a_killed_writers_temporary_file_is_removed_by_the_next_writer(tmp_path):
    (tmp_path / "out").write_bytes(b"old")
    process = writer(tmp_path / "out")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(names(tmp_path)) == 2
    assert (tmp_path / "out").read_bytes() == b"old"
    write_atomically(tmp_path / "another", [b"new"])
    assert names(tmp_path) == ["another", "out"]


def test_a_living_writers_temporary_file_stays(tmp_path):
    process = writer(tmp_path / "out")
    write_atomically(tmp_path / "out", [b"new"])
    assert len(names(tmp_path)) == 2
    process.communicate("\n")
    assert process.returncode == 0
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"begun ended"


def test_files_of_others_stay(tmp_path):
    others = [".out.0123456789abcdef.tmp", ".out.dryfit-tmp", "out.0123456789abcdef.dryfit-tmp"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f".a.{'0' * 16}.dryfit-tmp").mkdir()
    (tmp_path / f".b.{'0' * 16}.dryfit-tmp").symlink_to(tmp_path / others[0])
    write_atomically(tmp_path / "out", [b"new"])
    assert len(names(tmp_path)) == 6


def test_many_writers_at_once_each_leave_a_whole_file(tmp_path):
    failures: list[OSError] = []

    def write(number: int) -> None:
        try:
            for _ in range(30):
                write_atomically(tmp_path / "out", [b"%d" % number] * 100)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert names(tmp_path) == ["out"]
    assert len(set((tmp_path / "out").read_bytes())) == 1


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for contents in (b"first", b"second"):
        write_atomically(tmp_path / "link", [contents])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "file").read_bytes() == contents
    assert names(tmp_path / "folder") == ["file"]


def test_links_in_a_circle_and_folders_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="link") as caught:
        write_atomically(tmp_path / "link", [b"new"])
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, [b"new"])
    assert names(tmp_path) == ["link"]


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_device_is_written_into_and_stays(tmp_path, is_linked):
    node = device(tmp_path / "null", 3)
    path = tmp_path / "link" if is_linked else node
    if is_linked:
        path.symlink_to(node)
    write_atomically(path, [b"new"])
    assert stat.S_ISCHR(node.stat().st_mode)
    assert path.is_symlink() is is_linked


def test_a_full_device_stays_and_says_so(tmp_path):
    node = device(tmp_path / "full", 7)
    with pytest.raises(OSError, match="full") as caught:
        write_atomically(node, [b"new"])
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(node.stat().st_mode)


def test_a_named_pipe_takes_the_bytes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_atomically(tmp_path / "pipe", [b"a", b"b"])
    reader.join()
    assert found == [b"ab"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_standard_output_gets_the_bytes_in_their_place(tmp_path, mode):
    """Also where it is a regular file, which opening /dev/stdout would write from its start."""
    if not Path("/dev/stdout").is_symlink():
        pytest.skip("no /dev/stdout")
    (tmp_path / "stdout").symlink_to("/dev/stdout")
    program = (
        "import sys; from dryfit.atomic_file import write_atomically;"
        "print('before'); write_atomically(sys.argv[1], [b'bytes ']); print('after')"
    )
    (tmp_path / "out").write_bytes(b"old ")
    with (tmp_path / "out").open(mode) as file:
        subprocess.run([sys.executable, "-c", program, tmp_path / "stdout"], stdout=file, check=True)
    kept = b"old " if mode == "ab" else b""
    assert (tmp_path / "out").read_bytes() == kept + b"before\nbytes after\n"
    assert (tmp_path / "stdout").is_symlink()


def test_a_failure_keeps_the_old_file(tmp_path):
    (tmp_path / "out").write_bytes(b"old")

    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="out") as caught:
        write_atomically(tmp_path / "out", chunks())
    assert caught.value.filename == str(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_permissions_of_a_new_file_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out", [b""])
        write_atomically(tmp_path / "own", [b""], permissions=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600
