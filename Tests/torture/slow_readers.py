#!/usr/bin/env python3
"""Fills a service with readers that take nearly nothing, beside one behind a modem of 56 kbit/s.

Others must be served before long, the slow readers give way, and the modem is never cut.
"""

import argparse
import json
import socket
import threading
import time
from pathlib import Path

from attack import CHUNK, Chunk, Client, Missed, Service, connect, expect, head, put_headers, run

CONNECTIONS = 40
MODEM_BYTES_PER_SECOND = 7000


class Reader(threading.Thread):
    """Reads an answer at a rate until `stop` or until it is cut."""

    def __init__(self, service: Service, path: str, address: str, bytes_per_second: int) -> None:
        super().__init__(daemon=True)
        self.link = connect(service.port, address)
        self.link.sendall(head("GET", path, {}))
        self._rate = bytes_per_second
        self.byte_count = 0
        self.is_cut = False
        self.is_over = False

    def run(self) -> None:
        start = time.monotonic()
        while not self.is_over:
            due = int((time.monotonic() - start) * self._rate) - self.byte_count
            try:
                piece = self.link.recv(due) if due > 0 else None
            except OSError:
                piece = b""
            if piece == b"":
                self.is_cut = True
                return
            self.byte_count += len(piece or b"")
            time.sleep(0.2)

    def stop(self) -> None:
        self.is_over = True
        self.join()
        self.link.close()


def upload(service: Service, chunk_count: int) -> str:
    """Makes a file; returns its path."""
    client, chunk = Client(service.port), Chunk()
    path = client.begin(chunk_count)
    for index in range(chunk_count):
        status, _, body = client.ask(
            "PUT", f"{path}/chunks/{index}", chunk.content, put_headers(chunk, index, chunk_count)
        )
        expect(status == 201, f"a chunk was answered {status}: {body!r}")
    status, _, body = client.ask("POST", f"{path}/finalize")
    expect(status == 200, f"finalize was answered {status}")
    client.close()
    return f"/files/{json.loads(body)['remoteFileId']}"


def serves(service: Service) -> bool:
    """Whether a newcomer is answered."""
    client = Client(service.port, "127.0.9.1", timeout=2)
    try:
        return client.ask("GET", "/healthz")[0] == 200
    except OSError:
        return False
    finally:
        client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="how long the modem reads")
    options = parser.parse_args()
    with Service(options.binary, ["--limits-max-connections", str(CONNECTIONS)]) as service:
        path = upload(service, (64 << 20) // CHUNK)
        begun = time.monotonic()
        modem = Reader(service, path, "127.0.1.1", MODEM_BYTES_PER_SECOND)
        modem.start()
        # More than there is room for: some wait to be accepted, as other clients do.
        slow = [
            Reader(service, path, f"127.0.0.{2 + index % 20}", 1024)
            for index in range(CONNECTIONS + 8)
        ]
        for reader in slow:
            reader.start()
        time.sleep(2)
        expect(not serves(service), "the connections are not used up, so nothing is shown")
        while not serves(service):
            expect(time.monotonic() - begun < 90, "slow readers keep others out for 90 s")
            time.sleep(0.5)
        waited = time.monotonic() - begun
        while time.monotonic() - begun < options.seconds:
            expect(not modem.is_cut, f"the modem was cut after {time.monotonic() - begun:.0f} s")
            time.sleep(0.5)
        cut_count = sum(reader.is_cut for reader in slow)
        expect(cut_count > 0, "no slow reader was cut")
        floor = MODEM_BYTES_PER_SECOND * (options.seconds - 10)
        expect(modem.byte_count > floor, f"the modem got {modem.byte_count} bytes")
        expect('"slow readers disconnected"' in service.log(), "the log does not record it")
        for reader in [modem, *slow]:
            reader.stop()
    print(f"slow readers: served after {waited:.0f} s, {cut_count} cut, the modem not, violations 0")


run(main)
