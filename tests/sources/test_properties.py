"""Files of any shape give one canonical Dataset: what is written is read again, however it was stored."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cftime
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg.canonical import SOURCE_VALUES, to_canonical
from climseg.channels import CHANNELS, LABELS
from climseg.sources.open import open_fields

# A channel's plausible values, so that packing has something to pack.
RANGES = {"TMQ": (0.0, 70.0), "PSL": (95000.0, 105000.0), "T500": (230.0, 270.0)}
DIMS = ("time", "lat", "lon")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@st.composite
def canonical_datasets(draw: st.DrawFn, labels: bool = True) -> xr.Dataset:
    """Canonical Datasets: global or of a region that may lie across 0 or 180 degrees, in any calendar."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lat, lon = draw(_grids())
    times = draw(_times())
    shape = (len(times), lat.size, lon.size)
    names = draw(st.lists(st.sampled_from(sorted(RANGES)), min_size=1, unique=True))
    variables: dict[str, Any] = {}
    for name in names:
        values = rng.uniform(*RANGES[name], size=shape).astype(np.float32)
        holes = rng.random(shape) < draw(st.sampled_from([0.0, 0.2]))
        holes[:, 0, 0] = False  # a step of a field without any value is refused
        variables[name] = (DIMS, np.where(holes, np.float32(np.nan), values), {"units": CHANNELS[name].units})
    if labels:
        variables[LABELS] = (DIMS, rng.integers(-1, 3, shape).astype(np.int8))
    return to_canonical(xr.Dataset(variables, coords={"time": times, "lat": lat, "lon": lon}), "made")


@st.composite
def _grids(draw: st.DrawFn) -> tuple[Any, Any]:
    """Latitudes from south to north and longitudes eastward, exact in binary."""
    if draw(st.booleans()):
        rows, columns = draw(st.integers(2, 6)), draw(st.sampled_from([3, 4, 5, 6, 8, 10]))
        return np.linspace(-90.0, 90.0, rows), np.arange(columns) * (360.0 / columns)
    south, west = draw(st.integers(-80, 60)), draw(st.sampled_from([0, 100, 170, 178, 350, 357, 359]))
    rows, columns = draw(st.integers(2, 6)), draw(st.integers(2, 8))
    return south + 0.5 * np.arange(rows), west + 0.5 * np.arange(columns)


@st.composite
def _times(draw: st.DrawFn) -> list[Any]:
    """One to six times in whole steps, from a day on beside which calendars differ."""
    calendar = draw(st.sampled_from(["standard", "noleap", "360_day"]))
    steps, hours = draw(st.integers(1, 6)), draw(st.sampled_from([1, 3, 6, 24]))
    year, month, day = draw(st.sampled_from([(2000, 2, 27), (1999, 12, 30), (2100, 2, 28)]))
    first = cftime.datetime(year, month, day, draw(st.integers(0, 23)), calendar=calendar)
    seconds = cftime.date2num(first, "seconds since 1900-01-01", calendar) + 3600 * hours * np.arange(steps)
    if calendar == "standard":
        return list(np.datetime64("1900-01-01", "ns") + seconds.astype("timedelta64[s]"))
    return list(cftime.num2date(seconds, "seconds since 1900-01-01", calendar))


@dataclass
class Orientation:
    """How rows and columns lie in a file."""

    north_first: bool
    negative: bool  # longitudes from -180 to 180, columns from west to east
    order: tuple[str, ...]

    def of(self, ds: xr.Dataset) -> xr.Dataset:
        """The canonical Dataset as such a file has it."""
        lon = ds["lon"].values
        out = ds
        if self.negative:
            values = (lon + 180.0) % 360.0 - 180.0
            out = out.assign_coords(lon=("lon", values, ds["lon"].attrs))
            if lon[-1] - lon[0] > 180.0:  # a global file begins at -180; a region stays in one piece
                out = out.isel(lon=np.argsort(values))
        else:
            out = out.assign_coords(lon=("lon", lon % 360.0, ds["lon"].attrs))
        if self.north_first:
            out = out.isel(lat=slice(None, None, -1))
        return out.transpose(*self.order)


orientations = st.builds(Orientation, st.booleans(), st.booleans(), st.permutations(DIMS).map(tuple))


def _assert_identical(opened: xr.Dataset, expected: xr.Dataset) -> None:
    """Equal in values, dtypes, coordinates, calendar and attributes, but for those that tell of the file."""
    opened = opened.load().drop_attrs(deep=False)
    for name in ("lat", "lon"):
        opened[name].attrs.pop(SOURCE_VALUES, None)
    xr.testing.assert_identical(opened, expected.drop_attrs(deep=False))
    assert {name: v.dtype for name, v in opened.items()} == {name: v.dtype for name, v in expected.items()}
    assert opened["time"].dt.calendar == expected["time"].dt.calendar


@settings(max_examples=40, deadline=None)
@given(ds=canonical_datasets(), orientation=orientations)
def test_a_canonical_dataset_written_in_any_orientation_is_read_again_as_it_was(
    ds: xr.Dataset, orientation: Orientation
) -> None:
    with _folder() as folder:
        orientation.of(ds).to_netcdf(folder / "a.nc")
        channels = [str(name) for name in ds.data_vars if name != LABELS]
        opened = open_fields(folder / "a.nc", source="cam5", channels=channels, labels=True)
        _assert_identical(opened, ds)
        # What was opened can be written, and read once more.
        opened.to_netcdf(folder / "b.nc")
        _assert_identical(open_fields(folder / "b.nc", source="cam5", channels=channels, labels=True), ds)


@dataclass
class Storage:
    """How one netCDF file stores what it holds."""

    orientation: Orientation
    format: str
    dtype: str  # f4, f8, or i2: packed
    endian: str
    chunks: int | None  # of every axis at most; None is contiguous
    compressed: bool
    unlimited: bool
    units: str

    def write(self, path: Path, ds: xr.Dataset) -> Path:
        """Write a part of a canonical Dataset."""
        ds = self.orientation.of(ds)
        hdf5 = self.format.startswith("NETCDF4")
        with netCDF4.Dataset(path, "w", format=self.format) as file:
            for name in DIMS:
                file.createDimension(name, None if name == "time" and self._is_unlimited() else ds.sizes[name])
            self._write_axes(file, ds)
            for name, variable in ds.data_vars.items():
                storage: dict[str, Any] = {"endian": self.endian} if hdf5 else {}
                if hdf5 and self.chunks is not None:
                    sizes = tuple(min(self.chunks, size) for size in variable.shape)
                    storage |= {"chunksizes": sizes, "zlib": self.compressed}
                stored = self._create(file, str(name), variable, storage)
                stored.units = variable.attrs["units"]
                values = variable.values
                stored[:] = np.ma.array(np.nan_to_num(values, nan=float(np.nanmean(values))), mask=np.isnan(values))
        return path

    def _is_unlimited(self) -> bool:
        """In classic files the record dimension must be the first; contiguous HDF5 has none."""
        chunked = self.format == "NETCDF4" and self.chunks is not None
        return self.unlimited and (chunked or (self.orientation.order[0] == "time" and "NETCDF3" in self.format))

    def _write_axes(self, file: Any, ds: xr.Dataset) -> None:
        times = ds["time"].to_index()
        dates = list(times.to_pydatetime()) if hasattr(times, "to_pydatetime") else list(times)
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": self.units, "calendar": ds["time"].dt.calendar})
        time[:] = netCDF4.date2num(dates, self.units, ds["time"].dt.calendar)
        for name in ("lat", "lon"):
            file.createVariable(name, "f8", (name,))[:] = ds[name].values

    def _create(self, file: Any, name: str, variable: xr.DataArray, storage: dict[str, Any]) -> Any:
        dtype = np.dtype(self.dtype).newbyteorder({"little": "<", "big": ">", "native": "="}[self.endian])
        if self.dtype != "i2":
            return file.createVariable(name, dtype, variable.dims, fill_value=1e20, **storage)
        stored = file.createVariable(name, dtype, variable.dims, fill_value=-32768, **storage)
        low, high = float(variable.min()), float(variable.max())
        stored.setncatts({"scale_factor": max(high - low, 1e-3) / 65000.0, "add_offset": 0.5 * (low + high)})
        return stored


storages = st.builds(
    Storage,
    orientations,
    st.sampled_from(
        ["NETCDF4", "NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
    ),
    st.sampled_from(["f4", "f4", "f8", "i2"]),
    st.sampled_from(["little", "big", "native"]),
    st.one_of(st.none(), st.integers(1, 4)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["days since 1850-01-01", "hours since 1900-01-01 00:00:00", "minutes since 1999-12-30T12:00:00"]),
)


def _parts(ds: xr.Dataset, draw: Any) -> list[xr.Dataset]:
    """A Dataset split into files in any way: by groups of variables, and each group by times, in any order."""
    names = list(ds.data_vars)
    group_of = [draw(st.integers(0, len(names) - 1)) for _ in names]
    parts = []
    for group in sorted(set(group_of)):
        fields = ds[[name for name, number in zip(names, group_of, strict=True) if number == group]]
        file_of = np.array([draw(st.integers(0, 2)) for _ in range(ds.sizes["time"])])
        parts += [fields.isel(time=np.flatnonzero(file_of == number)) for number in sorted(set(file_of.tolist()))]
    return list(draw(st.permutations(parts)))


def _assert_close(opened: xr.Dataset, expected: xr.Dataset, packed: bool) -> None:
    """Identical; packed values within half a step of their packing, and float32's rounding."""
    if not packed:
        _assert_identical(opened, expected)
        return
    near = opened.load().copy()
    for name, field in expected.items():
        step = max(float(field.max() - field.min()), 1e-3) / 65000.0
        tolerance = 0.5 * step * (1.0 + 1e-6) + float(np.spacing(np.float32(abs(field).max())))
        np.testing.assert_allclose(opened[name], field, rtol=0.0, atol=tolerance, err_msg=str(name))
        near[name] = near[name].copy(data=field.values)
    _assert_identical(near, expected)


@pytest.mark.filterwarnings("ignore:endian-ness of dtype and endian kwarg")
@settings(max_examples=60, deadline=None)
@given(ds=canonical_datasets(labels=False), data=st.data())
def test_netcdf_files_of_any_storage_and_any_split_give_one_dataset(ds: xr.Dataset, data: st.DataObject) -> None:
    packed = False
    with _folder() as folder:
        paths = []
        for number, part in enumerate(_parts(ds, data.draw)):
            storage = data.draw(storages)
            packed |= storage.dtype == "i2"
            paths.append(storage.write(folder / f"{number}.nc", part))
        opened = open_fields(paths, source="cam5", channels=[str(name) for name in ds.data_vars])
        _assert_close(opened, ds, packed)


@pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated metadata")
@settings(max_examples=25, deadline=None)
@given(ds=canonical_datasets(labels=False), data=st.data())
def test_zarr_stores_of_any_chunks_give_one_dataset(ds: xr.Dataset, data: st.DataObject) -> None:
    packed = False
    with _folder() as folder:
        paths = []
        for number, part in enumerate(_parts(ds, data.draw)):
            path, part = folder / f"{number}.zarr", data.draw(orientations).of(part)
            encoding: dict[str, Any] = {}
            packing = data.draw(st.booleans())
            for name, field in part.data_vars.items():
                chunks = tuple(data.draw(st.integers(1, size)) for size in field.shape)
                encoding[str(name)] = {"chunks": chunks, "_FillValue": np.float32(1e20)}
                if packing:
                    packed = True
                    low, high = float(field.min()), float(field.max())
                    encoding[str(name)] |= {
                        "dtype": "i2",
                        "_FillValue": -32768,
                        "scale_factor": max(high - low, 1e-3) / 65000.0,
                        "add_offset": 0.5 * (low + high),
                    }
            version = data.draw(st.sampled_from([2, 3]))
            consolidated = data.draw(st.booleans()) if version == 2 else False
            part.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=consolidated)
            paths.append(path)
        opened = open_fields(paths, source="cam5", channels=[str(name) for name in ds.data_vars])
        _assert_close(opened, ds, packed)


# (variable, level in hPa) -> the channel it gives. The geopotential is divided by standard gravity.
LEVEL_CHANNELS = {
    ("u", 850): "U850",
    ("v", 850): "V850",
    ("t", 200): "T200",
    ("t", 500): "T500",
    ("z", 1000): "Z1000",
    ("z", 200): "Z200",
}
LEVEL_UNITS = {"u": "m s**-1", "v": "m s**-1", "t": "K", "z": "m**2 s**-2", "q": "kg kg**-1"}
LEVELS = (1000, 925, 850, 700, 500, 300, 200)


@dataclass
class Columns:
    """ERA5's five variables on seven pressure levels, (time, level, latitude, longitude)."""

    values: dict[str, Any]
    times: list[Any]
    lat: Any
    lon: Any

    def write(self, path: Path, levels: list[int], names: list[str], axis: str, pascals: bool, scalar: bool) -> Path:
        """Write some levels of some variables, north first, as the Climate Data Store does."""
        factor, units = (100.0, "Pa") if pascals else (1.0, "hPa")
        dims = ("valid_time", axis, "latitude", "longitude")
        rows = [LEVELS.index(level) for level in levels]
        ds = xr.Dataset(
            {name: (dims, self.values[name][:, rows, ::-1], {"units": LEVEL_UNITS[name]}) for name in names},
            coords={
                "valid_time": self.times,
                axis: (axis, factor * np.array(levels, dtype=np.float64), {"units": units}),
                "latitude": self.lat[::-1],
                "longitude": self.lon,
            },
        )
        (ds.isel({axis: 0}) if scalar and len(levels) == 1 else ds).to_netcdf(path)
        return path


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    """Random columns on a small grid."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lat, lon = draw(_grids())
    times = draw(_times())
    shape = (len(times), len(LEVELS), lat.size, lon.size)
    scales = {"u": 30.0, "v": 20.0, "t": 300.0, "z": 1e5, "q": 0.01}
    return Columns({n: rng.uniform(0.1, 1.0, shape).astype(np.float32) * s for n, s in scales.items()}, times, lat, lon)


@settings(max_examples=30, deadline=None)
@given(columns=columns(), data=st.data())
def test_levels_in_any_order_and_in_any_files_give_one_dataset(columns: Columns, data: st.DataObject) -> None:
    pick = data.draw
    with _folder() as folder:
        paths = []
        for names in pick(
            st.sampled_from([[["u", "v", "t", "z", "q"]], [["u", "v"], ["t", "q", "z"]], [[n] for n in "uvtzq"]])
        ):
            order = list(pick(st.permutations(LEVELS)))
            groups = [order] if pick(st.booleans()) else [[level] for level in order]
            for levels in groups:
                pascals = pick(st.booleans())
                axis = pick(
                    st.sampled_from(["plev", "level"] if pascals else ["pressure_level", "level", "isobaricInhPa"])
                )
                path = folder / f"{len(paths)}.nc"
                paths.append(columns.write(path, levels, names, axis, pascals, scalar=pick(st.booleans())))
        opened = open_fields(pick(st.permutations(paths)), source="era5").load()
    assert list(opened.data_vars) == ["TMQ", "U850", "V850", "T200", "T500", "Z1000", "Z200"]
    for (name, level), channel in LEVEL_CHANNELS.items():
        expected = columns.values[name][:, LEVELS.index(level)] / (9.80665 if name == "z" else 1.0)
        np.testing.assert_allclose(opened[channel], expected, rtol=3e-7, err_msg=channel)
    # The trapezoidal rule over dp from 200 to 1000 hPa, over g.
    q, pressure = columns.values["q"].astype(np.float64)[:, ::-1], 100.0 * np.array(LEVELS[::-1])
    np.testing.assert_allclose(opened["TMQ"], np.trapezoid(q, pressure, axis=1) / 9.80665, rtol=1e-5)
