from collections.abc import Callable

import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR

from climseg.errors import InputError
from climseg.training.schedule import warmup_constant, warmup_cosine, warmup_polynomial, warmup_step


def test_warm_up_is_linear_and_half_a_cosine_follows() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = warmup_cosine(optimizer, total_steps=110, warmup_share=10 / 110, final_factor=0.2)
    rates = []
    for _ in range(111):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates[:10] == pytest.approx([0.1 * k for k in range(1, 11)])
    assert rates[60] == pytest.approx(0.6)  # half way down between 1.0 and 0.2
    assert rates[110] == pytest.approx(0.2)


def rates(make: Callable[..., LambdaLR], total_steps: int, steps: int | None = None, **options: object) -> list[float]:
    """Learning rates, as shares of the peak, of each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer, total_steps, **options)
    found = []
    for _ in range(total_steps if steps is None else steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


EVERY = [warmup_cosine, warmup_polynomial, warmup_step, warmup_constant]


@pytest.mark.parametrize("make", EVERY)
def test_every_schedule_warms_up_over_a_share_or_over_steps_alike(make: Callable[..., LambdaLR]) -> None:
    by_steps = rates(make, 100, warmup_steps=5)
    assert by_steps[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert by_steps == rates(make, 100, warmup_share=0.05)


@pytest.mark.parametrize("make", EVERY)
def test_every_schedule_stays_above_zero_also_past_its_end(make: Callable[..., LambdaLR]) -> None:
    found = rates(make, 20, steps=50)
    assert min(found) > 0
    assert found[20:] == [found[20]] * 30


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("total_steps", [0, 1, 2])
def test_the_shortest_training_begins_with_the_peak(make: Callable[..., LambdaLR], total_steps: int) -> None:
    assert rates(make, total_steps, steps=3, warmup_share=0.0)[0] == 1.0


@pytest.mark.parametrize("make", EVERY)
def test_a_resumed_run_goes_on_with_its_own_number_of_steps(make: Callable[..., LambdaLR]) -> None:
    whole = rates(make, 40)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    first = make(optimizer, 20)
    for _ in range(15):
        optimizer.step()
        first.step()
    again = make(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0), 40)
    again.load_state_dict(first.state_dict())
    again.optimizer.step()
    again.step()
    assert again.get_last_lr() == [whole[16]]


def test_a_polynomial_of_power_one_is_a_straight_line_down() -> None:
    found = rates(warmup_polynomial, 11, steps=12, warmup_steps=1, power=1.0, final_factor=0.0)
    assert found == pytest.approx([1.0, *(1 - k / 10 for k in range(11))])


def test_the_poly_policy_of_deeplab() -> None:
    found = rates(warmup_polynomial, 101, warmup_steps=1, power=0.9, final_factor=0.0)
    assert found[51] == pytest.approx(0.5**0.9)


def test_deepcam_warms_up_for_400_steps_and_falls_to_a_tenth_at_800() -> None:
    found = rates(warmup_step, 1000, warmup_steps=400, milestones=[800], factor=0.1)
    assert found[199] == pytest.approx(0.5)
    assert (found[399], found[799]) == (1.0, 1.0)
    assert found[800] == pytest.approx(0.1)


def test_milestones_may_be_shares() -> None:
    found = rates(warmup_step, 10, warmup_steps=0, milestones=[0.5, 0.8], factor=0.5)
    assert found == pytest.approx([1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (warmup_cosine, {"warmup_share": 1.5}, "warmup_share=1.5"),
        (warmup_cosine, {"final_factor": -0.1}, "final_factor=-0.1"),
        (warmup_cosine, {"final_factor": float("nan")}, "final_factor=nan"),
        (warmup_constant, {"warmup_share": "much"}, "warmup_share=much"),
        (warmup_constant, {"warmup_steps": -1}, "warmup_steps=-1"),
        (warmup_constant, {"warmup_steps": 2.5}, "warmup_steps=2.5"),
        (warmup_constant, {"warmup_steps": 11}, "warmup_steps=11, but the training has 10 steps"),
        (warmup_polynomial, {"power": 0}, "power=0"),
        (warmup_polynomial, {"final_factor": 2}, "final_factor=2"),
        (warmup_step, {"factor": 0}, "factor=0"),
        (warmup_step, {"milestones": [-1]}, "milestones"),
        (warmup_step, {"milestones": [2.5]}, "milestones"),
        (warmup_step, {"milestones": [8, 4]}, "expected them to rise"),
    ],
)
def test_impossible_options_are_refused(make: Callable[..., LambdaLR], options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rates(make, 10, **options)
