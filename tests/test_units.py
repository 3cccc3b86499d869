import pytest

from climseg.errors import InputError
from climseg.units import is_convertible, unit_conversion


@pytest.mark.parametrize(
    ("value", "units", "target", "expected"),
    [
        (25.0, "degC", "K", 298.15),
        (25.0, "C", "K", 298.15),
        (25.0, "deg C", "K", 298.15),
        (25.0, "degrees Celsius", "K", 298.15),
        (25.0, "degree_Celsius", "K", 298.15),
        (25.0, "degrees_C", "K", 298.15),
        (77.0, "degF", "K", 298.15),
        (300.0, "deg K", "K", 300.0),
        (300.0, "Kelvin", "K", 300.0),
        (1013.25, "hPa", "Pa", 101325.0),
        (1013.25, "mb", "Pa", 101325.0),
        (1013.25, "millibars", "Pa", 101325.0),
        (85000.0, "Pa", "hPa", 850.0),
        (9.80665, "m**2 s**-2", "m2 s-2", 9.80665),
        (3.0, "m s**-1", "m s-1", 3.0),
        (36.0, "km/h", "m s-1", 10.0),
        (86.4, "mm/day", "m s-1", 1e-6),
        (2.0, "kg/m2", "kg m-2", 2.0),
        (5.0, "g kg-1", "kg kg-1", 0.005),
        (0.005, "1", "kg kg-1", 0.005),
        (5000.0, "gpm", "m", 5000.0),
    ],
)
def test_a_value_is_converted_by_the_scale_and_offset_of_its_units(
    value: float, units: str, target: str, expected: float
) -> None:
    scale, offset = unit_conversion(units, target, "v", "a.nc")
    assert scale * value + offset == pytest.approx(expected, rel=1e-12)
    assert is_convertible(units, target)


def test_canonical_units_convert_to_themselves_exactly() -> None:
    for units in ("K", "Pa", "m s-1", "kg m-2", "kg kg-1", "kg m-1 s-1", "s-1", "m"):
        assert unit_conversion(units, units, "v", "a.nc") == (1.0, 0.0)


@pytest.mark.parametrize("units", [None, "", "  ", 1])
def test_missing_units_are_refused(units: object) -> None:
    with pytest.raises(InputError, match=r"a\.nc: variable v has no units attribute"):
        unit_conversion(units, "Pa", "v", "a.nc")


@pytest.mark.parametrize(("units", "target"), [("furlongs", "Pa"), ("m", "Pa"), ("kg m-2 s-1", "m s-1"), ("?!", "K")])
def test_units_that_are_unknown_or_measure_something_else_are_refused(units: str, target: str) -> None:
    with pytest.raises(InputError, match=r"a\.nc: variable v is in .*which does not convert"):
        unit_conversion(units, target, "v", "a.nc")
    assert not is_convertible(units, target)


def test_geopotential_and_height_do_not_convert_into_each_other() -> None:
    assert is_convertible("m**2 s**-2", "m2 s-2")
    assert not is_convertible("m**2 s**-2", "m")
    assert not is_convertible(None, "m")
