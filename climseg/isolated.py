"""Calls in a helper process of this program, for libraries in C that a damaged file can bring down.

ecCodes ends the process with a signal for some damaged GRIB headers, and HDF5 may. Here only the helper dies: the
caller gets :class:`HelperDiedError`, and the next call starts a new helper. It is a plain Python process that talks
through its standard input and output, so it works from scripts, notebooks, threads and worker processes alike, and it
ends when the caller does.
"""

import contextlib
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Final

# Each message: its length, then a pickle.
_LENGTH: Final = struct.Struct(">Q")
# Bytes that a helper may take: several times what a message on the finest grid takes. Some damaged headers ask for all.
_MEMORY: Final = 2 * 2**30


class HelperDiedError(Exception):
    """The helper process ended within a call: the file at hand is damaged in a way that its library cannot bear."""


class Helper:
    """One helper process, started with the first call and again after it has died; calls wait for each other."""

    def __init__(self) -> None:
        self._start_anew()
        # A forked process inherits the pipes of its parent's helper, and the lock of a call that another thread is in.
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function(*arguments)`` in the helper.

        Args:
            function: A function at the top of a module that is importable by name.
            *arguments: Anything that pickles.

        Returns:
            What the function returns.

        Raises:
            HelperDiedError: The helper ended in the call.
            Exception: What the function raised.
        """
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, (function, arguments))
                ok, value = _receive(process.stdout)
            except (BrokenPipeError, EOFError) as error:
                code = process.wait()
                self._process = None
                raise HelperDiedError(f"signal {-code}" if code < 0 else f"exit status {code}") from error
            except BaseException:  # Ctrl-C: an answer still to come must not become that of the next call
                process.kill()
                process.wait()
                self._process = None
                raise
        if not ok:
            raise value
        return value

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}
            # Memory that was never written holds no zeros by chance: a file whose damage leads HDF5 there brings down
            # the helper, which looks at it first, and not, half of the time, the caller, which reads it later.
            environment["GLIBC_TUNABLES"] = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
            self._process = subprocess.Popen(
                [sys.executable, "-m", "climseg.isolated"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what the C libraries say of damaged files
                env=environment,
                start_new_session=True,  # Ctrl-C is the caller's
            )
        return self._process


_first = Helper()
_others: list[Helper] = []


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in this process's helper; see :meth:`Helper.call`."""
    return _first.call(function, *arguments)


def call_each(function: Callable[[Any], Any], items: list[Any], processes: int) -> list[Any]:
    """Call a function for every item, in the order of the items, with several helpers side by side.

    Args:
        function: As for :meth:`Helper.call`, with one argument.
        items: Its arguments.
        processes: At most so many helpers.

    Returns:
        The results; for an item whose call ended the helper, the :class:`HelperDiedError` itself.
    """
    count = max(1, min(processes, len(items)))
    while len(_others) < count - 1:
        _others.append(Helper())
    helpers = [_first, *_others][:count]

    def share(number: int) -> list[Any]:
        return [_call_or_died(helpers[number], function, item) for item in items[number::count]]

    if count == 1:
        return share(0)
    with ThreadPoolExecutor(count) as threads:
        shares = list(threads.map(share, range(count)))
    return [shares[i % count][i // count] for i in range(len(items))]


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End this process, the helper, when a block takes longer: a library in C that loops is not ended otherwise.

    Args:
        seconds: Of work of the processor, so that a slow disk or a busy machine does no harm.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _call_or_died(helper: Helper, function: Callable[..., Any], item: Any) -> Any:
    try:
        return helper.call(function, item)
    except HelperDiedError as died:
        return died


def _send(pipe: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def _serve() -> None:
    """The helper: answer calls until the caller closes the pipe."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most), most))
    # A C library that prints must not do so between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, function(*arguments))
        except Exception as error:
            answer = (False, error)
        with contextlib.suppress(BrokenPipeError):
            _send(answers, answer)


if __name__ == "__main__":
    _serve()
