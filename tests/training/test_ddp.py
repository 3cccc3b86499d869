import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from climseg.cli.configuration import compose
from climseg.cli.main import run
from climseg.cli.train import _task
from climseg.errors import InputError
from climseg.samples.dataset import StoreSamples, collate
from climseg.samples.order import Place, ShuffledOrder
from climseg.store.info import StoreInfo
from climseg.training.contract import contract_for_store
from climseg.training.ddp import HookedDDPStrategy
from climseg.training.gradient_lag import GradientLag
from climseg.training.task import SegmentationTask

OPTIMIZERS = ("adamw", "sgd", "lamb", "larc")
HOOKS = ("fp16", "bf16", "powersgd")
# No dropout and no batch normalisation, which see the samples of their own rank alone.
NETWORK = ["model=tiramisu_small", "model.first_filters=8", "model.growth_rate=4", "model.batch_norm=false"]
STEPS = 20
DOUBLE = "trainer.precision=64-true"


def words(store: Path, run_dir: Path, ranks: int, *more: str) -> list[str]:
    ddp = ["trainer=ddp", "trainer.accelerator=cpu"] if ranks > 1 else []
    steps = [f"trainer.max_steps={STEPS}", "trainer.max_epochs=99", "trainer.limit_val_batches=0"]
    return [
        "train",
        f"data.store={store}",
        f"run_dir={run_dir}",
        *NETWORK,
        *ddp,
        f"data.batch_size={4 // ranks}",
        *steps,
        *more,
    ]


@pytest.fixture(scope="module")
def shared(train: Any, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of runs of two ranks: with every optimiser, with every hook, with gradient lag."""
    folder: Path = tmp_path_factory.mktemp("ddp")
    jobs = [words(store, folder / name, 2, f"optimizer={name}", DOUBLE) for name in OPTIMIZERS]
    jobs += [words(store, folder / "float32", 2)]
    jobs += [words(store, folder / name, 2, f"comm_hook={name}") for name in HOOKS]
    jobs += [words(store, folder / "lag", 2, *PLAIN_SGD, "gradient_lag=true")]
    assert train([{"words": job, "ranks": 2} for job in jobs]) == [[0, 0]] * len(jobs)
    return folder


def largest_difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_two_ranks_train_as_one_with_the_same_global_batch(
    shared: Path, store: Path, tmp_path: Path, weights: Any, optimizer: str
) -> None:
    """In float64: in float32 LAMB makes 9e-6 of the rounding of gradients near 0, which it divides by themselves."""
    assert run(words(store, tmp_path, 1, f"optimizer={optimizer}", DOUBLE)) == 0
    assert largest_difference(weights(tmp_path), weights(shared / optimizer)) < 1e-9


def test_two_ranks_train_as_one_in_float32(shared: Path, store: Path, tmp_path: Path, weights: Any) -> None:
    assert run(words(store, tmp_path, 1)) == 0
    assert largest_difference(weights(tmp_path), weights(shared / "float32")) < 1e-6


@pytest.mark.parametrize("hook", HOOKS)
def test_a_communication_hook_acts_on_the_cpu_and_changes_little(shared: Path, weights: Any, hook: str) -> None:
    difference = largest_difference(weights(shared / "float32"), weights(shared / hook))
    assert 0 < difference < 0.1  # 20 steps of at most 0.002


PLAIN_SGD = [
    "optimizer=sgd",
    "optimizer.momentum=0",
    "optimizer.nesterov=false",
    "optimizer.weight_decay=0",
    "trainer.gradient_clip_val=0",
    "data.roll_longitude=false",
]


def batches(store: Path) -> Iterator[dict[str, Any]]:
    """The global batches of 4, in the order of the training."""
    samples = StoreSamples(store, "train")
    order = ShuffledOrder(len(samples), 4, Place(), seed=0)
    for epoch in itertools.count():
        order.set_epoch(epoch)
        positions = list(order)
        for start in range(0, len(positions), 4):
            yield collate([samples[i] for i in positions[start : start + 4]])


def applied_by_hand(store: Path, lag: int) -> dict[str, torch.Tensor]:
    """The weights after STEPS steps, each of which applies the gradient of ``lag`` steps before."""
    configuration = compose("train", words(store, store, 1, *PLAIN_SGD)[1:])
    info = StoreInfo.read(store)
    torch.manual_seed(0)
    network = dict(configuration.model)
    task: SegmentationTask = _task(configuration, info, contract_for_store(info, network), 1)
    optimizer = task.make_optimizer(task.segmenter.parameters())
    scheduler = task.make_scheduler(optimizer, STEPS)
    gradients: list[list[torch.Tensor | None]] = []
    for batch in itertools.islice(batches(store), STEPS):
        optimizer.zero_grad()
        task.loss(task(batch["image"]), batch["mask"]).backward()
        gradients.append([p.grad for p in task.segmenter.parameters()])
        if len(gradients) > lag:
            for parameter, gradient in zip(task.segmenter.parameters(), gradients[-1 - lag], strict=True):
                parameter.grad = gradient
            optimizer.step()
        scheduler.step()
    return task.state_dict()


def test_with_lag_each_step_applies_the_gradient_of_the_step_before_on_one_and_two_ranks(
    shared: Path, store: Path, tmp_path: Path, weights: Any
) -> None:
    assert run(words(store, tmp_path / "one", 1, *PLAIN_SGD, "gradient_lag=true")) == 0
    expected = applied_by_hand(store, lag=1)
    assert largest_difference(weights(tmp_path / "one"), expected) < 1e-6
    assert largest_difference(weights(shared / "lag"), expected) < 1e-6
    assert largest_difference(applied_by_hand(store, lag=0), expected) > 1e-4


class FakeBucket:
    """What DDP gives to a hook."""

    def __init__(self, index: int, parameters: list[torch.nn.Parameter], values: list[float]) -> None:
        self._index, self._parameters = index, parameters
        self._buffer = torch.cat([torch.full((p.numel(),), v) for p, v in zip(parameters, values, strict=True)])

    def index(self) -> int:
        return self._index

    def parameters(self) -> list[torch.nn.Parameter]:
        return self._parameters

    def buffer(self) -> torch.Tensor:
        return self._buffer

    def set_buffer(self, tensor: torch.Tensor) -> None:
        self._buffer = tensor


def reduced(bucket: FakeBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean over a single rank, from a network that works in place."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def test_lag_follows_parameters_to_other_buckets_and_gradients_to_another_scale() -> None:
    a, b, c = (torch.nn.Parameter(torch.zeros(n)) for n in (2, 3, 1))
    scale = [8.0]
    lag = GradientLag({"a": a, "b": b, "c": c}, reduced, lambda: scale[0])
    assert lag.is_empty
    given = [lag(FakeBucket(0, [a, b], [8.0, 16.0])).value(), lag(FakeBucket(1, [c], [24.0])).value()]
    assert all(not part.any() for part in given)
    assert not lag.is_empty
    scale[0] = 4.0  # the scaler backed off
    assert lag(FakeBucket(0, [c, a], [1.0, 1.0])).value().tolist() == [12.0, 4.0, 4.0]
    assert lag(FakeBucket(1, [b], [1.0])).value().tolist() == [8.0, 8.0, 8.0]

    again = GradientLag({"a": a, "b": b, "c": c}, reduced, lambda: scale[0])
    again.load_state_dict(lag.state_dict(), torch.device("cpu"))
    assert not again.is_empty
    assert again(FakeBucket(0, [a, b, c], [9.0, 9.0, 9.0])).value().tolist() == [1.0] * 6


def test_a_hook_that_is_unknown_or_does_not_work_is_refused(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="no such hook; did you mean 'fp16'"):
        HookedDDPStrategy("fp61")
    with pytest.raises(InputError, match="do not work together"):
        HookedDDPStrategy("powersgd", gradient_lag=True)
    assert run(words(store, tmp_path, 1, "comm_hook=fp16")) == 2
    assert "comm_hook needs trainer=ddp" in capsys.readouterr().err
    several = ["trainer.strategy=ddp", "comm_hook=powersgd", "bucket_megabytes=0.01"]
    assert run(words(store, tmp_path, 1, *several)) == 2
    assert "travel in several buckets of 0.01 MB" in capsys.readouterr().err


def test_with_lag_nothing_waits_for_the_gradients_under_way(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a process group one thing comes after the other."""
    of_gradients, of_numbers, all_reduce = set(), set(), torch.distributed.all_reduce

    def noted(tensor: torch.Tensor, *arguments: Any, group: Any = None, **options: Any) -> Any:
        if tensor.is_floating_point():  # Lightning's own whole numbers come before the first step
            chosen = of_gradients if tensor.numel() > 1 else of_numbers
            chosen.add(torch.distributed.group.WORLD if group is None else group)
        return all_reduce(tensor, *arguments, group=group, **options)

    monkeypatch.setattr("torch.distributed.all_reduce", noted)
    assert run([*words(store, tmp_path, 1, "gradient_lag=true"), "trainer.max_steps=2"]) == 0
    assert of_gradients
    assert of_numbers
    assert not of_gradients & of_numbers
