import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

from climseg.errors import InputError
from climseg.samples import dataset, memory
from climseg.samples.dataset import StoreSamples, collate
from climseg.store.info import StoreInfo, read_image, read_mask
from climseg.store.packing import STORED_TYPES


@pytest.fixture(scope="module")
def stores(store: Path, write_small_store: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The small atmosphere, stored in each of the types."""
    folder = tmp_path_factory.mktemp("packed")
    for dtype in ("float16", "uint16"):
        write_small_store(folder / dtype, dtype=dtype)
    return {"float32": store, "float16": folder / "float16", "uint16": folder / "uint16"}


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Small pieces, so that several threads have some to read."""
    monkeypatch.setattr(dataset, "_PIECE", 10_000)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", STORED_TYPES)
def test_a_batch_holds_what_the_store_reads_one_by_one(stores: dict[str, Path], dtype: str) -> None:
    folder = stores[dtype]
    samples, info = StoreSamples(folder, "train"), StoreInfo.read(folder)
    batch = collate(samples.__getitems__([4, 0, 2]))
    assert batch["index"].tolist() == [samples.indices[p] for p in (4, 0, 2)]
    assert (batch["image"].dtype, batch["mask"].dtype, batch["index"].dtype) == (
        torch.float32,
        torch.int64,
        torch.int64,
    )
    assert batch["image"].is_contiguous()
    assert batch["mask"].is_contiguous()
    for index, image, mask in zip(batch["index"].tolist(), batch["image"], batch["mask"], strict=True):
        np.testing.assert_array_equal(image.numpy(), read_image(folder, info, index))
        np.testing.assert_array_equal(mask.numpy(), read_mask(folder, info, index))


@pytest.mark.parametrize("dtype", STORED_TYPES)
@pytest.mark.parametrize("collating", [collate, default_collate])
def test_loaders_with_and_without_workers_give_the_same(stores: dict[str, Path], dtype: str, collating: Any) -> None:
    samples = StoreSamples(stores[dtype], "train")
    loaders = [DataLoader(samples, batch_size=3, num_workers=n, collate_fn=collating) for n in (0, 2)]
    for one, other in zip(*loaders, strict=True):
        assert all(torch.equal(one[key], other[key]) for key in ("image", "mask", "index"))


def test_the_batch_is_handed_on_without_a_copy(store: Path) -> None:
    read = StoreSamples(store, "train").__getitems__([0, 1])
    batch = collate(read)
    assert batch["image"].data_ptr() == read[0]["image"].data_ptr()
    assert batch["image"][1].data_ptr() == read[1]["image"].data_ptr()


def test_single_samples_are_put_together_too(store: Path) -> None:
    samples = StoreSamples(store, "train")
    batch = collate([samples[0], samples[3]])
    assert batch["index"].tolist() == [samples.indices[0], samples.indices[3]]
    assert torch.equal(batch["image"][1], samples[3]["image"])


@pytest.mark.parametrize("held", ["image", "view", "array", "sample"])
def test_a_batch_that_somebody_holds_never_changes(store: Path, held: str) -> None:
    samples = StoreSamples(store, "train")
    read = samples.__getitems__([0, 1])
    batch = collate(read)
    kept: Any = {
        "image": batch["image"],
        "view": batch["image"][1, 2:],
        "array": batch["image"].numpy()[1, 3, 5:],
        "sample": read[1],
    }[held]
    values = torch.as_tensor(kept["image"] if held == "sample" else kept)
    before = values.clone()
    del read, batch
    gc.collect()
    others = [collate(samples.__getitems__([p, p + 1])) for p in range(2, 8)]
    for other in others:
        other["image"].fill_(-1.0)
    assert torch.equal(values, before)


def test_the_memory_of_a_batch_is_taken_again_when_it_is_gone() -> None:
    first = memory.batch_memory((3, 1001), torch.float32)
    place = first.data_ptr()
    assert memory.batch_memory((3, 1001), torch.float32).data_ptr() != place
    del first
    # Of what is free, two blocks have this size; this one came later.
    tensors = [memory.batch_memory((3, 1001), torch.float32) for _ in range(2)]
    assert place in [tensor.data_ptr() for tensor in tensors]


def test_no_more_memory_is_kept_than_for_two_batches() -> None:
    tensors = [memory.batch_memory((n, 500), torch.int64) for n in range(1, 20)]
    del tensors
    assert len(memory._free) <= 4


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", STORED_TYPES)
@pytest.mark.parametrize("damage", ["absent", "short", "long"])
@pytest.mark.parametrize("array", ["image", "mask"])
def test_a_damaged_file_is_refused_by_its_name(
    write_small_store: Any, tmp_path: Path, dtype: str, damage: str, array: str
) -> None:
    write_small_store(tmp_path / "store", dtype=dtype)
    samples = StoreSamples(tmp_path / "store", "train")
    file = next((tmp_path / "store" / array / "c" / str(samples.indices[1])).rglob("0/0"))
    file = file if file.is_file() else next(file.iterdir())
    content = file.read_bytes()
    if damage == "absent":
        file.unlink()
    else:
        file.write_bytes(content[:-8] if damage == "short" else content + bytes(8))
    said = "cannot be read" if damage == "absent" else r"holds \d+ values instead of \d+"
    with pytest.raises(InputError, match=f"{array}/c/{samples.indices[1]}/.*{said}"):
        samples.__getitems__([0, 1])


def test_a_packed_store_without_its_scales_is_refused(write_small_store: Any, tmp_path: Path) -> None:
    write_small_store(tmp_path / "store", dtype="float16")
    (tmp_path / "store/image_scale/c/0/0").unlink()
    with pytest.raises(InputError, match="image_scale/c/0/0: cannot be read"):
        StoreSamples(tmp_path / "store", "train")
