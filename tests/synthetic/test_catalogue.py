import numpy as np
import pandas as pd

from climseg.channels import ATMOSPHERIC_RIVER, TROPICAL_CYCLONE
from climseg.grid import great_circle_distance
from climseg.synthetic import true_objects

MONTH = pd.date_range("2003-03-10", periods=120, freq="6h")


def test_objects_are_the_same_whatever_span_is_asked_for() -> None:
    some = [o for o in true_objects(MONTH, seed=4) if o.time == MONTH[50]]
    assert some == true_objects(MONTH[50:51], seed=4)
    assert some != true_objects(MONTH[50:51], seed=5)


def test_an_object_keeps_its_name_and_moves_no_faster_than_a_weather_system() -> None:
    limit = {TROPICAL_CYCLONE: 400e3, ATMOSPHERIC_RIVER: 500e3}  # in 6 hours; TECA allows 1600 km a day
    last: dict[str, tuple[np.datetime64, float, float]] = {}
    steps = 0
    for thing in true_objects(MONTH):
        if thing.id in last and thing.time - last[thing.id][0] == np.timedelta64(6, "h"):
            assert great_circle_distance(thing.lat, thing.lon, *last[thing.id][1:]) < limit[thing.label]
            steps += 1
        last[thing.id] = (thing.time, thing.lat, thing.lon)
    assert steps > 1000
    assert {name[:2] for name in last} == {"TC", "AR"}


def test_both_hemispheres_and_most_steps_have_objects_of_both_classes() -> None:
    found = true_objects(MONTH)
    for label in (TROPICAL_CYCLONE, ATMOSPHERIC_RIVER):
        assert len({o.time for o in found if o.label == label}) > 0.9 * MONTH.size
        assert {np.sign(o.lat) for o in found if o.label == label} == {-1.0, 1.0}


def test_cyclones_prefer_the_summer_hemisphere() -> None:
    # One day in ten, so that most cyclones count once.
    july, january = (
        [o.lat > 0 for o in true_objects(pd.date_range(start, periods=10, freq="10D")) if o.label == TROPICAL_CYCLONE]
        for start in ("2001-06-10", "2001-12-10")
    )
    assert np.mean(july) > 0.6
    assert np.mean(january) < 0.4
