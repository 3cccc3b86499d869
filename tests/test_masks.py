"""Mask files: what is written is read again, on the rows, columns and times of the source."""

from pathlib import Path
from typing import Any

import cftime
import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.canonical import orient
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.grid import EARTH_RADIUS
from climseg.masks import MaskWriter, class_area, encode_times, open_masks

GLOBE_KM2 = 4 * np.pi * (EARTH_RADIUS / 1000) ** 2
SOUTHWARD = np.linspace(90, -90, 7)
FROM_DATE_LINE = np.arange(-180, 180, 30.0)


def source(times: Any, lat: Any = SOUTHWARD, lon: Any = FROM_DATE_LINE) -> xr.Dataset:
    """A file's axes, and in every cell a class number that tells where it is."""
    shape = len(times), len(lat), len(lon)
    labels = np.arange(np.prod(shape)).reshape(shape) % 3
    return xr.Dataset(
        {LABELS: (("time", "lat", "lon"), labels.astype(np.int8))}, coords={"time": times, "lat": lat, "lon": lon}
    )


def write(output: Path, ds: xr.Dataset, probabilities: bool = False) -> None:
    """The labels of ``ds`` through its canonical orientation into a mask file."""
    canonical = orient(ds, "made")
    labels = canonical[LABELS].values
    chances = np.stack([labels == k for k in range(3)], axis=1).astype(np.float32) / 2
    with MaskWriter(output, canonical, {"title": "made"}, "by hand", "climseg test", probabilities) as writer:
        for step in range(canonical.sizes["time"]):
            writer.write(step, labels[step], chances[step])


def noleap(*days: float) -> xr.DataArray:
    """Times in days since 2001-02-28 of the noleap calendar, as a CAM5 file has them."""
    raw = xr.Dataset(coords={"time": ("time", list(days), {"units": "days since 2001-02-28", "calendar": "noleap"})})
    return xr.decode_cf(raw)["time"]


def test_rows_columns_and_classes_of_the_source_come_back(tmp_path: Path) -> None:
    made = source(np.array(["2011-10-11", "2011-10-12"], dtype="datetime64[s]"))
    write(tmp_path / "masks.nc", made)
    found = open_masks(tmp_path / "masks.nc")
    assert found[LABELS].dtype == np.int8
    for name in (LABELS, "time", "lat", "lon"):
        np.testing.assert_array_equal(found[name].values, made[name].values)


def test_a_closing_column_of_the_source_comes_back(tmp_path: Path) -> None:
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"), lon=np.arange(0, 361, 30.0))
    made[LABELS][:, :, -1] = made[LABELS][:, :, 0]
    write(tmp_path / "masks.nc", made)
    xr.testing.assert_equal(open_masks(tmp_path / "masks.nc")[LABELS].drop_attrs(), made[LABELS])


def test_the_file_speaks_cf(tmp_path: Path) -> None:
    write(tmp_path / "masks.nc", source(np.array(["2011-10-11"], dtype="datetime64[s]")), probabilities=True)
    with netCDF4.Dataset(tmp_path / "masks.nc") as file:
        assert file.Conventions.startswith("CF-1.")
        assert "climseg test" in file.history
        labels = file[LABELS]
        assert labels.dimensions == ("time", "lat", "lon")
        assert labels.flag_meanings == "background tropical_cyclone atmospheric_river"
        np.testing.assert_array_equal(labels.flag_values, [0, 1, 2])
        assert labels.definition == "by hand"
        assert (file["lat"].units, file["lon"].units) == ("degrees_north", "degrees_east")
        assert "source_values" not in file["lat"].ncattrs()
        assert file["time"].calendar == "proleptic_gregorian"


def test_probabilities_lie_where_the_classes_do(tmp_path: Path) -> None:
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"))
    write(tmp_path / "masks.nc", made, probabilities=True)
    found = open_masks(tmp_path / "masks.nc")
    np.testing.assert_array_equal(found["probability_atmospheric_river"], (made[LABELS] == 2) / 2)
    np.testing.assert_array_equal(found["probability_tropical_cyclone"], (made[LABELS] == 1) / 2)


def test_a_cell_without_a_class_stays_minus_one(tmp_path: Path) -> None:
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"))
    made[LABELS][0, 2, 5] = -1
    write(tmp_path / "masks.nc", made)
    assert open_masks(tmp_path / "masks.nc")[LABELS].values[0, 2, 5] == -1


def test_noleap_times_come_back_on_their_calendar(tmp_path: Path) -> None:
    write(tmp_path / "masks.nc", source(noleap(0.0, 1.0)))
    times = open_masks(tmp_path / "masks.nc")["time"].values
    # 2001-03-01 follows 2001-02-28 there, as it does in every common year.
    assert list(times) == [cftime.DatetimeNoLeap(2001, 2, 28), cftime.DatetimeNoLeap(2001, 3, 1)]


def test_times_keep_the_units_of_the_source_where_they_stay_whole() -> None:
    units, calendar, numbers = encode_times(noleap(0.0, 1.0))
    assert (units, calendar) == ("days since 2001-02-28", "noleap")
    np.testing.assert_array_equal(numbers, [0, 1])


def test_times_within_a_day_become_seconds() -> None:
    units, _, numbers = encode_times(noleap(0.0, 0.25))
    assert units == "seconds since 1970-01-01"
    assert numbers.dtype == np.int64
    # 31 years of 365 days, and January and 27 days of February.
    np.testing.assert_array_equal(numbers - (31 * 365 + 31 + 27) * 86400, [0, 21600])


def test_times_some_microseconds_off_are_rounded_not_cut() -> None:
    times = np.array(["2011-10-11T07:59:59.999990", "2011-10-11T12:00:00.000010"], dtype="datetime64[us]")
    _, _, numbers = encode_times(xr.DataArray(times, dims="time", coords={"time": times})["time"])
    np.testing.assert_array_equal(numbers % 86400, [8 * 3600, 12 * 3600])


def test_times_between_seconds_are_refused() -> None:
    times = np.array(["2011-10-11T08:00:00.5"], dtype="datetime64[us]")
    with pytest.raises(InputError, match="whole seconds"):
        encode_times(xr.DataArray(times, dims="time", coords={"time": times})["time"])


def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"))
    output = tmp_path / "masks.nc"
    write(output, made)
    before = output.read_bytes()
    with pytest.raises(RuntimeError, match="lightning"), MaskWriter(output, orient(made, "made"), {}, "d", "c"):
        raise RuntimeError("lightning")
    assert output.read_bytes() == before
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize("kind", ["absent", "text", "without labels"])
def test_what_is_no_mask_file_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "masks.nc"
    if kind == "text":
        path.write_text("not netCDF")
    if kind == "without labels":
        xr.Dataset({"TMQ": ("lat", [1.0])}).to_netcdf(path)
    with pytest.raises(InputError, match=r"masks\.nc"):
        open_masks(path)


def test_the_areas_of_the_classes_and_of_the_cells_without_one_make_the_globe() -> None:
    made = source(np.array(["2011-10-11", "2011-10-12"], dtype="datetime64[s]"))
    whole = class_area(made[LABELS])
    assert whole.dims == ("time", "class")
    assert whole.attrs["units"] == "km2"
    np.testing.assert_allclose(whole.sum("class"), GLOBE_KM2, rtol=1e-12)
    made[LABELS][0, 3] = -1  # 15 S to 15 N: sin(15 degrees) of the globe
    without = class_area(made[LABELS]).sum("class").values
    np.testing.assert_allclose(without, [GLOBE_KM2 * (1 - np.sin(np.radians(15))), GLOBE_KM2], rtol=1e-12)


@pytest.mark.parametrize(
    "lon", [np.arange(0, 361, 30.0), np.arange(150, 510, 30.0) % 360], ids=["closing column", "jump at Greenwich"]
)
def test_the_globe_keeps_its_area_on_other_longitudes(lon: Any) -> None:
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"), lon=lon)
    np.testing.assert_allclose(class_area(made[LABELS]).sum(), GLOBE_KM2, rtol=1e-12)


def test_a_region_over_greenwich_has_the_area_of_its_cells() -> None:
    # 40 degrees wide, 5 S to 5 N: R^2 dlon (sin 5 + sin 5).
    made = source(np.array(["2011-10-11"], dtype="datetime64[s]"), lat=[-2.5, 2.5], lon=[345.0, 355.0, 5.0, 15.0])
    expected = (EARTH_RADIUS / 1000) ** 2 * np.radians(40) * 2 * np.sin(np.radians(5))
    np.testing.assert_allclose(class_area(made[LABELS]).sum(), expected, rtol=1e-12)
