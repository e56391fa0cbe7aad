#!/usr/bin/env python3
"""Offers a service three times what it can do, and does not wait for answers before it offers more.

    overload.py --binary KEDGE [--long]

First the peak is measured: as many uploads a second as clients get through that wait for each answer. Then
uploads begin at three times that rate whatever becomes of those before them. At least 80 % as many as at the
peak have to succeed, each refusal has to say when to come back, and ten seconds after the load has gone an
upload has to be as fast as before.

Uploads come at the pace of a link, from many addresses, so what is scarce is room for bodies, as in practice.
With --unpaced they come as fast as loopback is, and processors are what is scarce: that is of use with a
release build on a machine where nothing else runs, and with clients elsewhere.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import os
import socket
import sys
import time

from proof import Stage, Violation, arguments, expect, percentile, run_proof, started

BODY, PIECE = 256 << 10, 32 << 10
PACE_SECONDS = 0.4
WRITES = 16
FACTOR = 3
LEAST_SHARE = 0.8
RECOVERY_SECONDS = 10
TIMEOUT_SECONDS = 10


@dataclasses.dataclass
class Answers:
    """Outcomes of uploads."""

    good: list[float] = dataclasses.field(default_factory=list)
    """The moment of each success."""
    seconds: list[float] = dataclasses.field(default_factory=list)
    """How long each of them took."""
    refused: int = 0
    silent: int = 0
    """Refused without a word about when to come back."""
    other: dict[str, int] = dataclasses.field(default_factory=dict)

    def note(self, name: str) -> None:
        """One more of what should not be."""
        self.other[name] = self.other.get(name, 0) + 1


class Load:
    """Makes uploads, each on a connection of its own, as strangers would."""

    def __init__(self, port: int, is_paced: bool) -> None:
        self._pause = PACE_SECONDS * PIECE / BODY if is_paced else 0.0
        self._port = port
        self._numbers = itertools.count()
        self._rest = bytes(BODY - 16)
        self._head = (
            "POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {BODY}\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n").encode()

    async def upload(self, answers: Answers) -> None:
        """One upload, with no other's bytes."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                status, head = await self._exchange()
        except TimeoutError:
            return answers.note("no answer in time")
        except OSError as error:
            return answers.note(type(error).__name__)
        if status == 201:
            answers.good.append(time.monotonic())
            answers.seconds.append(time.monotonic() - begun)
        elif status in (429, 503):
            answers.refused += 1
            answers.silent += b"\r\nretry-after:" not in head
        else:
            answers.note(str(status))

    async def _exchange(self) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        with socket.socket() as connection:
            connection.setblocking(False)
            # All of the body finds room at once: what is read does not wait for what is written.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * BODY)
            host = next(self._numbers) % 200 + 1
            connection.bind((f"127.0.0.{host}", 0))
            await loop.sock_connect(connection, ("127.0.0.1", self._port))
            await loop.sock_sendall(connection, self._head)
            head = await self._answer(connection)
            if head.split(b" ", 2)[1] == b"100":
                # An answer that came before a reset can still be read.
                with contextlib.suppress(ConnectionError):
                    body = next(self._numbers).to_bytes(16) + self._rest
                    for first in range(0, BODY, PIECE):
                        await loop.sock_sendall(connection, body[first : first + PIECE])
                        await asyncio.sleep(self._pause)
                head = await self._answer(connection)
        return int(head.split(b" ", 2)[1]), head

    @staticmethod
    async def _answer(connection: socket.socket) -> bytes:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await asyncio.get_running_loop().sock_recv(connection, 4096)
            if not piece:
                raise ConnectionAbortedError
            head += piece
        return head.lower()

    async def closed(self, width: int, seconds: float) -> Answers:
        """So many clients, each waiting for its answer before the next upload."""
        answers, end = Answers(), time.monotonic() + seconds

        async def work() -> None:
            while time.monotonic() < end:
                refused = answers.refused
                await self.upload(answers)
                if answers.refused > refused:
                    await asyncio.sleep(0.1)

        await asyncio.gather(*(work() for _ in range(width)))
        return answers

    async def open(self, rate: float, seconds: float) -> Answers:
        """So many uploads a second, whatever becomes of them."""
        answers, begun, count = Answers(), time.monotonic(), 0
        tasks = set()
        while (now := time.monotonic() - begun) < seconds:
            while count < now * rate:
                task = asyncio.create_task(self.upload(answers))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                count += 1
            await asyncio.sleep(0.005)
        self.offered = count
        answers.good = [moment for moment in answers.good if moment <= begun + seconds]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return answers


async def recovered(load: Load, calm: Answers) -> float:
    """Waits until an upload is as fast as before; the seconds that took."""
    bound = 2 * percentile(calm.seconds, 0.99)
    begun = time.monotonic()
    while True:
        after = await load.closed(1, 0.3)
        waited = time.monotonic() - begun
        if after.seconds and percentile(after.seconds, 0.5) <= bound:
            return waited
        expect(waited < RECOVERY_SECONDS, f"uploads are slow {waited:.0f} s after the load has gone")


async def trial(load: Load, seconds: float) -> tuple[float, str]:
    """Peak, overload and recovery; the share of the peak that was left, and what they showed."""
    calm = await load.closed(1, 0.7)
    peak, width = 0.0, 0
    for clients in (WRITES * 3 // 4, WRITES):
        answers = await load.closed(clients, seconds / 2)
        if len(answers.good) / (seconds / 2) > peak:
            peak, width = len(answers.good) / (seconds / 2), clients
    answers = await load.open(FACTOR * peak, seconds)
    share = len(answers.good) / seconds / peak
    waited = await recovered(load, calm)
    text = (
        f"peak {peak:.0f}/s with {width} clients, {share:.0%} of it at {FACTOR} times that,"
        f" {answers.refused} of {load.offered} refused, as before after {waited:.1f} s")
    print(f"  {text}; {answers.other or 'nothing else'}", flush=True)
    expect(answers.silent == 0, f"{answers.silent} refusals without Retry-After; {text}")
    wrong = {name: count for name, count in answers.other.items() if name.isdecimal()}
    expect(not wrong, f"answers that are no refusals: {wrong}; {text}")
    expect(answers.refused > 0, f"nothing was refused, so that was no overload; {text}")
    return share, text


async def measure(load: Load, trials: int, seconds: float) -> str:
    """The best of some trials: what else a machine does can only take away."""
    await load.closed(8, 1)  # warms up
    best, text = 0.0, ""
    for _ in range(trials):
        share, said = await trial(load, seconds)
        if share > best:
            best, text = share, said
        if best >= LEAST_SHARE:
            return text
    raise Violation(f"less than {LEAST_SHARE:.0%} of the peak is left: {text}")


def play(stage: Stage) -> str:
    """One service, overloaded; before other work of the machine, where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    node = started(stage.node("--limits-max-concurrent-writes", str(WRITES)))
    load = Load(node.port, not stage.options.unpaced)
    return asyncio.run(measure(load, 3, 30.0 if stage.options.long else 4.0))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--unpaced", action="store_true", help="as fast as loopback is")
    sys.exit(run_proof("overload", parser.parse_args(), play))
