import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.channels import CHANNELS, LABELS
from climseg.errors import InputError
from climseg.inspection.remarks import share
from climseg.inspection.values import Tally, sample_of


@pytest.mark.parametrize(
    ("steps", "wanted", "sample"),
    [
        (100, 5, [0, 25, 50, 74, 99]),
        (3, 8, [0, 1, 2]),
        (3, None, [0, 1, 2]),
        (3, 0, []),
        (1, 1, [0]),
        (10, 1, [0]),
        (10, 2, [0, 9]),
    ],
)
def test_a_sample_is_spread_from_the_first_step_to_the_last(steps: int, wanted: int | None, sample: list[int]) -> None:
    assert sample_of(steps, wanted) == sample


def _dataset(**fields: np.ndarray) -> xr.Dataset:
    """Fields (time, 2, 2) of hourly steps."""
    steps = next(iter(fields.values())).shape[0]
    coordinates = {"time": pd.date_range("2001-01-01", periods=steps, freq="h"), "lat": [0.0, 1.0], "lon": [0.0, 1.0]}
    dims = ("time", "lat", "lon")
    variables = {
        name: (dims, values, CHANNELS[name].attributes if name in CHANNELS else {}) for name, values in fields.items()
    }
    return xr.Dataset(variables, coords=coordinates)


def _field(*steps: list[float]) -> np.ndarray:
    return np.array(steps, np.float32).reshape(len(steps), 2, 2)


def _tally(ds: xr.Dataset, whole_globe: bool = False) -> Tally:
    tally = Tally([str(name) for name in ds.data_vars if name != LABELS], whole_globe)
    tally.read(ds, range(ds.sizes["time"]))
    return tally


def test_minimum_mean_and_maximum_are_those_of_all_values_read() -> None:
    values = _tally(_dataset(TMQ=_field([1, 2, 3, 4], [5, 6, 7, 12]))).values("TMQ")
    assert (values.steps, values.minimum, values.mean, values.maximum) == (2, 1.0, 5.0, 12.0)
    assert (values.missing_share, values.missing_at, values.constant_at, values.impossible) == (0.0, [], [], "")


def test_missing_values_are_left_out_counted_and_their_times_named() -> None:
    values = _tally(_dataset(TMQ=_field([1, 2, 3, 4], [np.nan, np.inf, 6, 8]))).values("TMQ")
    assert (values.mean, values.maximum, values.missing_share) == (4.0, 8.0, 0.25)
    assert values.missing_at == ["2001-01-01T01:00:00"]


def test_a_step_that_cannot_be_read_does_not_hide_the_others() -> None:
    def fail(block: np.ndarray, block_info: object = None) -> np.ndarray:
        raise InputError("a.nc: variable TS has no value at all.")

    good = da.ones((1, 2, 2), chunks=1, dtype=np.float32) * 280.0
    bad = da.map_blocks(fail, good, dtype=np.float32, meta=np.empty((0, 0, 0), np.float32))
    ds = _dataset(TMQ=_field([1, 2, 3, 4], [5, 6, 7, 8]))
    ds["TS"] = (("time", "lat", "lon"), da.concatenate([good, bad]), CHANNELS["TS"].attributes)
    tally = _tally(ds)
    assert tally.values("TMQ").maximum == 8.0
    assert tally.values("TS").maximum == 280.0
    assert tally.values("TS").unreadable == {"2001-01-01T01:00:00": "a.nc: variable TS has no value at all."}


def test_fields_of_one_value_are_noticed() -> None:
    values = _tally(_dataset(Z1000=_field([-380] * 4, [-380, -380, -380, 5]))).values("Z1000")
    assert values.constant_at == ["2001-01-01T00:00:00"]


def test_impossible_values_are_told_with_the_likely_unit() -> None:
    values = _tally(_dataset(PSL=_field([100_000] * 4, [990, 1000, 1010, 1020]))).values("PSL")
    assert values.impossible_at == ["2001-01-01T01:00:00"]
    assert values.mistake == "hPa labelled Pa"
    assert values.impossible.startswith("channel PSL runs from 990 to 1020 at 2001-01-01T01:00:00; in Pa")


def test_small_values_are_told_on_the_globe_alone() -> None:
    ds = _dataset(QREFHT=_field([1e-6, 2e-6, 3e-6, 2e-5]))
    assert _tally(ds, whole_globe=True).values("QREFHT").too_small
    assert not _tally(ds, whole_globe=False).values("QREFHT").too_small


def test_classes_have_shares_of_the_labelled_cells() -> None:
    labels = np.array([[0, 0, 1, -1], [0, 2, 2, -1]], np.int8).reshape(2, 2, 2)
    report = _tally(_dataset(LABELS=labels)).labels()
    assert report.present
    assert report.missing_share == 0.25
    assert report.class_shares == {
        "background": pytest.approx(3 / 6),
        "tropical_cyclone": pytest.approx(1 / 6),
        "atmospheric_river": pytest.approx(2 / 6),
    }


@pytest.mark.parametrize(("value", "words"), [(0.0, "0.0%"), (0.0004, "under 0.1%"), (0.034, "3.4%"), (1.0, "100.0%")])
def test_shares_in_words(value: float, words: str) -> None:
    assert share(value) == words
