from pathlib import Path

import pytest

from climseg.atomic import atomic_file, check_writable
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
