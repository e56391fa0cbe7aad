"""Shared code of the attacks: the service under attack, and the simplest client of it."""

import hashlib
import http.client
import json
import os
import random
import resource
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from processes import Child, Scratch, free_port  # noqa: E402

CHUNK = 256 << 10


class Missed(Exception):
    """The service did not hold what it promises."""


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Missed(reason)


class Chunk:
    """The bytes of every chunk of every upload here, with what is said of them."""

    def __init__(self, byte_count: int = CHUNK) -> None:
        self.content = random.Random(1).randbytes(byte_count)
        self.digest = hashlib.sha256(self.content).hexdigest()


class Service:
    """One `kedge serve` with an embedded store."""

    def __init__(
        self, binary: Path, options: Sequence[str] = (), descriptors: int | str | None = None
    ) -> None:
        """`descriptors` is the limit of file descriptors: a number, or `SOFT:HARD`."""
        self._scratch = Scratch("attack")
        self.port = free_port()
        self.log_path = self._scratch.path / "log"
        limited = [] if descriptors is None else ["prlimit", f"--nofile={descriptors}"]
        self._command = [
            *limited, str(binary), "serve", "--port", str(self.port),
            "--data", str(self._scratch.path / "data"), "--log-format", "json", *options,
        ]
        self.child: Child | None = None

    def __enter__(self) -> "Service":
        home = str(self._scratch.path)
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home}
        self.child = Child(self._command, self.log_path, environment=environment)
        self.child.wait_until("the service is ready", self.is_ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        if self.child is not None:
            self.child.end()
        self._scratch.remove()

    def is_ready(self) -> bool:
        try:
            return ask(self.port, "GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    @property
    def process(self) -> int:
        assert self.child is not None
        return self.child.pid

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def cpu_seconds(self) -> float:
        """Processor time that it has used."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def anonymous_kibibytes(self) -> int:
        """Memory of its own, without what it shares with files."""
        for line in Path(f"/proc/{self.process}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise Missed("the kernel does not report RssAnon")

    def descriptor_count(self) -> int:
        return len(os.listdir(f"/proc/{self.process}/fd"))

    def limit_descriptors(self, count: int | None) -> None:
        """Sets the soft limit while it runs; None gives all that the hard one allows."""
        _, hard = resource.prlimit(self.process, resource.RLIMIT_NOFILE)
        soft = hard if count is None else count
        resource.prlimit(self.process, resource.RLIMIT_NOFILE, (soft, hard))


class Client:
    """One kept connection, from an address of its own."""

    def __init__(self, port: int, address: str = "127.0.0.1", timeout: float = 60) -> None:
        self.http = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=timeout, source_address=(address, 0)
        )

    def close(self) -> None:
        self.http.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        try:
            self.http.request(method, path, body, headers or {})
            answer = self.http.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException):
            # The service may close a connection after a refusal; the next request makes a new one.
            self.http.close()
            raise

    def begin(self, chunk_count: int, byte_count: int = CHUNK) -> str:
        """Begins an upload of so many equal chunks; returns its path."""
        message = {"fileName": "attack", "fileSize": chunk_count * byte_count, "chunkSize": byte_count}
        status, _, body = self.ask(
            "POST", "/uploads/sessions", json.dumps(message).encode(),
            {"Content-Type": "application/json"},
        )
        expect(status == 201, f"a session was answered {status}: {body[:200]!r}")
        return f"/uploads/sessions/{json.loads(body)['sessionId']}"


def ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
    """One request over a connection of its own."""
    client = Client(port, timeout=10)
    try:
        return client.ask(method, path, body)
    finally:
        client.close()


def put_headers(chunk: Chunk, index: int, chunk_count: int, offset: int = 0) -> dict[str, str]:
    """The fields of a chunk, from an offset inside it on."""
    size = len(chunk.content)
    first, last = index * size + offset, (index + 1) * size - 1
    return {
        "Content-Length": str(size - offset),
        "Content-Range": f"bytes {first}-{last}/{chunk_count * size}",
        "X-Chunk-Hash": f"sha256={chunk.digest}",
    }


def head(method: str, path: str, headers: dict[str, str]) -> bytes:
    """A request head as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connect(port: int, address: str = "127.0.0.1", receive_buffer: int | None = None) -> socket.socket:
    """A plain connection from an address."""
    link = socket.socket()
    if receive_buffer is not None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    link.bind((address, 0))
    link.settimeout(30)
    link.connect(("127.0.0.1", port))
    return link


def wait_for(what: str, condition: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def run(main: Any) -> None:
    """Runs an attack; ends the process with 1 when it raises `Missed`."""
    try:
        main()
    except Missed as reason:
        print(f"MISSED: {reason}", file=sys.stderr)
        sys.exit(1)
