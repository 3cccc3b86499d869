"""Each preset of conf/model builds, and learns a batch by heart."""

from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor

from climseg.losses.weighted_cross_entropy import weighted_cross_entropy
from climseg.models.build import build_network
from climseg.models.segmenter import Segmenter

PRESETS = sorted((Path(__file__).parents[2] / "conf/model").glob("*.yaml"))


def preset(path: Path) -> dict[str, object]:
    return OmegaConf.to_container(OmegaConf.load(path))


def blobs_and_bars() -> tuple[Tensor, Tensor]:
    """Two noisy fields: a bump over blobs of class 1 in channel 0, a step along bars of class 2 in channel 1."""
    generator = torch.Generator().manual_seed(0)
    fields = torch.randn(2, 2, 32, 64, generator=generator)
    mask = torch.zeros(2, 32, 64, dtype=torch.int64)
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(64), indexing="ij")
    for sample, (row, column) in enumerate([(10, 3), (20, 40)]):  # the first one crosses the seam
        away = (columns - column + 32) % 64 - 32
        mask[sample][(rows - row) ** 2 + away**2 < 16] = 1
        mask[sample, 5 * sample + 20 : 5 * sample + 23, 10:40] = 2
    fields[:, 0] += 3 * (mask == 1)
    fields[:, 1] += 3 * (mask == 2)
    return 100 + 20 * fields, mask


@pytest.mark.parametrize("name", ["tiramisu_small", "deeplabv3plus_small"])
def test_a_small_network_learns_a_batch_by_heart(name: str) -> None:
    torch.manual_seed(0)
    config = preset(next(p for p in PRESETS if p.stem == name))
    fields, mask = blobs_and_bars()
    network = build_network(config, in_channels=2, classes=3)
    segmenter = Segmenter(network, fields.mean((0, 2, 3)), fields.std((0, 2, 3)), periodic=True)
    loss = weighted_cross_entropy((torch.bincount(mask.flatten()) / mask.numel()).tolist())
    optimiser = torch.optim.Adam(segmenter.parameters(), lr=3e-3)
    for _ in range(60):
        optimiser.zero_grad()
        loss(segmenter(fields), mask).backward()
        optimiser.step()
    with torch.no_grad():
        found = segmenter(fields).argmax(1)
    for number in range(3):
        both, either = ((found == number) & (mask == number)).sum(), ((found == number) | (mask == number)).sum()
        assert both / either > 0.95, f"class {number}"


@pytest.mark.parametrize("path", PRESETS, ids=lambda p: p.stem)
def test_every_preset_builds_and_keeps_the_size(path: Path) -> None:
    network = build_network(preset(path), in_channels=4, classes=3).to("meta")
    segmenter = Segmenter(network, [0.0] * 4, [1.0] * 4, periodic=True).to("meta")
    assert segmenter(torch.empty(2, 4, 73, 144, device="meta")).shape == (2, 3, 73, 144)


@pytest.mark.parametrize("path", PRESETS, ids=lambda p: p.stem)
def test_a_preset_says_what_it_is_in_its_first_line(path: Path) -> None:
    assert path.read_text().startswith("# ")
