import numpy as np
import pytest

from climseg.synthetic.climate import zonal_mean
from climseg.synthetic.clock import model_days, season, time_axis
from climseg.synthetic.surface import continents


def test_the_tables_are_met_at_their_knots_and_blended_by_season() -> None:
    january, july = [float(zonal_mean("TMQ", np.array(20.0), s)) for s in (-1.0, 1.0)]
    assert july > january + 10.0
    assert float(zonal_mean("TMQ", np.array(20.0), 0.0)) == pytest.approx(0.5 * (january + july))


@pytest.mark.parametrize(("date", "expected"), [("2001-07-20", 1.0), ("2001-01-19", -1.0), ("2001-04-20", 0.0)])
def test_the_season_is_a_cosine_from_january_to_july(date: str, expected: float) -> None:
    days, year_length = model_days(time_axis([np.datetime64(date, "ns")]))
    assert season(days[0], year_length) == pytest.approx(expected, abs=0.03)


def test_temperature_and_moisture_fall_poleward() -> None:
    lat = np.linspace(25.0, 90.0, 30)
    for name in ("TMQ", "TSEA", "T500"):
        for s in (-1.0, 1.0):
            assert np.all(np.diff(zonal_mean(name, lat, s)) < 0.1)
            assert np.all(np.diff(zonal_mean(name, -lat, s)) < 0.1)


def test_continents_cover_about_a_third_and_have_mountains_and_no_seam() -> None:
    lat, lon = np.linspace(-89.0, 89.0, 90), np.arange(180) * 2.0
    land, height = continents(lat[:, None], lon[None, :])
    assert 0.2 < np.average(land, weights=np.repeat(np.cos(np.radians(lat))[:, None], 180, 1)) < 0.4
    assert height.min() >= 0.0
    assert 2500.0 < height.max() < 6000.0
    beyond, _ = continents(lat[:, None], np.array([[360.0]]))
    np.testing.assert_allclose(beyond[:, 0], land[:, 0], atol=1e-9)
