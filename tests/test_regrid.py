"""Regridding against formulas, hand counts and conservation."""

import pickle
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from iris.analysis import Linear
from iris.coords import DimCoord
from iris.cube import Cube

from climseg.canonical import SOURCE_VALUES, restore_orientation, to_canonical
from climseg.channels import CHANNELS, LABELS
from climseg.errors import InputError
from climseg.grid import cell_area
from climseg.regrid import Grid, grid_within, interpolate, regrid, target_grid

POLES = Grid(np.linspace(-90, 90, 37), np.arange(0, 360, 5.0))  # rows on the poles
CENTRES = Grid(np.arange(-87.5, 90, 5.0), np.arange(0, 360, 5.0))  # rows half a step from them
REGION = Grid(np.arange(10.0, 31.0), np.arange(350.0, 371.0))  # 1 degree, across Greenwich


def canonical(grid: Grid, chunked: bool = False, **fields: np.ndarray) -> xr.Dataset:
    """A canonical Dataset of fields that broadcast to (time, lat, lon)."""
    steps = max(f.shape[0] if f.ndim == 3 else 1 for f in fields.values())
    shape = (steps, *grid.shape)
    times = pd.date_range("2001-08-01", periods=steps, freq="6h")
    ds = xr.Dataset(
        {name: (("time", "lat", "lon"), np.broadcast_to(f, shape).copy()) for name, f in fields.items()},
        {"time": times, "lat": grid.lat, "lon": grid.lon},
    )
    return to_canonical(ds.chunk(time=1) if chunked else ds, "test")


def weather(grid: Grid, steps: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shape = (steps, *grid.shape)
    return {
        "TMQ": rng.gamma(2.0, 10.0, shape),
        "PRECT": rng.gamma(0.5, 1e-7, shape),
        LABELS: rng.integers(-1, 3, shape),
    }


def integral(rain: xr.DataArray) -> np.ndarray:
    return (rain.values.astype(np.float64) * cell_area(rain["lat"], rain["lon"])).sum(axis=(1, 2))


# Bilinear


@pytest.mark.parametrize("target", [target_grid("2.5deg", canonical(POLES, TS=np.zeros(1))), CENTRES])
def test_a_field_linear_in_latitude_is_interpolated_exactly(target: Grid) -> None:
    out = regrid(canonical(POLES, TS=POLES.lat[:, None]), target)["TS"][0]
    np.testing.assert_allclose(out, np.broadcast_to(target.lat[:, None], target.shape), atol=1e-5)


def test_a_point_between_four_others_weighs_them_by_its_nearness() -> None:
    field = np.zeros((37, 72))
    field[18:20, 2:4] = [[1.0, 2.0], [3.0, 4.0]]  # 0 and 5 degrees north, 10 and 15 degrees east
    out = regrid(canonical(POLES, TS=field), Grid(np.array([0.0, 1.0]), np.array([11.0, 13.0])))["TS"].values[0]
    first = 0.8 * (0.8 * 1 + 0.2 * 2) + 0.2 * (0.8 * 3 + 0.2 * 4)
    np.testing.assert_allclose(out, [[1.2, 1.6], [first, first + 0.4]], rtol=1e-6)


def test_bilinear_values_are_those_of_iris() -> None:
    def cube(grid: Grid, field: np.ndarray) -> Cube:
        lat = DimCoord(grid.lat, standard_name="latitude", units="degrees")
        lon = DimCoord(grid.lon, standard_name="longitude", units="degrees", circular=True)
        return Cube(field, dim_coords_and_dims=[(lat, 0), (lon, 1)])

    field = weather(POLES)["TMQ"][0].astype(np.float32)
    target = Grid(np.linspace(-89, 89, 50), np.arange(1.7, 360, 3.0))
    theirs = cube(POLES, field).regrid(cube(target, np.zeros(target.shape)), Linear()).data
    np.testing.assert_allclose(regrid(canonical(POLES, TMQ=field), target)["TMQ"][0], theirs, rtol=1e-5)


def test_between_the_last_and_the_first_column_lies_their_mean() -> None:
    out = regrid(canonical(POLES, TS=np.arange(72.0)), target_grid("2.5deg", canonical(POLES, TS=np.zeros(1))))["TS"]
    assert float(out.sel(lat=0, lon=357.5)[0]) == (71 + 0) / 2
    assert float(out.sel(lat=0, lon=2.5)[0]) == (0 + 1) / 2


def test_beyond_the_outermost_row_its_values_are_taken() -> None:
    field = CENTRES.lat[:, None] + np.arange(72.0)
    out = regrid(canonical(CENTRES, TS=field), target_grid("5deg", canonical(CENTRES, TS=field)))["TS"][0]
    np.testing.assert_array_equal(out[0], field[0].astype(np.float32))
    np.testing.assert_array_equal(out[-1], field[-1].astype(np.float32))


# Conservative


@pytest.mark.parametrize("source", [POLES, CENTRES, Grid(POLES.lat, POLES.lon + 1.3)])
@pytest.mark.parametrize("word", ["3deg", "7.5deg", "cam5"])
def test_the_rain_on_the_globe_stays(source: Grid, word: str) -> None:
    ds = canonical(source, PRECT=weather(source, 2)["PRECT"])
    np.testing.assert_allclose(integral(regrid(ds, target_grid(word, ds))["PRECT"]), integral(ds["PRECT"]), rtol=1e-6)


def test_rain_in_a_polar_cap_stays_and_stays_there() -> None:
    rain = np.zeros((37, 72))
    rain[-1] = 1e-6  # the row at the pole: its cells reach from 87.5 to 90 degrees
    ds = canonical(POLES, PRECT=rain)
    out = regrid(ds, CENTRES)["PRECT"]
    np.testing.assert_allclose(integral(out), integral(ds["PRECT"]), rtol=1e-6)
    share = (1 - np.sin(np.radians(87.5))) / (1 - np.sin(np.radians(85.0)))
    np.testing.assert_allclose(out[0, -1], 1e-6 * share, rtol=1e-6)
    assert float(abs(out[0, :-1]).max()) == 0.0


def test_halving_a_grid_gives_the_means_of_four_cells_weighted_by_area() -> None:
    source = Grid(np.array([5.0, 15.0, 25.0, 35.0]), np.array([5.0, 15.0, 25.0, 35.0]))
    rain = np.array([[1.0, 3, 0, 0], [5, 7, 0, 0], [0, 0, 2, 2], [0, 0, 2, 6]]) * 1e-7
    out = regrid(canonical(source, PRECT=rain), Grid(np.array([10.0, 30.0]), np.array([10.0, 30.0])))["PRECT"]
    # sin(0), sin(10), ... sin(40 degrees): the means of the rows of the first cell are 2 and 6, of the last 2 and 4.
    heights = np.diff([0.0, 0.1736482, 0.3420201, 0.5, 0.6427876])
    south = (2 * heights[0] + 6 * heights[1]) / (heights[0] + heights[1])
    north = (2 * heights[2] + 4 * heights[3]) / (heights[2] + heights[3])
    np.testing.assert_allclose(out[0], np.array([[south, 0], [0, north]]) * 1e-7, rtol=1e-6)


def test_a_gaussian_grid_whose_cells_end_before_the_poles_has_rain_there() -> None:
    gaussian = Grid(np.degrees(np.arcsin(np.polynomial.legendre.leggauss(64)[0])), np.arange(128) * 2.8125)
    ds = canonical(gaussian, PRECT=np.full(1, 2e-7), TS=np.full(1, 280.0))
    out = regrid(ds, target_grid("2.5deg", ds))
    assert out.sizes["lat"] == 73
    np.testing.assert_allclose(out["PRECT"], 2e-7, rtol=1e-6)
    np.testing.assert_allclose(out["TS"], 280.0, rtol=1e-6)


# Masks


def test_a_cell_gets_the_class_with_the_largest_share_and_of_equals_the_lowest() -> None:
    source = Grid(np.array([-15.0, -5.0, 5.0, 15.0]), np.array([5.0, 15.0, 25.0, 35.0]))
    labels = np.array([[1, 1, 0, 2], [1, 0, 0, 2], [2, 2, -1, 1], [1, 0, -1, 1]])
    out = regrid(canonical(source, LABELS=labels), Grid(np.array([-10.0, 10.0]), np.array([10.0, 30.0])))[LABELS]
    # 10 to 20 degrees are smaller than 0 to 10. South: three cells of four are 1; half 0 and half 2. North: the two
    # larger cells are 2; half missing and half 1.
    np.testing.assert_array_equal(out[0], [[1, 0], [2, -1]])
    assert out.dtype == np.int8


def test_a_mask_cap_at_the_pole_keeps_its_edge() -> None:
    labels = np.where(POLES.lat[:, None] > 70.0, 2, 0)  # rows of 75 degrees and more, whose cells begin at 72.5
    out = regrid(canonical(POLES, LABELS=labels), target_grid("2.5deg", canonical(POLES, LABELS=labels)))[LABELS][0]
    # The target row at 72.5 is halved by that edge, and its southern half is the larger one.
    np.testing.assert_array_equal(out, np.broadcast_to(np.where(out["lat"].values > 73, 2, 0)[:, None], out.shape))


def test_a_mask_on_a_grid_of_half_the_step_is_repeated() -> None:
    source = Grid(np.arange(-85.0, 90, 10), np.arange(5.0, 360, 10))
    labels = np.random.default_rng(2).integers(-1, 3, source.shape)
    target = Grid(np.arange(-87.5, 90, 5), np.arange(2.5, 360, 5))
    out = regrid(canonical(source, LABELS=labels), target)[LABELS][0]
    np.testing.assert_array_equal(out, labels.repeat(2, axis=0).repeat(2, axis=1))


# All


def test_a_constant_field_stays_constant() -> None:
    ds = canonical(POLES, TS=np.full(1, 287.3), PRECT=np.full(1, 3.1e-8), LABELS=np.ones(1))
    for grid in (target_grid("cam5", ds), CENTRES):
        out = regrid(ds, grid)
        for name, value in (("TS", 287.3), ("PRECT", 3.1e-8), (LABELS, 1)):
            np.testing.assert_allclose(out[name], value, rtol=1e-6)


@pytest.mark.parametrize("columns", [3, 40, 71])
def test_turning_the_globe_before_or_after_is_the_same(columns: int) -> None:
    fields = weather(POLES)
    turned = {name: np.roll(f, columns, axis=-1) for name, f in fields.items()}
    target = target_grid("2.5deg", canonical(POLES, **fields))
    here, there = (regrid(canonical(POLES, **f), target) for f in (fields, turned))
    for name in fields:
        np.testing.assert_allclose(there[name], np.roll(here[name], 2 * columns, axis=-1), rtol=1e-6)


def test_a_region_gets_the_part_of_the_grid_inside_it_in_its_own_convention() -> None:
    fields = weather(REGION)
    ds = canonical(REGION, **fields)
    target = target_grid("2.5deg", ds)
    np.testing.assert_array_equal(target.lat, np.arange(10, 31, 2.5))
    np.testing.assert_array_equal(target.lon, np.arange(350, 371, 2.5))
    out = regrid(ds, target)
    assert out.sizes == {"time": 1, "lat": 9, "lon": 9}
    assert all(bool(np.isfinite(out[n]).all()) for n in fields)
    # The first cell overhangs the region, which begins at 9.5 degrees north and 349.5 degrees east.
    rows, columns = np.array([9.5, 10.5, 11.25]), np.array([1.0, 0.75])
    weights = np.diff(np.sin(np.radians(rows)))[:, None] * columns / columns.sum()
    expected = (fields["PRECT"][0, :2, :2] * weights).sum() / weights.sum()
    np.testing.assert_allclose(out["PRECT"][0, 0, 0], expected, rtol=1e-5)


def test_a_region_is_not_closed_over_its_ends() -> None:
    half = Grid(np.linspace(-40, 40, 17), np.arange(0, 181, 5.0))
    ds = canonical(half, TS=np.arange(37.0), PRECT=np.arange(37.0) * 1e-8)
    out = regrid(ds, target_grid("2.5deg", ds))
    np.testing.assert_allclose(out["TS"][0, 0], np.arange(73) / 2, rtol=1e-6)
    np.testing.assert_allclose(out["PRECT"][0, 0, [0, -1]], [0.0, 36e-8], rtol=1e-6)


def test_a_regional_grid_is_cut_out_of_a_global_input() -> None:
    out = regrid(canonical(POLES, TS=POLES.lat[:, None] + 0 * POLES.lon, PRECT=np.full(1, 1e-7)), REGION)
    np.testing.assert_allclose(out["TS"][0, :, 3], REGION.lat, rtol=1e-6)
    np.testing.assert_allclose(out["PRECT"], 1e-7, rtol=1e-6)
    np.testing.assert_array_equal(out["lon"], REGION.lon)


def test_a_missing_value_makes_what_depends_on_it_missing_and_nothing_else() -> None:
    field = np.ones((37, 72))
    field[18, 10] = np.nan  # at the equator, 50 degrees east
    ds = canonical(POLES, TS=field, PRECT=field * 1e-7)
    out = regrid(ds, target_grid("2.5deg", ds)).isel(time=0)

    def holes(name: str) -> set[tuple[float, float]]:
        rows, columns = np.nonzero(np.isnan(out[name].values))
        return set(zip(out["lat"].values[rows].tolist(), out["lon"].values[columns].tolist(), strict=True))

    nine = {(a, b) for a in (-2.5, 0.0, 2.5) for b in (47.5, 50.0, 52.5)}
    assert holes("TS") == nine  # at 45 and 55 degrees, on a source point, the missing one has no weight
    assert holes("PRECT") == nine  # the missing cell ends at 47.5 and 52.5, in the middle of those cells


def test_attributes_and_types_are_kept_and_the_comment_says_how() -> None:
    ds = canonical(POLES, chunked=True, **weather(POLES, 2))
    ds["TMQ"].attrs["comment"] = "from tcwv"
    ds["time"].encoding["units"] = "hours since 1900-01-01"
    out = regrid(ds.assign_attrs(title="x"), CENTRES)
    assert out["TMQ"].attrs == CHANNELS["TMQ"].attributes | {"comment": "from tcwv; regridded bilinearly"}
    assert out["PRECT"].attrs["comment"] == "regridded conservatively" == out[LABELS].attrs["comment"]
    assert (out["TMQ"].dtype, out["PRECT"].dtype, out[LABELS].dtype) == (np.float32, np.float32, np.int8)
    assert out.attrs == {"title": "x"}
    assert out["lat"].attrs["units"] == "degrees_north"
    assert out["time"].encoding["units"] == "hours since 1900-01-01"
    assert "comment" not in ds["PRECT"].attrs


def test_the_orientation_of_the_source_file_is_forgotten() -> None:
    ds = canonical(POLES, TS=POLES.lat[:, None])
    ds = to_canonical(ds.isel(lat=slice(None, None, -1)), "north first")
    assert SOURCE_VALUES in ds["lat"].attrs
    out = regrid(ds, CENTRES)
    assert SOURCE_VALUES not in out["lat"].attrs
    xr.testing.assert_equal(restore_orientation(out), out)


def test_the_same_grid_gives_the_same_dataset() -> None:
    ds = canonical(POLES, **weather(POLES))
    assert regrid(ds, POLES) is ds


# Dask


def test_building_reads_nothing() -> None:
    def read(block: np.ndarray) -> np.ndarray:
        raise AssertionError("read")

    ds = canonical(POLES, chunked=True, **weather(POLES, 3))
    for name in ds.data_vars:
        ds[name].data = da.map_blocks(read, ds[name].data, dtype=ds[name].dtype, meta=ds[name].data._meta)
    out = regrid(ds, CENTRES)
    for variable in out.data_vars.values():
        assert variable.chunks == ((1, 1, 1), (36,), (72,))
        with pytest.raises(AssertionError, match="read"):
            variable.isel(time=1).compute()


def test_chunked_equals_whole() -> None:
    fields = weather(POLES, 5)
    whole = canonical(POLES, **fields)
    target = target_grid("4deg", whole)
    pieces = regrid(whole.chunk(time=2, lat=10, lon=7), target)
    assert pieces["TMQ"].chunks == ((2, 2, 1), (46,), (90,))
    xr.testing.assert_identical(pieces.compute(), regrid(whole, target).compute())


def test_a_pickled_result_can_be_computed_in_another_process(tmp_path: Path) -> None:
    out = regrid(canonical(POLES, chunked=True, **weather(POLES, 2)), CENTRES)
    (tmp_path / "out.pickle").write_bytes(pickle.dumps(out))
    program = "import pickle, sys; pickle.load(open('out.pickle', 'rb')).compute().to_netcdf('out.nc')"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    with xr.open_dataset(tmp_path / "out.nc", mask_and_scale=False) as there:
        for name in out.data_vars:
            np.testing.assert_array_equal(there[name], out[name])


# Words for grids


def test_words_name_grids() -> None:
    ds = canonical(POLES, TS=np.zeros(1))
    assert target_grid("0.25deg", ds) == Grid(np.arange(-90, 90.1, 0.25), np.arange(0, 360, 0.25))
    assert target_grid("90deg", ds) == Grid(np.array([-90.0, 0, 90]), np.array([0.0, 90, 180, 270]))
    cam5 = target_grid("cam5", ds)
    assert cam5.shape == (768, 1152)
    assert (cam5.lat[0], cam5.lat[-1], cam5.lon[0], cam5.lon[-1]) == (-90.0, 90.0, 0.0, 359.6875)


@pytest.mark.parametrize(("lat", "lon"), [("lat", "lon"), ("latitude", "longitude")])
def test_a_file_gives_its_grid_oriented_canonically(tmp_path: Path, lat: str, lon: str) -> None:
    file = xr.Dataset(coords={lat: np.arange(90, -91, -10.0), lon: np.arange(-180.0, 180, 10)})
    file["other"] = ("time", [1.0, 2.0])
    file = file.assign_coords(time=("time", [0, 1], {"units": "months since year one"}))
    file.to_netcdf(tmp_path / "grid.nc")
    grid = target_grid(f"like:{tmp_path}/grid.nc", canonical(POLES, TS=np.zeros(1)))
    assert grid == Grid(np.arange(-90, 91, 10.0), np.arange(0, 360, 10.0))


def test_a_files_grid_in_another_convention_is_found_in_a_region(tmp_path: Path) -> None:
    xr.Dataset(coords={"lat": np.arange(0, 60, 2.0), "lon": np.arange(-8, 31, 2.0)}).to_netcdf(tmp_path / "grid.nc")
    ds = canonical(Grid(REGION.lat, np.arange(0.0, 21.0)), TS=np.zeros(1))
    grid = target_grid(f"like:{tmp_path}/grid.nc", ds)
    assert grid == Grid(np.arange(10, 31, 2.0), np.arange(0, 21, 2.0))


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("0.7deg", r"grid=0\.7deg: .* divides 180 .* for example 0\.25deg"),
        ("0.001deg", "between 0.01 and 90"),
        ("180deg", "between 0.01 and 90"),
        ("-1deg", "expected a number of degrees"),
        ("camm5", "did you mean 'cam5'"),
        ("like:/nowhere/x.nc", r"grid=like:/nowhere/x\.nc: cannot be read"),
    ],
)
def test_other_words_are_refused_with_the_mend(word: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        target_grid(word, canonical(POLES, TS=np.zeros(1)))


def test_a_file_without_a_regular_grid_is_refused_by_name(tmp_path: Path) -> None:
    xr.Dataset({"lat": (("y", "x"), np.zeros((2, 2))), "lon": ("x", [0.0, 1.0])}).to_netcdf(tmp_path / "curved.nc")
    (tmp_path / "text.nc").write_text("not a netCDF file")
    ds = canonical(POLES, TS=np.zeros(1))
    with pytest.raises(InputError, match=r"curved\.nc: has no one-dimensional lat and lon"):
        target_grid(f"like:{tmp_path}/curved.nc", ds)
    with pytest.raises(InputError, match=r"text\.nc: cannot be read as a netCDF file"):
        target_grid(f"like:{tmp_path}/text.nc", ds)
    xr.Dataset(coords={"lat": [0.0, 1, 9], "lon": [0.0, 1, 2]}).to_netcdf(tmp_path / "gap.nc")
    with pytest.raises(InputError, match=r"gap\.nc: lat is not evenly spaced"):
        target_grid(f"like:{tmp_path}/gap.nc", ds)


def test_a_grid_that_misses_the_input_is_refused(tmp_path: Path) -> None:
    ds = canonical(REGION, TS=np.zeros(1))
    with pytest.raises(
        InputError, match="less than 2 x 2 of its points lie within the area of the input, which has 21"
    ):
        target_grid("45deg", ds)
    with pytest.raises(InputError, match=r"x\.nc: the grid to interpolate to, 37 x 72 .* reaches beyond the input's"):
        regrid(ds, POLES, origin="x.nc")
    xr.Dataset(coords={"lat": [10.0, 20], "lon": np.arange(0, 351, 2.0)}).to_netcdf(tmp_path / "grid.nc")
    open_ring = canonical(Grid(REGION.lat, np.arange(200.0, 540)), TS=np.zeros(1))
    with pytest.raises(InputError, match="two parts with a gap"):
        target_grid(f"like:{tmp_path}/grid.nc", open_ring)


def test_coordinates_of_single_precision_lose_no_border() -> None:
    tenth = Grid(np.float32(np.arange(100, 121) / 10).astype(float), np.float32(np.arange(200, 221) / 10).astype(float))
    assert grid_within(Grid(np.arange(0, 300) / 10, np.arange(0, 3600) / 10), tenth).shape == (21, 21)


# Interpolation in memory


def test_interpolation_keeps_other_dims_and_types() -> None:
    probabilities = np.stack([np.broadcast_to(POLES.lat[:, None], POLES.shape), np.ones(POLES.shape)])
    ds = xr.Dataset({"p": (("class", "lat", "lon"), probabilities)}, {"lat": POLES.lat, "lon": POLES.lon})
    out = interpolate(ds, Grid(np.array([-88.0, 1.0]), np.array([357.5])))["p"]
    np.testing.assert_allclose(out, [[[-88.0], [1.0]], [[1.0], [1.0]]], rtol=1e-12)
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out["lon"], [357.5])


def test_beyond_a_regions_border_its_outermost_values_are_taken() -> None:
    ds = xr.Dataset(
        {"p": (("lat", "lon"), REGION.lat[:, None] + 0 * REGION.lon)}, {"lat": REGION.lat, "lon": REGION.lon}
    )
    out = interpolate(ds, Grid(np.array([9.0, 15.0]), np.array([349.0, 371.0])))["p"]
    np.testing.assert_array_equal(out, [[10.0, 10.0], [15.0, 15.0]])
