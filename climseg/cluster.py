"""Where the tasks of a long job run: in this process, in processes of this machine, or on a cluster.

``in_process``, ``local``, ``address`` and ``slurm`` are context managers that yield a :class:`Cluster`;
``conf/cluster/`` names them for the command line. The workers of ``address`` and ``slurm`` must have climseg and see
the same file system.
"""

import logging
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

import cloudpickle
import dask
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, as_completed
from distributed.comm.addressing import get_address_host_port

from climseg.errors import InputError

log = logging.getLogger(__name__)

Payload = TypeVar("Payload")
Item = TypeVar("Item")
Result = TypeVar("Result")

# Seconds in which a running scheduler answers and has a worker.
_ANSWER: Final = 30


class ClusterError(InputError):
    """The cluster failed, not the work: what is done stays, and the same work can go on."""


class Cluster(Protocol):
    """Something that runs tasks."""

    def run(
        self, function: Callable[[Payload, Item], Result], work: Iterable[tuple[Payload, Iterable[Item]]]
    ) -> Generator[Result]:
        """Yield ``function(payload, item)`` for each item of each payload as they are done, in any order.

        Args:
            function: Importable by its name in other processes.
            work: Pairs of a payload and its items. A payload may be large: it is sent once to each worker, and taken
                from ``work`` only when the tasks before it are nearly done. Items are small.

        Raises:
            InputError: What ``function`` raised; no task is running any more then.
            ClusterError: A worker died, or all are gone.
        """
        ...


class _InProcess:
    """One task after the other, here."""

    def run(
        self, function: Callable[[Payload, Item], Result], work: Iterable[tuple[Payload, Iterable[Item]]]
    ) -> Generator[Result]:
        for payload, items in work:
            for item in items:
                yield function(payload, item)


@dataclass(frozen=True)
class _Distributed:
    """The workers of a dask scheduler."""

    client: Client
    on_death: str  # what to say and advise when a worker died

    def run(
        self, function: Callable[[Payload, Item], Result], work: Iterable[tuple[Payload, Iterable[Item]]]
    ) -> Generator[Result]:
        tasks = self._submit(function, work)
        running: set[Future[Any]] = set()
        done = as_completed(loop=self.client.loop)
        try:
            while True:
                for task in islice(tasks, max(0, self._look_ahead() - len(running))):
                    running.add(task)
                    done.add(task)
                if not running:
                    return
                task = next(done)
                running.discard(task)
                yield task.result()
        except ClusterError:
            raise
        except InputError:
            for _ in done:  # the caller may tidy up where they write
                pass
            raise
        except (KilledWorker, CancelledError) as error:
            raise ClusterError(self.on_death) from error
        finally:
            self.client.cancel(list(running))

    def _submit(
        self, function: Callable[[Payload, Item], Result], work: Iterable[tuple[Payload, Iterable[Item]]]
    ) -> Iterator[Future[Any]]:
        for payload, items in _ahead(work):
            sent = self._send(payload)
            for item in items:
                yield self.client.submit(_call, function, sent, item, pure=False)

    def _send(self, payload: object) -> Future[Any]:
        """Give a payload to all workers; as bytes, because distributed would look into it."""
        try:
            sent: Future[Any] = self.client.scatter(cloudpickle.dumps(payload), broadcast=True, hash=False)
        except OSError as error:  # a worker died meanwhile
            raise ClusterError(self.on_death) from error
        return sent

    def _look_ahead(self) -> int:
        """How many tasks keep the workers busy that are there now; they may come and go."""
        workers: int = sum(self.client.nthreads().values())
        return 2 * max(1, workers)


def _ahead(work: Iterable[Item]) -> Iterator[Item]:
    """The same, each one made while the tasks of the one before it are running."""
    source, pool = iter(work), ThreadPoolExecutor(1)
    try:
        coming = pool.submit(next, source, None)
        while (found := coming.result()) is not None:
            coming = pool.submit(next, source, None)
            yield found
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _call(function: Callable[[Payload, Item], Result], sent: bytes, item: Item) -> Result:
    return function(_load(sent), item)


@lru_cache(maxsize=1)
def _load(sent: bytes) -> Any:
    return cloudpickle.loads(sent)


@contextmanager
def in_process() -> Iterator[Cluster]:
    """Run the tasks here, one after the other."""
    yield _InProcess()


def for_tasks(cluster: Callable[[], AbstractContextManager[Cluster]], count: int) -> AbstractContextManager[Cluster]:
    """The cluster, or this process where there is one task alone: starting processes takes seconds."""
    return cluster() if count > 1 else in_process()


@contextmanager
def local(workers: int = 2) -> Iterator[Cluster]:
    """Run the tasks in processes of this machine, one task at a time each.

    Args:
        workers: Number of processes; 0 and 1 run the tasks in this one.

    Raises:
        ClusterError: The number is negative, or the processes cannot be started.
    """
    if workers < 0:
        raise ClusterError(f"cluster.workers={workers}: expected 0 or more.")
    if workers < 2:
        yield _InProcess()
        return
    settings = {
        "distributed.scheduler.allowed-failures": 0,  # what took too much memory once would do so again
        "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
    }
    with dask.config.set(settings), ExitStack() as stack:
        try:
            with _interrupt_later():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,  # reading netCDF holds a lock of the whole process
                    memory_limit=0,
                    scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                    silence_logs=logging.CRITICAL,
                )
        except (OSError, RuntimeError) as error:
            raise ClusterError(f"no worker process could be started ({error}); set cluster.workers=1.") from error
        stack.enter_context(cluster)
        client = stack.enter_context(Client(cluster, set_as_default=False))
        _prepare_workers(client)
        yield _Distributed(
            client,
            "A worker process died, most likely because memory ran out. What is done is kept: start the same command "
            f"again with fewer processes, such as cluster.workers={max(1, workers // 2)}.",
        )


@contextmanager
def address(address: str) -> Iterator[Cluster]:
    """Run the tasks on the workers of a dask scheduler that is running already.

    Args:
        address: Such as ``tcp://10.0.0.1:8786``.

    Raises:
        ClusterError: The scheduler does not answer, or has no worker.
    """
    with ExitStack() as stack:
        try:
            get_address_host_port(address, strict=True)  # a Client with a malformed one waits for a minute
            client = stack.enter_context(Client(address, timeout=_ANSWER, set_as_default=False))
            client.wait_for_workers(1, timeout=_ANSWER)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"cluster.address={address}: no dask scheduler with a worker answers there ({error}); start one, or "
                "use cluster=local."
            ) from error
        _prepare_workers(client)
        yield _Distributed(
            client,
            f"The workers of {address} died or left, for example because memory ran out. What is done is kept: start "
            "the same command again, with more memory for each worker.",
        )


@contextmanager
def slurm(
    *,
    jobs: int,
    cores: int,
    memory: str,
    walltime: str,
    queue: str | None = None,
    account: str | None = None,
    interface: str | None = None,
    directives: Sequence[str] = (),
    without: Sequence[str] = (),
    prologue: Sequence[str] = (),
) -> Iterator[Cluster]:
    """Run the tasks in jobs of the batch system Slurm, which this process submits and ends.

    Args:
        jobs: Number of jobs.
        cores: Worker processes in each job, one core each.
        memory: Of each job, such as ``96GB``.
        walltime: Of each job, such as ``04:00:00``.
        queue: The partition.
        account: The budget.
        interface: Network interface between the workers and this process, such as ``ib0``.
        directives: Further lines for sbatch, such as ``--constraint=cpu``.
        without: Lines that the batch system does not take, such as ``--mem``.
        prologue: Shell commands before the workers start, such as ``module load Python``.

    Raises:
        ClusterError: There is no Slurm, or it refuses the jobs.
    """
    if shutil.which("sbatch") is None:
        raise ClusterError("cluster=slurm: there is no command sbatch here; run it on a login node, or use another.")
    # Here, because it writes ~/.config/dask/jobqueue.yaml when it is imported.
    from dask_jobqueue.slurm import SLURMCluster

    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(
                SLURMCluster(
                    queue=queue,
                    account=account,
                    cores=cores,
                    processes=cores,
                    memory=memory,
                    walltime=walltime,
                    interface=interface,
                    job_name="climseg",
                    job_extra_directives=list(directives),
                    job_directives_skip=list(without),
                    job_script_prologue=list(prologue),
                    scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                )
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(f"cluster=slurm: {' '.join(str(error).split())}") from error
        _check_job(cluster.job_script())
        cluster.scale(jobs=jobs)
        client = stack.enter_context(Client(cluster, set_as_default=False))
        log.info("waiting for the first of %d jobs", jobs)
        client.wait_for_workers(1)
        _prepare_workers(client)
        yield _Distributed(
            client,
            "The workers died or left, most likely because memory or time ran out. What is done is kept: start the "
            "same command again, with more cluster.memory, fewer cluster.cores or more cluster.walltime.",
        )


def _check_job(script: str) -> None:
    """Ask Slurm whether it would take a job; when it is submitted, its refusal would go unheard."""
    asked = subprocess.run(["sbatch", "--test-only"], input=script, text=True, capture_output=True, check=False)
    if asked.returncode != 0:
        reason = " ".join((asked.stderr or asked.stdout).split())
        raise ClusterError(
            f"cluster=slurm: Slurm refuses the job ({reason}); set cluster.account, cluster.queue, cluster.directives "
            "and cluster.without as your centre asks."
        )


def _prepare_workers(client: Client) -> None:
    client.forward_logging("climseg")
    # Ctrl-C reaches all processes of a terminal; this one ends the workers.
    client.run(_ignore_interrupt)


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the block: a cluster that is half started cannot be closed."""
    if threading.current_thread() is not threading.main_thread():  # there it has no effect anyway
        yield
        return
    wanted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: wanted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if wanted:
        raise KeyboardInterrupt


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
