"""Runs ``climseg train`` in forks of one process that has loaded everything, because loading takes most of the time.

Usage: python forks.py JOBS.json   (a list of {"words", "ranks", "kill_at", "signal"}); writes the exit codes, negative
for a signal, as one JSON list per job. Without "ranks" above 1 a job has one process; others are told of each other as
torchrun does. "kill_at" is a batch, counted from the start of that process, in whose middle the signal is sent: SIGKILL
to all ranks or to those of "killed", others to the first.
"""

import json
import os
import signal
import socket
import sys

from climseg.cli.main import run
from climseg.training.task import SegmentationTask


def main() -> None:
    jobs = json.loads(open(sys.argv[1]).read())  # noqa: PTH123, SIM115
    codes = [_run(job) for job in jobs]
    print("\n" + json.dumps(codes))  # noqa: T201


def _run(job: dict[str, object]) -> list[int]:
    ranks = int(str(job.get("ranks", 1)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            _child(job, rank, ranks, port)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return [os.waitstatus_to_exitcode(status) for status in statuses]


def _child(job: dict[str, object], rank: int, ranks: int, port: int) -> None:
    if ranks > 1:
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "test",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    kill_at = job.get("kill_at")
    number = int(str(job.get("signal", int(signal.SIGKILL))))
    killed = job.get("killed", range(ranks) if number == signal.SIGKILL else [0])
    batches = 0
    step = SegmentationTask.training_step

    def training_step(task: SegmentationTask, batch: object, batch_idx: int) -> object:
        nonlocal batches
        if batches == kill_at and rank in killed:  # type: ignore[operator]
            os.kill(os.getpid(), number)
        batches += 1
        return step(task, batch, batch_idx)  # type: ignore[arg-type]

    SegmentationTask.training_step = training_step  # type: ignore[method-assign,assignment]
    code = 1
    try:
        code = run([str(word) for word in job["words"]])  # type: ignore[attr-defined]
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
