import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.grid import EARTH_RADIUS, destination
from climseg.labels.step import Candidate
from climseg.labels.tracks import Point, TrackLinker, TrackRule, without_tracks

Place = tuple[float, float]


def at(place: Place, *rejected_by: str) -> Candidate:
    return Candidate(0, 0, *place, rejected_by=rejected_by)


def linked(rule: TrackRule, steps: Iterable[Sequence[Candidate]], step_hours: float = 6.0) -> list[list[Point]]:
    linker, decided = TrackLinker(rule, step_hours), []
    for index, candidates in enumerate(steps):
        decided += linker.add(index * step_hours, candidates)
    return decided + list(linker.finish())


def numbers(points: Iterable[Sequence[Point]]) -> list[list[int | None]]:
    return [[p.track for p in step] for step in points]


def moving(start: Place, degrees: float, bearing: float, count: int) -> list[Place]:
    """Points that lie so many degrees of arc apart along a great circle."""
    lat, lon = destination(*start, bearing, degrees * np.arange(count))
    return [(float(a), float(b) % 360.0) for a, b in zip(lat, lon, strict=True)]


REACH_8 = TrackRule(max_degrees=8.0)


def test_points_within_reach_are_one_track_and_points_beyond_it_two() -> None:
    near = [[at(p)] for p in moving((15.0, 300.0), 7.99, 290.0, 4)]
    far = [[at(p)] for p in moving((15.0, 300.0), 8.01, 290.0, 4)]
    assert numbers(linked(REACH_8, near)) == [[1], [1], [1], [1]]
    assert numbers(linked(REACH_8, far)) == [[1], [2], [3], [4]]


def test_a_track_goes_on_over_the_seam() -> None:
    assert numbers(linked(REACH_8, [[at((15.0, 359.0))], [at((15.0, 3.0))], [at((15.0, 358.0))]])) == [[1], [1], [1]]


def test_the_reach_by_speed_grows_with_the_time_between_steps() -> None:
    # 1600 km a day are 400 km in 6 hours: 3.597 degrees of arc on a radius of 6371.22 km.
    degrees = float(np.degrees(400e3 / EARTH_RADIUS))
    rule = TrackRule(max_km_per_day=1600.0)
    assert numbers(linked(rule, [[at(p)] for p in moving((15.0, 300.0), 0.999 * degrees, 0.0, 2)])) == [[1], [1]]
    assert numbers(linked(rule, [[at(p)] for p in moving((15.0, 300.0), 1.001 * degrees, 0.0, 2)])) == [[1], [2]]
    twice = [[at(p)] for p in moving((15.0, 300.0), 1.999 * degrees, 0.0, 2)]
    assert numbers(linked(rule, twice, step_hours=12.0)) == [[1], [1]]


def test_the_nearest_pair_is_linked_first_whatever_the_order_of_the_candidates() -> None:
    first = [at((15.0, 300.0)), at((15.0, 305.0))]
    for order in itertools.permutations([at((15.0, 303.0)), at((15.0, 308.0)), at((-15.0, 301.0))]):
        _, points = linked(REACH_8, [first, order])
        # 303 is nearer to 305 than to 300, which is left with 308.
        assert {p.candidate.lon: p.track for p in points} == {303.0: 2, 308.0: 1, 301.0: 3}


def test_no_track_crosses_the_equator() -> None:
    assert numbers(linked(REACH_8, [[at((1.0, 300.0))], [at((-1.0, 300.0))]])) == [[1], [2]]
    assert numbers(linked(REACH_8, [[at((1.0, 300.0))], [at((0.0, 300.0))]])) == [[1], [1]]


def test_a_gap_is_bridged_up_to_its_limit() -> None:
    here: list[Candidate] = [at((15.0, 300.0))]
    rule = TrackRule(max_degrees=8.0, max_gap_hours=24.0)
    assert numbers(linked(rule, [here, [], [], [], here])) == [[1], [], [], [], [1]]
    assert numbers(linked(rule, [here, [], [], [], [], here])) == [[1], [], [], [], [], [2]]
    assert numbers(linked(REACH_8, [here, [], here])) == [[1], [], [2]]


def test_ten_points_at_6_hours_live_54_hours() -> None:
    rule = TrackRule(max_degrees=8.0, min_hours=54.0)
    steps = [[at((15.0, 300.0))]] * 10
    assert numbers(linked(rule, steps)) == [[1]] * 10
    short = linked(rule, steps[:9])
    assert numbers(short) == [[None]] * 9
    assert short[0][0].reason == "track of 48 h, at least 54 h are asked for"


def test_criteria_that_must_last_are_counted_together_and_do_not_part_a_track() -> None:
    rule = TrackRule(max_degrees=8.0, lasting={"strong": {"criteria": ["wind", "warm core"], "hours": 12.0}})
    place = (15.0, 300.0)
    weak, cold, strong = at(place, "wind"), at(place, "warm core"), at(place)
    assert numbers(linked(rule, [[weak], [strong], [cold], [strong]])) == [[1]] * 4
    (first, *_) = linked(rule, [[weak], [strong], [cold], [weak]])
    assert first[0].reason == "wind and warm core in 6 h of its track, at least 12 h are asked for"


def test_a_candidate_that_fails_another_criterion_is_no_point() -> None:
    rule = TrackRule(max_degrees=8.0, lasting={"strong": {"criteria": ["wind"], "hours": 6.0}})
    steps = linked(rule, [[at((15.0, 300.0))], [at((15.0, 300.0), "wind", "closed contour")]])
    assert numbers(steps) == [[1], [None]]
    assert steps[1][0].reason == "wind and closed contour"


def test_hourly_and_6_hourly_steps_ask_for_the_same_time() -> None:
    rule = TrackRule(max_degrees=8.0, lasting={"strong": {"criteria": ["wind"], "hours": 60.0}})
    for step_hours, enough in ((6.0, 10), (1.0, 60), (3.0, 20), (24.0, 3)):
        steps = [[at((15.0, 300.0))]] * enough
        assert numbers(linked(rule, steps, step_hours)) == [[1]] * enough
        assert numbers(linked(rule, steps[1:], step_hours)) == [[None]] * (enough - 1)


def test_steps_nearer_than_usual_count_for_less() -> None:
    rule = TrackRule(max_degrees=8.0, lasting={"strong": {"criteria": ["wind"], "hours": 12.0}})
    linker = TrackLinker(rule, 6.0)
    hours = [0.0, 6.0, 7.0, 8.0]  # 6 + 6 hours by the second step; without it 6 + 1 + 1
    winds = [(), ("wind",), (), ()]
    points = [list(linker.add(h, [at((15.0, 300.0), *w)])) for h, w in zip(hours, winds, strict=True)]
    assert points == [[], [], [], []]
    (first, *_) = linker.finish()
    assert first[0].reason == "wind in 8 h of its track, at least 12 h are asked for"


def test_a_step_is_decided_as_soon_as_its_tracks_are() -> None:
    rule = TrackRule(max_degrees=8.0, min_hours=12.0)
    linker = TrackLinker(rule, 6.0)
    here, elsewhere = at((15.0, 300.0)), at((-15.0, 100.0))
    assert [list(linker.add(hour, [here])) for hour in (0.0, 6.0)] == [[], []]
    assert numbers(linker.add(12.0, [here, elsewhere])) == [[1], [1]]  # the third waits for the other storm
    assert numbers(linker.add(18.0, [here])) == []
    assert numbers(linker.add(24.0, [])) == [[1, None], [1], []]
    assert list(linker.finish()) == []


def test_what_is_kept_does_not_grow_with_the_length_of_the_input() -> None:
    linker = TrackLinker(TrackRule(max_degrees=8.0, min_hours=54.0), 6.0)
    waiting = []
    for index in range(2000):
        born = 10.0 if index // 14 % 2 else -10.0  # storms of 14 steps, one after the other
        list(linker.add(6.0 * index, [at((born, index // 14 * 7.0 % 360.0)), at((40.0, index * 50.0 % 360.0))]))
        waiting.append(len(linker._waiting) + len(linker._open))
    assert max(waiting) <= 13


def test_numbers_rise_in_the_order_of_first_points() -> None:
    steps = [[at((15.0, 300.0))], [at((-15.0, 100.0)), at((15.0, 300.0))]]
    assert numbers(linked(REACH_8, steps)) == [[1], [2, 1]]


def test_without_tracks_a_candidate_counts_where_it_fulfils_everything() -> None:
    assert [p.reason for p in without_tracks([at((15.0, 1.0)), at((15.0, 9.0), "wind", "warm core")])] == [
        "",
        "wind and warm core",
    ]


def test_a_rule_without_reach_or_with_unknown_criteria_is_refused() -> None:
    with pytest.raises(InputError, match="max_degrees or max_km_per_day"):
        TrackRule()
    with pytest.raises(InputError, match="expected criteria and hours"):
        TrackRule(max_degrees=8.0, lasting={"strong": {"criterion": "wind"}})
    rule = TrackRule(max_degrees=8.0, lasting={"strong": {"criteria": ["winds"], "hours": 6.0}})
    with pytest.raises(InputError, match="did you mean 'wind'"):
        rule.check_criteria(["wind", "warm core"])
