#!/usr/bin/env python3
"""Takes descriptors, threads and memory away from a service that is busy.

    limits.py --binary KEDGE [--long]

It gets 64 descriptors more than it has at rest, for three times as many connections; no thread more than it has;
and 256 MiB of memory, for large bodies. Each time it must live on, say little in its log, keep every promise, and
be itself again when the pressure is gone.
"""

import contextlib
import os
import resource
import secrets
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from proof import SMALL_CHUNKS, Skipped, Stage, arguments, expect, run_proof, started
from check import Findings, ServiceCheck
from native_client import NativeClient
from nodes import Node, wait_for
from patient import Crowd, now

DESCRIPTORS = 64
MEMORY = 256 << 20
RECOVERY_SECONDS = 10
# Lines in the log: so many at once, and so many a second after that.
LINES, LINES_A_SECOND = 20, 1


class LimitedNode(Node):
    """A node that another program starts."""

    def start_with(self, prefix: Sequence[str | Path]) -> None:
        """From now on it is started so."""
        self._command = [*map(str, prefix), *self._command]


class Group:
    """A control group with one limit, of either version of the interface; gone with its processes."""

    def __init__(self, stage: Stage, controller: str, limit_names: tuple[str, str]) -> None:
        root = Path("/sys/fs/cgroup")
        is_new = (root / "cgroup.controllers").exists()
        parent = root if is_new else root / controller
        if is_new and controller not in (root / "cgroup.subtree_control").read_text().split():
            raise Skipped("cgroups", f"the control groups offer no {controller}")
        self.path = parent / f"kedge-{secrets.token_hex(4)}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise Skipped("cgroups", f"control groups: {error.strerror}") from error
        stage.cleanup.callback(self._remove)
        self._limit = self.path / (limit_names[0] if is_new else limit_names[1])

    @property
    def prefix(self) -> list[str | Path]:
        """Starts a program in it."""
        return ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.path]

    def limit(self, value: int | str) -> None:
        """Changes the limit."""
        self._limit.write_text(str(value))

    def _remove(self) -> None:
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


class Trial:
    """A service under one kind of pressure."""

    def __init__(self, stage: Stage, name: str, *options: str) -> None:
        self.name = name
        self._seconds = 30.0 if stage.options.long else 3.0
        self.node = LimitedNode(stage.binary, stage.directory, [*SMALL_CHUNKS, *options], {})
        stage.cleanup.callback(self.node.kill)

    def run(self, connections: int, uploaders: int, pressure: contextlib.AbstractContextManager[None]) -> str:
        """Presses, looks, lets go, looks; what it showed."""
        crowd = Crowd(self.name, self.node.port, uploaders)
        for uploader in crowd.uploaders:
            uploader.client.timeout = 60
        lines, begun = self._line_count(), time.monotonic()
        with pressure, contextlib.ExitStack() as held:
            for _ in range(connections):
                with contextlib.suppress(OSError):
                    held.enter_context(socket.create_connection(("127.0.0.1", self.node.port), timeout=2))
            crowd.start()
            time.sleep(self._seconds)
        ended = now()
        self._expect_alive("under pressure")
        recovered = wait_for(lambda: sum(m > ended for _, m in crowd.history.moments) >= 20, RECOVERY_SECONDS)
        seconds = (now() - ended) / 1e9
        said, allowed = self._line_count() - lines, LINES + LINES_A_SECOND * (time.monotonic() - begun)
        expect(recovered, f"{self.name}: no recovery within {RECOVERY_SECONDS} s")
        crowd.finish()
        self._expect_alive("afterwards")
        expect(said <= allowed, f"{self.name}: {said} lines in the log, {allowed:.0f} are allowed")
        promises = self._check(crowd)
        return f"{self.name}: {promises} promises kept, {said} lines in the log, back after {seconds:.1f} s"

    def _line_count(self) -> int:
        # Each request has its line; what counts is what is said of the trouble.
        lines = self.node.log.read_text(errors="replace").splitlines()
        return sum('"level":"info"' not in line and '"level":"notice"' not in line for line in lines)

    def _expect_alive(self, when: str) -> None:
        child = self.node.child
        expect(child is not None and child.is_running, f"{self.name}: it died {when}: {child and child.complaint()}")

    def _check(self, crowd: Crowd) -> int:
        findings = Findings()
        for text in crowd.lost:
            findings.promise(False, text)
        client = NativeClient(self.node.port)
        check = ServiceCheck(client, now(), findings)
        check.files(crowd.history)
        check.sessions(crowd.history)
        client.close()
        expect(not findings.violations, f"{self.name}: broken promises: {findings.violations[:5]}")
        return findings.promises


def descriptors(stage: Stage) -> str:
    """So few more than it has that most connections find none, which it could not know at its start."""
    trial = Trial(stage, "descriptors")
    started(trial.node)
    assert trial.node.child is not None
    pid = trial.node.child.pid
    limit = len(os.listdir(f"/proc/{pid}/fd")) + DESCRIPTORS
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
    return trial.run(3 * DESCRIPTORS, 8, contextlib.nullcontext())


def threads(stage: Stage) -> str:
    """Not one more than it has when it is at rest."""
    trial = Trial(stage, "threads")
    group = Group(stage, "pids", ("pids.max", "pids.max"))
    trial.node.start_with(group.prefix)
    started(trial.node)

    @contextlib.contextmanager
    def pressure():  # noqa: ANN202
        assert trial.node.child is not None
        group.limit(len(os.listdir(f"/proc/{trial.node.child.pid}/task")))
        yield
        group.limit("max")

    return trial.run(50, 24, pressure())


def memory(stage: Stage) -> str:
    """Little, for more connections and bodies than there are places."""
    trial = Trial(stage, "memory", "--limits-max-concurrent-writes", "64")
    group = Group(stage, "memory", ("memory.max", "memory.limit_in_bytes"))
    group.limit(MEMORY)
    trial.node.start_with(group.prefix)
    started(trial.node)

    @contextlib.contextmanager
    def pressure():  # noqa: ANN202
        with contextlib.ExitStack() as held:
            for number in range(150):
                with contextlib.suppress(OSError):
                    held.enter_context(large_body(trial.node.port, number))
            yield

    return trial.run(200, 8, pressure())


def large_body(port: int, number: int) -> socket.socket:
    """A connection that has sent the most of a large file and holds on."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=2)
    head = (
        f"POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {8 << 20}\r\n\r\n")
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionError):
        connection.send(head.encode() + bytes([number % 256]) * (2 << 20))
    return connection


def play(stage: Stage) -> str:
    """All of them; what they showed. Without control groups, all that can be shown without."""
    report, skipped = [], None
    for trial in (descriptors, threads, memory):
        try:
            report.append(trial(stage))
            print(f"  {report[-1]}", flush=True)
        except Skipped as error:
            skipped = error
    if skipped is not None:
        raise skipped
    return "; ".join(report)


if __name__ == "__main__":
    sys.exit(run_proof("limits", arguments(__doc__).parse_args(), play))
