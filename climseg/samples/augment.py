"""Augmentation that keeps the physics: the sphere has no preferred longitude."""

import torch


def roll_longitudes(
    image: torch.Tensor, mask: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn every sample of a batch by its own random number of grid columns. Right on closed grids only.

    Args:
        image: (B, C, H, W).
        mask: (B, H, W).
        generator: CPU generator, the source of all randomness here.

    Returns:
        Rolled copies of both.
    """
    shifts = torch.randint(image.shape[-1], (image.shape[0],), generator=generator).tolist()
    return (
        torch.stack([x.roll(s, dims=-1) for x, s in zip(image, shifts, strict=True)]),
        torch.stack([x.roll(s, dims=-1) for x, s in zip(mask, shifts, strict=True)]),
    )
