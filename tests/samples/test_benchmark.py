from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg.channels import LABELS
from climseg.samples.benchmark import Comparison, Reading, compare_readings
from climseg.store.info import StoreInfo
from climseg.store.other_readings import by_fromfile, by_netcdf, by_zarr, write_uncompressed
from climseg.store.writer import write_store


@pytest.fixture(scope="module")
def made(files: str, atmosphere: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Any]:
    """The files of four time steps, and stores of them."""
    folder, four = tmp_path_factory.mktemp("stores"), atmosphere.isel(time=slice(4))
    channels = [str(name) for name in four.data_vars if name != LABELS]
    for dtype in ("float32", "float16"):
        write_store(
            four, four[LABELS], folder / dtype, channels=channels, splits=["train"] * 4, request={}, dtype=dtype
        )
    return sorted(Path(files).parent.glob("*.nc")), {t: folder / t for t in ("float32", "float16")}


def test_all_ways_read_the_same_samples(made: tuple[list[Path], Any]) -> None:
    paths, stores = made
    info = StoreInfo.read(stores["float32"])
    mean, std = (np.array(m, np.float32)[:, None, None] for m in (info.statistics.mean, info.statistics.std))
    ways = by_fromfile(stores["float32"], info), by_zarr(stores["float32"]), by_netcdf(paths, info)
    for plain, zarr, netcdf in zip(*ways, strict=True):
        np.testing.assert_array_equal(plain[0], zarr[0])
        np.testing.assert_allclose((plain[0] - mean) / std, netcdf[0], rtol=1e-5, atol=1e-5)
        for other in (zarr, netcdf):
            np.testing.assert_array_equal(plain[1], other[1])


def test_uncompressed_files_hold_the_same(made: tuple[list[Path], Any], tmp_path: Path) -> None:
    written = write_uncompressed(made[0], tmp_path / "plain")
    for path, same in zip(made[0], written, strict=True):
        with xr.open_dataset(path) as ds, xr.open_dataset(same) as plain:
            xr.testing.assert_identical(ds, plain)
            assert not plain["PSL"].encoding.get("zlib")
        assert same.stat().st_size > 37 * 72 * 16 * 4


def test_every_way_is_measured_as_often_as_asked(made: tuple[list[Path], Any]) -> None:
    paths, stores = made
    found = compare_readings(paths, stores, batch_size=2, workers=[0, 1], passes=2, repeats=2)
    assert found.samples == 8
    assert found.delivered_bytes == 16 * 37 * 72 * 4
    ours = [(t, n) for n in (0, 1) for t in stores]
    assert [(r.name, r.workers) for r in found.readings] == [("np.fromfile", 0), ("zarr", 0), ("netCDF", 0), *ours]
    assert all(len(r.seconds) == 2 and min(r.seconds) > 0 for r in found.readings)
    sizes = {r.name: r.read_bytes for r in found.readings}
    assert sizes["np.fromfile"] == 37 * 72 * (16 * 4 + 1)
    assert sizes["float16"] == 37 * 72 * (16 * 2 + 1)


def test_speed_and_ratio_come_from_the_medians() -> None:
    plain, ours = Reading("np.fromfile", 0, 1, [1.0, 2.0, 9.0]), Reading("float32", 0, 1, [1.0, 0.5, 8.0])
    found = Comparison(samples=10, delivered_bytes=4, readings=[plain, ours])
    assert found.speed(plain) == 5.0
    assert found.ratio(ours) == 2.0
