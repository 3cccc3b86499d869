"""What is found in a time step, kept and read again."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.labels.heuristic import Findings, Storm
from climseg.labels.spool import open_spool, read_candidates, read_findings, spool_path, write_findings
from climseg.labels.step import Candidate


def _findings(storms: int) -> Findings:
    generator = np.random.default_rng(storms)
    rivers, untold, missing = generator.random((3, 5, 7)) < 0.3
    candidates = [
        Candidate(
            row=k,
            column=k + 1,
            lat=10.1 * k,
            lon=359.9,
            psl=99_000.5,
            wind=float("nan"),
            measures={"vorticity_per_s": 1.6e-4},
            rejected_by=("wind", "warm core")[:k],
        )
        for k in range(storms)
    ]
    kept = [Storm(c, np.arange(3 * k, dtype=np.int64), 2.5 if k else np.nan) for k, c in enumerate(candidates)]
    return Findings(rivers, untold, missing, [{"lat": 1.5, "rejected_by": "area"}], kept)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = spool_path(tmp_path / "masks.nc")
    open_spool(folder, {})
    return folder


@pytest.mark.parametrize("storms", [0, 1, 3])
def test_what_is_written_is_read_again(storms: int, folder: Path) -> None:
    written = _findings(storms)
    write_findings(folder, 1234, written)
    read = read_findings(folder, 1234)
    for name in ("rivers", "untold", "missing"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
    assert read.regions == written.regions
    assert len(read.storms) == storms
    for one, other in zip(read.storms, written.storms, strict=True):
        np.testing.assert_array_equal(one.cells, other.cells)
        np.testing.assert_equal(one.radius, other.radius)
        assert np.isnan(one.candidate.wind)
        assert replace(one.candidate, wind=0.0) == replace(other.candidate, wind=0.0)
    assert [c.rejected_by for c in read_candidates(folder, 1234)] == [s.candidate.rejected_by for s in written.storms]


def test_a_step_that_is_written_counts_as_done_and_nothing_else(folder: Path) -> None:
    for index in (3, 999, 1000):
        write_findings(folder, index, _findings(1))
    assert open_spool(folder, {}) == {3, 999, 1000}


def test_steps_of_another_version_of_climseg_are_begun_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_findings(folder, 0, _findings(1))
    monkeypatch.setattr("climseg.__version__", "999")
    assert open_spool(folder, {}) == set()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no zip at all"])
def test_a_step_that_cannot_be_read_again_is_named_and_done_anew(content: bytes, folder: Path) -> None:
    for index in (3, 4):
        write_findings(folder, index, _findings(1))
    (folder / "00000" / "00000003.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"what was found in time step 3 cannot be read again.*once more"):
        read_candidates(folder, 3)
    assert open_spool(folder, {}) == {4}
    with pytest.raises(InputError, match="time step 3 cannot be read again"):
        read_findings(folder, 3)


def test_a_full_disk_is_told_by_the_file_and_leaves_no_half_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*values: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_findings(folder, 2, _findings(1))
    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match=r"No space left on device.*00000003\.npz"):
        write_findings(folder, 3, _findings(1))
    assert [p.name for p in (folder / "00000").iterdir()] == ["00000002.npz"]


def test_a_foreign_file_in_the_folder_is_no_time_step(folder: Path) -> None:
    write_findings(folder, 12, _findings(1))
    (folder / "00000" / "copy of 12.npz").touch()
    assert open_spool(folder, {}) == {12}
