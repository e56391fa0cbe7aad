#!/usr/bin/env python3
"""Makes every sync take five seconds, and then for ever, under a service that has more to do than it may.

    slow_disk.py --binary KEDGE [--long]

The calls are delayed from outside, by a tracer. Health has to be answered within 100 ms all the time, chunks
for which there is no room have to be refused at once with Retry-After, nothing that was acknowledged may be
lost, and once the disk is itself again, so is the service.
"""

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from proof import (
    SMALL_CHUNKS, Skipped, Stage, arguments, expect, percentile, run_proof, started)
from check import Findings, ServiceCheck
from native_client import CHUNK_SIZE, NativeClient, content, sha256
from nodes import Node, wait_for
from patient import Crowd, now
from processes import Child

HEALTH_SECONDS = 0.1
RECOVERY_SECONDS = 10
REFUSAL_SECONDS = 1.0
WRITES = 8
CROWD, OFFERS = 12, 16


class SlowDisk:
    """Delays each sync of a process while it is in force; 0 seconds are none."""

    def __init__(self, stage: Stage, node: Node, seconds: float) -> None:
        assert node.child is not None
        self._log = stage.directory / "tracer.log"
        calls = "fdatasync,fsync,sync_file_range"
        self._command = [
            "strace", "-f", "-qq", "-e", "signal=none", "-e", f"trace={calls}",
            "-e", f"inject={calls}:delay_enter={int(seconds * 1e6)}", "-o", "/dev/null",
            "-p", str(node.child.pid)]
        self._node = node

    @contextlib.contextmanager
    def in_force(self):  # noqa: ANN201
        """From here to the end of the block."""
        child = Child(self._command, self._log, last_signal=signal.SIGTERM)
        try:
            child.wait_until("the tracer is attached", self._is_traced, 10)
            yield
        finally:
            child.end(signal.SIGTERM)

    def _is_traced(self) -> bool:
        assert self._node.child is not None
        status = open(f"/proc/{self._node.child.pid}/status", encoding="ascii").read()
        return "TracerPid:\t0\n" not in status


class Health(threading.Thread):
    """Asks for the health twenty times a second."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._is_over = threading.Event()
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        """Asks, each time on a connection of its own."""
        while not self._is_over.wait(0.05):
            begun = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            with contextlib.closing(connection):
                try:
                    connection.request("GET", "/healthz")
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status != 200:
                        self.failures.append(str(answer.status))
                except (OSError, http.client.HTTPException) as error:
                    self.failures.append(repr(error))
            self.seconds.append(time.monotonic() - begun)

    def stop(self) -> None:
        """Ends it."""
        self._is_over.set()
        self.join()


class Refusals(threading.Thread):
    """Offers a chunk all the time and notes what becomes of it."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        client = NativeClient(port)
        name = f"offer-{number}"
        self._data = content(name, CHUNK_SIZE)
        self._path = f"/uploads/sessions/{client.create(name, CHUNK_SIZE)}/chunks/0"
        client.close()
        self._is_over = threading.Event()
        self.shed = self.silent = 0
        self.slowest = 0.0

    def run(self) -> None:
        """Offers one after the other."""
        while not self._is_over.wait(0.3):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            begun = time.monotonic()
            with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("PUT", self._path, body=self._data, headers={
                    "Content-Range": f"bytes 0-{CHUNK_SIZE - 1}/{CHUNK_SIZE}",
                    "X-Chunk-Hash": f"sha256={sha256(self._data)}"})
                answer = connection.getresponse()
                answer.read()
                if answer.status in (429, 503):
                    self.shed += 1
                    self.silent += answer.getheader("Retry-After") is None
                    self.slowest = max(self.slowest, time.monotonic() - begun)

    def stop(self) -> None:
        """Ends it."""
        self._is_over.set()


class Trial:
    """One disk that is slow, and a service on it."""

    def __init__(self, stage: Stage, name: str, delay: float, seconds: float) -> None:
        self._stage, self._name, self._delay, self._seconds = stage, name, delay, seconds

    def run(self) -> str:
        """Slow for a while, then as before."""
        stage = self._stage
        node = started(stage.node(*SMALL_CHUNKS, "--limits-max-concurrent-writes", str(WRITES)))
        crowd, health = Crowd(self._name, node.port, CROWD), Health(node.port)
        for uploader in crowd.uploaders:
            uploader.client.timeout = self._seconds + 60  # the disk must not outlast it
        offers = [Refusals(node.port, number) for number in range(OFFERS)]
        crowd.start()
        time.sleep(1)
        with SlowDisk(stage, node, self._delay).in_force():
            for thread in (health, *offers):
                thread.start()
            begun = now()
            time.sleep(self._seconds)
            acknowledged = sum(moment > begun for _, moment in crowd.history.moments)
            health.stop()
            for offer in offers:
                offer.stop()
        ended = now()
        recovered = wait_for(lambda: sum(m > ended for _, m in crowd.history.moments) >= 50, RECOVERY_SECONDS)
        seconds = (now() - ended) / 1e9
        crowd.finish()
        for offer in offers:
            offer.join()
        worst = max(health.seconds)
        shed, silent = sum(offer.shed for offer in offers), sum(offer.silent for offer in offers)
        slowest = max(offer.slowest for offer in offers)
        text = (
            f"{self._name}: health within {worst * 1000:.0f} ms (95 %: {percentile(health.seconds, 0.95) * 1000:.0f}),"
            f" {shed} refused within {slowest:.1f} s, back after {seconds:.1f} s")
        print(f"  {text}; {acknowledged} acknowledgements meanwhile", flush=True)
        expect(not health.failures, f"{self._name}: health failed: {health.failures[:3]}")
        # One in twenty may wait for the machine, which has two processors and a tracer.
        is_prompt = percentile(health.seconds, 0.95) <= HEALTH_SECONDS and worst <= 10 * HEALTH_SECONDS
        expect(is_prompt, f"{text}: health is too slow")
        expect(shed > 0, f"{self._name}: nothing was refused")
        expect(slowest <= REFUSAL_SECONDS, f"{text}: a refusal that comes late is no help")
        expect(silent == 0, f"{self._name}: {silent} refusals without Retry-After")
        expect(recovered, f"{text}: that is no recovery")
        self._check(node, crowd)
        node.kill()
        return text

    def _check(self, node: Node, crowd: Crowd) -> None:
        findings = Findings()
        for text in crowd.lost:
            findings.promise(False, text)
        client = NativeClient(node.port)
        check = ServiceCheck(client, now(), findings)
        check.files(crowd.history)
        check.sessions(crowd.history)
        client.close()
        expect(not findings.violations, f"{self._name}: broken promises: {findings.violations[:5]}")


def play(stage: Stage) -> str:
    """Slow and hung; what they showed."""
    may_trace = shutil.which("strace") is not None and subprocess.run(
        ["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    if not may_trace:
        raise Skipped("tracing", "no strace, or not permitted")
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # a share of the machine for what is measured in milliseconds
    times = (60.0, 90.0) if stage.options.long else (7.0, 5.0)
    slow = Trial(stage, "5 s for a sync", 5, times[0]).run()
    hung = Trial(stage, "a disk that hangs", 3600, times[1]).run()
    return f"{slow}; {hung}"


if __name__ == "__main__":
    sys.exit(run_proof("slow-disk", arguments(__doc__).parse_args(), play))
