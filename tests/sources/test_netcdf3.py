from pathlib import Path

import netCDF4
import numpy as np
import pytest

from climseg.sources.netcdf3 import expected_size


@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("record_variables", [["i2"], ["i2", "f4", "i1"], []])
def test_the_expected_size_is_that_of_the_file_the_library_wrote(
    tmp_path: Path, format: str, record_variables: list[str]
) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.title = "a title of odd length"
        file.createDimension("time", None)
        file.createDimension("lat", 3)
        file.createDimension("lon", 5)
        fixed = file.createVariable("fixed", "f8", ("lat", "lon"))
        fixed.setncatts({"units": "m", "levels": np.arange(3, dtype="i2")})
        fixed[:] = 1.0
        for number, kind in enumerate(record_variables):
            variable = file.createVariable(f"v{number}", kind, ("time", "lat", "lon"))
            variable[:] = np.ones((4, 3, 5))
    # The library pads the end of the file to four bytes.
    assert 0 <= path.stat().st_size - expected_size(path) < 4


def test_a_header_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("lat", 3)
        file.createVariable("v", "f4", ("lat",))[:] = 1.0
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="cut short"):
        expected_size(path)
