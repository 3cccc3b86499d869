"""``climseg COMMAND [key=value ...]``: finds the command, composes its configuration, turns mistakes into sentences."""

import errno
import importlib
import logging
import os
import signal
import sys
import traceback
import warnings
from typing import Final

from hydra.errors import InstantiationException

from climseg.cli.configuration import MULTIRUN, compose
from climseg.cli.help import command_help, general_help
from climseg.errors import InputError, near_matches

# In the order of the work; each is a module climseg.cli.NAME with run(configuration), and a file conf/NAME.yaml.
COMMANDS: Final = (
    "synthesize",
    "inspect",
    "label",
    "prepare",
    "stage",
    "train",
    "evaluate",
    "predict",
    "plot",
    "benchmark",
)

# Variables in which schedulers number the processes.
_RANKS: Final = ("RANK", "SLURM_PROCID", "LOCAL_RANK")

# What the operating system says of a place that a user named.
_USER_ERRNOS: Final = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
)


def main() -> None:
    """Run one command; the exit code is 0 for success, 2 for a mistake that the user can mend, 1 for a bug."""
    # A batch system's "stop" unwinds like an error, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    _quiet_libraries()
    try:
        _dispatch(arguments)
    except KeyboardInterrupt:
        print("climseg: interrupted", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:  # the reader of our output left, as in climseg --help | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BaseException as error:
        message = _mistake(error)
        if message is None:
            raise
        if os.environ.get("CLIMSEG_TRACEBACK"):
            traceback.print_exc()
        sys.stderr.write(f"climseg: {message}\n")  # in one piece: other processes of a training may speak too
        return 2
    return 0


def _dispatch(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(general_help(COMMANDS))  # noqa: T201
        return
    command, *rest = arguments
    if command == "--version":
        print(f"climseg {importlib.import_module('climseg').__version__}")  # noqa: T201
        return
    if command not in COMMANDS:
        raise InputError(
            f"there is no command {command!r}{near_matches(command, COMMANDS) or '.'} Commands: {', '.join(COMMANDS)}. "
            "See climseg --help."
        )
    if any(a in ("--help", "-h") for a in rest):
        print(command_help(command, rest))  # noqa: T201
        return
    _check_ranks()
    if command == "train" and any(word in MULTIRUN for word in rest):
        importlib.import_module("climseg.cli.sweep").run([word for word in rest if word not in MULTIRUN])
        return
    configuration = compose(command, _without_flags(rest))
    importlib.import_module(f"climseg.cli.{command}").run(configuration)


def _check_ranks() -> None:
    """Refuse numbers of a process that are none: Lightning reads them when it is imported."""
    for name in _RANKS:
        value = os.environ.get(name, "0")
        if not value.isdecimal():
            raise InputError(
                f"{name}={value!r} in the environment: expected the whole number of this process; unset it."
            )


def _without_flags(words: list[str]) -> list[str]:
    """The flags ``--dry-run`` and ``--dry run`` as the key that they stand for."""
    found: list[str] = []
    for word in words:
        if word == "run" and found[-1:] == ["--dry"]:
            found[-1] = "--dry-run"
        else:
            found.append(word)
    return ["dry_run=true" if word == "--dry-run" else word for word in found]


def _mistake(error: BaseException) -> str | None:
    """The sentence for a user's mistake, or None for a bug."""
    if isinstance(error, InstantiationException) and error.__cause__ is not None:
        # Values of the configuration that a library's class does not take: a device that is absent, a negative rate.
        where = getattr(error, "full_key", "") or str(error).rpartition("full_key: ")[2]
        return _mistake(error.__cause__) or f"{where}: {' '.join(str(error.__cause__).split())}"
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _USER_ERRNOS:
        return f"{error.filename or 'the output'}: {error.strerror}."
    return None


def _quiet_libraries() -> None:
    """Show climseg's own messages and leave out hints of libraries that a user of this program cannot follow."""
    # The other processes of a training by torchrun, srun or the command itself stay silent.
    first = all(os.environ.get(name, "0") == "0" for name in _RANKS)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # remarks of DDP on settings that are as they are meant to be
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("climseg").setLevel(logging.INFO if first else logging.WARNING)
    for name in ("distributed", "dask_jobqueue", "tornado", "asyncio"):  # each worker process that comes and goes
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    logging.getLogger("pint").setLevel(logging.ERROR)  # "Redefining '%'", from cf-xarray's own unit definitions
    for module in ("pytorch_lightning", "lightning_fabric", "torch", "zarr", "xarray.conventions"):
        warnings.filterwarnings("ignore", module=module)
