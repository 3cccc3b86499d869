"""Damaged files of every format: whatever their bytes say, they are read, or refused with a sentence.

Damage is seeded: a failure names the kind and the seed, and ``_damaged(content, np.random.default_rng(seed))`` gives
its bytes again.
"""

import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import netCDF4
import numpy as np
import pytest

from climseg import isolated
from climseg.cli.main import run
from climseg.errors import InputError
from climseg.sources.open import open_fields

Sound = Callable[[str, int], tuple[str, bytes]]

LAT = np.linspace(-60.0, 60.0, 5)
LON = np.arange(0.0, 360.0, 45.0)
# What the heuristic needs: CAM5's name, GRIB's name, level in hPa, value, CAM5's units. ERA5's z is a geopotential.
FIELDS: Final[list[tuple[str, str, int | None, float, str]]] = [
    ("TMQ", "tcwv", None, 30.0, "kg m-2"),
    ("PSL", "msl", None, 101300.0, "Pa"),
    ("UBOT", "10u", None, 5.0, "m s-1"),
    ("VBOT", "10v", None, 3.0, "m s-1"),
    ("PRECT", "tp", None, 1e-5, "m s-1"),
    ("U850", "u", 850, 8.0, "m s-1"),
    ("V850", "v", 850, -4.0, "m s-1"),
    ("T200", "t", 200, 220.0, "K"),
    ("T500", "t", 500, 260.0, "K"),
    ("Z1000", "z", 1000, 980.0, "m"),
    ("Z200", "z", 200, 118000.0, "m"),
]
COMPRESSED = {"zlib": True, "fletcher32": True, "chunksizes": (1, 5, 8)}
NETCDF: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "classic": ("NETCDF3_CLASSIC", {}),
    "64-bit offset": ("NETCDF3_64BIT_OFFSET", {}),
    "64-bit data": ("NETCDF3_64BIT_DATA", {}),
    "HDF5": ("NETCDF4", {}),
    "compressed HDF5": ("NETCDF4", COMPRESSED),
}
# Where a header holds its own facts; an HDF5 file has them further on too.
HEADER = 4096
HUGE = [2**16, 2**24 - 1, 2**28, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
HUGE_WIDE = [2**32, 2**33, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
# Long enough for a busy machine, short of what a user would wait for.
HANGS_AFTER = 20


def _write_netcdf(path: Path, format: str, count: int, **storage: Any) -> None:
    """Two steps of the first fields as CAM5 has them."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.setncatts({"Conventions": "CF-1.7", "source": "CAM", "history": "made"})
        for name, size in (("time", None), ("lat", LAT.size), ("lon", LON.size)):
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "hours since 2001-01-01", "calendar": "noleap"})
        for name, values, units in (("lat", LAT, "degrees_north"), ("lon", LON, "degrees_east")):
            axis = file.createVariable(name, "f8", (name,))
            axis.units = units
            axis[:] = values
        for name, _, _, value, units in FIELDS[:count]:
            variable = file.createVariable(name, "f4", ("time", "lat", "lon"), **storage)
            variable.setncatts({"units": units, "long_name": name.lower()})
            variable[:] = _values(value / 9.80665 if name in ("Z1000", "Z200") else value, 2)
        time[:] = [0, 6]


def _write_deepcam(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        group = file.createGroup("climate")
        for name, size in (("y", 6), ("x", 8), ("c", 16)):
            group.createDimension(name, size)
        group.createVariable("data", "f4", ("y", "x", "c"))[:] = np.arange(768.0).reshape(6, 8, 16)
        group.createVariable("labels_0", "f4", ("y", "x"))[:] = 0.0


def _values(value: float, steps: int) -> Any:
    points = steps * LAT.size * LON.size
    return (value * (1.0 + 0.01 * np.sin(np.arange(points)))).reshape(steps, LAT.size, LON.size)


@pytest.fixture
def sound(write_grib: Callable[..., Path], tmp_path: Path) -> Sound:
    """A function that gives the name and the bytes of a sound file of a kind, with so many of the fields."""

    def make(kind: str, count: int) -> tuple[str, bytes]:
        path = tmp_path / {"deepcam": "data-2001-01-01-00-1.h5"}.get(kind, f"{kind.replace(' ', '-')}.nc")
        if kind.startswith("GRIB"):
            write_grib(path.name, [_message(kind[-1], *field) for field in FIELDS[:count]])
        elif kind == "deepcam":
            _write_deepcam(path)
        elif kind == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a.nc", make("classic", count)[1])
        else:
            format, storage = NETCDF[kind]
            _write_netcdf(path, format, count, **storage)
        content = path.read_bytes()
        path.unlink()
        return path.name, content

    return make


def _message(edition: str, cam5: str, name: str, level: int | None, value: float, units: str) -> dict[str, Any]:
    """A field as ERA5 has it; rain fell from hour 0 to 1, all else is of hour 1."""
    steps = {"stepType": "accum", "stepRange": "0-1"} if name == "tp" else {"stepRange": "1"}
    at = {"level": level} if level else {}
    sample = f"regular_ll_{'pl' if level else 'sfc'}_grib{edition}"
    values = _values(value, 1)[0]
    return {"sample": sample, "lat": LAT[::-1], "lon": LON, "values": values, "shortName": name} | at | steps


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut a file short, claim something huge in its header, or change 1 to 32 of its bytes, mostly in its header."""
    out = bytearray(content)
    reach = min(len(out), HEADER)
    way = rng.random()
    if way < 0.1:
        return bytes(out[: rng.integers(1, len(out))])
    if way < 0.3:
        for _ in range(rng.integers(1, 4)):
            size, claims = (8, HUGE_WIDE) if rng.random() < 0.3 else (4, HUGE)
            at = 4 * int(rng.integers(0, (reach - size) // 4 + 1))
            claim = claims[rng.integers(len(claims))]
            out[at : at + size] = claim.to_bytes(size, "big" if rng.random() < 0.5 else "little")
        return bytes(out)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4, 8, 16, 32])):
        at = int(rng.integers(len(out) if rng.random() < 0.2 else reach))
        out[at] = (rng.integers(256), out[at] ^ (1 << rng.integers(8)), 0, 255)[rng.integers(4)]
    return bytes(out)


@contextmanager
def _no_hang() -> Iterator[None]:
    """Raise TimeoutError in a block that takes too long."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


KINDS = [
    ("classic", 350),
    ("64-bit offset", 150),
    ("64-bit data", 250),
    ("HDF5", 300),
    ("compressed HDF5", 300),
    ("GRIB 1", 150),
    ("GRIB 2", 150),
    ("deepcam", 200),
    ("zip", 150),
]


@pytest.mark.filterwarnings("ignore:Unable to decode time axis into full numpy.datetime64")
@pytest.mark.parametrize(("kind", "count"), KINDS)
def test_a_damaged_file_is_read_or_refused_by_name_and_nothing_else(
    sound: Sound, kind: str, count: int, tmp_path: Path
) -> None:
    name, content = sound(kind, 2)
    (tmp_path / name).write_bytes(content)
    fields = open_fields(tmp_path / name)
    assert np.isfinite(fields[next(iter(fields))].isel(time=0).values).all()

    outcomes = []
    for seed in range(count):
        path = tmp_path / str(seed) / name
        path.parent.mkdir()
        path.write_bytes(_damaged(content, np.random.default_rng(seed)))
        try:
            with _no_hang():
                fields = open_fields(path)
                fields[next(iter(fields))].isel(time=0).compute(scheduler="synchronous")
            outcomes.append("read")
        except InputError as error:
            assert str(path) in str(error), (kind, seed, error)
            outcomes.append("refused")
        except Exception as error:
            pytest.fail(f"{kind}, seed {seed}: {type(error).__name__}: {error}")
        path.unlink()
    assert "refused" in outcomes


@pytest.mark.parametrize("kind", ["classic", "64-bit data", "HDF5", "GRIB 1", "GRIB 2", "zip"])
def test_the_command_ends_with_0_or_2_and_leaves_no_half_written_masks(
    sound: Sound, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content = sound(kind, len(FIELDS))
    path, output = tmp_path / name, tmp_path / "masks.nc"
    path.write_bytes(content)
    words = ["label", f"input='{path}'", f"output={output}", "labels=kurth2018", "labels.cyclones.tracks=null"]
    assert run(words) == 0
    for seed in range(1000, 1010):
        for made in tmp_path.glob("masks*"):
            made.unlink()
        path.write_bytes(_damaged(content, np.random.default_rng(seed)))
        with _no_hang():
            code = run(words)
        said = capsys.readouterr()
        assert code in (0, 2), seed
        assert "Traceback" not in said.err + said.out, seed
        assert output.exists() == (code == 0), seed
        made_names = ["masks.nc", "masks_cyclones.csv"] if code == 0 else []
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, *made_names]), seed


@pytest.mark.parametrize("kind", ["classic", "HDF5", "GRIB 2"])
def test_the_command_as_a_process_of_its_own_ends_with_2_and_a_sentence(
    sound: Sound, kind: str, tmp_path: Path
) -> None:
    name, content = sound(kind, len(FIELDS))
    path = tmp_path / name
    path.write_bytes(content[: len(content) // 2])
    words = ["label", f"input='{path}'", f"output={tmp_path / 'masks.nc'}", "labels=kurth2018"]
    done = subprocess.run([sys.executable, "-m", "climseg", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith(f"climseg: {path}: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "masks.nc").exists()


CLAIMS = [("classic", 4, claim) for claim in (2**31 - 1, 2**31, 2**32 - 1)]
CLAIMS += [("64-bit data", 8, claim) for claim in (2**31 - 1, 2**32 - 1, 2**62, 2**64 - 1)]


@pytest.mark.parametrize(("format", "width", "claim"), CLAIMS)
@pytest.mark.parametrize("what", ["time", "lat", "lon"])
def test_a_classic_header_that_claims_more_than_the_file_holds_is_refused_at_once(
    sound: Sound, tmp_path: Path, format: str, width: int, claim: int, what: str
) -> None:
    name, content = sound(format, 2)
    # The number of records comes first; the length of a dimension after its name, padded to four bytes.
    at = 4 if what == "time" else content.index(what.encode()) + 4
    path = tmp_path / name
    path.write_bytes(content[:at] + claim.to_bytes(width, "big") + content[at + width :])
    with _no_hang(), pytest.raises(InputError, match=r"truncated|time has 4,294,967,295 values|cannot be opened"):
        open_fields(path)


def _sparse(path: Path, sizes: dict[str, int], values: dict[str, Any]) -> Path:
    """An HDF5 file whose field was never written, so that it is small however large it claims to be."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in sizes.items():
            file.createDimension(name, size)
            axis = file.createVariable(name, "f8", (name,), chunksizes=(min(size, 1000),))
            if name in values:
                axis[:] = values[name]
        file["time"].units = "hours since 2001-01-01"
        chunks = tuple(min(size, 100) for size in sizes.values())
        file.createVariable("TMQ", "f4", tuple(sizes), chunksizes=chunks).units = "kg m-2"
    return path


def test_an_hdf5_file_that_claims_thousands_of_millions_of_steps_is_refused_at_once(tmp_path: Path) -> None:
    sizes = {"time": 2**31, "lat": LAT.size, "lon": LON.size}
    path = _sparse(tmp_path / "a.nc", sizes, {"lat": LAT, "lon": LON})
    with _no_hang(), pytest.raises(InputError, match=r"a\.nc: time has 2,147,483,648 values; expected at most 4,000"):
        open_fields(path)


def test_a_grid_of_more_points_than_any_model_has_is_refused_at_once(tmp_path: Path) -> None:
    lat, lon = np.linspace(-90.0, 90.0, 40_001), np.arange(40_000) * 0.009
    sizes = {"time": 1, "lat": lat.size, "lon": lon.size}
    path = _sparse(tmp_path / "a.nc", sizes, {"time": [0.0], "lat": lat, "lon": lon})
    with _no_hang(), pytest.raises(InputError, match=r"a\.nc: has a grid of 40001 x 40000 points"):
        open_fields(path)


def test_a_grib_message_with_a_section_of_length_0_does_not_hang(sound: Sound, tmp_path: Path) -> None:
    name, content = sound("GRIB 2", 2)
    section_7 = int.from_bytes(content[8:16], "big") - 4 - len(_last_section(content))
    path = tmp_path / name
    path.write_bytes(content[:section_7] + bytes(4) + content[section_7 + 4 :])
    with _no_hang(), pytest.raises(InputError, match="sections of the message at byte 0 do not fill it"):
        open_fields(path)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("while True: pass", "signal 27"),  # SIGPROF: the time is over
        ("import ctypes; ctypes.string_at(0)", "signal 11"),
    ],
)
def test_a_helper_that_goes_round_in_circles_or_dies_is_replaced_by_another(task: str, said: str) -> None:
    helper = isolated.Helper()
    limited = f"from climseg.isolated import time_limit\nwith time_limit(0.2):\n    {task}"
    with _no_hang(), pytest.raises(isolated.HelperDiedError, match=said):
        helper.call(exec, limited)
    assert helper.call(len, "abc") == 3


def test_a_helper_does_not_take_all_memory() -> None:
    with pytest.raises(MemoryError):
        isolated.call(bytearray, 4 * 2**30)


def _last_section(message: bytes) -> bytes:
    at = 16
    while message[at + 4] != 7:
        at += int.from_bytes(message[at : at + 4], "big")
    return message[at : at + int.from_bytes(message[at : at + 4], "big")]
