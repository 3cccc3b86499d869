import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climseg.samples.order import OrderOfTime, Place, ShuffledOrder
from climseg.samples.randomness import derived_seed


def orders(size: int, batch_size: int, processes: int, seed: int = 0) -> list[ShuffledOrder]:
    return [ShuffledOrder(size, batch_size, Place(rank, processes), seed) for rank in range(processes)]


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 5))
def test_all_processes_take_equally_many_steps_and_no_sample_twice(size: int, batch: int, processes: int) -> None:
    taken = [list(order) for order in orders(size, batch, processes)]
    assert len({len(own) for own in taken}) == 1
    together = [position for own in taken for position in own]
    assert all(0 <= position < size for position in together)
    if size >= processes * batch:
        assert len(set(together)) == len(together) == size // (processes * batch) * processes * batch
    else:  # one step, which takes all that there is, some of it twice if it does not go round
        assert set(together) == set(range(size)) or len(together) == math.ceil(size / processes) * processes


@pytest.mark.parametrize("processes", [2, 4])
def test_a_global_batch_is_the_same_for_any_number_of_processes(processes: int) -> None:
    (alone,) = orders(50, 8, 1)
    shared = orders(50, 8 // processes, processes)
    whole = list(alone)
    parts = [list(order) for order in shared]
    for step in range(alone.steps):
        own = 8 // processes
        together = [i for part in parts for i in part[step * own : (step + 1) * own]]
        assert together == whole[step * 8 : (step + 1) * 8]


def test_every_epoch_and_every_seed_has_its_own_order() -> None:
    (order,) = orders(30, 5, 1)
    first = list(order)
    assert first == list(order)
    order.set_epoch(1)
    second = list(order)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    assert first != list(orders(30, 5, 1, seed=1)[0])


def test_a_resumed_epoch_goes_on_where_it_was_and_the_next_one_is_whole() -> None:
    (whole,), (resumed,) = orders(23, 4, 1), orders(23, 4, 1)
    whole.set_epoch(3)
    resumed.start_at(3, 2)
    assert len(resumed) == 20
    assert list(resumed) == list(whole)[8:]
    assert list(resumed) == list(whole)


@given(st.integers(1, 30), st.integers(1, 5))
def test_validation_counts_every_sample_once_in_equally_many_steps(size: int, processes: int) -> None:
    longest = math.ceil(size / processes)
    shares = [OrderOfTime(size, Place(rank, processes), longest) for rank in range(processes)]
    assert {len(list(share)) for share in shares} == {longest}
    assert sorted(p for share in shares for p in list(share)[: share.real]) == list(range(size))


def test_a_derived_seed_is_that_of_numpy_and_tells_orders_apart() -> None:
    assert derived_seed(1, 2) == derived_seed(1, 2)
    assert len({derived_seed(1, 2), derived_seed(2, 1), derived_seed(1, 2, 0, 1), derived_seed(12)}) == 4
