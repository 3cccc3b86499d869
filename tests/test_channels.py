"""The plausible ranges: any weather lies within."""

from pathlib import Path

import netCDF4
import pytest

from climseg.channels import CAM5_CHANNELS, CHANNELS


def test_the_extremes_of_121266_samples_of_cam5_lie_within(shared: Path) -> None:
    with netCDF4.Dataset(shared / "deepcam" / "stats.h5") as file:
        climate = file["climate"]
        assert int(climate["count"][()]) > 0
        for position, name in enumerate(CAM5_CHANNELS):
            lowest, highest = CHANNELS[name].plausible
            assert lowest < float(climate["minval"][position]) < float(climate["maxval"][position]) < highest, name


# World Weather and Climate Extremes Archive of the WMO; of skin temperature Zhao et al. 2021.
@pytest.mark.parametrize(
    ("channel", "record"),
    [
        ("TREFHT", 273.15 - 89.2),  # Vostok 1983
        ("TREFHT", 273.15 + 56.7),  # Death Valley 1913
        ("TS", 273.15 - 110.9),
        ("TS", 273.15 + 80.8),
        ("PSL", 87_000.0),  # typhoon Tip 1979
        ("PSL", 108_940.0),  # Tosontsengel 2001
        ("PS", 31_440.0),  # the standard atmosphere at 8849 m
        ("PS", 108_180.0),  # Sedom on the Dead Sea 1961
        ("PRECT", 0.305 / (42 * 60)),  # Holt 1947: 305 mm in 42 minutes
        ("UBOT", 113.3),  # a gust on Barrow Island 1996
        ("VBOT", -113.3),
    ],
)
def test_records_of_weather_lie_within(channel: str, record: float) -> None:
    lowest, highest = CHANNELS[channel].plausible
    assert lowest < record < highest


def test_the_height_of_1000_hpa_in_the_deepest_low_lies_within() -> None:
    # Typhoon Tip, 870 hPa; hypsometric equation at 300 K: 29.27 m/K * 300 K * ln(0.87)
    assert CHANNELS["Z1000"].plausible[0] < -1223.0


def test_the_sixteen_of_cam5_come_first_and_stay_sixteen() -> None:
    assert len(CAM5_CHANNELS) == 16
    assert (CAM5_CHANNELS[0], CAM5_CHANNELS[-1]) == ("TMQ", "ZBOT")
    assert {"IVT", "UIVT", "VIVT", "Z300", "Z500"}.isdisjoint(CAM5_CHANNELS)


# The standard atmosphere (US 1976) has 500 hPa at 5574 m and 300 hPa at 9164 m; 12 % below to 7 % above is any weather.
@pytest.mark.parametrize(("channel", "height"), [("Z500", 5574.0), ("Z300", 9164.0)])
def test_heights_lie_within_and_geopotential_does_not(channel: str, height: float) -> None:
    lowest, highest = CHANNELS[channel].plausible
    assert lowest < 0.88 * height < 1.07 * height < highest
    assert 0.88 * 9.80665 * height > highest
