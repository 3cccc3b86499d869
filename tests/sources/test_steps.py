from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.blocks import Block
from climseg.sources import series
from climseg.sources.netcdf import files_kept_open, read
from climseg.sources.open import open_fields
from climseg.sources.scan import scan_files
from climseg.sources.steps import chunk_blocks, read_steps

WriteFile = Callable[..., Path]


@pytest.fixture
def ten_steps(write_file: WriteFile) -> Path:
    times = [f"2001-01-{day:02d}" for day in range(1, 11)]
    values = np.arange(1.0, 11.0, dtype=np.float32).reshape(-1, 1, 1)
    return write_file(
        "a.nc",
        {"TMQ": (values, "kg m-2"), "PSL": (values + 1e5, "Pa")},
        times=times,
        encoding={"TMQ": {"chunksizes": (4, 7, 8)}, "PSL": {"chunksizes": (1, 7, 8)}},
    )


def test_steps_come_in_order_with_their_own_values(ten_steps: Path) -> None:
    ds = open_fields(ten_steps, source="cam5")
    steps = list(read_steps(ds))
    assert [float(step["TMQ"][0, 0]) for step in steps] == list(range(1, 11))
    assert [float(step["PSL"][0, 0]) for step in steps] == [1e5 + n for n in range(1, 11)]
    assert steps[3].equals(ds.isel(time=3).load())


def test_every_stored_chunk_is_read_once(ten_steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []

    def counted(file: Any, name: str, key: Any) -> Any:
        reads.append((name, key[0].start, key[0].stop))
        return read(file, name, key)

    ds = open_fields(ten_steps, source="cam5", channels=["TMQ"])
    monkeypatch.setattr(series, "read_stored", counted)
    assert chunk_blocks(ds) == [Block(0, 4), Block(4, 8), Block(8, 10)]
    assert len(list(read_steps(ds))) == 10
    assert reads == [("TMQ", 0, 4), ("TMQ", 4, 8), ("TMQ", 8, 10)]


def test_a_dataset_in_memory_is_read_step_by_step(ten_steps: Path) -> None:
    ds = open_fields(ten_steps, source="cam5").load()
    assert chunk_blocks(ds) == [Block(n, n + 1) for n in range(10)]
    assert [float(step["TMQ"][0, 0]) for step in read_steps(ds)] == list(range(1, 11))


def test_files_are_opened_once_within_the_block_and_closed_after_it(
    ten_steps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[netCDF4.Dataset] = []
    original = netCDF4.Dataset

    def watched(*arguments: Any, **options: Any) -> netCDF4.Dataset:
        opened.append(original(*arguments, **options))
        return opened[-1]

    (file,) = scan_files([str(ten_steps)])
    monkeypatch.setattr(netCDF4, "Dataset", watched)
    with files_kept_open():
        read(file, "TMQ", (slice(0, 1), slice(None), slice(None)))
        read(file, "PSL", (slice(0, 1), slice(None), slice(None)))
        assert len(opened) == 1
        assert opened[0].isopen()
    assert not opened[0].isopen()


def test_a_lazy_result_of_the_fields_is_read_along_with_them(ten_steps: Path) -> None:
    ds = open_fields(ten_steps, source="cam5")
    both = ds.assign(double=2 * ds["TMQ"])
    with dask.config.set(scheduler="threads"):
        steps = list(read_steps(both))
    assert [float(s["double"][0, 0]) for s in steps] == [2.0 * n for n in range(1, 11)]
    assert isinstance(steps[0]["double"], xr.DataArray)
