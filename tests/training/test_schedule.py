import pytest
import torch

from climseg.training.schedule import warmup_cosine


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
