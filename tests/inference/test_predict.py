from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from climseg.canonical import to_canonical
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.inference.fit import fit_to_network
from climseg.inference.predict import predict, write_predictions
from climseg.masks import open_masks
from climseg.training.contract import Checkpoint, load_checkpoint


@pytest.fixture(scope="module")
def checkpoint(run_dir: Path) -> Checkpoint:
    return load_checkpoint(run_dir / "last.ckpt")


@pytest.fixture(scope="module")
def fields(atmosphere: xr.Dataset) -> xr.Dataset:
    return atmosphere.drop_vars(LABELS).isel(time=slice(0, 3))


def write(checkpoint: Checkpoint, fields: xr.Dataset, output: Path, **options: bool) -> xr.Dataset:
    write_predictions(checkpoint, fields, output, command="climseg predict", input_files=[Path("x.nc")], **options)
    return open_masks(output)


def test_probabilities_sum_to_one_and_the_mask_is_their_largest(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    for step in predict(checkpoint, fields):
        np.testing.assert_allclose(step.probabilities.sum(axis=0), 1.0, atol=1e-5)
        np.testing.assert_array_equal(step.mask, step.probabilities.argmax(axis=0))


def test_a_file_of_masks_is_what_was_predicted(checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path) -> None:
    masks = write(checkpoint, fields, tmp_path / "masks.nc", probabilities=True)
    steps = list(predict(checkpoint, fields))
    np.testing.assert_array_equal(masks[LABELS], [s.mask for s in steps])
    np.testing.assert_array_equal(masks["probability_atmospheric_river"], [s.probabilities[2] for s in steps])
    assert masks.attrs["checkpoint_sha256"] == checkpoint.sha256
    assert masks[LABELS].attrs["flag_meanings"] == "background tropical_cyclone atmospheric_river"
    assert [p.name for p in tmp_path.iterdir()] == ["masks.nc"]


def test_another_orientation_gives_the_same_mask_on_the_files_own_axes(
    checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path
) -> None:
    turned = fields.assign_coords(lon=(fields["lon"] + 180) % 360 - 180).sortby("lon").sortby("lat", ascending=False)
    here = write(checkpoint, to_canonical(turned, "turned"), tmp_path / "turned.nc")
    np.testing.assert_array_equal(here["lon"], turned["lon"])
    np.testing.assert_array_equal(here["lat"], turned["lat"])
    there = write(checkpoint, fields, tmp_path / "masks.nc")
    back = here.assign_coords(lon=here["lon"] % 360).sortby("lon").sortby("lat")
    np.testing.assert_array_equal(back[LABELS], there[LABELS])


def test_rolling_the_input_rolls_the_prediction(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    rolled = fields.roll(lon=24)  # 72 columns; the small Tiramisu strides by at most 8
    whole, turned = (np.stack([s.probabilities for s in predict(checkpoint, f)]) for f in (fields, rolled))
    assert np.abs(np.roll(whole, 24, axis=-1) - turned).max() < 1e-4


def test_a_noleap_calendar_survives(checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path) -> None:
    noleap = fields.assign_coords(
        time=xr.date_range("2004-02-28", periods=3, freq="12h", calendar="noleap", use_cftime=True)
    )
    masks = write(checkpoint, noleap, tmp_path / "masks.nc")
    assert masks["time"].dt.calendar == "noleap"
    assert [str(t)[:13] for t in masks["time"].values] == ["2004-02-28 00", "2004-02-28 12", "2004-03-01 00"]


def test_a_missing_channel_is_refused_by_name(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    with pytest.raises(InputError, match="needs the channel PSL"):
        fit_to_network(fields.drop_vars("PSL"), checkpoint.contract)


def test_another_unit_is_refused_by_name(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    other = fields.assign(PSL=(fields["PSL"] / 100).assign_attrs(units="hPa"))
    with pytest.raises(InputError, match="PSL is in 'hPa'; the network was trained with 'Pa'"):
        fit_to_network(other, checkpoint.contract)


def test_another_spacing_is_refused_and_regrid_brings_masks_on_the_inputs_grid(
    checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path
) -> None:
    finer = fields.interp(lat=np.linspace(-90, 90, 73), lon=np.arange(0, 355.1, 2.5)).astype("float32")
    for name in finer.data_vars:
        finer[name].attrs = fields[name].attrs
    with pytest.raises(InputError, match=r"2\.5 x 2\.5 degrees .* trained on 5 x 5\. Add regrid=true"):
        fit_to_network(finer, checkpoint.contract)
    masks = write(checkpoint, finer, tmp_path / "masks.nc", regrid=True)
    assert masks[LABELS].shape == (3, 73, 143)
    coarse = write(checkpoint, fields, tmp_path / "coarse.nc")
    shared_cells = masks[LABELS].values[:, ::2, ::2], coarse[LABELS].values
    assert (shared_cells[0] == shared_cells[1]).mean() > 0.97


def test_a_region_between_the_networks_columns_is_predicted_up_to_its_border(
    checkpoint: Checkpoint, fields: xr.Dataset
) -> None:
    lat, lon = np.arange(-41.0, 42), np.arange(11.0, 99)  # the network's rows end at 40, its columns at 15 and 95
    region = fields.interp(lat=lat, lon=lon).astype("float32")
    for name in region.data_vars:
        region[name].attrs = fields[name].attrs
    step = next(predict(checkpoint, region, regrid=True))
    np.testing.assert_allclose(step.probabilities.sum(axis=0), np.ones((83, 88)), atol=1e-5)


def test_an_input_beyond_the_region_of_the_networks_training_is_refused(
    checkpoint: Checkpoint, fields: xr.Dataset
) -> None:
    regional = replace(checkpoint.contract, lat=np.arange(0, 41, 2.5).tolist(), lon=np.arange(100, 161, 2.5).tolist())
    with pytest.raises(InputError, match=r"reaches beyond the region .*lat 0 to 40, lon 100 to 160\); cut it"):
        fit_to_network(fields, regional, regrid=True)
    fit = fit_to_network(fields.sel(lat=slice(0, 40), lon=slice(100, 160)), regional, regrid=True)
    assert fit.grid.shape == (17, 25)


def test_regrid_is_not_used_where_the_grids_are_the_same(
    checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path
) -> None:
    assert write(checkpoint, fields, tmp_path / "masks.nc", regrid=True).attrs["regridded"] == "no"


def test_a_regional_crop_is_predicted_as_a_region(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    crop = fields.isel(lat=slice(10, 29), lon=slice(3, 40))
    fit = fit_to_network(crop, checkpoint.contract)
    assert not fit.grid.periodic
    assert next(predict(checkpoint, crop)).mask.shape == (19, 37)


def test_a_missing_value_is_refused_by_channel_and_time_and_leaves_no_file(
    checkpoint: Checkpoint, fields: xr.Dataset, tmp_path: Path
) -> None:
    holed = fields.copy(deep=True)
    holed["TMQ"][2, 5, 6] = np.nan
    with pytest.raises(InputError, match="TMQ has 1 missing or infinite of 2664 values at 2001-08-02T00:00:00"):
        write(checkpoint, holed, tmp_path / "masks.nc")
    assert list(tmp_path.iterdir()) == []


def test_prediction_needs_no_gradient_and_leaves_the_threads_alone(checkpoint: Checkpoint, fields: xr.Dataset) -> None:
    threads = torch.get_num_threads()
    next(predict(checkpoint, fields))
    assert torch.get_num_threads() == threads
    assert not any(p.requires_grad for p in checkpoint.segmenter.parameters())
