#!/usr/bin/env python3
"""Kills a PostgreSQL during uploads and promotes its standby, and counts what that cost.

    failover.py --binary KEDGE [--long]

A service with two hosts in its metadata address is kept busy by six uploaders. Its database is killed for
good, a standby is promoted, and everything that was acknowledged by either is asked for. With a synchronous
standby not one promise may be broken, and no half minute passes without an acknowledgement. With an
asynchronous one the loss is printed as a number; files and sessions that are there must be right. A standby
that had stopped to follow shows that the count can see a loss.
"""

import sys
import time

from proof import SMALL_CHUNKS, Stage, arguments, expect, run_proof, started, use_memory
from check import Findings, ServiceCheck
from native_client import NativeClient
from patient import Crowd, now
from postgres import PostgresServer, PostgresStandby

RECOVERY_SECONDS = 30


class Failover:
    """One failover; afterwards it can be asked what it cost."""

    def __init__(self, stage: Stage, seed: str, seconds: float) -> None:
        self._seconds = seconds
        self._primary = PostgresServer()
        stage.cleanup.callback(self._primary.stop)
        self._standby = PostgresStandby(self._primary)
        stage.cleanup.callback(self._standby.stop)
        hosts = ",".join(f"127.0.0.1:{port}" for port in (self._primary.port, self._standby.port))
        url = f"postgresql://kedge@{hosts}/kedge"
        self._node = stage.node(*SMALL_CHUNKS, "--metadata", url)
        stage.cleanup.callback(self._node.kill)
        self._crowd = Crowd(seed, self._node.port, 6)
        self.silence = 0.0
        self.findings = Findings()

    def run(self, *, is_synchronous: bool, lags: bool = False) -> None:
        """Uploads, kills, promotes, goes on, and counts."""
        if is_synchronous:
            self._standby.make_synchronous()
        started(self._node)
        self._crowd.start()
        time.sleep(self._seconds)
        if lags:
            self._standby.stop_following()
            time.sleep(1)
        killed = now()
        self._primary.kill()
        self._standby.promote()
        time.sleep(self._seconds)
        self._crowd.finish()
        self.silence = self._crowd.longest_silence(killed)
        self._count()

    def _count(self) -> None:
        history = self._crowd.history
        for text in self._crowd.lost:
            self.findings.promise(False, text)
        client = NativeClient(self._node.port)
        check = ServiceCheck(client, now(), self.findings)
        check.files(history)
        check.sessions(history)
        client.close()


def play(stage: Stage) -> str:
    """All three; what they showed."""
    rounds = 5 if stage.options.long else 1
    seconds = 10.0 if stage.options.long else 1.0
    report = []
    for kind in ("synchronous", "asynchronous", "lagging"):
        promises = losses = 0
        silence = 0.0
        for number in range(rounds if kind == "synchronous" else 1):
            failover = Failover(stage, f"{kind}-{number}", seconds)
            failover.run(is_synchronous=kind == "synchronous", lags=kind == "lagging")
            findings = failover.findings
            promises += findings.promises
            losses += len(findings.violations)
            silence = max(silence, failover.silence)
            if kind == "synchronous":
                expect(not findings.violations, f"{kind}: lost: {findings.violations[:5]}")
            expect(silence <= RECOVERY_SECONDS, f"{kind}: no acknowledgement for {silence:.1f} s")
            wrong = [text for text in findings.violations if "other bytes" in text]
            expect(not wrong, f"{kind}: wrong bytes: {wrong[:5]}")
        if kind == "lagging":
            expect(losses > 0, "a standby that had stopped to follow lost nothing; the count is blind")
        report.append(f"{kind} {losses} of {promises} promises lost, silent for {silence:.1f} s")
        print(f"  {report[-1]}", flush=True)
    return "; ".join(report)


if __name__ == "__main__":
    use_memory(2048)
    sys.exit(run_proof("failover", arguments(__doc__).parse_args(), play))
