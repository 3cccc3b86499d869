from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.sources import scan
from climseg.sources.open import open_fields
from climseg.sources.scan import scan_files

WriteFile = Callable[..., Path]
TMQ = {"TMQ": (1.0, "kg m-2")}


def test_parts_come_in_the_order_of_the_files_and_share_layouts(
    write_file: WriteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_BATCH", 2)
    paths = [str(write_file(f"{n}.nc", TMQ, times=[f"2001-01-0{n}"])) for n in (5, 3, 1, 4, 2)]
    files = scan_files(paths)
    assert [file.path for file in files] == [file.origin for file in files] == paths
    assert len({id(file.layout) for file in files}) == 1


def test_the_first_damaged_file_of_many_is_named(write_file: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_BATCH", 2)
    paths = [write_file(f"{n}.nc", TMQ) for n in "abcde"]
    for path in paths[2:4]:
        path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match=rf"^{paths[2]}: "):
        scan_files([str(path) for path in paths])


def test_files_of_several_formats_give_one_dataset(
    write_file: WriteFile, write_grib: WriteFile, tmp_path: Path
) -> None:
    netcdf = write_file("a.nc", {"msl": (101300.0, "Pa")})
    grib = write_grib("b.grib", [{"paramId": 167, "values": 288.15}])
    zarr = tmp_path / "c.zarr"
    open_fields(write_file("c.nc", TMQ), source="cam5")[["TMQ"]].rename(TMQ="tcwv").to_zarr(zarr, zarr_format=2)
    ds = open_fields([netcdf, grib, zarr], source="era5")
    assert list(ds.data_vars) == ["TMQ", "PSL", "TREFHT", "ZBOT"]
    assert ds.attrs["source"] == "ERA5 netCDF and GRIB and Zarr"
    np.testing.assert_allclose(ds["TREFHT"], 288.15, rtol=1e-6)
    assert (ds["PSL"] == 101300.0).all()
    assert (ds["TMQ"] == 1.0).all()


def test_a_header_that_brings_down_the_library_costs_the_file_its_name_and_nothing_else(
    shared: Path, tmp_path: Path, write_file: WriteFile
) -> None:
    content = bytearray((shared / "grib" / "ipos_jpos.grib2").read_bytes())
    content[43] = 84  # ecCodes 2.50 ends the process
    damaged = tmp_path / "damaged.grib2"
    damaged.write_bytes(content)
    good = write_file("a.nc", TMQ)
    with pytest.raises(InputError, match=rf"^{damaged}: .*damaged"):
        scan_files([str(good), str(damaged)])
    assert len(scan_files([str(good)])) == 1


def test_a_file_that_goes_while_it_is_looked_at_is_named(tmp_path: Path) -> None:
    (answer,) = scan.scan_batch([(f"{tmp_path}/gone.nc", "netcdf")])
    assert isinstance(answer, InputError)
    assert str(answer).startswith(f"{tmp_path}/gone.nc: cannot be read (No such file")
