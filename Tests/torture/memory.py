#!/usr/bin/env python3
"""Opens many connections, uses and closes them, and looks what memory the service keeps."""

import argparse
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack import Chunk, Client, Service, connect, expect, head, put_headers, run

LARGEST_GROWTH = 1.25


def upload(service: Service, chunk: Chunk) -> None:
    """Uploads one chunk, and gives the upload up."""
    client = Client(service.port)
    try:
        path = client.begin(1)
        client.ask("PUT", f"{path}/chunks/0", chunk.content, put_headers(chunk, 0, 1))
        client.ask("DELETE", path)
    except OSError:
        # More at a time than are taken.
        pass
    finally:
        client.close()


def use(service: Service, chunk: Chunk, count: int) -> None:
    """So many uploads, over a connection each, some at a time."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: upload(service, chunk), range(count)))


def open_together(service: Service, chunk: Chunk, count: int) -> None:
    """So many connections at once, each with the first bytes of a body; then all are closed."""
    links: list[socket.socket] = []
    client = Client(service.port)
    path = client.begin(1)
    for index in range(count):
        link = connect(service.port, f"127.0.0.{2 + index % 100}")
        link.sendall(head("PUT", f"{path}/chunks/0", put_headers(chunk, 0, 1)) + chunk.content[:65536])
        links.append(link)
    time.sleep(3)
    for link in links:
        link.close()
    client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="how long it is left alone")
    parser.add_argument("--connections", type=int, default=2000)
    options = parser.parse_args()
    chunk = Chunk()
    with Service(options.binary) as service:
        # Warm is a service that is used: by a tenth of the connections that come then.
        open_together(service, chunk, options.connections // 10)
        use(service, chunk, 300)
        time.sleep(3)
        before = service.anonymous_kibibytes()
        open_together(service, chunk, options.connections)
        use(service, chunk, 300)
        peak = service.anonymous_kibibytes()
        deadline = time.monotonic() + options.seconds
        while True:
            after = service.anonymous_kibibytes()
            if after <= LARGEST_GROWTH * before or time.monotonic() > deadline:
                break
            time.sleep(1)
        print(f"RssAnon: {before} KiB warm, {peak} KiB after {options.connections} connections, {after} KiB left")
        expect(after <= LARGEST_GROWTH * before, f"{after / before:.2f} times the memory stays")
    print(f"memory: {after / before:.2f} times what it was, violations 0")


run(main)
