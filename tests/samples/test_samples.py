from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.samples.augment import roll_longitudes
from climseg.samples.data_module import StoreDataModule
from climseg.samples.dataset import StoreSamples
from climseg.store.info import StoreInfo
from climseg.store.stage import stage_store


def test_a_sample_is_a_float_image_and_an_integer_mask_of_its_time_step(store: Path, atmosphere: xr.Dataset) -> None:
    samples = StoreSamples(store, "test")
    sample = samples[1]
    assert sample["index"] == StoreInfo.read(store).indices("test")[1]
    assert sample["image"].dtype == torch.float32
    assert sample["mask"].dtype == torch.int64
    np.testing.assert_array_equal(sample["image"][3].numpy(), atmosphere["PSL"].values[sample["index"]])
    np.testing.assert_array_equal(sample["mask"].numpy(), atmosphere[LABELS].values[sample["index"]])


def test_the_splits_have_no_time_step_in_common(store: Path) -> None:
    parts = [set(StoreSamples(store, split).indices) for split in ("train", "validation", "test")]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_an_unknown_split_is_refused(store: Path) -> None:
    with pytest.raises(InputError, match="no split 'dev'"):
        StoreSamples(store, "dev")


def test_image_and_mask_roll_together_and_every_sample_by_its_own_shift() -> None:
    columns = torch.arange(72).expand(6, 1, 5, 72).float()
    image, mask = roll_longitudes(columns, columns[:, 0].long(), [(0, i) for i in range(6)])
    torch.testing.assert_close(image[:, 0].long(), mask)
    first = mask[:, 0, 0].tolist()
    assert len(set(first)) > 1
    expected = (torch.arange(72) + first[0]) % 72
    torch.testing.assert_close(mask[0, 0], expected)


def test_rolls_depend_on_the_given_numbers_alone() -> None:
    image, mask = torch.rand(4, 2, 3, 72), torch.zeros(4, 3, 72, dtype=torch.long)
    first, again, other = (roll_longitudes(image, mask, [(s, i) for i in range(4)])[0] for s in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_training_sample_comes_once_per_epoch_with_and_without_workers(store: Path) -> None:
    for workers in (0, 2):
        data = StoreDataModule(store, batch_size=1, workers=workers)
        seen = sorted(int(b["index"][0]) for b in data.train_dataloader())
        assert seen == StoreInfo.read(store).indices("train")


def test_a_batch_size_of_nothing_is_refused(store: Path) -> None:
    with pytest.raises(InputError, match="batch_size=0"):
        StoreDataModule(store, batch_size=0)


@pytest.mark.parametrize("node_of_rank", [(0, 0, 1, 1), (0, 1, 0, 1)])  # srun --distribution=block and =cyclic
def test_the_ranks_of_each_node_share_out_what_it_holds(
    store: Path, tmp_path: Path, node_of_rank: tuple[int, ...]
) -> None:
    for node in (0, 1):
        stage_store(store, tmp_path / str(node), node=node, nodes=2)
    seen = []
    for rank, node in enumerate(node_of_rank):
        data = StoreDataModule(tmp_path / str(node), batch_size=1)
        data.trainer = SimpleNamespace(  # type: ignore[assignment]
            global_rank=rank,
            local_rank=node_of_rank[:rank].count(node),
            world_size=4,
            num_nodes=2,
            strategy=SimpleNamespace(root_device=torch.device("cpu")),
        )
        batches = [int(batch["index"][0]) for batch in data.val_dataloader()]
        seen += [index for step, index in enumerate(batches) if data.real_samples(step)]
    assert sorted(seen) == StoreInfo.read(store).indices("validation")
