import os
from pathlib import Path

import pytest

from climseg.atomic import atomic_file, check_writable, sole_writer
from climseg.errors import InputError


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    final = tmp_path / "new" / "file.txt"
    with atomic_file(final) as partial:
        partial.write_text("half")
        assert not final.exists()
        partial.write_text("whole")
    assert final.read_text() == "whole"
    assert list(final.parent.iterdir()) == [final]


def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    final = tmp_path / "file.txt"
    final.write_text("old")
    with pytest.raises(RuntimeError), atomic_file(final) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert final.read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_a_folder_or_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written here"):
        check_writable(tmp_path / "file" / "below.nc")


def open_files() -> list[Path]:
    return [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.exists()]


def test_a_fork_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    """A loader's worker would keep it for seconds after the training was killed."""
    with sole_writer(tmp_path / "run"):
        lock = tmp_path / ".run.lock"
        child = os.fork()
        if child == 0:
            os._exit(int(lock in open_files()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert lock in open_files()


def test_two_writers_of_one_output_are_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    final = tmp_path / "masks.nc"
    with sole_writer(final), pytest.raises(InputError, match="being written by another process"), sole_writer(final):
        pass
    with sole_writer(final):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_left_by_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / ".masks.nc.lock").touch()
    with atomic_file(tmp_path / "masks.nc") as partial:
        partial.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["masks.nc"]
