import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.sources import unzip
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
Archive = Callable[..., Path]


@pytest.fixture
def archive(write_file: WriteFile, tmp_path: Path) -> Archive:
    """A function that writes an archive of one file of TMQ for each member and day, or of given bytes."""

    def write(members: dict[str, Any], name: str = "a.zip", **options: Any) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as file:
            for member, content in members.items():
                if isinstance(content, int):
                    times = [f"2001-01-0{content}"]
                    content = write_file(
                        "m.nc", {"TMQ": (float(content), "kg m-2")}, times=times, **options
                    ).read_bytes()
                file.writestr(member, content)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["a.zip", "download.nc"])
def test_the_files_of_an_archive_are_read_whatever_its_name(archive: Archive, name: str) -> None:
    ds = open_cam5(archive({"b.nc": 2, "folder/": b"", "folder/a.nc": 1, "__MACOSX/._a.nc": b"\x00"}, name))
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [1.0, 2.0])


def test_files_of_an_archive_and_beside_it_combine(archive: Archive, write_file: WriteFile) -> None:
    paths = [archive({"b.nc": 2}), write_file("c.nc", {"TMQ": (3.0, "kg m-2")}, times=["2001-01-03"])]
    np.testing.assert_array_equal(open_cam5(paths)["TMQ"][:, 0, 0], [2.0, 3.0])


@pytest.mark.parametrize(
    "member", ["../../outside.nc", "/outside.nc", "..\\outside.nc", "a/" * 200 + "deep.nc", "name" * 60 + ".nc"]
)
def test_a_member_is_unpacked_inside_the_temporary_folder_wherever_its_path_leads(
    archive: Archive, tmp_path: Path, member: str
) -> None:
    path = archive({member: 1})
    before = set(tmp_path.parent.rglob("*outside*"))
    ((unpacked, name),) = unzip.unzip(str(path), path.stat().st_mtime_ns)
    assert Path(unpacked).parent.name.startswith("climseg-unzipped-")
    assert Path(unpacked).name == "00000.nc"
    assert name.startswith(f"{path}:")
    assert set(tmp_path.parent.rglob("*outside*")) == before
    assert open_cam5(path).sizes["time"] == 1


def test_members_of_one_name_are_kept_apart(archive: Archive, write_file: WriteFile) -> None:
    path = archive({"a.nc": 1})
    second = write_file("m.nc", {"TMQ": (2.0, "kg m-2")}, times=["2001-01-02"])
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.write(second, "a.nc")
    np.testing.assert_array_equal(open_cam5(path)["TMQ"][:, 0, 0], [1.0, 2.0])


def test_an_archive_is_unpacked_once_and_anew_when_it_was_replaced(archive: Archive) -> None:
    path = archive({"a.nc": 1})
    first = open_cam5(path)
    unpacked = unzip.unzip(str(path), path.stat().st_mtime_ns)
    assert unzip.unzip(str(path), path.stat().st_mtime_ns) is unpacked
    archive({"a.nc": 2})
    assert float(open_cam5(path)["TMQ"][0, 0, 0]) == 2.0
    assert float(first["TMQ"][0, 0, 0]) == 1.0  # what was opened before reads as before


# Errors name the member of the archive


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "is a zip archive without any file in it"),
        ({"folder/": b""}, "is a zip archive without any file in it"),
        ({"a.nc": 1, "read me.dat": b"hello"}, ":read me.dat: is a text file that begins with 'hello'"),
        ({"a.nc": 1, "empty.nc": b""}, ":empty.nc: is empty"),
        ({"inner.zip": b"PK\x03\x04 and so on"}, ":inner.zip: is an archive within an archive; unzip it first"),
        ({"short.nc": b"CDF\x01\x00"}, ":short.nc: is a truncated netCDF file"),
        ({"short.grib": b"GRIB\x00\x00\x00\x02"}, ":short.grib: cannot be read as GRIB"),
        ({"a.nc": 1, "b.nc": 1}, "a.zip:a.nc and {}:b.nc; leave one of the two files out"),
    ],
)
def test_an_archive_that_cannot_be_used_is_refused_by_its_member(
    archive: Archive, members: dict[str, Any], said: str
) -> None:
    path = archive(members)
    with pytest.raises(InputError) as error:
        open_cam5(path)
    assert str(path) in str(error.value)
    assert said.format(path) in str(error.value)
    assert "climseg-unzipped-" not in str(error.value)


def test_units_and_times_of_a_member_are_refused_by_its_name(archive: Archive) -> None:
    with pytest.raises(InputError, match=r"a\.zip:a\.nc: lat is not evenly spaced"):
        open_cam5(archive({"a.nc": 1}, lat=[0.0, 1.0, 5.0, 6.0, 7.0, 8.0, 9.0]))


def test_members_on_unequal_grids_are_refused_by_their_names(archive: Archive, write_file: WriteFile) -> None:
    coarse = write_file("c.nc", {"TMQ": (1.0, "kg m-2")}, times=["2001-01-05"], lat=[0.0, 5.0]).read_bytes()
    with pytest.raises(InputError, match=r"a\.zip:a\.nc and .*a\.zip:b\.nc have unequal grids: lat"):
        open_cam5(archive({"a.nc": 1, "b.nc": coarse}))


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_a_truncated_archive_is_refused(archive: Archive, share: float) -> None:
    path = archive({"a.nc": 1})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=r"a\.zip: cannot be unpacked \(.*\); the archive is damaged"):
        open_cam5(path)


def test_an_archive_damaged_inside_is_refused(archive: Archive) -> None:
    path = archive({"a.nc": 1})
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.zip: cannot be unpacked .*damaged"):
        open_cam5(path)


def test_an_encrypted_archive_is_refused_as_one(archive: Archive) -> None:
    path = archive({"a.nc": 1})
    content = bytearray(path.read_bytes())
    # The bit for encryption, in the header of the member and in that of the directory (APPNOTE.TXT, 4.4.4).
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(signature) + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.zip: is encrypted; unzip it first"):
        open_cam5(path)


def test_an_archive_for_which_there_is_no_room_is_refused_with_the_way_out(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive({"a.nc": 1})
    usage = unzip.shutil.disk_usage(path.parent)._replace(free=10)
    monkeypatch.setattr(unzip.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match=r"a\.zip: needs [\d,]+ bytes unpacked, and .* has 10 left; set TMPDIR"):
        open_cam5(path)


def test_what_is_unpacked_goes_when_the_program_ends(archive: Archive, tmp_path: Path) -> None:
    path, room = archive({"a.nc": 1}), tmp_path / "room"
    room.mkdir()
    program = "import sys; from climseg.sources.unzip import unzip; print(unzip(sys.argv[1], 0)[0][0])"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TMPDIR": str(room)},
    )
    assert done.stdout.startswith(str(room))
    assert list(room.iterdir()) == []


def test_a_text_beside_the_data_is_left_aside(tmp_path: Path, write_file: Any) -> None:
    inside = write_file("a.nc", {"t2m": (280.0, "K")})
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(inside, "a.nc")
        file.writestr("README.txt", "hello")
    assert (open_fields(archive, source="era5", channels=["TREFHT"])["TREFHT"] == 280.0).all()
