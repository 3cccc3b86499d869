import pytest
from hydra.errors import InstantiationException

from climseg.cli.labelling import heuristic
from climseg.errors import InputError
from climseg.labels.cyclones_tempestextremes import tempestextremes_candidates
from climseg.labels.heuristic import Cyclones, Heuristic
from climseg.labels.options import check_definition, check_options
from climseg.labels.storm_regions import wind_disk


@pytest.mark.parametrize(
    ("name", "option", "range_"),
    [
        ("kurth2018", "labels.cyclones.region.percentile=101", "from 0 to 100"),
        ("kurth2018", "labels.cyclones.candidates.window_degrees=-1", "from 0 to 180"),
        ("kurth2018", "labels.cyclones.candidates.core_degrees=-1", "from 0 to 180"),
        ("kurth2018", "labels.cyclones.region.box_margin_degrees=-1", "from 0 to 180"),
        ("kurth2018", "labels.rivers.damping_degrees=0", "from 0.001 to 180"),
        ("tempestextremes", "labels.rivers.radius_degrees=200", "from 0.001 to 180"),
        ("tempestextremes", "labels.rivers.min_latitude=95", "from 0 to 90"),
        ("tempestextremes", "labels.cyclones.candidates.wind_degrees=-1", "from 0 to 180"),
        ("tempestextremes", "labels.cyclones.region.max_radius_degrees=1e300", "from 0 to 180"),
        ("tempestextremes", "labels.cyclones.region.radius_wind=nan", "a finite number"),
        ("tempestextremes", "labels.cyclones.tracks.max_gap_hours=nan", "a finite number"),
        ("tempestextremes", "labels.cyclones.tracks.lasting.wind.hours=nan", "a finite number"),
        ("tempestextremes", "labels.cyclones.tracks.max_km_per_day=fast", "a number or null"),
        ("tempestextremes", "labels.cyclones.tracks.lasting.wind.criteria=wind", "a list"),
        ("tempestextremes", "labels.cyclones.region=null", "a definition"),
        ("tempestextremes", "labels.rivers_end_within_degrees=-1", "from 0 to 180"),
        ("bard", "labels.rivers.min_probability=1.5", "from 0 to 1"),
        ("bard", "labels.cyclones=7", "a definition"),
    ],
)
def test_an_impossible_option_is_refused_with_its_key_and_range(name: str, option: str, range_: str) -> None:
    with pytest.raises((InputError, InstantiationException)) as caught:  # the latter's cause, from the command line
        heuristic(name, option)
    mistake = caught.value if isinstance(caught.value, InputError) else caught.value.__cause__
    assert isinstance(mistake, InputError)
    sentence = str(mistake)
    assert sentence.startswith(option.partition("=")[0])
    assert range_ in sentence


def test_the_ends_of_a_range_and_what_is_no_number_pass() -> None:
    check_options("labels.rivers", {"percentile": 0, "radius_degrees": 180.0, "parameters": None, "name": "x"})


def test_a_number_without_a_range_may_be_negative() -> None:
    check_options("labels.rivers", {"max_laplacian": -2e4})


def test_a_bare_function_is_a_definition() -> None:
    check_definition("labels.cyclones.candidates", tempestextremes_candidates)
    Heuristic("mine", cyclones=Cyclones(tempestextremes_candidates, wind_disk))
