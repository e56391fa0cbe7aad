#!/usr/bin/env python3
"""Loses the leases of writers while a node is stopped, and asks whether an acknowledged offset went back.

    wiped_leases.py --binary KEDGE [--long] [--seed N]

Two nodes share a PostgreSQL and a bucket. First comes one case in every protocol: a node is stopped
(SIGSTOP) in the middle of a body, the other node takes the upload over and acknowledges 3 MiB, and
PostgreSQL is killed, which empties the unlogged table `writer_lease`. Then the stopped node continues.
After that come rounds with random moments: nodes stop for random times, the leases are deleted or
PostgreSQL is killed, and clients change nodes, cut bodies and leave them hanging. No offset or chunk
that a node reports may be below what was acknowledged before the request, and each upload must complete
with the right SHA-256. At the end `kedge fsck` and `kedge scrub` must find everything whole.

The proof can fail. It compares each reported offset with the highest acknowledged one, and each file
with the bytes that were sent. It counts the leases before and after the kill: none before it, or some
after it, end the proof. A row of `partial_chunk` whose `byte_count` is lowered by hand while the first
case watches is reported as a violation.
"""

import argparse
import contextlib
import http.client
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from proof import Stage, Violation, arguments, expect, run_proof, started, use_memory
import cut_bodies
import native_client
from bucket import Bucket
from check import Findings
from cut_bodies import BUFFERED, Cutter
from native_client import NativeClient, Refused, content, sha256
from nodes import Node
from patient import AGAIN
from postgres import PostgresServer
from stores import StoreMix
from transfers import MEBIBYTE

PROTOCOLS = ("tus", "IETF", "native")
# The smallest chunk that a bucket takes; three of them, the last one short.
CHUNK = 5 * MEBIBYTE
FILE = 12 * MEBIBYTE + 345
PIECE = 256 << 10
STALLED, TAKEN_OVER = MEBIBYTE, 3 * MEBIBYTE
# Another writer has the upload, or the offset is not the current one: the client asks for it.
CONFLICTS = (409, 423)
TIMEOUT_SECONDS = 90
STRIKES = 3
FAULTS = (OSError, http.client.HTTPException, Refused)


class Caller(NativeClient):
    """Waits for one node no longer than the given seconds."""

    def __init__(self, port: int, seconds: float) -> None:
        super().__init__(port)
        self._http.timeout = seconds


class Sending:
    """One request whose body comes in pieces."""

    def __init__(
        self, port: int, head: tuple[str, str, dict[str, str]], byte_count: int | None, seconds: float
    ) -> None:
        method, path, fields = head
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
        self._http.putrequest(method, path)
        for name, value in fields.items():
            self._http.putheader(name, value)
        if byte_count is not None:
            self._http.putheader("Content-Length", str(byte_count))
        self._http.endheaders()

    def send(self, data: bytes, pause: float = 0) -> None:
        """Sends bytes of the body, with a pause after each piece."""
        for first in range(0, len(data), PIECE):
            self._http.send(data[first : first + PIECE])
            time.sleep(pause)

    def answer(self, what: str) -> http.client.HTTPResponse:
        """The answer; raises `Refused` when the client should ask again, and `Violation` on a refusal."""
        answer = self._http.getresponse()
        text = answer.read()
        if answer.status in (*AGAIN, *CONFLICTS):
            raise Refused(f"{what}: {answer.status}")
        expect(200 <= answer.status < 300, f"{what}: {answer.status} {text[:300]!r}")
        return answer

    def close(self) -> None:
        """Ends the connection, wherever the body is."""
        self._http.close()


class Upload:
    """One upload by one client, which knows what was acknowledged.

    The client counts by stretches: the chunks of a native upload, and the whole file of the others.
    """

    def __init__(self, protocol: str, name: str, port: int) -> None:
        self.name = f"{protocol} upload {name}"
        self.findings = Findings()
        self.faults = 0
        self.timeout = TIMEOUT_SECONDS
        self._protocol, self._name = protocol, name
        self._data = content(name, FILE)
        self._digest = sha256(self._data)
        self._cutter = Cutter(port)
        self._session = self._cutter.begin(protocol, name)
        self._cutter.client.close()
        self._acknowledged: dict[int, int] = {}
        self._hanging: list[Sending] = []
        stretch = CHUNK if protocol == "native" else FILE
        self._stretches = [(first, min(first + stretch, FILE)) for first in range(0, FILE, stretch)]

    def ask(self, port: int, seconds: float) -> tuple[dict[int, int], bool]:
        """Returns what a node has of each stretch, compared with what was acknowledged, and whether that
        is a complete upload."""
        found, is_complete = self._found(port, seconds)
        for index, least in self._acknowledged.items():
            has = found.get(index, 0)
            text = f"{self.name}: {least} bytes of stretch {index} were acknowledged, node {port} has {has}"
            self.findings.promise(has >= least, text)
        for index, byte_count in found.items():
            self._acknowledge(index, byte_count)
        return found, is_complete

    def _acknowledge(self, index: int, byte_count: int) -> None:
        self._acknowledged[index] = max(byte_count, self._acknowledged.get(index, 0))

    def expect_kept(self) -> None:
        """Raises `Violation` when anything that was acknowledged was missing."""
        found = self.findings.violations
        expect(not found, f"violations {len(found)}: {found[:5]}")

    def _found(self, port: int, seconds: float) -> tuple[dict[int, int], bool]:
        if self._protocol == "native":
            with contextlib.closing(Caller(port, seconds)) as caller:
                status = caller.status(self._session)
            if status["state"] != "open":
                sizes = {index: last - first for index, (first, last) in enumerate(self._stretches)}
                return sizes, status["state"] == "completed"
            found = {part["index"]: int(part["receivedBytes"]) for part in status["partialChunks"]}
            for index in status["receivedChunks"]:
                first, last = self._stretches[index]
                found[index] = last - first
            return found, False
        _, path, fields = self._cutter.head(self._protocol, self._session, b"", 0)
        version = {name: fields[name] for name in fields if name == "Tus-Resumable"}
        with contextlib.closing(Sending(port, ("HEAD", path, version), None, seconds)) as sending:
            answer = sending.answer(f"{self.name}: HEAD")
        offset = int(answer.getheader("Upload-Offset") or 0)
        return {0: offset}, answer.getheader("Upload-Complete", "?1") == "?1" and offset == FILE

    def send(
        self, port: int, index: int, start: int, count: int, *, is_all: bool, seconds: float, pause: float = 0
    ) -> Sending:
        """Sends so many bytes of a stretch. They are the whole body, or else the body is the whole rest."""
        first, last = self._stretches[index]
        method, path, fields = self._cutter.head(self._protocol, self._session, b"", first + start)
        if self._protocol == "native":
            method, path = "PUT", f"/uploads/sessions/{self._session}/chunks/{index}"
            fields = {
                "Content-Type": "application/octet-stream",
                "Content-Range": f"bytes {first + start}-{last - 1}/{FILE}",
                "X-Chunk-Hash": f"sha256={sha256(self._data[first:last])}"}
        elif is_all and self._protocol == "IETF":
            fields["Upload-Complete"] = "?1" if first + start + count == FILE else "?0"
        byte_count = count if is_all else last - first - start
        sending = Sending(port, (method, path, fields), byte_count, seconds)
        self._hanging.append(sending)
        sending.send(self._data[first + start : first + start + count], pause)
        return sending

    def _append(self, port: int, index: int, start: int, count: int, **manner: float) -> None:
        """Sends a whole body, whose answer acknowledges it."""
        sending = self.send(port, index, start, count, is_all=True, **manner)
        answer = sending.answer(f"{self.name}: {count} bytes at {start}")
        sending.close()
        if self._protocol == "native":
            return self._acknowledge(index, start + count)
        offset = answer.getheader("Upload-Offset")
        self._acknowledge(index, start + count if offset is None else int(offset))

    def bring_to(self, port: int, end: int) -> None:
        """Sends until a node acknowledges so many bytes of the first stretch."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # The end of a native body that is cut is kept but for what is in buffers.
        least = end - BUFFERED if self._protocol == "native" else end
        while time.monotonic() < deadline:
            try:
                start = self.ask(port, 10)[0].get(0, 0)
                if start >= least:
                    return
                if self._protocol == "native":
                    self.send(port, 0, start, end - start, is_all=False, seconds=10).close()
                else:
                    self._append(port, 0, start, end - start, seconds=10)
            except FAULTS:
                self.faults += 1
            time.sleep(0.2)
        raise Violation(f"{self.name}: a node does not acknowledge {end} bytes")

    def run(self, ports: list[int], chooser: random.Random) -> None:
        """Uploads until it is complete, each time through any of the nodes, and reads the file back."""
        begun, trial = time.monotonic(), 0
        while True:
            self.expect_kept()
            seconds = min(10, 0.8 * 1.5**trial)
            try:
                if self._step(chooser.choice(ports), chooser, seconds):
                    break
                trial = 0
            except FAULTS as error:
                trial += 1
                self.faults += 1
                if chooser.random() < 0.5:
                    self.close()
                has_time = time.monotonic() < begun + self.timeout
                expect(has_time, f"{self.name} does not complete: {error!r}")
                time.sleep(0.05)
        self.close()
        self._check(chooser.choice(ports))

    def _step(self, port: int, chooser: random.Random, seconds: float) -> bool:
        """Asks and sends once; whether the upload is complete."""
        found, is_complete = self.ask(port, seconds)
        if is_complete:
            return True
        sizes = [last - first for first, last in self._stretches]
        left = [index for index, size in enumerate(sizes) if found.get(index, 0) < size]
        if not left:
            self._complete(port, seconds)
            return False
        index = chooser.choice(left)
        start = found.get(index, 0)
        count = sizes[index] - start
        manner = {"seconds": seconds, "pause": chooser.uniform(0, 0.1)}
        kind = chooser.choice(("rest", "rest", "stretch", "cut", "hanging"))
        if kind == "rest" or (kind == "stretch" and self._protocol == "native"):
            self._append(port, index, start, count, **manner)
        elif kind == "stretch":
            self._append(port, index, start, chooser.randint(1, count), **manner)
        else:
            sending = self.send(port, index, start, chooser.randint(1, count), is_all=False, **manner)
            if kind == "cut":
                sending.close()
        return False

    def _complete(self, port: int, seconds: float) -> None:
        """All bytes are there, and the service waits for the end of the upload."""
        if self._protocol == "IETF":
            return self._append(port, 0, FILE, 0, seconds=seconds)
        with contextlib.closing(Caller(port, seconds)) as caller:
            caller.finalize(self._session, self._digest)

    def close(self) -> None:
        """Ends all bodies that were left hanging."""
        for sending in self._hanging:
            sending.close()
        self._hanging.clear()

    def _check(self, port: int) -> None:
        """Reads the file back, after the time that a node needs to take a finalize over."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            with contextlib.closing(Caller(port, 60)) as caller, contextlib.suppress(*FAULTS):
                file = caller.status(self._session).get("remoteFileId")
                if file is not None:
                    found = sha256(caller.expect((200,), "GET", f"/files/{file}"))
                    text = f"{self.name}: the file has the SHA-256 {found} instead of {self._digest}"
                    self.findings.promise(found == self._digest, text)
                    return
            expect(time.monotonic() < deadline, f"{self.name}: there is no file")
            time.sleep(0.1)


class Wiping:
    """Two nodes, and all that happens to them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seed = stage.options.seed
        self._database = PostgresServer()
        stage.cleanup.callback(self._database.stop)
        bucket = Bucket("stub", stage.directory, stage.cleanup)
        self._mix = StoreMix("a fleet", self._database.url, bucket.url, bucket.environment)
        self._nodes = [
            started(stage.node(*self._mix.options, environment=bucket.environment)) for _ in range(2)]
        self._ports = [node.port for node in self._nodes]
        self.findings = Findings()
        self.uploads = self.faults = self.wipes = self.kills = self.stops = 0

    def _leases(self) -> int:
        return int(self._database.query("SELECT count(*) FROM writer_lease"))

    def _crash_database(self) -> None:
        self._database.kill()
        self._database.restart()
        self.kills += 1

    def _wipe(self, chooser: random.Random) -> None:
        if chooser.random() < 0.5:
            self._database.query("DELETE FROM writer_lease")
        else:
            self._crash_database()
        self.wipes += 1

    def _stop(self, node: Node) -> None:
        assert node.child is not None
        node.child.send(signal.SIGSTOP)
        self.stops += 1

    @staticmethod
    def _go_on(node: Node) -> None:
        assert node.child is not None
        node.child.send(signal.SIGCONT)

    def known_case(self) -> None:
        """A node that was stopped in the middle of a body continues after its successor's lease was lost."""
        chooser = random.Random(f"{self._seed}-known")
        stopped, other = self._nodes
        uploads = [
            (start, Upload(protocol, f"known-{start}", stopped.port))
            for protocol in PROTOCOLS for start in (0, MEBIBYTE // 2)]
        bodies = []
        for start, upload in uploads:
            upload.bring_to(stopped.port, start)
            begun = upload.ask(stopped.port, 10)[0].get(0, 0)
            bodies.append(upload.send(stopped.port, 0, begun, STALLED, is_all=False, seconds=10))
        time.sleep(0.5)
        self._stop(stopped)
        for _, upload in uploads:
            upload.bring_to(other.port, TAKEN_OVER)
        lost = self._leases()
        expect(lost > 0, "there is no lease to lose")
        self._crash_database()
        left = self._leases()
        expect(left == 0, f"{left} leases are left after a crash of PostgreSQL")
        self.wipes += 1
        # Some bodies end while the node is stopped, the others when the clients have seen enough.
        for body in chooser.sample(bodies, len(bodies) // 2):
            body.close()
        self._go_on(stopped)
        self._watch([upload for _, upload in uploads], 6 if self._stage.options.long else 2)
        self._run([upload for _, upload in uploads], "known", strikes=0)
        print(f"  {len(uploads)} uploads taken over from a stopped node, {lost} leases lost", flush=True)

    def _watch(self, uploads: list[Upload], seconds: float) -> None:
        """Asks the successor and the node that was stopped, in turn."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for port in reversed(self._ports):
                for upload in uploads:
                    with contextlib.suppress(*FAULTS):
                        upload.ask(port, 10)
        for upload in uploads:
            upload.expect_kept()

    def play_round(self, number: int) -> None:
        """New uploads, during which a node stops and the leases are lost."""
        chooser = random.Random(f"{self._seed}-{number}")
        uploads = [
            Upload(protocol, f"{self._seed}-{number}-{place}", chooser.choice(self._ports))
            for place, protocol in enumerate(PROTOCOLS)]
        self._run(uploads, str(number), strikes=STRIKES)

    def _run(self, uploads: list[Upload], name: str, strikes: int) -> None:
        chooser = random.Random(f"{self._seed}-{name}-strikes")
        with ThreadPoolExecutor(len(uploads)) as pool:
            results = [
                pool.submit(upload.run, self._ports, random.Random(f"{self._seed}-{upload.name}"))
                for upload in uploads]
            try:
                for _ in range(strikes):
                    if not all(result.done() for result in results):
                        self._strike(chooser)
                for result in results:
                    result.result()
            except BaseException:
                # The other uploads end before they would have completed.
                for upload in uploads:
                    upload.timeout = 0
                raise
        for upload in uploads:
            self.findings.promises += upload.findings.promises
            self.findings.violations += upload.findings.violations
            self.faults += upload.faults
        self.uploads += len(uploads)

    def _strike(self, chooser: random.Random) -> None:
        """A node stops for a while; at any moment before, meanwhile or after that the leases are lost."""
        node, begin, length = chooser.choice(self._nodes), chooser.uniform(0, 0.8), chooser.uniform(0.2, 2.5)
        wipe = chooser.uniform(0, begin + length + 0.3)
        steps = [
            (begin, lambda: self._stop(node)), (begin + length, lambda: self._go_on(node)),
            (wipe, lambda: self._wipe(chooser))]
        now = time.monotonic()
        try:
            for moment, step in sorted(steps, key=lambda pair: pair[0]):
                time.sleep(max(0, now + moment - time.monotonic()))
                step()
        finally:
            self._go_on(node)

    def check_stores(self) -> None:
        """No row is about bytes that are not there."""
        for node in self._nodes:
            node.kill()
        self._mix.check_whole(self._stage.binary, self._stage.directory / f"node-{self._ports[0]}")


def play(stage: Stage) -> str:
    """The known case and the rounds; what they showed."""
    print(f"wiped-leases: seed {stage.options.seed}", flush=True)
    cut_bodies.BODY = FILE
    native_client.CHUNK_SIZE = CHUNK
    wiping = Wiping(stage)
    wiping.known_case()
    rounds = 25 if stage.options.long else 2
    for number in range(rounds):
        wiping.play_round(number)
    wiping.check_stores()
    findings = wiping.findings
    report = (
        f"{rounds} rounds, {wiping.uploads} uploads, {wiping.stops} stops of nodes, {wiping.wipes} times no"
        f" leases, {wiping.kills} kills of PostgreSQL, {wiping.faults} requests again,"
        f" {findings.promises} promises, violations {len(findings.violations)}")
    expect(not findings.violations, f"{report}: {findings.violations[:5]}")
    return report


def parse() -> argparse.Namespace:
    """The command line."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    return parser.parse_args()


if __name__ == "__main__":
    use_memory(2048)
    sys.exit(run_proof("wiped-leases", parse(), play))
