"""Maps of masks: what was found, on top of the field that it was found in.

Every cell is drawn as the mask has it, with outlines along the cell edges, so that a coarse grid looks coarse. Nothing
is downloaded: the coastlines are in the package. The figures are not registered with pyplot; they need no closing and
force no backend.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cartopy.crs as ccrs
import cftime
import numpy as np
import xarray as xr
from cartopy.mpl.geoaxes import GeoAxes
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from climseg.atomic import atomic_file
from climseg.canonical import orient
from climseg.channels import ATMOSPHERIC_RIVER, BACKGROUND, CLASSES, LABELS, MISSING_LABEL, TROPICAL_CYCLONE
from climseg.coastlines import coastlines
from climseg.errors import InputError, near_matches
from climseg.grid import Floats, cell_edges, is_periodic, longitude_difference, spacing
from climseg.masks import class_area, encode_times

# Vermilion, blue and yellow of Okabe and Ito (2008), told apart with every kind of colour vision; in the
# order of the class numbers.
CLASS_COLOURS: Final = {TROPICAL_CYCLONE: "#D55E00", ATMOSPHERIC_RIVER: "#0072B2"}
MISSING_COLOUR: Final = "#F0E442"
# Grey from white to 45 %: even steps of lightness, no hue to compete with the outlines, light enough for them to show.
FIELD_COLOURS: Final[Colormap] = LinearSegmentedColormap.from_list("climseg_greys", ["1.0", "0.45"])
_FILL_ALPHA: Final = 0.35
_LARGEST_MAP: Final = (10.0, 6.0)  # inches
_DOTS_PER_INCH: Final = 200
_COMMON_CALENDARS: Final = ("standard", "gregorian", "proleptic_gregorian")
_DATE: Final = re.compile(r"(\d+)-(\d\d)-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d))?)?)?Z?")


def plot_masks(
    mask: xr.DataArray, field: xr.DataArray | None = None, *, title: str | None = None, ax: GeoAxes | None = None
) -> Figure:
    """Draw the tropical cyclones and atmospheric rivers of one time on a map.

    Args:
        mask: (lat, lon) class numbers, latitude in either direction, any convention of longitude.
        field: (lat, lon) background on the same grid; ``long_name`` and ``units`` name its colour bar.
        title: The date of the mask if None.
        ax: Cartopy axes to draw on. If None a figure is made: for a global grid with the map centred at 180 degrees,
            else fitted to the region.

    Returns:
        The figure of the axes.

    Raises:
        InputError: The mask or the field is not (lat, lon) on a regular grid, or they are on different grids.
    """
    source, mask = mask, _oriented(mask, "the mask")
    if field is not None:
        field = _oriented(field, "the field")
        _check_same_grid(mask, field)
    cells = _cells(mask, ax)
    if ax is None:
        ax = _new_axes(cells)
    if np.ptp(cells.x) > 359.0 and np.ptp(cells.y) > 170.0:
        ax.set_global()  # set_extent() would cut into the curved outline of other projections
    else:
        ax.set_extent((*cells.x[[0, -1]], *cells.y[[0, -1]]), crs=cells.frame)

    if field is not None:
        _draw_field(ax, cells, field)
    _draw_coastlines(ax)
    _draw_classes(ax, cells, mask)
    _draw_graticule(ax)
    _draw_legend(ax, mask)
    ax.set_title(_date(source) if title is None else title, loc="left")
    figure: Figure = ax.get_figure(root=True)
    return figure


def plot_masks_at(
    masks: xr.Dataset,
    fields: xr.Dataset | None = None,
    time: str | None = None,
    channel: str = "TMQ",
    *,
    ax: GeoAxes | None = None,
) -> Figure:
    """Draw one time of a mask file on top of one channel of the fields.

    Args:
        masks: LABELS (time, lat, lon), as :func:`climseg.masks.open_masks` returns it.
        fields: Canonical Dataset on the same grid, or None for no background. Its orientation may differ.
        time: A date of the masks' own calendar such as 2011-10-11T00 or 2011-10-11T00:30; the first time if None.
        channel: The field to draw.
        ax: As for :func:`plot_masks`.

    Raises:
        InputError: No such time or channel, or the grids differ.
    """
    step, moment = _find_time(masks["time"], time, "the mask file")
    field = None
    if fields is not None:
        if channel not in fields:
            known = [str(name) for name in fields.data_vars]
            near = near_matches(channel, known) or "."
            raise InputError(f"the fields have no channel {channel!r}{near} They have: {', '.join(known)}.")
        field = fields[channel].isel(time=_find_time(fields["time"], moment, "the fields")[0])
    return plot_masks(masks[LABELS].isel(time=step), field, ax=ax)


def save_map(
    masks: xr.Dataset, fields: xr.Dataset | None, time: str | None, output: Path, channel: str = "TMQ"
) -> None:
    """Write the map of :func:`plot_masks_at` as a PNG file.

    Raises:
        InputError: As there, or ``output`` is not a PNG file or cannot be written.
    """
    if output.suffix.lower() != ".png":
        raise InputError(f"{output}: maps are PNG files; give a name that ends in .png.")
    figure = plot_masks_at(masks, fields, time, channel)
    with atomic_file(output) as path:
        figure.savefig(path, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight")


def plot_class_area(masks: xr.DataArray, *, ax: Axes | None = None) -> Figure:
    """Draw the area of the tropical cyclones and of the atmospheric rivers through time.

    Args:
        masks: LABELS (time, lat, lon).
        ax: Axes to draw on; if None a figure is made.

    Returns:
        The figure of the axes: millions of km2 against days since the first time, on the masks' own calendar.
    """
    area = class_area(masks).compute() / 1e6
    if ax is None:
        ax = Figure(figsize=(10.0, 3.5), layout="constrained").add_subplot()
    days = (area["time"] - area["time"][0]) / np.timedelta64(1, "D")
    for number, colour in CLASS_COLOURS.items():
        ax.plot(days, area.isel({"class": number}), color=colour, marker=".", label=CLASSES[number].replace("_", " "))
    ax.set(xlabel=f"days since {_date(area.isel(time=0))}", ylabel="area (million km²)")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


@dataclass(frozen=True)
class _Cells:
    """Where the columns and rows of a grid lie on a map.

    Attributes:
        frame: The plate carree about the map's centre, in whose degrees x and y are.
        columns: (n,) the grid's column for each one drawn; on a closed grid the first and the last one are drawn again
            beyond each other, so that a cell across the seam of the map shows on both sides.
        edges: (n + 1,) edges of those columns in degrees east of the map's centre.
        x: (n + 1,) the same, cut at the seam.
        y: (lat + 1,) edges of the rows in degrees north.
    """

    frame: ccrs.PlateCarree
    columns: NDArray[np.intp]
    edges: Floats
    x: Floats
    y: Floats


def _cells(grid: xr.DataArray, ax: GeoAxes | None) -> _Cells:
    lon = grid["lon"].values
    columns = np.arange(lon.size)
    if is_periodic(lon):
        # The map's seam must be the frame's seam too.
        centre = 180.0 if ax is None else float(ccrs.PlateCarree().transform_point(0.0, 0.0, ax.projection)[0])
        x = longitude_difference(lon, centre)
        columns = np.argsort(x)
        columns = np.concatenate([columns[-1:], columns, columns[:1]])
        x = np.unwrap(x[columns], period=360.0)
        x -= 360.0 * np.round(x.mean() / 360.0)
    else:
        middle = float(lon[0] + lon[-1]) / 2
        x = lon - middle
        centre = float(longitude_difference(middle, 0.0))
    edges = np.append(x, x[-1] + spacing(lon)) - spacing(lon) / 2
    return _Cells(
        ccrs.PlateCarree(central_longitude=centre),
        columns,
        edges,
        np.clip(edges, -180.0, 180.0),
        cell_edges(grid["lat"].values),
    )


def _new_axes(cells: _Cells) -> GeoAxes:
    width, height = np.ptp(cells.x), np.ptp(cells.y)
    inches = min(_LARGEST_MAP[0] / width, _LARGEST_MAP[1] / height)  # per degree
    width, height = inches * width, inches * height
    # Around the map, in inches, room for the labels, the colour bar and the legend.
    whole = width + 1.8, height + 1.3
    figure = Figure(figsize=whole)
    return figure.add_axes(
        (0.6 / whole[0], 0.8 / whole[1], width / whole[0], height / whole[1]), projection=cells.frame
    )


def _draw_field(ax: GeoAxes, cells: _Cells, field: xr.DataArray) -> None:
    mesh = ax.pcolormesh(
        cells.x,
        cells.y,
        field.values[:, cells.columns],
        cmap=FIELD_COLOURS,
        transform=cells.frame,
        rasterized=True,
        zorder=1,
    )
    name = str(field.attrs.get("long_name", field.name or "field"))
    units = re.sub(r"(?<=[A-Za-z])(-?\d+)", r"$^{\1}$", str(field.attrs.get("units", "")))
    figure = ax.get_figure(root=True)
    inch = 1.0 / (ax.get_position(original=True).width * figure.get_figwidth())
    # An inset of the map is exactly as high as the map.
    bar = ax.inset_axes((1.0 + 0.15 * inch, 0.0, 0.2 * inch, 1.0))
    figure.colorbar(mesh, cax=bar, label=f"{name} ({units})" if units else name)


def _draw_coastlines(ax: GeoAxes) -> None:
    lines = LineCollection(coastlines(), colors="0.15", linewidths=0.5, transform=ccrs.PlateCarree(), zorder=2)
    ax.add_collection(lines, autolim=False)


def _draw_classes(ax: GeoAxes, cells: _Cells, mask: xr.DataArray) -> None:
    """Every cell filled lightly with the colour of its class, and outlines; cyclones, the smaller ones, on top."""
    classes = mask.values[:, cells.columns]
    ax.pcolormesh(
        cells.x,
        cells.y,
        np.ma.masked_equal(classes, BACKGROUND),
        cmap=ListedColormap([MISSING_COLOUR, "none", *CLASS_COLOURS.values()]),
        vmin=MISSING_LABEL - 0.5,
        vmax=len(CLASSES) - 0.5,
        alpha=_FILL_ALPHA,
        transform=cells.frame,
        rasterized=True,
        zorder=3,
    )
    for number in (ATMOSPHERIC_RIVER, TROPICAL_CYCLONE):
        lines = LineCollection(
            list(_outline(cells, classes == number)),
            colors=CLASS_COLOURS[number],
            linewidths=1.2,
            capstyle="projecting",
            transform=cells.frame,
            zorder=4,
        )
        ax.add_collection(lines, autolim=False)


def _outline(cells: _Cells, inside: NDArray[np.bool_]) -> Floats:
    """Segments (n, 2, 2) along the cell edges between inside and outside; where the map or the grid ends there is none.

    Args:
        cells: The cells.
        inside: (rows, columns) of the cells.
    """
    row, column = np.nonzero(inside[:, 1:] != inside[:, :-1])
    on_map = np.abs(cells.edges[column + 1]) < 180.0 + 1e-6
    row, column = row[on_map], column[on_map]
    x, y = cells.x[column + 1], cells.y[[row, row + 1]]
    upright = np.stack([np.stack([x, y[0]], axis=-1), np.stack([x, y[1]], axis=-1)], axis=1)

    row, column = np.nonzero(inside[1:] != inside[:-1])
    x, y = cells.x[[column, column + 1]], cells.y[row + 1]
    level = np.stack([np.stack([x[0], y], axis=-1), np.stack([x[1], y], axis=-1)], axis=1)
    return np.concatenate([upright, level])


def _draw_graticule(ax: GeoAxes) -> None:
    ax.gridlines(
        crs=ccrs.PlateCarree(),
        draw_labels={"bottom": "x", "left": "y"},
        color="0.3",
        linewidth=0.4,
        linestyle=":",
        zorder=2.5,
    )


def _draw_legend(ax: GeoAxes, mask: xr.DataArray) -> None:
    """Below the map: what the colours mean, and how large the area is."""
    area = class_area(mask.expand_dims("time")).isel(time=0)
    handles = []
    for number, colour in CLASS_COLOURS.items():
        name = CLASSES[number].replace("_", " ")
        found = _written_area(float(area.sel({"class": CLASSES[number]})))
        # As climseg.labels.heuristic.Heuristic.definition says it.
        sought = f"{name}s: not looked for" not in str(mask.attrs.get("definition", ""))
        label = f"{name} ({found if sought else 'not looked for'})"
        handles.append(_patch(colour, label, edge=True))
    if (mask == MISSING_LABEL).any():
        handles.append(_patch(MISSING_COLOUR, "no class (missing values)", edge=False))
    below = ax.transAxes + ScaledTranslation(0.0, -0.3, ax.get_figure(root=True).dpi_scale_trans)  # inches
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=below,
        borderaxespad=0.0,
        ncols=3,
        frameon=False,
    )


def _written_area(area: float) -> str:
    """An area in km2, in words."""
    if area == 0.0:
        return "none"
    return f"{area / 1e6:.1f} million km²" if area >= 1e6 else f"{area:,.0f} km²"


def _patch(colour: str, label: str, edge: bool) -> Patch:
    return Patch(facecolor=(colour, _FILL_ALPHA), edgecolor=colour if edge else "none", linewidth=1.2, label=label)


def _date(array: xr.DataArray) -> str:
    """Date and hour of an array, with its calendar where that is not the common one; empty without a time."""
    if "time" not in array.coords:
        return ""
    time = array["time"].expand_dims("time")
    calendar = str(time.dt.calendar)
    date = str(time.dt.strftime("%Y-%m-%d %H:%M").values[0])
    return date if calendar in _COMMON_CALENDARS else f"{date} ({calendar} calendar)"


def _oriented(array: xr.DataArray, origin: str) -> xr.DataArray:
    """The array in canonical orientation, without its time."""
    if set(array.dims) != {"lat", "lon"}:
        raise InputError(
            f"{origin} has the dimensions {array.dims}; expected lat and lon. Select one time, as with .isel(time=0)."
        )
    one_time = array.drop_vars("time", errors="ignore").transpose("lat", "lon").expand_dims("time")
    return orient(one_time.to_dataset(name="array"), origin)["array"].isel(time=0).rename(array.name)


def _check_same_grid(mask: xr.DataArray, field: xr.DataArray) -> None:
    for name in ("lat", "lon"):
        a, b = mask[name].values, field[name].values
        if a.size != b.size or np.abs(a - b).max() > 0.01 * spacing(a):
            raise InputError(
                f"the mask and the field are on different grids: {name} has {a.size} points from {a[0]:g} to {a[-1]:g} "
                f"in the mask and {b.size} from {b[0]:g} to {b[-1]:g} in the field. Give the fields that the mask was "
                "made from."
            )


def _find_time(times: xr.DataArray, wanted: str | None, origin: str) -> tuple[int, str]:
    """Position of a date on a time axis, and the date written out.

    Args:
        times: (time,) datetime64 or cftime.
        wanted: A date of its calendar; the first time if None.
        origin: What to name in an error.
    """
    units, calendar, numbers = encode_times(times)

    def written(position: int) -> str:
        return str(cftime.num2date(numbers[position], units, calendar).isoformat())

    if wanted is None:
        return 0, written(0)
    match = _DATE.fullmatch(wanted.strip())
    try:
        if match is None:
            raise ValueError
        date = cftime.datetime(*(int(part or 0) for part in match.groups()), calendar=calendar)
    except ValueError:
        raise InputError(
            f"time {wanted!r} is not a date of the {calendar} calendar; write it as 2011-10-11T00 or 2011-10-11T00:30. "
            f"The times of {origin} run from {written(0)} to {written(-1)}."
        ) from None
    distance: NDArray[Any] = np.abs(numbers - cftime.date2num(date, units, calendar))
    nearest = np.argsort(distance, kind="stable")[:3]
    if distance[nearest[0]] > 0:
        near = ", ".join(written(int(position)) for position in sorted(nearest))
        raise InputError(f"there is no time {wanted} in {origin}; the nearest are {near}.")
    return int(nearest[0]), written(int(nearest[0]))
