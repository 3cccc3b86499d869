"""Model time: days of the data's own calendar, and the season."""

from collections.abc import Iterable
from typing import Any, Final

import cftime
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.errors import InputError

_YEAR_LENGTH: Final = {
    "standard": 365.2425,
    "gregorian": 365.2425,
    "proleptic_gregorian": 365.2425,
    "julian": 365.25,
    "noleap": 365.0,
    "365_day": 365.0,
    "all_leap": 366.0,
    "366_day": 366.0,
    "360_day": 360.0,
}


def time_axis(times: Iterable[Any]) -> xr.DataArray:
    """A time axis (time,) from datetime64, pandas, datetime or cftime values, in increasing order.

    Raises:
        InputError: There is none, or they do not increase.
    """
    values = list(times)
    if not values:
        raise InputError("times is empty; name at least one date.")
    axis = xr.DataArray(values, dims="time", coords={"time": values}, name="time")["time"]
    index = axis.to_index()
    if not (index.is_monotonic_increasing and index.is_unique):
        raise InputError("times must increase without repeats.")
    return axis


def model_days(axis: xr.DataArray) -> tuple[NDArray[np.float64], float]:
    """Days since 2000-01-01 of the axis's own calendar, and the days of that calendar's mean year.

    Two calendars count other days for the same date, so they see other weather.
    """
    calendar = str(axis.dt.calendar)
    if np.issubdtype(axis.dtype, np.datetime64):
        days = (axis.values - np.datetime64("2000-01-01")) / np.timedelta64(1, "D")
    else:
        days = cftime.date2num(axis.values, "days since 2000-01-01", calendar)
    return np.asarray(days, dtype=np.float64), _YEAR_LENGTH[calendar]


def season(day: float, year_length: float) -> float:
    """+1 on 20 July (northern summer), -1 on 19 January, a cosine between."""
    return float(-np.cos(2 * np.pi * (day - 19.0) / year_length))
