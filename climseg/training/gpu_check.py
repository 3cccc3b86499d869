"""Is it right on this GPU, and how fast: every part of the work on made data, one after the other, within a time.

``scripts/gpu_check`` runs it. It needs no store, no network and no Lightning. Each part is guarded: what fails leaves
its message in the figures, and the others go on.
"""

import gc
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

from climseg.losses.weighted_cross_entropy import weighted_cross_entropy
from climseg.models.build import build_network
from climseg.models.segmenter import Segmenter
from climseg.training.machine import matrix_product_peak, now

_CHANNELS: Final = 16
_CLASSES: Final = 3
_FREQUENCIES: Final = (0.982, 0.001, 0.017)  # of Kurth et al. 2018
# A part is not begun with less time left, s.
_SHORTEST: Final = 5.0

Part = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Sizes:
    """How large everything is.

    Attributes:
        grid: Rows and columns of the fields that are timed.
        correctness_grid: Of the fields on which precisions are compared.
        batch_size: Samples per training step.
        inference_batch_size: Samples per forward pass.
        repeats: Timed steps.
        product: Rows and columns of the matrices for the peak.
        files: Samples that the input pipeline reads.
        workers: Numbers of processes that read.
        compiler: Backend of torch.compile.
    """

    grid: tuple[int, int] = (768, 1152)
    correctness_grid: tuple[int, int] = (192, 288)
    batch_size: int = 2
    inference_batch_size: int = 4
    repeats: int = 10
    product: int = 8192
    files: int = 64
    workers: tuple[int, ...] = (0, 4, 8)
    compiler: str = "inductor"


# What runs in seconds on one core and takes every path that the real sizes take.
TINY: Final = Sizes((32, 64), (32, 64), 1, 1, 1, 64, 4, (0, 1), "eager")


@dataclass(frozen=True)
class Variant:
    """One way of running a training step.

    Attributes:
        precision: float32 (convolutions in TF32, PyTorch's default), bfloat16 or float16, the latter two by autocast.
        channels_last: Memory format.
        compiled: Mode of torch.compile, or None without.
        graph: Whether the whole step is captured as a CUDA graph and replayed.
        recomputed: Whether activations are checkpointed, for networks that can.
    """

    precision: str = "bfloat16"
    channels_last: bool = True
    compiled: str | None = None
    graph: bool = False
    recomputed: bool = False

    @property
    def name(self) -> str:
        """What the figures call it."""
        words = [self.precision, "channels_last" if self.channels_last else "contiguous"]
        words += [f"compile={self.compiled}"] * (self.compiled is not None)
        return " ".join(words + ["graph"] * self.graph + ["recomputed"] * self.recomputed)


QUICK: Final = (
    Variant(),
    Variant(channels_last=False),
    Variant("float16"),
    Variant("float32"),
    Variant(graph=True),
    Variant(recomputed=True),
)
# A compilation takes a minute or more.
COMPILED: Final = (Variant(compiled="default"), Variant(compiled="reduce-overhead"))


def check(
    large: Mapping[str, Mapping[str, Any]],
    small: Mapping[str, Mapping[str, Any]],
    device: torch.device,
    sizes: Sizes,
    seconds: float,
    report: Callable[[str, Mapping[str, Any]], None],
) -> dict[str, Any]:
    """Run all parts, the most telling ones first, until the time is over.

    Args:
        large: Configurations of the networks to time and to compare, by name.
        small: Further ones, of which only the precisions are compared.
        device: Where.
        sizes: How large.
        seconds: Time for all parts together; one that is at work when it ends is broken off, the others are skipped.
        report: Called with (part, figures) after each part.

    Returns:
        Figures by part; of a part that failed ``{"error": ...}``, of one without time ``{"skipped": ...}``.
    """
    end = time.monotonic() + seconds
    figures: dict[str, Any] = {}
    for name, part in _parts(large, small, device, sizes):
        figures[name] = _guarded(part, end - time.monotonic())
        report(name, figures[name])
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return figures


def _parts(
    large: Mapping[str, Mapping[str, Any]], small: Mapping[str, Mapping[str, Any]], device: torch.device, sizes: Sizes
) -> Iterator[tuple[str, Part]]:
    yield "machine", partial(_machine, device, sizes)
    for name, network in {**small, **large}.items():
        yield f"correct {name}", partial(_correctness, network, device, sizes)
    for variants in (QUICK, COMPILED):
        for variant in variants:
            for name, network in large.items():
                if not variant.recomputed or "checkpoint_activations" in network:
                    yield f"train {name} {variant.name}", partial(_train, network, variant, device, sizes)
        if variants is QUICK:
            yield "input", partial(_input, device, sizes)
            for name, network in large.items():
                yield f"predict {name}", partial(_predict, network, device, sizes)


def _guarded(part: Part, seconds: float) -> Mapping[str, Any]:
    if seconds < _SHORTEST:
        return {"skipped": "no time left"}
    start = time.monotonic()
    try:
        with _time_limit(seconds):
            figures = part()
    except Exception as error:  # whatever it is, the other parts still have something to say
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
    return {**figures, "part_seconds": round(time.monotonic() - start, 1)}


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def end(signal_number: int, frame: object) -> None:
        raise TimeoutError(f"broken off after {seconds:.0f} s, when the time for all parts was over")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _machine(device: torch.device, sizes: Sizes) -> Mapping[str, Any]:
    """What it is, and its matrix products."""
    figures: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        figures |= {
            "gpu": properties.name,
            "gigabytes": properties.total_memory / 1e9,
            "capability": list(torch.cuda.get_device_capability(device)),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
        }
    peaks = {name: _peak(name, device, sizes.product) / 1e12 for name in ("float32", "bfloat16", "float16")}
    return figures | {"matrix_product_teraflops": peaks}


@cache
def _peak(precision: str, device: torch.device, size: int) -> float:
    return matrix_product_peak(device, getattr(torch, precision), size, repeats=5)


def _correctness(network: Mapping[str, Any], device: torch.device, sizes: Sizes) -> Mapping[str, Any]:
    """Loss and gradient in each precision and on the CPU, against float32 without TF32 on the device.

    ``gradient_error`` is |g - g32| / |g32| over all weights together, ``worst_weight_error`` the same for the weight
    with the largest error among those whose gradient is not tiny beside the others. Dropout is off.
    """
    torch.manual_seed(0)
    segmenter, loss = _built(_without_dropout(network), device)
    batch = _batch(1, sizes.correctness_grid, device)
    with _float32_without_tf32():
        exact = _loss_and_gradients(segmenter, loss, batch, "float32")
        on_cpu = _loss_and_gradients(
            deepcopy(segmenter).cpu(), deepcopy(loss).cpu(), tuple(t.cpu() for t in batch), "float32"
        )
    found = {name: _loss_and_gradients(segmenter, loss, batch, name) for name in ("float32", "bfloat16", "float16")}
    found = {"float32 on the CPU": on_cpu, "float32 as trained": found.pop("float32"), **found}
    return {"loss": exact[0]} | {name: _errors(other, exact) for name, other in found.items()}


def _loss_and_gradients(
    segmenter: Segmenter, loss: nn.Module, batch: tuple[Tensor, ...], precision: str
) -> tuple[float, list[Tensor]]:
    image, mask = batch
    segmenter.zero_grad()
    scale = 2.0**12 if precision == "float16" else 1.0  # as the gradient scaler does
    with _autocast(image.device, precision):
        value: Tensor = loss(segmenter(image), mask)
    (value * scale).backward()  # type: ignore[no-untyped-call]
    return value.item(), [p.grad.double().cpu() / scale for p in segmenter.parameters() if p.grad is not None]


def _errors(found: tuple[float, list[Tensor]], exact: tuple[float, list[Tensor]]) -> dict[str, float]:
    differences = torch.stack([(a - b).norm() for a, b in zip(found[1], exact[1], strict=True)])
    norms = torch.stack([g.norm() for g in exact[1]])
    telling = norms > 1e-3 * norms.max()
    return {
        "loss_error": abs(found[0] - exact[0]) / abs(exact[0]),
        "gradient_error": float(differences.norm() / norms.norm()),
        "worst_weight_error": float((differences / norms)[telling].max()),
    }


def _train(network: Mapping[str, Any], variant: Variant, device: torch.device, sizes: Sizes) -> Mapping[str, Any]:
    """Time of a training step: forward, loss, backward, clipping, AdamW."""
    torch.manual_seed(0)
    if variant.recomputed:
        network = {**network, "checkpoint_activations": True}
    segmenter, loss = _built(network, device, variant.channels_last)
    batch = _batch(sizes.batch_size, sizes.grid, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    step = _training_step(segmenter, loss, batch, variant, sizes)
    start = now(device)
    if variant.graph:
        step = _captured(step, device)
    for _ in range(3):
        step()
    warm_up = now(device) - start
    seconds = _timed(step, device, sizes.repeats)
    speed = _flops(network, sizes) / median(seconds)
    figures = {
        "batch_size": sizes.batch_size,
        "seconds": seconds,
        "warm_up_seconds": warm_up,
        "samples_per_second": sizes.batch_size / median(seconds),
        "teraflops": speed / 1e12,
        "share_of_matrix_products": speed / _peak(variant.precision, device, sizes.product),
        "parameters": sum(p.numel() for p in segmenter.parameters()),
    }
    if device.type == "cuda":
        figures["peak_gigabytes"] = torch.cuda.max_memory_allocated(device) / 1e9
    return figures


def _training_step(
    segmenter: Segmenter, loss: nn.Module, batch: tuple[Tensor, ...], variant: Variant, sizes: Sizes
) -> Callable[[], None]:
    image, mask = batch
    weights = list(segmenter.parameters())
    optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=True, capturable=variant.graph)
    scaler = torch.amp.GradScaler(image.device.type, enabled=variant.precision == "float16")
    network: Callable[[Tensor], Tensor] = segmenter
    if variant.compiled is not None:
        torch.compiler.reset()
        options: dict[str, Any] = {"mode": variant.compiled} if sizes.compiler == "inductor" else {}
        network = torch.compile(segmenter, backend=sizes.compiler, **options)
    memory_format = torch.channels_last if variant.channels_last else torch.contiguous_format

    def step() -> None:
        optimizer.zero_grad()
        with _autocast(image.device, variant.precision):
            value: Tensor = loss(network(image.contiguous(memory_format=memory_format)), mask)
        scaler.scale(value).backward()  # type: ignore[no-untyped-call]
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        scaler.step(optimizer)
        scaler.update()

    return step


def _captured(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The step as a CUDA graph, captured after three runs on a stream of its own, as PyTorch asks for."""
    if device.type != "cuda":
        raise RuntimeError("CUDA graphs need a GPU")
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream(device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _predict(network: Mapping[str, Any], device: torch.device, sizes: Sizes) -> Mapping[str, Any]:
    """Fields on the device to class numbers on the host."""
    segmenter, _ = _built(network, device)
    segmenter.eval()
    image, _ = _batch(sizes.inference_batch_size, sizes.grid, device)
    image = image.contiguous(memory_format=torch.channels_last)
    figures: dict[str, Any] = {"batch_size": sizes.inference_batch_size}
    for precision in ("float32", "bfloat16", "float16"):

        def once(precision: str = precision) -> Tensor:
            with torch.inference_mode(), _autocast(device, precision):
                classes: Tensor = segmenter(image).argmax(dim=1).to(torch.int8).cpu()
            return classes

        once()
        once()
        seconds = _timed(once, device, sizes.repeats)
        figures[precision] = {"samples_per_second": sizes.inference_batch_size / median(seconds), "seconds": seconds}
    return figures


class _Files(Dataset[Tensor]):
    """Samples as float32 files, read again and again."""

    def __init__(self, paths: list[Path], shape: tuple[int, ...], repeats: int) -> None:
        self.paths = paths * repeats
        self.shape = shape

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> Tensor:
        return torch.from_numpy(np.fromfile(self.paths[position], np.float32).reshape(self.shape))


def _input(device: torch.device, sizes: Sizes) -> Mapping[str, Any]:
    """Float32 files (in the system's cache after the first pass) through a DataLoader to the device."""
    shape = (_CHANNELS, *sizes.grid)
    bytes_each = 4 * int(np.prod(shape))
    figures: dict[str, Any] = {"megabytes_per_sample": bytes_each / 1e6}
    with TemporaryDirectory(prefix="climseg-") as folder:
        paths = [Path(folder) / f"{number}.bin" for number in range(min(8, sizes.files))]
        for path in paths:
            np.random.default_rng(0).standard_normal(int(np.prod(shape)), np.float32).tofile(path)
        samples = _Files(paths, shape, max(1, sizes.files // len(paths)))
        for workers in sizes.workers:
            for pinned in (False, True) if device.type == "cuda" else (False,):
                loader = DataLoader(samples, batch_size=2, num_workers=workers, pin_memory=pinned)
                start = now(device)
                count = sum(len(batch.to(device, non_blocking=True)) for batch in loader)
                seconds = now(device) - start
                figures[f"{workers} workers{' pinned' * pinned}"] = {
                    "samples_per_second": count / seconds,
                    "gigabytes_per_second": count * bytes_each / seconds / 1e9,
                }
    return figures


def _built(network: Mapping[str, Any], device: torch.device, channels_last: bool = True) -> tuple[Segmenter, nn.Module]:
    built = build_network(network, in_channels=_CHANNELS, classes=_CLASSES, pretrained=False)
    segmenter = Segmenter(built, [0.0] * _CHANNELS, [1.0] * _CHANNELS, periodic=True).to(device)
    if channels_last:
        segmenter = segmenter.to(memory_format=torch.channels_last)
    return segmenter.train(), weighted_cross_entropy(_FREQUENCIES).to(device)


def _batch(size: int, grid: tuple[int, int], device: torch.device) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(size, _CHANNELS, *grid, generator=generator)
    mask = torch.randint(_CLASSES, (size, *grid), generator=generator)
    return image.to(device), mask.to(device)


def _flops(network: Mapping[str, Any], sizes: Sizes) -> int:
    """Operations of one step, forward and backward, counted without computing; none counts twice."""
    if "checkpoint_activations" in network:
        network = {**network, "checkpoint_activations": False}
    device = torch.device("meta")
    segmenter, _ = _built(network, device)
    image, _ = _batch(sizes.batch_size, sizes.grid, device)
    with FlopCounterMode(display=False) as counter:
        segmenter(image).sum().backward()  # a loss per pixel has no products, and autocast does not know "meta"
    return int(counter.get_total_flops())


def _timed(run: Callable[[], object], device: torch.device, repeats: int) -> list[float]:
    """Seconds of each run."""
    seconds = []
    for _ in range(repeats):
        start = now(device)
        run()
        seconds.append(now(device) - start)
    return seconds


def _autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, getattr(torch, precision), enabled=precision != "float32")


@contextmanager
def _float32_without_tf32() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def _without_dropout(network: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**network, "dropout": 0.0} if "dropout" in network else network
