import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from climseg import isolated
from climseg.errors import InputError
from climseg.sources.paths import file_format


def test_a_call_returns_what_the_function_returns() -> None:
    assert isolated.call(pow, 2, 10) == 1024


def test_calls_run_in_one_other_process() -> None:
    first = isolated.call(os.getpid)
    assert first != os.getpid()
    assert isolated.call(os.getpid) == first


def test_what_the_function_raises_reaches_the_caller_and_the_helper_stays(tmp_path: Path) -> None:
    helper = isolated.call(os.getpid)
    with pytest.raises(ValueError, match="invalid literal"):
        isolated.call(int, "x")
    (tmp_path / "a.nc").touch()
    with pytest.raises(InputError, match=r"a\.nc: is empty"):
        isolated.call(file_format, str(tmp_path / "a.nc"))
    assert isolated.call(os.getpid) == helper


@pytest.mark.parametrize(
    ("death", "said"), [((os._exit, 3), "exit status 3"), ((os.abort,), f"signal {int(signal.SIGABRT)}")]
)
def test_a_helper_that_dies_is_told_and_the_next_call_has_a_new_one(death: tuple[Any, ...], said: str) -> None:
    helper = isolated.call(os.getpid)
    with pytest.raises(isolated.HelperDiedError, match=f"^{said}$"):
        isolated.call(*death)
    assert isolated.call(os.getpid) != helper


def test_a_helper_that_was_killed_between_two_calls_is_replaced() -> None:
    helper = isolated.call(os.getpid)
    os.kill(helper, signal.SIGKILL)
    while isolated._first._process is not None and isolated._first._process.poll() is None:
        time.sleep(0.01)
    assert isolated.call(pow, 2, 3) == 8


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_results_for_many_items_keep_their_order_and_a_death_costs_its_own_item_alone(processes: int) -> None:
    items = ["6 * 7", "__import__('os')._exit(3)", "'b'", "'c'", "'d'"]
    answer, death, *rest = isolated.call_each(eval, items, processes)
    assert (answer, *rest) == (42, "b", "c", "d")
    assert isinstance(death, isolated.HelperDiedError)


def test_calls_of_many_threads_get_their_own_answers() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: isolated.call(pow, n, 2), range(100))) == [n * n for n in range(100)]


def test_what_a_library_prints_does_not_get_between_the_messages() -> None:
    assert isolated.call(os.write, 1, b"ECCODES ERROR") == 13
    assert isolated.call(pow, 2, 4) == 16


def test_large_messages_pass_both_ways() -> None:
    size = 3_000_000
    assert isolated.call(len, bytes(size)) == size
    assert isolated.call(bytes, size) == bytes(size)


@contextmanager
def interrupted_soon() -> Iterator[None]:
    """A Ctrl-C while the block waits."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_after_an_interrupted_call_the_next_one_gets_its_own_answer() -> None:
    isolated.call(os.getpid)  # the helper has started
    with pytest.raises(KeyboardInterrupt), interrupted_soon():
        isolated.call(time.sleep, 60)
    assert isolated.call(pow, 3, 2) == 9


def _answer(end: Connection) -> None:
    end.send([isolated.call(os.getpid), isolated.call(pow, 3, 3)])


def _ask_from_a_forked_process() -> list[Any]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_answer, args=(there,))
    process.start()
    try:
        assert here.poll(60), "the forked process hangs"
        return list(here.recv())
    finally:
        process.kill()
        process.join()


def test_a_forked_process_has_a_helper_of_its_own() -> None:
    helper = isolated.call(os.getpid)
    other, answer = _ask_from_a_forked_process()
    assert answer == 27
    assert other not in (helper, os.getpid())
    assert isolated.call(os.getpid) == helper


def test_a_process_forked_while_another_thread_waits_for_its_answer_does_not_hang() -> None:
    thread = threading.Thread(target=isolated.call, args=(time.sleep, 1.0))
    thread.start()
    while not isolated._first._lock.locked():
        time.sleep(0.001)
    assert _ask_from_a_forked_process()[1] == 27
    thread.join()
    assert isolated.call(pow, 2, 5) == 32


def test_the_helper_ends_with_the_program_that_started_it() -> None:
    program = "import os; from climseg import isolated; print(isolated.call(os.getpid))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    status = Path(f"/proc/{int(done.stdout)}/status")
    for _ in range(500):
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.02)
    raise AssertionError("the helper is still there")
