"""Holds idle connections with TLS to a service on loopback.

    idle_connections.py PORT AUTHORITY COUNT FILE

Each connection has one answered request. When all have, the program prints "ready" and waits until
FILE exists. Then it uses each connection once more, which shows that it was open, and ends.
"""

import http.client
import ssl
import sys
import time
from pathlib import Path

LONGEST_WAIT_SECONDS = 120


def use(connection: http.client.HTTPSConnection) -> None:
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"a health check was answered with {answer.status}")


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while not file.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"there is no {file} after {LONGEST_WAIT_SECONDS} s")
        time.sleep(0.02)


def main() -> None:
    port, authority, count, file = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    context = ssl.create_default_context(cafile=authority)
    connections = []
    for _ in range(count):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        connection.connect()
        # A closed connection is an error and is not opened again.
        connection.auto_open = 0
        use(connection)
        connections.append(connection)
    print("ready", flush=True)
    wait_for(file)
    for connection in connections:
        use(connection)


if __name__ == "__main__":
    main()
