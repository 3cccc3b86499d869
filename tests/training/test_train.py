import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from climseg.cli.configuration import compose
from climseg.cli.main import run
from climseg.cli.train import _task
from climseg.errors import InputError
from climseg.evaluation.evaluate import confusion_on_store
from climseg.evaluation.scores import scores_from_confusion
from climseg.store.info import StoreInfo
from climseg.training.checkpoint_io import AtomicCheckpointIO
from climseg.training.contract import contract_for_store, load_checkpoint


def count_of_training_samples(store: Path) -> int:
    return len(StoreInfo.read(store).indices("train"))


def epochs(run_dir: Path) -> list[dict[str, str]]:
    with (run_dir / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_checkpoints_metrics_curves_and_its_configuration(run_dir: Path) -> None:
    names = {p.name for p in run_dir.iterdir()}
    assert {"best.ckpt", "last.ckpt", "metrics.csv", "config.yaml", "tensorboard"} <= names
    assert len(epochs(run_dir)) == 2
    assert all(0 <= float(e["val/iou_ar"]) <= 1 for e in epochs(run_dir))


def test_the_logged_iou_is_that_of_one_summed_confusion_matrix(run_dir: Path, store: Path) -> None:
    matrix = confusion_on_store(load_checkpoint(run_dir / "last.ckpt"), store, "validation", batch_size=1)
    scores = scores_from_confusion(matrix)
    last = epochs(run_dir)[-1]
    assert [float(last[f"val/iou_{k}"]) for k in ("bg", "tc", "ar")] == pytest.approx(scores.iou.tolist(), abs=2e-3)


def test_a_run_is_not_overwritten_and_can_go_on(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "data.batch_size=3"]
    assert run([*words, "trainer.max_epochs=1"]) == 0
    assert run([*words, "trainer.max_epochs=2"]) == 2
    assert "resume=true" in capsys.readouterr().err
    assert run([*words, "trainer.max_epochs=2", "resume=true"]) == 0
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert state["global_step"] == 2 * (count_of_training_samples(store) // 3)
    assert [int(e["epoch"]) for e in epochs(tmp_path)] == [1, 2]


def test_a_run_of_another_network_does_not_go_on_and_is_left_as_it_is(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=1"]
    assert run(words) == 0
    before = (tmp_path / "config.yaml").read_text()
    assert run([*words, "resume=true", "model.growth_rate=8"]) == 2
    assert "was trained with another network" in capsys.readouterr().err
    assert run([*words, "resume=true", "optimizer=sgd"]) == 2
    assert "was trained with another optimizer" in capsys.readouterr().err
    assert run([*words, "resume=true", "optimizer.lr=0.5"]) == 2
    assert "the run has the learning rate (optimizer.lr, lr_scaling, global batch) 0.002" in capsys.readouterr().err
    assert run([*words, "resume=true", "optimizer.weight_decay=0.5"]) == 2
    assert "the run has the optimizer.weight_decay 0.0001, not 0.5" in capsys.readouterr().err
    assert (tmp_path / "config.yaml").read_text() == before


def test_a_damaged_checkpoint_is_refused_with_what_to_do(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "last.ckpt").write_bytes(b"cut")
    assert run(["train", f"data.store={store}", f"run_dir={tmp_path}", "resume=true"]) == 2
    assert "To begin anew, move it away or choose another run_dir" in capsys.readouterr().err


def test_checkpointing_of_activations_may_change_in_a_run(store: Path, tmp_path: Path) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.limit_train_batches=1"]
    assert run([*words, "trainer.max_epochs=1"]) == 0
    assert run([*words, "trainer.max_epochs=2", "resume=true", "model.checkpoint_activations=true"]) == 0
    assert [int(e["epoch"]) for e in epochs(tmp_path)] == [1, 2]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("bucket_megabytes=-1", "bucket_megabytes=-1: expected more than 0"),
        ("trainer.accumulate_grad_batches=0", "trainer.accumulate_grad_batches=0: expected 1 or more"),
        ("trainer.max_steps=-5", "trainer.max_steps=-5: expected 1 or more, or -1"),
        ("data.seed=-1", "data.seed=-1: expected 0 to 4294967295"),
        ("optimizer.lr=1e300", "expected a number that float32 can hold"),
    ],
)
def test_a_number_that_means_nothing_is_refused(
    word: str, sentence: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", f"data.store={store}", f"run_dir={tmp_path / 'run'}", word]) == 2
    assert sentence in capsys.readouterr().err


def test_the_folder_of_the_store_is_no_folder_for_a_run(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", f"data.store={store}", f"run_dir={store}"]) == 2
    assert "is a store; name another folder" in capsys.readouterr().err


def test_a_mistake_found_late_leaves_the_record_of_the_run(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=1"]
    assert run(words) == 0
    before = (tmp_path / "config.yaml").read_text()
    assert run([*words, "resume=true", "optimizer.lr=-1"]) == 2
    assert "optimizer: Invalid learning rate" in capsys.readouterr().err
    assert (tmp_path / "config.yaml").read_text() == before


def test_the_last_checkpoint_is_that_of_the_last_epoch_also_when_it_is_not_the_best(
    store: Path, tmp_path: Path
) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=3", "optimizer.lr=0.5"]
    assert run(words) == 0
    scores = [float(e["val/iou_mean"]) for e in epochs(tmp_path)]
    assert max(scores) > scores[-1], "the test needs a last epoch that is not the best"
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert state["global_step"] == int(epochs(tmp_path)[-1]["step"])


def test_a_checkpoint_that_cannot_be_written_leaves_nothing_under_its_name(tmp_path: Path) -> None:
    class Unwritable:
        def __reduce__(self) -> Any:
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"best\.ckpt: could not be written .*No space left"):
        AtomicCheckpointIO().save_checkpoint({"weights": torch.zeros(9), "x": Unwritable()}, tmp_path / "best.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_a_loss_that_is_not_a_number_stops_the_training_and_names_the_batch(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=2", "optimizer.lr=1e12"]
    assert run(words) == 2
    said = re.search("the training loss is (?:nan|inf) for the batch of (.*); lower optimiz", capsys.readouterr().err)
    assert said
    info = StoreInfo.read(store)
    assert set(said[1].split(", ")) <= {info.times[i] for i in info.indices("train")}


def test_two_processes_train_together_from_the_command_line(store: Path, tmp_path: Path) -> None:
    words = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2", "trainer.max_epochs=1"]
    command = [
        sys.executable,
        "-m",
        "climseg",
        "train",
        f"data.store={store}",
        "run_dir=run",
        "data.batch_size=2",
        *words,
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    state = torch.load(tmp_path / "run" / "last.ckpt", weights_only=True)
    each = -(-count_of_training_samples(store) // 2)  # per rank, rounded up
    assert state["global_step"] == each // 2
    assert result.stderr.count("epoch 1/1") == 1


def test_the_same_seed_gives_the_same_weights(store: Path, tmp_path: Path) -> None:
    states = []
    for name in ("a", "b"):
        words = ["train", f"data.store={store}", f"run_dir={tmp_path / name}", "trainer.max_steps=2"]
        assert run([*words, "trainer.max_epochs=1", "seed=4"]) == 0
        states.append(torch.load(tmp_path / name / "last.ckpt", weights_only=True)["state_dict"])
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])


def test_the_checkpoint_of_an_epoch_knows_the_score_of_that_epoch(store: Path, tmp_path: Path) -> None:
    """Otherwise a resumed run would take a worse epoch for the best one."""
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=1"]
    assert run(words) == 0
    callbacks = torch.load(tmp_path / "last.ckpt", weights_only=True)["callbacks"]
    (best,) = (state for name, state in callbacks.items() if name.startswith("ModelCheckpoint"))
    assert float(best["best_model_score"]) == pytest.approx(float(epochs(tmp_path)[-1]["val/iou_mean"]))


def test_averaging_the_weights_leaves_the_statistics_of_the_channels(store: Path, tmp_path: Path) -> None:
    words = ["train", f"data.store={store}", f"run_dir={tmp_path}", "trainer.max_epochs=4", "ema_decay=0.9"]
    assert run([*words, "data.batch_size=1"]) == 0
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
    statistics = StoreInfo.read(store).statistics
    assert torch.equal(state["segmenter.mean"], torch.tensor(statistics.mean))
    assert torch.equal(state["segmenter.std"], torch.tensor(statistics.std))


def test_a_validation_loss_that_is_not_a_number_is_not_left_out(store: Path) -> None:
    configuration = compose("train", [f"data.store={store}"])
    info = StoreInfo.read(store)
    task = _task(configuration, info, contract_for_store(info, dict(configuration.model)), 1)
    for loss in (1.0, float("nan"), 2.0):
        task.validation_loss.update(torch.tensor(loss), 2)
    assert torch.isnan(task.validation_loss.compute())
