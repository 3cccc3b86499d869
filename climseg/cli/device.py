"""Which device to compute on."""

import torch

from climseg.errors import InputError


def choose_device(wish: str) -> str:
    """``auto`` becomes ``cuda`` where there is one, else ``cpu``; anything else is taken as it is, if it works.

    Raises:
        InputError: The device is unknown or absent.
    """
    if wish == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=wish)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={wish}: not available here; use device=cpu.") from error
    return wish
