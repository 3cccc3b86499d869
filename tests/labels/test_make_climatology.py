"""A climatology of the input itself against numpy, interrupted, in two processes, refused."""

import errno
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg import blocks, cluster
from climseg.canonical import to_canonical
from climseg.errors import InputError
from climseg.labels import make_climatology as module
from climseg.labels.make_climatology import make_climatology


@pytest.fixture(scope="module")
def fields() -> xr.Dataset:
    """Every fifth day of two years, 7 x 8 points."""
    times = pd.date_range("2001-01-01", "2002-12-31", freq="5D")
    lat, lon = np.linspace(-90.0, 90.0, 7), np.arange(0.0, 360.0, 45.0)
    generator = np.random.default_rng(5)
    values = {
        name: (("time", "lat", "lon"), generator.normal(0.0, 200.0, (times.size, 7, 8)).astype(np.float32))
        for name in ("UIVT", "VIVT")
    }
    return to_canonical(xr.Dataset(values, coords={"time": times, "lat": lat, "lon": lon}), "made")


@pytest.fixture(autouse=True)
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of ten steps, and rows two by two."""
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 10 * 2 * 4 * 7 * 8)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 2 * 4 * 146 * 8)


def make(fields: xr.Dataset, output: Path, **options: Any) -> xr.Dataset:
    wanted = {"percentile": 85.0, "min_steps": 20, "request": {"input_files": ["a"]}} | options
    make_climatology(fields.chunk(time=1), output, **wanted)
    with xr.open_dataset(output) as made:
        return made.load()


def test_it_is_numpys_percentile_of_five_months_round_each_month(fields: xr.Dataset, tmp_path: Path) -> None:
    made = make(fields, tmp_path / "usual.nc")
    ivt, months = np.hypot(fields["UIVT"], fields["VIVT"]), fields["time"].dt.month
    for month, around in ((1, [11, 12, 1, 2, 3]), (6, [4, 5, 6, 7, 8]), (12, [10, 11, 12, 1, 2])):
        expected = np.percentile(ivt.values[np.isin(months, around)], 85.0, axis=0)
        np.testing.assert_allclose(made["ivt_percentile"].sel(month=month), expected, rtol=1e-6)
    assert [p.name for p in tmp_path.iterdir()] == ["usual.nc"]


def test_the_file_says_what_it_is_as_cf_has_it(fields: xr.Dataset, tmp_path: Path) -> None:
    made = make(fields, tmp_path / "usual.nc")
    assert made["ivt_percentile"].dims == ("month", "lat", "lon")
    assert made["month"].values.tolist() == list(range(1, 13))
    assert made["month"].attrs["long_name"] == "month of the year, 1 for January"
    assert made["ivt_percentile"].dtype == np.float32
    assert made["ivt_percentile"].attrs["units"] == "kg m-1 s-1"
    assert made["lat"].attrs["standard_name"] == "latitude"
    assert made["lon"].attrs["units"] == "degrees_east"
    assert "_FillValue" not in made["lat"].encoding
    assert made.attrs["Conventions"].startswith("CF-")
    assert made.attrs["time_coverage"] == "2001-01-01T00:00:00 to 2002-12-27T00:00:00, 146 time steps"


def test_two_processes_give_the_same(fields: xr.Dataset, tmp_path: Path) -> None:
    one = make(fields, tmp_path / "one.nc")
    two = make(fields, tmp_path / "two.nc", cluster=partial(cluster.local, 2))
    xr.testing.assert_identical(one, two)


def test_an_interrupted_run_goes_on_where_it_was(
    fields: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after_forty(done: int, total: int) -> None:
        if done >= 40:
            raise KeyboardInterrupt

    whole = make(fields, tmp_path / "whole.nc")
    with pytest.raises(KeyboardInterrupt):
        make(fields, tmp_path / "usual.nc", progress=stop_after_forty)
    assert not (tmp_path / "usual.nc").exists()
    # A line that a kill cut off must not count as done.
    with (tmp_path / ".usual.nc.spool" / "done.txt").open("a") as lines:
        lines.write("40 50")
    written: list[int] = []
    original = module.spool_step

    def spy(path: Path, index: int, ivt: Any) -> None:
        written.append(index)
        original(path, index, ivt)

    monkeypatch.setattr(module, "spool_step", spy)
    xr.testing.assert_identical(make(fields, tmp_path / "usual.nc"), whole)
    assert written == list(range(40, 146))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["usual.nc", "whole.nc"]


def test_of_the_same_request_it_is_left_alone_and_of_another_made_anew(fields: xr.Dataset, tmp_path: Path) -> None:
    output = tmp_path / "usual.nc"
    made = make(fields, output)
    before = output.stat().st_mtime_ns
    make(fields, output)
    assert output.stat().st_mtime_ns == before
    other = make(fields * 2.0, output, request={"input_files": ["b"]})
    np.testing.assert_allclose(other["ivt_percentile"], 2.0 * made["ivt_percentile"], rtol=1e-6)
    higher = make(fields, output, percentile=95.0)
    assert (higher["ivt_percentile"] > made["ivt_percentile"]).all()


def test_a_file_that_climseg_did_not_make_is_not_replaced(fields: xr.Dataset, tmp_path: Path) -> None:
    output = tmp_path / "usual.nc"
    fields.isel(time=[0]).to_netcdf(output)
    before = output.read_bytes()
    with pytest.raises(InputError, match=r"usual\.nc is there.*climseg did not make it"):
        make(fields, output)
    assert output.read_bytes() == before


def test_too_few_steps_are_refused_with_their_count_and_the_mend(fields: xr.Dataset, tmp_path: Path) -> None:
    # Every fifth day from the first of January: days 186, 191 ... 211 of the year are in July.
    july = fields.sel(time="2001-07")
    with pytest.raises(InputError, match=r"made: 6 time steps .* five months round month 7.*at least 7") as refused:
        make(july, tmp_path / "usual.nc", min_steps=7, origin="made")
    assert "labels.rivers.climatology=FILE" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_impossible_values_are_refused_by_time_and_nothing_stays(fields: xr.Dataset, tmp_path: Path) -> None:
    wrong = fields.copy(deep=True)
    wrong["VIVT"][30] = 1e9
    with pytest.raises(InputError, match=r"channel VIVT runs from .* at 2001-05-31T00:00:00"):
        make(wrong, tmp_path / "usual.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_too_small_for_the_steps_is_said_at_once(
    fields: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*values: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(InputError, match=r"3\.27e-05 GB\) cannot be kept here \(No space left on device\)"):
        make(fields, tmp_path / "usual.nc")  # 4 * 146 * 7 * 8 bytes
    assert list(tmp_path.iterdir()) == []
