import hashlib
import json
from pathlib import Path

import pytest

from climseg.unfinished import REQUEST_FILE, begin, is_left_by, request_mark, sign


def test_a_folder_is_gone_on_with_only_by_the_request_that_signed_it(tmp_path: Path) -> None:
    folder = tmp_path / ".store.partial"
    assert not is_left_by(folder, {"a": 1})
    begin(folder)
    assert not is_left_by(folder, {"a": 1})  # killed before it was whole
    sign(folder, {"a": 1, "b": ("x", "y")})
    assert is_left_by(folder, {"b": ["x", "y"], "a": 1})
    assert not is_left_by(folder, {"a": 2, "b": ["x", "y"]})


@pytest.mark.parametrize("broken", ["", '{"a": 1', "[]"])
def test_a_request_that_cannot_be_read_is_nobodys(broken: str, tmp_path: Path) -> None:
    begin(tmp_path / "x")
    (tmp_path / "x" / REQUEST_FILE).write_text(broken)
    assert not is_left_by(tmp_path / "x", {"a": 1})


def test_beginning_empties_what_another_request_left(tmp_path: Path) -> None:
    begin(tmp_path / "x")
    (tmp_path / "x" / "old").touch()
    begin(tmp_path / "x")
    assert list((tmp_path / "x").iterdir()) == []


def test_the_mark_is_the_hash_of_the_request_as_json() -> None:
    assert request_mark({"a": 1}) == hashlib.sha256(json.dumps({"a": 1}).encode()).hexdigest()
    assert request_mark({"a": 1}) != request_mark({"a": 2})
