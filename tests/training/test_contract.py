from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from climseg.errors import InputError
from climseg.store.info import StoreInfo, read_image
from climseg.training.contract import CONTRACT_KEY, load_checkpoint


@pytest.fixture
def content(run_dir: Path) -> Any:
    return torch.load(run_dir / "last.ckpt", weights_only=True)


def save(content: Any, path: Path) -> Path:
    torch.save(content, path)
    return path


def test_a_checkpoint_says_everything_that_prediction_needs(run_dir: Path, store: Path) -> None:
    info = StoreInfo.read(store)
    checkpoint = load_checkpoint(run_dir / "best.ckpt")
    contract = checkpoint.contract
    assert contract.channels == info.channels
    assert contract.units == info.units
    assert contract.classes == ["background", "tropical_cyclone", "atmospheric_river"]
    assert (contract.lat, contract.lon, contract.periodic) == (info.lat, info.lon, True)
    assert contract.software["torch"] == torch.__version__.split("+")[0]
    assert contract.training_data["time_steps"] == len(info.indices("train"))
    state = checkpoint.segmenter.state_dict()
    np.testing.assert_allclose(state["mean"].flatten(), info.statistics.mean, rtol=1e-6)
    np.testing.assert_allclose(state["std"].flatten(), info.statistics.std, rtol=1e-6)


def test_a_loaded_network_gives_probabilities_that_do_not_depend_on_the_batch(run_dir: Path, store: Path) -> None:
    info = StoreInfo.read(store)
    segmenter = load_checkpoint(run_dir / "last.ckpt").segmenter
    images = torch.stack([torch.from_numpy(read_image(store, info, i)) for i in range(3)])
    together = segmenter(images)
    one_by_one = torch.cat([segmenter(image[None]) for image in images])
    torch.testing.assert_close(together, one_by_one, atol=1e-4, rtol=1e-4)


def test_code_in_a_checkpoint_is_refused_and_not_run(content: Any, tmp_path: Path) -> None:
    mark = tmp_path / "was_run"
    content[CONTRACT_KEY]["network"] = {"_target_": "os.system", "command": f"touch {mark}"}
    with pytest.raises(InputError, match=r"os\.system"):
        load_checkpoint(save(content, tmp_path / "bad.ckpt"))
    assert not mark.exists()


class _Exploit:
    def __reduce__(self) -> Any:
        return print, ("run",)


def test_a_pickle_with_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="not a readable checkpoint"):
        load_checkpoint(save({"state_dict": _Exploit()}, tmp_path / "bad.ckpt"))
    assert capsys.readouterr().out == ""


def test_what_is_no_climseg_checkpoint_is_refused(run_dir: Path, content: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "absent.ckpt")
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes((run_dir / "last.ckpt").read_bytes()[:5000])
    with pytest.raises(InputError, match="not a readable checkpoint"):
        load_checkpoint(cut)
    with pytest.raises(InputError, match="holds no climseg contract"):
        load_checkpoint(save({"state_dict": {}}, tmp_path / "other.ckpt"))
    content[CONTRACT_KEY]["format"] = 99
    with pytest.raises(InputError, match="contract format 99"):
        load_checkpoint(save(content, tmp_path / "new.ckpt"))


def test_one_changed_byte_is_noticed(run_dir: Path, tmp_path: Path) -> None:
    content = bytearray((run_dir / "last.ckpt").read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "damaged.ckpt"
    damaged.write_bytes(content)
    with pytest.raises(InputError, match="not a readable checkpoint"):
        load_checkpoint(damaged)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["atmospheric_river", "tropical_cyclone", "background"]),
        ("units", ["kg m-2"]),
        ("lat", []),
        ("lon", "text"),
        ("training_data", {}),
        ("software", None),
        ("network", "text"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(content: Any, key: str, value: Any, tmp_path: Path) -> None:
    content[CONTRACT_KEY][key] = value
    with pytest.raises(InputError, match=r"bad\.ckpt: its contract"):
        load_checkpoint(save(content, tmp_path / "bad.ckpt"))


def test_statistics_that_are_not_numbers_are_refused(content: Any, tmp_path: Path) -> None:
    content["state_dict"]["segmenter.std"].fill_(torch.nan)
    with pytest.raises(InputError, match="not finite"):
        load_checkpoint(save(content, tmp_path / "bad.ckpt"))


def test_weights_that_do_not_fit_the_configuration_are_refused(content: Any, tmp_path: Path) -> None:
    for key in ("channels", "units"):
        content[CONTRACT_KEY][key] = content[CONTRACT_KEY][key][:-1]
    with pytest.raises(InputError, match="do not fit together"):
        load_checkpoint(save(content, tmp_path / "bad.ckpt"))
