"""The notebook runs from top to bottom on a small mask file, and what it shows is what is in the file."""

import json
import sys
from pathlib import Path
from typing import Any

import cftime
import nbformat
import numpy as np
import pytest
import xarray as xr
from nbclient import NotebookClient

from climseg.canonical import orient
from climseg.channels import CHANNELS
from climseg.masks import MaskWriter

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "explore_masks.ipynb"
# Beside what a reader runs: the slider moved to its end, and values to look at.
LOOK = (
    "slider.value = slider.options[-1]",
    'print(slider.value, channels, float(share.sel({"class": "atmospheric_river"})))',
)


def write_files(folder: Path) -> None:
    """Fields as CAM5 writes them and masks of them: 30 N to 60 N is a river at the last of three times."""
    times = [cftime.DatetimeNoLeap(2000, 2, 28, hour) for hour in (0, 8, 16)]
    coordinates = {"time": times, "lat": np.arange(-85, 90, 10.0), "lon": np.arange(0, 360, 10.0)}
    values = np.random.default_rng(0).uniform(1, 2, (3, 18, 36)).astype(np.float32)
    channels = {name: (("time", "lat", "lon"), values, {"units": CHANNELS[name].units}) for name in ("TMQ", "PSL")}
    fields = xr.Dataset(channels, coords=coordinates)
    fields.to_netcdf(folder / "fields.nc")
    mask = np.zeros((3, 18, 36), np.int8)
    mask[2, 12:15] = 2
    with MaskWriter(folder / "masks.nc", orient(fields, "made"), {}, "by hand", "test") as writer:
        for step in range(3):
            writer.write(step, mask[step])


def read_notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after running in a kernel of this interpreter, in a home of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    write_files(folder)
    specification = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "this interpreter",
        "language": "python",
    }
    (folder / "kernels" / "here").mkdir(parents=True)
    (folder / "kernels" / "here" / "kernel.json").write_text(json.dumps(specification))
    (folder / "home").mkdir()

    notebook = read_notebook()
    notebook.cells += [nbformat.v4.new_code_cell(line) for line in LOOK]  # type: ignore[no-untyped-call]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
            patch.setenv(name, str(folder / "home" / name.lower()))
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("CLIMSEG_MASKS", str(folder / "masks.nc"))
        patch.setenv("CLIMSEG_FIELDS", str(folder / "field*.nc"))
        resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
        # With widgets nbclient 0.11 at times sees a reply only when its wait ends: a long limit is then a long wait.
        client = NotebookClient(notebook, kernel_name="here", resources=resources)
        client.timeout_func = lambda cell: 15 if "slider" in cell.source else 90
        client.execute()
    return notebook


def outputs_of(notebook: Any, text: str) -> list[Any]:
    """The outputs of the one cell that starts with a text."""
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and c.source.startswith(text)]
    return list(cell.outputs)


def test_it_is_committed_without_outputs_and_with_short_cells() -> None:
    for cell in read_notebook().cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert len(cell.source.splitlines()) < 10


@pytest.mark.parametrize("cell", ["plot_masks_at(", "plot_class_area("])
def test_each_picture_is_shown_once(executed: Any, cell: str) -> None:
    pictures = [out for out in outputs_of(executed, cell) if "image/png" in out.get("data", {})]
    assert len(pictures) == 1


def test_the_slider_redraws_the_map_without_an_error(executed: Any) -> None:
    state = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"].state
    shown = [out for widget in state.values() for out in widget["state"].get("outputs", [])]
    assert [out["output_type"] for out in shown if "image/png" in out.get("data", {})] == ["display_data"]
    assert not [out for out in shown if out["output_type"] in ("error", "stream")]


def test_no_cell_complains(executed: Any) -> None:
    complaints = [
        out
        for cell in executed.cells
        for out in cell.get("outputs", [])
        if out.output_type == "error" or out.get("name") == "stderr"
    ]
    assert complaints == []


def test_it_finds_the_times_the_channels_and_the_share_of_the_rivers(executed: Any) -> None:
    (printed,) = outputs_of(executed, "print(")
    time, rest = printed.text.split(" ", 1)
    channels, share = rest.rsplit(" ", 1)
    assert time == "2000-02-28T16:00:00"
    assert channels == "['TMQ', 'PSL']"
    # (sin 60 - sin 30) / 2 of the globe, at one time of three.
    assert float(share) == pytest.approx(100 * (np.sqrt(3) / 2 - 0.5) / 2 / 3, rel=1e-9)
