"""Stand-in."""


def scaled_learning_rate(lr: float, global_batch: int, reference_batch: int, rule: str) -> float:
    """Stand-in until the colleague's lands."""
    return lr
