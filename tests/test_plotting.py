"""Maps: what the mask says is coloured where it says so, and nothing else is."""

from pathlib import Path
from typing import Any

import cartopy.crs as ccrs
import cartopy.io
import cftime
import numpy as np
import pytest
import xarray as xr
from cartopy.mpl.geoaxes import GeoAxes
from matplotlib import image
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.plotting import plot_class_area, plot_masks, plot_masks_at, save_map

# Okabe and Ito (2008), table of colours.
VERMILION, BLUE = np.array([213, 94, 0]), np.array([0, 114, 178])
LAT, LON = np.linspace(-90, 90, 37), np.arange(0, 360, 5.0)
# Boxes (west, south, east, north) in the emptiest of the southern Pacific and over Greenwich, south of Africa.
CYCLONE, RIVER, SEAM_RIVER = (222.5, -47.5, 237.5, -32.5), (247.5, -57.5, 272.5, -42.5), (-17.5, -47.5, 12.5, -37.5)


def made(*blocks: tuple[int, tuple[float, float, float, float]], lat: Any = LAT, lon: Any = LON) -> xr.DataArray:
    """A mask with classes in boxes of longitudes east."""
    mask = xr.DataArray(np.zeros((len(lat), len(lon)), np.int8), coords={"lat": lat, "lon": lon}, dims=("lat", "lon"))
    for number, (west, south, east, north) in blocks:
        inside = ((mask["lon"] - west) % 360 < east - west) & (mask["lat"] > south) & (mask["lat"] < north)
        mask = mask.where(~inside, np.int8(number))
    return mask.transpose("lat", "lon")


def pixels(figure: Figure) -> NDArray[Any]:
    """(rows from the bottom, columns, 3) red, green and blue."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[::-1, :, :3].astype(int)


def map_of(figure: Figure) -> GeoAxes:
    return figure.axes[0]


def place(ax: GeoAxes, lon: float, lat: float) -> tuple[int, int]:
    """Row and column of the pixel at a longitude and latitude."""
    x, y = ax.transData.transform(ax.projection.transform_point(lon, lat, ccrs.PlateCarree()))
    return int(y), int(x)


def map_pixels(figure: Figure) -> NDArray[Any]:
    """The pixels with those outside the map (legend, colour bar) made white."""
    colours = pixels(figure)
    box = map_of(figure).get_window_extent()
    outside = np.ones(colours.shape[:2], bool)
    outside[int(box.y0) : int(box.y1) + 1, int(box.x0) : int(box.x1) + 1] = False
    colours[outside] = 255
    return colours


def reddish(colours: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(colours[..., 0] - colours[..., 2] > 40)


def bluish(colours: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(colours[..., 2] - colours[..., 0] > 40)


def filled(colour: NDArray[Any]) -> NDArray[Any]:
    """The colour at 35 % on white."""
    return 0.65 * 255 + 0.35 * colour


def test_a_cyclone_and_a_river_are_coloured_where_they_are_and_nowhere_else() -> None:
    figure = plot_masks(made((1, CYCLONE), (2, RIVER)))
    colours, ax = map_pixels(figure), map_of(figure)
    np.testing.assert_allclose(colours[place(ax, 232, -42)], filled(VERMILION), atol=2)
    np.testing.assert_allclose(colours[place(ax, 262, -52)], filled(BLUE), atol=2)
    for found, (west, south, east, north) in ((reddish(colours), CYCLONE), (bluish(colours), RIVER)):
        rows, columns = np.nonzero(found)
        (bottom, left), (top, right) = place(ax, west, south), place(ax, east, north)
        np.testing.assert_allclose([rows.min(), rows.max()], [bottom, top], atol=2)
        np.testing.assert_allclose([columns.min(), columns.max()], [left, right], atol=2)


def test_an_outline_runs_along_all_four_edges_of_a_single_cell() -> None:
    figure = plot_masks(made((1, (227.5, -42.5, 232.5, -37.5))))
    colours, ax = pixels(figure), map_of(figure)
    for lon, lat in [(227.5, -41), (232.5, -41), (231, -42.5), (231, -37.5)]:
        row, column = place(ax, lon, lat)
        near = colours[row - 1 : row + 2, column - 1 : column + 2].reshape(-1, 3)
        # The fill alone is 298 away from the full colour.
        assert np.abs(near - VERMILION).sum(axis=1).min() < 60, (lon, lat)


@pytest.mark.parametrize("first", [0.0, 4.0])
def test_a_river_over_the_seam_shows_at_both_edges_without_a_line_across_the_map_or_along_the_seam(
    first: float,
) -> None:
    figure = plot_masks(made((2, SEAM_RIVER), lon=LON + first))
    colours, ax = map_pixels(figure), map_of(figure)
    rows, columns = np.nonzero(bluish(colours))
    west, east = place(ax, 12.5, 0)[1], place(ax, 341.5, 0)[1]
    assert np.all((columns <= west + 2) | (columns >= east - 2))
    np.testing.assert_allclose([rows.min(), rows.max()], [place(ax, 1, -47.5)[0], place(ax, 1, -37.5)[0]], atol=2)
    for lon in (1.0, 359.0):  # two or three pixels from the frame
        np.testing.assert_allclose(colours[place(ax, lon, -42)], filled(BLUE), atol=2)


def test_a_region_near_the_seam_leaves_nothing_at_the_other_edge() -> None:
    figure = plot_masks(made((2, (352.5, -47.5, 357.5, -37.5))))
    ax = map_of(figure)
    columns = np.nonzero(bluish(map_pixels(figure)))[1]
    np.testing.assert_allclose([columns.min(), columns.max()], [place(ax, 352.5, 0)[1], place(ax, 357.5, 0)[1]], atol=2)


def test_a_region_that_ends_at_the_seam_is_outlined_there() -> None:
    # Cells from 0.0: the first one ends at the seam of the map.
    figure = plot_masks(made((1, (0.0, -45.0, 20.0, -40.0)), lat=np.arange(-87.5, 90, 5), lon=np.arange(2.5, 360, 5)))
    colours, ax = map_pixels(figure), map_of(figure)
    for lon, side in ((0.01, 1), (359.99, -1)):
        row, column = place(ax, lon, -42.5)
        near = colours[row, [column, column + side, column + 2 * side]]
        assert reddish(near).any(), lon


def test_the_picture_does_not_depend_on_the_orientation_of_the_file() -> None:
    mask = made((1, CYCLONE), (2, SEAM_RIVER))
    turned = mask.assign_coords(lon=(mask["lon"] + 180) % 360 - 180).sortby("lon").isel(lat=slice(None, None, -1))
    assert (turned["lon"].values[0], turned["lat"].values[0]) == (-180, 90)
    field = xr.ones_like(mask, dtype=float) * mask["lat"]
    np.testing.assert_array_equal(pixels(plot_masks(mask, field)), pixels(plot_masks(turned, field)))


def test_cells_without_a_class_have_a_colour_and_a_word_of_their_own() -> None:
    figure = plot_masks(made((-1, CYCLONE)))
    np.testing.assert_allclose(
        pixels(figure)[place(map_of(figure), 232, -42)], filled(np.array([240, 228, 66])), atol=2
    )
    assert "no class" in map_of(figure).get_legend().get_texts()[-1].get_text()


def test_the_legend_names_both_classes_and_their_areas() -> None:
    def words(mask: xr.DataArray) -> list[str]:
        return [text.get_text() for text in map_of(plot_masks(mask)).get_legend().get_texts()]

    # From 27.5 S to 27.5 N and half way round: sin(27.5 degrees) / 2 of the globe's 510.1 million km2.
    assert words(made((1, (0, -30, 180, 30)))) == ["tropical cyclone (117.8 million km²)", "atmospheric river (none)"]
    rivers = made((2, (0, -30, 180, 30))).assign_attrs(definition="bard; tropical cyclones: not looked for")
    assert words(rivers)[0] == "tropical cyclone (not looked for)"
    # One cell of 5 degrees at the equator: 6371.22^2 * 0.0872665 * 2 sin(2.5 degrees) km2.
    assert words(made((2, (0, -2, 5, 2))))[1] == "atmospheric river (309,031 km²)"


def test_the_field_goes_from_white_to_grey_and_its_bar_has_name_and_units() -> None:
    mask = made()
    field = (mask["lat"] + 0.0 * mask).assign_attrs(CHANNELS["TMQ"].attributes)
    figure = plot_masks(mask, field.transpose())
    colours, ax = pixels(figure), map_of(figure)
    np.testing.assert_allclose(colours[place(ax, 232, -88)], 255, atol=2)
    np.testing.assert_allclose(colours[place(ax, 232, 88.5)], 0.45 * 255, atol=2)
    np.testing.assert_allclose(colours[place(ax, 1, 88.5)], 0.45 * 255, atol=2)
    label = ax.child_axes[0].get_ylabel()
    assert label == "vertically integrated water vapour (kg m$^{-2}$)"


def test_a_regional_map_fits_its_region_and_shows_it_whole() -> None:
    lat, lon = np.arange(20, 60, 2.0), np.arange(-30, 20, 2.0) % 360
    figure = plot_masks(made((2, (-11, 39, 5, 47)), lat=lat, lon=lon))
    ax = map_of(figure)
    np.testing.assert_allclose(ax.get_extent(crs=ccrs.PlateCarree()), [-31, 19, 19, 59], atol=1e-6)
    rows, columns = np.nonzero(bluish(map_pixels(figure)))
    (bottom, left), (top, right) = place(ax, -11, 39), place(ax, 5, 47)
    np.testing.assert_allclose(
        [rows.min(), rows.max(), columns.min(), columns.max()], [bottom, top, left, right], atol=2
    )


def test_axes_of_the_user_are_drawn_on_about_their_own_centre() -> None:
    figure = Figure()
    ax = figure.add_subplot(projection=ccrs.PlateCarree(central_longitude=-60))
    assert plot_masks(made((1, CYCLONE)), title="mine", ax=ax) is figure
    colours = map_pixels(figure)
    np.testing.assert_allclose(colours[place(ax, 232, -42)], filled(VERMILION), atol=2)
    assert ax.get_title("left") == "mine"


@pytest.mark.parametrize("centre", [180, -60])
def test_coastlines_are_drawn_and_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch, centre: int) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("a download")

    monkeypatch.setattr(cartopy.io.Downloader, "path", refuse)
    ax = Figure(figsize=(10, 5)).add_subplot(projection=ccrs.PlateCarree(central_longitude=centre))
    colours = pixels(plot_masks(made(), ax=ax))
    for lon, lat in [(129.0, -14.8), (-70.3, -18.5), (-9.5, 38.7)]:  # Joseph Bonaparte Gulf, Arica, Cabo da Roca
        row, column = place(ax, lon, lat)
        assert colours[row - 6 : row + 7, column - 6 : column + 7].min() < 120, (lon, lat)
    box = ax.get_window_extent()
    inside = colours[int(box.y0) + 4 : int(box.y1) - 4, int(box.x0) + 4 : int(box.x1) - 4]
    dark = inside.max(axis=-1) < 120
    # No line across the map: the longest stretch of coast in one row or column of pixels is far shorter than the map.
    assert max(dark.mean(axis=1).max(), dark.mean(axis=0).max()) < 0.2
    row, column = place(ax, 232, -42)
    assert colours[row - 6 : row + 7, column - 6 : column + 7].min() == 255


def test_no_figure_is_left_with_pyplot() -> None:
    before = plt.get_fignums()
    plot_masks(made())
    assert plt.get_fignums() == before


def test_a_mask_with_a_time_axis_is_refused() -> None:
    with pytest.raises(InputError, match="Select one time"):
        plot_masks(made().expand_dims("time"))


def test_a_field_on_another_grid_is_refused_with_both_grids() -> None:
    with pytest.raises(InputError, match=r"different grids: lat has 37 points.* and 19 from -90 to 90"):
        plot_masks(made(), made(lat=np.linspace(-90, 90, 19)).astype(float))


def through_february(hours: int = 6) -> xr.Dataset:
    """Four masks of the noleap calendar, from the last day of February on; the cyclone comes at the third."""
    times = [cftime.DatetimeNoLeap(2000, 2, 28, 12) + step * np.timedelta64(hours, "h").item() for step in range(4)]
    masks = [made((1, CYCLONE)) if step == 2 else made() for step in range(4)]
    return xr.concat(masks, dim=xr.Variable("time", times)).to_dataset(name="LABELS")


def fields_for(masks: xr.Dataset) -> xr.Dataset:
    """TMQ on the masks' grid, but latitude the other way round."""
    field = xr.zeros_like(masks["LABELS"], dtype=np.float32) + masks["lat"]
    return field.isel(lat=slice(None, None, -1)).assign_attrs(CHANNELS["TMQ"].attributes).to_dataset(name="TMQ")


@pytest.mark.parametrize(
    ("time", "title"),
    [
        (None, "2000-02-28 12:00 (noleap calendar)"),
        ("2000-03-01", "2000-03-01 00:00 (noleap calendar)"),
        ("2000-03-01T00", "2000-03-01 00:00 (noleap calendar)"),
        ("2000-03-01 06:00", "2000-03-01 06:00 (noleap calendar)"),
    ],
)
def test_a_time_is_found_on_the_calendar_of_the_masks_and_named_in_the_title(time: str | None, title: str) -> None:
    figure = plot_masks_at(through_february(), time=time)
    assert map_of(figure).get_title("left") == title


def test_a_common_calendar_needs_no_name_in_the_title() -> None:
    mask = made().assign_coords(time=np.datetime64("2011-10-11T06", "s"))
    assert map_of(plot_masks(mask)).get_title("left") == "2011-10-11 06:00"


def test_the_mask_and_the_field_of_the_same_time_are_drawn() -> None:
    masks = through_february()
    fields = fields_for(masks).isel(time=[2, 3])  # fewer times than the masks have
    figure = plot_masks_at(masks, fields, "2000-03-01T00")
    colours, ax = pixels(figure), map_of(figure)
    assert reddish(colours[place(ax, 232, -42)])
    assert colours[place(ax, 232, -88)].min() > colours[place(ax, 232, 88)].max() + 100  # the field is its latitude


def test_the_area_through_time_is_in_millions_of_km2_against_days() -> None:
    ax = plot_class_area(through_february()["LABELS"]).axes[0]
    cyclone, river = (np.asarray(line.get_xydata(), dtype=np.float64) for line in ax.get_lines())
    np.testing.assert_allclose(cyclone[:, 0], np.array([0, 0.25, 0.5, 0.75]))
    # 15 degrees of longitude from 47.5 S to 32.5 S, at the third time: R^2 dlon (sin 47.5 - sin 32.5).
    area = 6.37122**2 * np.radians(15) * (np.sin(np.radians(47.5)) - np.sin(np.radians(32.5)))
    np.testing.assert_allclose(cyclone[:, 1], [0, 0, area, 0], rtol=1e-12)
    np.testing.assert_array_equal(river[:, 1], 0)
    assert ax.get_xlabel() == "days since 2000-02-28 12:00 (noleap calendar)"


def test_an_absent_time_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(
        InputError, match="the nearest are 2000-02-28T12:00:00, 2000-02-28T18:00:00, 2000-03-01T00:00:00"
    ):
        plot_masks_at(through_february(), time="2000-02-28T19")
    masks = through_february()
    with pytest.raises(
        InputError, match="no time 2000-02-28T12:00:00 in the fields; the nearest are 2000-03-01T00:00:00"
    ):
        plot_masks_at(masks, fields_for(masks).isel(time=[2]))


@pytest.mark.parametrize("time", ["2000-02-29T00", "yesterday", "2000-13-01"])
def test_what_is_no_date_of_the_calendar_is_refused_with_the_span_of_the_file(time: str) -> None:
    with pytest.raises(InputError, match=f"{time}.*noleap calendar.*2000-02-28T12:00:00 to 2000-03-01T06:00:00"):
        plot_masks_at(through_february(), time=time)


def test_an_unknown_channel_is_refused_with_the_nearest_name() -> None:
    masks = through_february()
    with pytest.raises(InputError, match="did you mean 'TMQ'"):
        plot_masks_at(masks, fields_for(masks), channel="TMQQ")


def test_a_map_is_saved_as_png_under_its_final_name_alone(tmp_path: Path) -> None:
    masks = through_february()
    save_map(masks, fields_for(masks), "2000-03-01T00", tmp_path / "new" / "map.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["map.png"]
    assert reddish((image.imread(tmp_path / "new" / "map.png")[..., :3] * 255).astype(int)).sum() > 1000


def test_another_kind_of_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end[s]? in \.png"):
        save_map(through_february(), None, None, tmp_path / "map.jpg")


def test_the_real_water_vapour_of_hurricane_jova_is_darker_than_the_polar_night(shared: Path) -> None:
    with xr.open_dataset(shared / "gfs" / "gfs_20111011T00_2p5deg.nc") as ds:
        field = ds["TMQ"].isel(time=0).load()
    mask = made((1, (253.75, 13.75, 261.25, 21.25)), lat=field["lat"].values, lon=field["lon"].values)
    figure = plot_masks(mask * 0, field)
    colours, ax = pixels(figure), map_of(figure)
    assert colours[place(ax, 256, 17)].mean() < 170 < 240 < colours[place(ax, 232, -85)].mean()
