import gzip
import zipfile
from pathlib import Path

import pytest

from climseg.errors import InputError
from climseg.sources.paths import expand_paths, file_format, input_manifest, is_url


def test_a_pattern_gives_its_files_once_and_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.nc", "a.nc", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.nc").mkdir()
    assert expand_paths([f"{tmp_path}/*.nc", tmp_path / "a.nc"]) == [f"{tmp_path}/a.nc", f"{tmp_path}/b.nc"]


def test_two_stars_reach_into_folders(tmp_path: Path) -> None:
    (tmp_path / "2001" / "01").mkdir(parents=True)
    (tmp_path / "2001" / "01" / "a.nc").touch()
    assert expand_paths(f"{tmp_path}/**/*.nc") == [f"{tmp_path}/2001/01/a.nc"]


def test_paths_start_from_the_working_directory_and_from_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nc").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_paths("a.nc") == expand_paths("*.nc") == expand_paths("~/?.nc") == [f"{tmp_path}/a.nc"]


def test_a_pattern_works_in_a_folder_whose_own_name_holds_brackets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run[1]"
    folder.mkdir()
    (folder / "a.nc").touch()
    monkeypatch.chdir(folder)
    assert expand_paths("*.nc") == [f"{folder}/a.nc"]


def test_a_file_whose_name_holds_brackets_is_found(tmp_path: Path) -> None:
    (tmp_path / "a[1].nc").touch()
    assert expand_paths(tmp_path / "a[1].nc") == [f"{tmp_path}/a[1].nc"]


def test_a_url_stays_as_it_is() -> None:
    url = "gs://bucket/folder/1959*.zarr"
    assert is_url(url)
    assert expand_paths([url, url]) == [url]
    assert file_format(url) == "zarr"


@pytest.mark.parametrize("mark", [".zgroup", ".zmetadata", "zarr.json"])
def test_a_zarr_store_is_the_one_kind_of_folder_that_is_taken(tmp_path: Path, mark: str) -> None:
    store = tmp_path / "a.zarr"
    store.mkdir()
    (tmp_path / "plain.zarr").mkdir()
    (store / mark).touch()
    assert expand_paths(f"{tmp_path}/*.zarr") == expand_paths(store) == expand_paths(f"{store}/") == [str(store)]
    assert file_format(str(store)) == "zarr"


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ("{}/*.nc", "No file matches '{}/*.nc'"),
        ("{}", "is a folder; give the files in it, for example '{}/*.nc'"),
        ("{}/storm_2001.nc", "There is no file 'storm_2001.nc' in {}; did you mean 'storm_2000.txt'"),
        ("{}/nowhere/a.nc", "nor does its folder {}/nowhere"),
        ([], "an empty list"),
        ("", "an empty path"),
        (["{}/storm_2000.txt", " "], "an empty path"),
    ],
)
def test_input_that_names_no_file_is_refused_with_the_place_that_was_searched(
    tmp_path: Path, input: str | list[str], said: str
) -> None:
    (tmp_path / "storm_2000.txt").touch()
    with pytest.raises(InputError) as error:
        expand_paths(input.format(tmp_path) if isinstance(input, str) else [i.format(tmp_path) for i in input])
    assert said.format(tmp_path) in str(error.value)


def _archive(path: Path, members: dict[str, bytes]) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"CDF\x01", "netcdf"),
        (b"CDF\x02", "netcdf"),
        (b"CDF\x05", "netcdf"),
        (b"\x89HDF\r\n\x1a\n", "netcdf"),
        (b"GRIB\x00\x00\x00\x02", "grib"),
        # The header of a bulletin of the WMO's network, then the message.
        (b"\x01\r\r\n001\r\r\nHTXA85 KWBC 110000\r\r\nGRIB\x00\x00\x00\x01", "grib"),
    ],
)
def test_the_first_bytes_say_what_a_file_is_whatever_its_name(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content + bytes(range(256)))
    assert file_format(str(path)) == kind


@pytest.mark.parametrize("members", [{"a.nc": b"CDF"}, {}])
def test_a_zip_archive_renamed_to_nc_is_recognised(tmp_path: Path, members: dict[str, bytes]) -> None:
    path = tmp_path / "a.nc"
    _archive(path, members)
    assert file_format(str(path)) == "zip"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"time,lat,lon\n1,2,3\n", "text file that begins with 'time,lat,lon"),
        (b"<!DOCTYPE html>\n<html>", "web page"),
        (b"\n <HTML>", "web page"),
        (gzip.compress(b"CDF\x01", mtime=0), "gunzip"),
        (b"BZh91AY", "bunzip2"),
        (b"\x0e\x03\x13\x01", "HDF4"),
        (b"\x00\x01\x02\x03", "no file of a known kind"),
    ],
)
def test_other_files_are_refused_by_what_they_are(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path}.*{said}"):
        file_format(str(path))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.nc: cannot be read \(No such file"):
        file_format(f"{tmp_path}/a.nc")


def test_the_manifest_tells_a_file_that_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(b"CDF\x01")
    (tmp_path / "link.nc").symlink_to(path)
    (before,) = input_manifest([path])
    assert before == {"path": str(path), "size": 4, "modified_ns": path.stat().st_mtime_ns}
    assert input_manifest([tmp_path / "link.nc"]) == [before]
    path.write_bytes(b"CDF\x01\x02")
    assert input_manifest([str(path)]) != [before]


def test_the_manifest_of_a_zarr_store_is_that_of_its_metadata_and_a_url_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "zarr.json").write_text("{}")
    (entry, remote) = input_manifest([tmp_path, "gs://bucket/a.zarr"])
    assert (entry["path"], entry["size"]) == (str(tmp_path), 2)
    assert remote == {"path": "gs://bucket/a.zarr"}
