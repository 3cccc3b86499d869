import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import xarray as xr

from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.sources import zarr_store
from climseg.sources.open import open_fields

open_era5 = partial(open_fields, source="era5")
WriteStore = Callable[..., Path]

pytestmark = [
    # The tests write stores of version 3 with consolidated metadata, as xarray does, and packed ones without marks.
    pytest.mark.filterwarnings("ignore:Consolidated metadata"),
    pytest.mark.filterwarnings("ignore:saving variable .* with floating point data as an integer dtype"),
]

STEPS, LAT, LON = 4, np.linspace(90.0, -90.0, 7), np.arange(0.0, 360.0, 45.0)
TIMES = np.datetime64("2001-01-01", "ns") + np.arange(STEPS) * np.timedelta64(6, "h")
KELVIN = (273.0 + np.arange(STEPS * 7 * 8).reshape(STEPS, 7, 8) / 4.0).astype(np.float32)


def _dataset(values: Any = KELVIN, name: str = "t2m", units: str = "K") -> xr.Dataset:
    return xr.Dataset(
        {name: (("time", "lat", "lon"), values, {"units": units})}, {"time": TIMES, "lat": LAT, "lon": LON}
    )


@pytest.fixture
def write_store(tmp_path: Path) -> WriteStore:
    """A function that writes t2m, or another Dataset, into a Zarr store with one chunk a step, or others."""

    def write(version: int = 2, ds: xr.Dataset | None = None, name: str = "a.zarr", **encoding: Any) -> Path:
        ds = _dataset() if ds is None else ds
        variables = {str(v): {"chunks": (1, 7, 8)} | encoding for v in ds.data_vars}
        ds.to_zarr(tmp_path / name, zarr_format=version, encoding=variables)  # type: ignore[call-overload]
        return tmp_path / name

    return write


def _remove_chunk(store: Path, variable: str, step: int) -> None:
    (chunk,) = [
        store / variable / name for name in (f"{step}.0.0", f"c/{step}/0/0") if (store / variable / name).exists()
    ]
    chunk.unlink()


PACKED = {"dtype": "int16", "scale_factor": 0.25, "add_offset": 290.0, "_FillValue": -32767}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("encoding", [{}, PACKED], ids=["float32", "packed"])
def test_stores_of_both_versions_are_read(write_store: WriteStore, version: int, encoding: dict[str, Any]) -> None:
    ds = open_era5(write_store(version, **encoding))
    np.testing.assert_array_equal(ds["TREFHT"], KELVIN[:, ::-1])
    np.testing.assert_array_equal(ds["time"], TIMES)
    assert ds.attrs == {"source": "Zarr with names of ERA5"}
    assert ds["TREFHT"].attrs["units"] == "K"
    assert ds["TREFHT"].chunks is not None


@pytest.mark.parametrize("version", [2, 3])
def test_dask_chunks_are_the_stored_ones_in_time(write_store: WriteStore, version: int) -> None:
    store = write_store(version, chunks=(3, 4, 4))
    assert open_era5(store)["TREFHT"].chunks == ((3, 1), (7,), (8,))


def test_a_store_without_consolidated_metadata_is_read_without_a_warning(tmp_path: Path) -> None:
    _dataset().to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    with warnings.catch_warnings(action="error"):
        ds = open_era5(tmp_path / "a.zarr")
    np.testing.assert_array_equal(ds["TREFHT"], KELVIN[:, ::-1])


def test_levels_and_scalars_of_a_store_are_read_as_those_of_a_file(write_store: WriteStore, tmp_path: Path) -> None:
    levels = np.array([500, 850])
    u = np.broadcast_to(levels.reshape(1, 2, 1, 1), (STEPS, 2, 7, 8)).astype(np.float32)
    dims = ("time", "level", "lat", "lon")
    ds = xr.Dataset({"u_component_of_wind": (dims, u, {"units": "m s**-1"})}, {"time": TIMES, "lat": LAT, "lon": LON})
    ds = ds.assign_coords(level=("level", levels, {"units": "hPa"}))
    ds.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    # As in ARCO-ERA5 and WeatherBench2.
    assert (open_era5(tmp_path / "a.zarr", channels=["U850"])["U850"] == 850.0).all()


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_of_which_every_chunk_of_every_field_is_missing_is_refused_at_once(
    write_store: WriteStore, version: int
) -> None:
    store = write_store(version)
    for step in range(STEPS):
        _remove_chunk(store, "t2m", step)
    with pytest.raises(InputError, match=r"a\.zarr: variable t2m has no value at all from 2001-01-01 00:00:00 to"):
        open_era5(store)


def test_a_variable_without_chunks_beside_others_is_refused_when_it_is_wanted(write_store: WriteStore) -> None:
    store = write_store(2, xr.merge([_dataset(), _dataset(KELVIN, "tcwv", "kg m**-2")]))
    for step in range(STEPS):
        _remove_chunk(store, "tcwv", step)
    with pytest.raises(InputError, match="variable tcwv has no value at all"):
        open_era5(store)
    assert list(open_era5(store, channels=["TREFHT"]).data_vars) == ["TREFHT"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "encoding",
    [{}, PACKED, PACKED | {"_FillValue": None}, {"_FillValue": None}],
    ids=["float32", "packed", "packed without a mark for missing values", "float32 without one"],
)
def test_a_step_whose_chunk_is_missing_is_refused_by_variable_and_time_when_it_is_read(
    write_store: WriteStore, version: int, encoding: dict[str, Any]
) -> None:
    store = write_store(version, **encoding)
    _remove_chunk(store, "t2m", 2)
    ds = open_era5(store, channels=["TREFHT"])
    np.testing.assert_array_equal(ds["TREFHT"][[0, 1, 3]], KELVIN[[0, 1, 3], ::-1])
    with pytest.raises(InputError, match=r"a\.zarr: variable t2m has no value at all at 2001-01-01 12:00:00"):
        ds["TREFHT"].load()


def test_a_level_whose_chunk_is_missing_is_refused(write_store: WriteStore, tmp_path: Path) -> None:
    dims, shape = ("time", "level", "lat", "lon"), (STEPS, 2, 7, 8)
    ds = xr.Dataset(
        {"u": (dims, np.ones(shape, np.float32), {"units": "m s-1"})}, {"time": TIMES, "lat": LAT, "lon": LON}
    )
    ds = ds.assign_coords(level=("level", [500, 850], {"units": "hPa"}))
    packed = {"chunks": (1, 1, 7, 8), "dtype": "int16", "scale_factor": 0.5, "add_offset": 10.0}
    ds.to_zarr(tmp_path / "a.zarr", zarr_format=3, encoding={"u": packed})
    (tmp_path / "a.zarr" / "u" / "c" / "1" / "1" / "0" / "0").unlink()
    wind = open_era5(tmp_path / "a.zarr")["U850"]
    assert (wind[0] == 1.0).all()
    with pytest.raises(InputError, match="variable u has no value at all at 2001-01-01 06:00:00"):
        wind.load()


@pytest.mark.parametrize("version", [2, 3])
def test_zeros_that_zarr_leaves_out_are_zeros(write_store: WriteStore, version: int) -> None:
    # Zarr writes no chunk that holds its fill value alone: a mask of background, or an hour without convection.
    calm = _dataset(np.zeros_like(KELVIN), "TMQ", "kg m-2")
    mask = xr.Dataset({LABELS: (("time", "lat", "lon"), np.zeros((STEPS, 7, 8), np.int8))}, calm.coords)
    mask[LABELS][1, 0, 0] = 1
    store = write_store(version, xr.merge([calm, mask]))
    ds = open_fields(store, source="cam5", labels=True)
    assert (ds["TMQ"] == 0.0).all()
    assert ds[LABELS].values.sum() == 1


def test_a_store_that_has_grown_is_read_anew(write_store: WriteStore) -> None:
    store = write_store(2)
    assert open_era5(store).sizes["time"] == STEPS
    later = _dataset(KELVIN + 1.0).assign_coords(time=TIMES + np.timedelta64(1, "D"))
    later.to_zarr(store, append_dim="time")
    ds = open_era5(store)
    np.testing.assert_array_equal(ds["TREFHT"], np.concatenate([KELVIN, KELVIN + 1.0])[:, ::-1])


def test_a_chunk_that_is_damaged_is_named(write_store: WriteStore) -> None:
    store = write_store(2)
    (store / "t2m" / "1.0.0").write_bytes(b"no zstd frame")
    with pytest.raises(InputError, match=r"a\.zarr: variable t2m cannot be read .*damaged"):
        open_era5(store)["TREFHT"].load()


def test_a_folder_with_broken_metadata_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_text("{")
    with pytest.raises(InputError, match=r"a\.zarr: cannot be opened as a Zarr store"):
        open_era5(tmp_path / "a.zarr")


# Behind a URL


@pytest.fixture
def in_memory(write_store: WriteStore) -> Iterator[str]:
    """The URL of a store in fsspec's file system of this process's memory."""
    memory = fsspec.filesystem("memory")
    memory.put(str(write_store(2)), "/a.zarr", recursive=True)
    yield "memory://a.zarr"
    memory.rm("/a.zarr", recursive=True)


def test_a_store_behind_a_url_is_read(in_memory: str) -> None:
    ds = open_era5(in_memory)
    np.testing.assert_array_equal(ds["TREFHT"], KELVIN[:, ::-1])


@pytest.mark.parametrize("options", [{"token": "anon"}, {"client_kwargs": {"endpoint_url": "https://x"}, "anon": True}])
def test_options_of_the_storage_are_passed_on(in_memory: str, options: dict[str, Any]) -> None:
    np.testing.assert_array_equal(open_era5(in_memory, storage_options=options)["TREFHT"], KELVIN[:, ::-1])


def test_a_missing_chunk_behind_a_url_is_refused_when_it_is_read(in_memory: str) -> None:
    fsspec.filesystem("memory").rm("/a.zarr/t2m/2.0.0")
    ds = open_era5(in_memory)
    ds["TREFHT"][3].load()
    with pytest.raises(InputError, match=r"memory://a\.zarr: variable t2m has no value at all at 2001-01-01 12:00:00"):
        ds["TREFHT"][2].load()


def test_a_url_at_which_nothing_is_is_refused() -> None:
    with pytest.raises(InputError, match=r"memory://nowhere\.zarr: cannot be opened as a Zarr store"):
        open_era5("memory://nowhere.zarr")


def test_a_protocol_whose_package_is_absent_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise ImportError("Please install gcsfs to access Google Storage")

    monkeypatch.setattr(zarr_store.xr, "open_zarr", absent)
    with pytest.raises(InputError, match=r"gs://b/a\.zarr: .*Please install gcsfs.*pip install 'climseg\[cloud\]'"):
        open_era5("gs://b/a.zarr")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_store_behind_a_web_server_is_read(write_store: WriteStore) -> None:
    pytest.importorskip("aiohttp", reason="reading https:// needs aiohttp")
    store = write_store(2)
    _remove_chunk(store, "t2m", 2)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(store.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        ds = open_era5(f"http://127.0.0.1:{server.server_port}/a.zarr")
        np.testing.assert_array_equal(ds["TREFHT"][:2], KELVIN[:2, ::-1])
        with pytest.raises(InputError, match="variable t2m has no value at all at 2001-01-01 12:00:00"):
            ds["TREFHT"][2].load()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
