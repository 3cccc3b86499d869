import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_an_installed_wheel_works_from_any_folder(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    shipped = {f"climseg/{p.relative_to(PROJECT)}" for p in (PROJECT / "conf").rglob("*.yaml")}
    assert shipped <= names
    assert "climseg/coastlines.npz" in names
    assert not any(n.startswith(("tests/", "notebooks/")) for n in names)
    # From the unpacked wheel alone: python -P keeps the working folder out of the path, PYTHONPATH goes first.
    result = subprocess.run(
        [sys.executable, "-P", "-m", "climseg", "train", "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "model = tiramisu_small | deepcam | deeplabv3plus" in result.stdout
    where = subprocess.run(
        [sys.executable, "-P", "-c", "import climseg; print(climseg.__file__)"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(tmp_path / "site"))
