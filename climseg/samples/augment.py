"""Augmentation that keeps the physics: the sphere has no preferred longitude."""

from collections.abc import Sequence

import torch

from climseg.samples.randomness import derived_seed


def roll_longitudes(
    image: torch.Tensor, mask: torch.Tensor, seeds: Sequence[tuple[int, ...]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn every sample of a batch by its own random number of grid columns. Right on closed grids only.

    Args:
        image: (B, C, H, W).
        mask: (B, H, W).
        seeds: For each sample the numbers that its shift follows from.

    Returns:
        Rolled copies of both.
    """
    shifts = [derived_seed(*numbers) % image.shape[-1] for numbers in seeds]
    return (
        torch.stack([x.roll(s, dims=-1) for x, s in zip(image, shifts, strict=True)]),
        torch.stack([x.roll(s, dims=-1) for x, s in zip(mask, shifts, strict=True)]),
    )
