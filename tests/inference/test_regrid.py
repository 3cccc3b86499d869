import numpy as np
import xarray as xr

from climseg.inference.regrid import grid_within, interpolate


def dataset(lat: np.ndarray, lon: np.ndarray, values: np.ndarray) -> xr.Dataset:
    return xr.Dataset({"f": (("lat", "lon"), values)}, {"lat": lat, "lon": lon})


def test_a_field_linear_in_latitude_is_interpolated_exactly() -> None:
    lat, lon = np.linspace(-90, 90, 37), np.arange(0, 360, 5.0)
    ds = dataset(lat, lon, np.repeat(lat[:, None], 72, axis=1))
    out = interpolate(ds, np.linspace(-88, 88, 45), np.arange(0, 360, 2.5))
    np.testing.assert_allclose(out["f"], np.repeat(np.linspace(-88, 88, 45)[:, None], 144, axis=1), atol=1e-12)


def test_between_the_last_and_the_first_column_lies_their_mean() -> None:
    values = np.arange(72.0)[None].repeat(37, axis=0)
    ds = dataset(np.linspace(-90, 90, 37), np.arange(0, 360, 5.0), values)
    out = interpolate(ds, np.array([0.0]), np.array([357.5]))
    assert float(out["f"][0, 0]) == (71 + 0) / 2


def test_beyond_the_outermost_row_its_values_are_taken() -> None:
    lat = np.arange(-87.5, 90, 5.0)
    ds = dataset(lat, np.arange(0, 360, 5.0), np.repeat(lat[:, None], 72, axis=1))
    out = interpolate(ds, np.array([-90.0, 90.0]), np.array([10.0]))
    np.testing.assert_array_equal(out["f"][:, 0], [-87.5, 87.5])


def test_a_region_across_greenwich_keeps_its_convention() -> None:
    region = dataset(np.arange(30, 51.0), np.arange(350, 371.0), np.zeros((21, 21)))
    lat, lon = grid_within(np.linspace(-90, 90, 73), np.arange(0, 360, 2.5), region)
    np.testing.assert_array_equal(lat, np.arange(30, 51, 2.5))
    np.testing.assert_array_equal(lon, np.arange(350, 371, 2.5))
