"""Measures how long a killed transfer needs to go on.

    resume_time.py --binary KEDGE [--mib M] [--runs N] [--directions up,down]

A transfer over a fast link is killed with SIGKILL at its half. Then the command is started again.
The time runs from its start until the next bytes of the file leave: those of the client for an
upload, those of the server for a download. Also counted: the time until the first packet, the
requests before the bytes, and what both sides have read until then (the bytes of all their read
calls, those from sockets included).
"""

import argparse
import contextlib
import json
import random
import re
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / name) for name in ("servers", "support")]

from network import Network, Shape, reason_to_skip  # noqa: E402
from processes import Child, Scratch, Unavailable  # noqa: E402
from programs import DIRECTIONS, Kedge  # noqa: E402
from servers import Source  # noqa: E402
from skipping import skipped  # noqa: E402

MEBIBYTE = 1 << 20
# Faster than the programs at its ends.
FAST = Shape(0, bits_per_second=10_000_000_000)
BOUND_SECONDS = 600
MOST_MILLISECONDS = 300


@dataclass(frozen=True)
class Resumption:
    """One killed transfer that went on."""

    direction: str
    milliseconds: float
    # Until the first packet of the command.
    start_milliseconds: float
    requests: int
    client_read_bytes: int
    server_read_bytes: int


class Failure(Exception):
    """A transfer ended where it must not."""


def read_bytes(pid: int) -> int:
    """Bytes of all read calls of a process so far."""
    with contextlib.suppress(OSError):
        found = re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text())
        return int(found[1]) if found else 0
    return 0


class Measurement:
    """Both directions over one network."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack
    ) -> None:
        self._options = options
        self._directory = directory
        self._network = Network(directory)
        cleanup.callback(self._network.stop)
        self._random = random.Random(options.seed)

    def measure(self, direction: str) -> Resumption:
        """Transfers the first half, kills the client, and starts it again."""
        place = self._directory / direction
        place.mkdir()
        source = Source(place / "source", self._options.mib * MEBIBYTE, self._blocks())
        program = Kedge(self._network, place, self._options.binary, [])
        try:
            program.prepare(direction, source)
            command = program.upload_command if direction == "up" else program.download_command
            words = command(source, False)
            self._transfer_half(direction, words, source, place / "first.log")
            return self._resume(direction, words, program, place / "second.log")
        finally:
            program.stop()
            shutil.rmtree(place, ignore_errors=True)

    def _blocks(self) -> Callable[[int], bytes]:
        """Blocks that differ in their first bytes: gigabytes of random ones would take long."""
        block = self._random.randbytes(MEBIBYTE)
        return lambda count: (self._random.randbytes(32) + block[32:])[:count]

    def _passed_bytes(self, direction: str) -> int:
        space = self._network.left
        return space.sent_bytes() if direction == "up" else space.received_bytes()

    def _transfer_half(
        self, direction: str, words: list[str | Path], source: Source, log: Path
    ) -> None:
        with self._network.link(FAST, self._options.seed):
            before = self._passed_bytes(direction)
            client = self._network.left.start(words, log)
            try:
                self._wait(
                    client, lambda: self._passed_bytes(direction) - before > source.byte_count // 2
                )
            finally:
                client.end(signal.SIGKILL)

    def _resume(
        self, direction: str, words: list[str | Path], program: Kedge, log: Path
    ) -> Resumption:
        with self._network.link(FAST, self._options.seed) as packets:
            before = self._passed_bytes(direction)
            server_before = read_bytes(program.server.pid)
            begin_ns = time.monotonic_ns()
            client = self._network.left.start(words, log)
            try:
                # More than any message before the first bytes of the file.
                self._wait(client, lambda: self._passed_bytes(direction) - before > 256 << 10)
                client_read, server_read = read_bytes(client.pid), read_bytes(program.server.pid)
                time.sleep(0.2)
            finally:
                client.end(signal.SIGKILL)
        first_ns, body_ns = packets.first_ns(), packets.first_body_ns(DIRECTIONS[direction])
        if first_ns is None or body_ns is None:
            raise Failure(f"{direction}: no bytes of the file went over the link")
        return Resumption(
            direction,
            (body_ns - begin_ns) / 1e6,
            (first_ns - begin_ns) / 1e6,
            packets.request_count(0, body_ns),
            client_read,
            server_read - server_before,
        )

    @staticmethod
    def _wait(client: Child, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND_SECONDS
        while not condition():
            if not client.is_running or time.monotonic() > deadline:
                raise Failure(
                    f"the transfer ended too early, or takes too long: {client.complaint()}"
                )
            time.sleep(0.001)


def main() -> int:
    """Measures; what was started ends, however it goes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--mib", type=int, default=4096, help="size of the file")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--directions", default="up,down")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="place for everything that is written")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    options = parser.parse_args()
    reason = reason_to_skip()
    if reason is not None:
        return skipped("links", reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    scratch = Scratch("resume", parent=options.directory)
    results = []
    try:
        with contextlib.ExitStack() as cleanup:
            measurement = Measurement(options, scratch.path, cleanup)
            for direction in options.directions.split(","):
                for _ in range(options.runs):
                    results.append(measurement.measure(direction))
                    print_result(results[-1], options.mib)
    except KeyboardInterrupt:
        print("resume time: interrupted", file=sys.stderr)
        return 130
    except (Failure, Unavailable) as error:
        print(f"resume time: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    for direction in options.directions.split(","):
        median = statistics.median(
            each.milliseconds for each in results if each.direction == direction
        )
        verdict = "met" if median <= MOST_MILLISECONDS else "not met"
        print(f"resume {direction}: {median:.0f} ms, <= {MOST_MILLISECONDS} ms: {verdict}")
    if options.output:
        options.output.write_text(
            json.dumps(
                {"rows": rows(results), "notes": [], "results": [asdict(each) for each in results]},
                indent=1,
            )
        )
    return 0


def rows(results: list[Resumption]) -> list[dict[str, object]]:
    """The rows for kedge-bench."""
    found: list[dict[str, object]] = []
    for direction in sorted({each.direction for each in results}, reverse=True):
        own = [each for each in results if each.direction == direction]
        title = f"kedge killed at half, {direction}"
        found += [
            {
                "id": f"resume.{direction}.time",
                "title": f"{title}: next bytes",
                "unit": "ms",
                "values": [each.milliseconds for each in own],
            },
            {
                "id": f"resume.{direction}.client",
                "title": f"{title}: read by client",
                "unit": "MiB",
                "values": [each.client_read_bytes / MEBIBYTE for each in own],
            },
            {
                "id": f"resume.{direction}.server",
                "title": f"{title}: read by server",
                "unit": "MiB",
                "values": [each.server_read_bytes / MEBIBYTE for each in own],
            },
        ]
    return found


def print_result(each: Resumption, mib: int) -> None:
    """A line for each run."""
    print(
        f"{each.direction:<5}{mib} MiB, killed at half: "
        f"{each.milliseconds:.0f} ms to the next bytes, "
        f"{each.start_milliseconds:.0f} ms to the first packet, {each.requests} requests; "
        f"read again: client {each.client_read_bytes / MEBIBYTE:.1f} MiB, "
        f"server {each.server_read_bytes / MEBIBYTE:.1f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
