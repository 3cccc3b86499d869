"""``climseg train -m``: several trainings by one command, and one table of them all.

Hydra's own sweeper and launchers do the work. Each run is a ``climseg train`` in a process of its own: so the further
ranks of a distributed run never enter the sweep (lightning#2727, #5512, #11300), and a run that fails or is killed does
not end the others. With ``hydra/launcher=submitit_slurm`` the runs are jobs of Slurm.
"""

import itertools
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from climseg.atomic import sole_writer
from climseg.cli.configuration import compose, conf_folder, is_hydra_key, parse_word
from climseg.cli.json_file import write_json
from climseg.cli.sweep_summary import (
    DONE,
    FAILED,
    OUTCOME,
    PREEMPTED,
    STOPPED,
    read_outcome,
    summary_row,
    summary_table,
    write_summary,
)
from climseg.errors import InputError
from climseg.training.processes import UNFINISHED

log = logging.getLogger(__name__)

# Where the sweep's files lie is said by run_dir; the rest keeps Hydra from writing logs and settings of its own.
_SETTINGS: Final = (
    "hydra/hydra_logging=none",
    "hydra/job_logging=none",
    "hydra.output_subdir=null",
    "hydra.sweep.subdir=.",
    "hydra.job.name=climseg_train",
)
_TAKEN: Final = ("hydra.sweep.dir", "hydra.sweep.subdir", "hydra.run.dir", "hydra.output_subdir", "hydra.mode")


@dataclass(frozen=True)
class Sweep:
    """What was asked for.

    Attributes:
        folder: Where the folders of the runs and the table lie.
        runs: Folder of each run, with the words that tell it from the others.
        overrides: All words as Hydra takes them, its own settings among them.
        resume: Whether an earlier sweep of that folder goes on.
    """

    folder: Path
    runs: dict[Path, str]
    overrides: list[str]
    resume: bool


def run(words: list[str]) -> None:
    """Check every combination, train them, show and write the table.

    Raises:
        InputError: A combination is not what ``climseg train`` takes, which is found before the first run starts; or a
            run failed.
    """
    if int(os.environ.get("WORLD_SIZE") or os.environ.get("SLURM_STEP_NUM_TASKS") or 1) > 1:
        raise InputError(
            "climseg train -m was started by several processes; start it once, and give each run its processes: "
            "trainer.devices=2, or hydra/launcher=submitit_slurm hydra.launcher.tasks_per_node=2."
        )
    sweep = plan(words)
    with sole_writer(sweep.folder / "sweep"):
        log.info("%d runs, each in a folder of %s", len(sweep.runs), sweep.folder)
        try:
            _launch(sweep)
        except (KeyboardInterrupt, SystemExit):
            if any("hydra/launcher=" in word for word in sweep.overrides):
                log.warning("runs that were handed to a batch system go on there; end them with its own command")
            raise
        finally:
            rows = [summary_row(folder, words) for folder, words in sweep.runs.items()]
            write_summary(rows, sweep.folder / "summary.csv")
            Console(markup=False, highlight=False).print(summary_table(rows))
            log.info("table: %s", sweep.folder / "summary.csv")
    amiss = [row for row in rows if row["state"] != DONE]
    if amiss:
        raise InputError(
            f"{len(amiss)} of {len(rows)} runs are not done; the table names them. To do those alone: the same command "
            f"with run_dir={sweep.folder} resume=true."
        )


def plan(words: list[str]) -> Sweep:
    """From the words after ``climseg train -m`` to the runs.

    Args:
        words: ``key=value``, some with several values (``a,b`` or ``range(0,3)``); ``run_dir`` is the folder of the
            whole sweep; ``hydra.*`` and ``hydra/*`` go to Hydra.

    Raises:
        InputError: A combination is not what ``climseg train`` takes, there is only one, two are the same, or the
            folder holds a sweep already.
    """
    own = [word for word in words if not is_hydra_key(word)]
    given = {word.partition("=")[0]: word for word in own}
    folder = _folder(given.pop("run_dir", None))
    resume = bool(compose("train", [given.pop("resume", "resume=false"), "data.store=any"]).resume)
    overrides = [parse_word("train", word, several=True) for word in given.values()]
    swept = [override for override in overrides if override.is_sweep_override()]
    runs: dict[Path, str] = {}
    for values in itertools.product(*map(_values, swept)):
        chosen = dict(zip((o.key_or_group for o in swept), values, strict=True))
        compose("train", [chosen.get(o.key_or_group, str(o.input_line)) for o in overrides])
        # As Hydra puts it together, from which each run knows its folder.
        name = ",".join(sorted(_as_hydra_writes(word) for word in values))
        run_folder = folder / _folder_name(name)
        if run_folder in runs:
            raise InputError(f"{' '.join(values)} stands twice in the lists of values; give each once.")
        runs[run_folder] = " ".join(values)
    if len(runs) < 2:
        raise InputError(
            "-m makes several runs, but no key has several values; put commas between them, as in "
            "model=tiramisu_small,deeplabv3plus_small."
        )
    if not resume and any((run_folder / name).exists() for run_folder in runs for name in (OUTCOME, "last.ckpt")):
        raise InputError(
            f"{folder} holds a sweep already; choose another run_dir, or go on with it: run_dir={folder} resume=true."
        )
    same_in_all = ",".join(["resume", *(o.key_or_group for o in overrides if o not in swept)])
    settings = [
        *_SETTINGS,
        f"hydra.sweep.dir={_quoted(str(folder))}",
        f"hydra.job.config.override_dirname.exclude_keys=[{same_in_all}]",
        *_hydra_words(words),
    ]
    _check_settings(settings)
    task = [*(str(o.input_line) for o in overrides), f"resume={str(resume).lower()}"]
    return Sweep(folder, runs, [*task, *settings], resume)


def _folder(word: str | None) -> Path:
    """The folder of the sweep, absolute: the runs may start elsewhere."""
    if word is None:
        return Path(f"sweeps/{datetime.now():%Y-%m-%d_%H-%M-%S}").absolute()
    value = compose("train", [word, "data.store=any"]).run_dir
    if value is None:
        return _folder(None)
    folder = Path(str(value)).absolute()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"run_dir={folder} is a file; name a folder.")
    return folder


def _values(override: Override) -> list[str]:
    """One word per value of a key with several."""
    if not override.is_discrete_sweep() or "glob(" in str(override.input_line):
        raise InputError(f"{override.input_line}: expected the values with commas between them.")
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _as_hydra_writes(word: str) -> str:
    override = parse_word("train", word)
    return f"{override.key_or_group}={override.get_value_element_as_str()}"


def _folder_name(differences: str) -> str:
    """The name of a run's folder, from ``model=tiramisu_small,optimizer=adamw``; letters of paths are left out."""
    plain = re.sub(r"[^\w.,=+-]+", "_", differences)
    if plain == differences and len(plain) <= 120:
        return plain
    return f"{plain[:110]}_{sha256(differences.encode()).hexdigest()[:8]}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _hydra_words(words: Sequence[str]) -> list[str]:
    """The words that are for Hydra."""
    found = [word for word in words if is_hydra_key(word)]
    for word in found:
        if word.partition("=")[0].lstrip("+~") in _TAKEN:
            raise InputError(f"{word}: climseg sets this one itself; the folder of the sweep is run_dir=...")
    return found


def _check_settings(settings: Sequence[str]) -> None:
    """Have Hydra read its own settings, before the first run."""
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        try:
            launcher = hydra.compose("train", overrides=list(settings), return_hydra_config=True).hydra.launcher
        except (HydraException, OmegaConfBaseException) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise InputError(f"climseg train -m: {' '.join(lines[:8])}") from error
    if str(launcher.get("_target_")).endswith("SlurmLauncher") and shutil.which("sbatch") is None:
        raise InputError(
            "hydra/launcher=submitit_slurm: there is no sbatch here; start the sweep where Slurm's commands are."
        )


def _launch(sweep: Sweep) -> None:
    """Hand the sweep to Hydra, which calls ``_train`` once per run: here, or in a job."""
    from submitit.core.utils import FailedSubmissionError, UncompletedJobError  # needs a second

    logging.getLogger("submitit").propagate = False  # it has a handler of its own
    GlobalHydra.instance().clear()
    start = hydra.main(config_path=str(conf_folder()), config_name="train", version_base="1.3")(_train)
    with _hydra_command_line(sweep.overrides):
        try:
            start()
        except (FailedSubmissionError, UncompletedJobError) as error:
            raise InputError(f"a job of the sweep: {' '.join(str(error).split())[:500]}") from error


@contextmanager
def _hydra_command_line(overrides: Sequence[str]) -> Iterator[None]:
    """hydra.main reads sys.argv, and prints errors itself unless told otherwise."""
    arguments, full = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = [arguments[0], "--multirun", *overrides]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = arguments
        if full is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full


def _train(configuration: DictConfig) -> None:
    """One run, called by Hydra's launcher in this process or, by submitit, in each task of a job."""
    settings = HydraConfig.get()
    folder = Path(settings.sweep.dir) / _folder_name(settings.job.override_dirname)
    before = read_outcome(folder)
    if before.get("state") == DONE:
        log.info("done before: %s", folder.name)
        return
    words = [*settings.overrides.task, f"run_dir={_quoted(str(folder))}"]
    if os.environ.get("SLURM_RESTART_COUNT"):  # a job that was pre-empted and began again
        words.append("resume=true")
    log.info("run %d: %s", settings.job.num + 1, folder.name)
    began = time.monotonic()
    outcome: dict[str, Any] = {"command": shlex.join(["climseg", "train", *words]), "state": STOPPED}
    try:
        command = [sys.executable, "-m", "climseg", "train", *words]
        outcome |= run_to_end(command, Path(settings.runtime.cwd), _failure_mark(folder))
    finally:
        outcome["seconds"] = before.get("seconds", 0.0) + time.monotonic() - began
        if os.environ.get("SLURM_PROCID", "0") == "0":  # every task of a job comes by here
            write_json(folder / OUTCOME, outcome)


def _failure_mark(folder: Path) -> Path | None:
    """The file by which the tasks of a job of Slurm tell each other that one failed; None where there is one task.

    Else the others would wait for it until their time-out, or for the time that the job has.
    """
    if int(os.environ.get("SLURM_NTASKS", "1")) == 1:
        return None
    attempt = f"{os.environ.get('SLURM_JOB_ID')}_{os.environ.get('SLURM_RESTART_COUNT', '0')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f".failed_{attempt}"


def run_to_end(command: list[str], where: Path, failed: Path | None = None) -> dict[str, Any]:
    """Run a command to its end, and say how it ended; a signal that this process gets goes to it, and it is waited for.

    SIGUSR1, by which a batch system announces the end of a job's time, makes a training save itself and end well; such
    a run is not done. A stop (Ctrl-C, SIGTERM) is passed on and raised.

    Args:
        command: The command.
        where: Its working directory.
        failed: A file that is made when the command fails; when another process made it, the command is killed.
    """
    # A group of its own: Ctrl-C comes once, from here, whether a terminal, a person or a batch system sent it.
    process = subprocess.Popen(command, cwd=where, stdin=subprocess.DEVNULL, process_group=0)
    told: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        told.append(number)
        process.send_signal(number)

    def stop(number: int, frame: object) -> None:
        sys.exit(128 + number)

    # Submitit, where it called us, has handlers of its own, which would start the job again from its beginning.
    handlers = {
        number: signal.signal(number, handler)
        for number, handler in ((signal.SIGUSR1, pass_on), (signal.SIGTERM, stop))
    }
    try:
        code = _wait(process, failed)
    except (KeyboardInterrupt, SystemExit) as stopped:
        _end(process, signal.SIGINT if isinstance(stopped, KeyboardInterrupt) else signal.SIGTERM)
        raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if code == UNFINISHED:
        return {"state": PREEMPTED, "exit_code": code}
    if code != 0:
        _kill_group(process)  # ranks that the first one left behind
        if failed is not None:
            failed.touch()
        return {"state": FAILED, "exit_code": code}
    return {"state": PREEMPTED if told else DONE, "exit_code": 0}


def _wait(process: subprocess.Popen[bytes], failed: Path | None) -> int:
    """The exit code of a command, which is killed when the file comes up."""
    if failed is None:
        return process.wait()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=2)
        if failed.exists():
            _kill_group(process)  # a rank that waits for the others hears no SIGTERM


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Tell a command and its children to stop; asked twice, or when it has ended, kill what is left."""
    try:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait()
    finally:
        _kill_group(process)
        process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
