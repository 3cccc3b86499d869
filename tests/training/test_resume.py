import csv
import itertools
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from climseg.cli.main import run

# 10 training samples: 2 steps an epoch of 2 ranks with 2 samples, and of one with 4.
NETWORK = ["model=tiramisu_small", "model.first_filters=8", "model.growth_rate=4", "model.dropout=0.2"]
CASES = [*itertools.product((1, 2), (0, 2), (False, True)), (4, 0, False)]


def words(store: Path, run_dir: Path, ranks: int, workers: int, lag: bool, *more: str) -> list[str]:
    ddp = ["trainer=ddp", "trainer.accelerator=cpu"] if ranks > 1 else []
    return [
        "train",
        f"data.store={store}",
        f"run_dir={run_dir}",
        "resume=true",
        *NETWORK,
        *ddp,
        f"data.batch_size={4 // ranks}",
        f"data.workers={workers}",
        f"gradient_lag={str(lag).lower()}",
        "trainer.max_epochs=3",
        "checkpoint_every.steps=1",
        *more,
    ]


def rows(run_dir: Path) -> list[dict[str, str]]:
    """The table of epochs, without the seconds that each took."""
    with (run_dir / "metrics.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def killed(train: Any, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """For each case the folders of an undisturbed run and of one that was killed and went on."""
    folder = tmp_path_factory.mktemp("resume")
    jobs, expected = [], []
    for ranks, lag in dict.fromkeys((ranks, lag) for ranks, _, lag in CASES):
        jobs.append({"words": words(store, folder / f"whole-{ranks}-{lag}", ranks, 0, lag), "ranks": ranks})
        expected.append([0] * ranks)
    for number, (ranks, workers, lag) in enumerate(CASES):
        job = {"words": words(store, folder / f"{ranks}-{workers}-{lag}", ranks, workers, lag), "ranks": ranks}
        # In the first step of an epoch or in the last, of the second epoch or of the third.
        jobs += [job | {"kill_at": (4, 3, 5, 2)[number % 4]}, job]
        expected += [[-signal.SIGKILL] * ranks, [0] * ranks]
    for codes, wanted in zip(train(jobs), expected, strict=True):
        # The others may die of the first one's death before they come to their own.
        assert codes == wanted or (codes[0] == wanted[0] < 0 and 0 not in codes)
    return folder


@pytest.mark.parametrize(("ranks", "workers", "lag"), CASES)
def test_a_killed_run_goes_on_to_the_weights_of_an_undisturbed_one(
    killed: Path, weights: Any, ranks: int, workers: int, lag: bool
) -> None:
    whole, resumed = killed / f"whole-{ranks}-{lag}", killed / f"{ranks}-{workers}-{lag}"
    expected, found = weights(whole), weights(resumed)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert rows(whole) == rows(resumed)


def test_undisturbed_runs_differ_where_they_must(killed: Path, weights: Any) -> None:
    without, lagged = weights(killed / "whole-1-False"), weights(killed / "whole-1-True")
    assert not all(torch.equal(without[name], lagged[name]) for name in without)


@pytest.mark.parametrize("step", range(1, 7))
def test_every_step_is_one_to_go_on_from(
    store: Path, tmp_path: Path, weights: Any, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """With all that has a state: lag, moving average, accumulated batches, a limit of steps, momentum."""
    more = ["trainer.max_steps=7", "trainer.max_epochs=9", "trainer.accumulate_grad_batches=2", "ema_decay=0.9"]
    arguments = words(store, tmp_path / "run", 1, 0, True, *more, "data.batch_size=2")
    whole = [word.replace("/run", "/whole") if word.startswith("run_dir") else word for word in arguments]
    assert run(whole) == 0
    torch_seed, calls = torch.manual_seed, itertools.count()

    def broken(seed: int) -> Any:
        if next(calls) == 2 * step:
            raise RuntimeError("power cut")
        return torch_seed(seed)

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="power cut"):
        patch.setattr("climseg.training.task.torch.manual_seed", broken)
        calls = itertools.count(-1)  # the seed of the weights is drawn first
        run(arguments)
    assert run(arguments) == 0
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "run")
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert rows(tmp_path / "whole") == rows(tmp_path / "run")


STOPS = list(itertools.product((1, 2), ((signal.SIGUSR1, 75), (signal.SIGTERM, 143))))


def test_all_ranks_stop_together_when_one_is_asked_to(
    train: Any, killed: Path, store: Path, tmp_path: Path, weights: Any
) -> None:
    folders = [tmp_path / f"{ranks}-{code}" for ranks, (_, code) in STOPS]
    jobs = [
        {"words": words(store, folder, ranks, 0, False, "checkpoint_every.steps=null"), "ranks": ranks}
        for folder, (ranks, _) in zip(folders, STOPS, strict=True)
    ]
    asked = [job | {"kill_at": 4, "signal": int(number)} for job, (_, (number, _)) in zip(jobs, STOPS, strict=True)]
    assert train(asked) == [[code] * ranks for ranks, (_, code) in STOPS]
    for folder in folders:  # the step that was under way is done
        assert torch.load(folder / "last.ckpt", weights_only=True)["global_step"] == 5
    assert train(jobs) == [[0] * ranks for ranks, _ in STOPS]
    for folder, (ranks, _) in zip(folders, STOPS, strict=True):
        expected, found = weights(killed / f"whole-{ranks}-False"), weights(folder)
        assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_run_that_is_complete_says_so(store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arguments = words(store, tmp_path, 1, 0, False, "trainer.max_epochs=1")
    assert run(arguments) == 0
    caplog.clear()
    assert run(arguments) == 0
    assert "is complete already: 1 epoch" in caplog.text


def test_a_rank_whose_neighbour_dies_ends_with_a_sentence_and_not_with_a_bug(
    train: Any, store: Path, tmp_path: Path
) -> None:
    job = {"words": words(store, tmp_path, 2, 0, False), "ranks": 2, "kill_at": 2, "killed": [1]}
    assert train([job]) == [[2, -signal.SIGKILL]]
