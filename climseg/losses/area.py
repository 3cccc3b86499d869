"""Weights of cells by their area, in losses."""

from torch import Tensor

from climseg.errors import InputError


def chosen_area_weights(area_weighted: bool, area_weights: Tensor | None) -> Tensor | None:
    """Return the area weights (H,) if they are asked for, or None to count all cells alike.

    Raises:
        InputError: Area weights are asked for but there are none.
    """
    if area_weighted and area_weights is None:
        raise InputError("loss: area_weighted needs the area weights of the grid, and none were given")
    return area_weights if area_weighted else None


def as_column(area_weights: Tensor, height: int) -> Tensor:
    """Return area weights (H,) as a column (H, 1), to multiply fields (..., H, W).

    Raises:
        InputError: They are for another number of rows than the batch has.
    """
    if len(area_weights) != height:
        raise InputError(
            f"loss: area weights are for {len(area_weights)} latitudes, but the batch has {height}: "
            "area_weighted needs whole fields, not tiles"
        )
    return area_weights[:, None]
