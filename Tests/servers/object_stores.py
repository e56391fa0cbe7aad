"""Servers that speak S3: rclone, moto, and the stand-in that fails on request."""

import contextlib
import http.client
import json
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

from processes import VENV_PROGRAMS, Child, Scratch, Unavailable, find_program, free_port


class ObjectStore:
    """A server with one bucket. Region is us-east-1."""

    bucket = "kedge-test"
    # Asked until it answers, however it does.
    probe = "/"

    def __init__(self, name: str) -> None:
        self.access_key = f"access{secrets.token_hex(5)}"
        self.secret_key = secrets.token_hex(20)
        self.scratch = Scratch(name)
        self.port = free_port()
        self.child: Child | None = None

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, *command: str | Path, environment: dict[str, str] | None = None) -> None:
        """Starts the program and waits until it answers."""
        self.child = Child(
            command, self.scratch.path / "log",
            environment=dict(os.environ) | (environment or {}))
        self.child.wait_until("the object store answers", self._answers, 60)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.ask("GET", self.probe)
            return True
        return False

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Sends a request without a signature and returns the answer's body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read()
            if path != self.probe and answer.status >= 300:
                raise Unavailable(f"{method} {path}: {answer.status} {text[:300]!r}")
            return text
        finally:
            connection.close()

    def stop(self) -> None:
        """Ends it and removes everything."""
        if self.child is not None:
            self.child.end()
        self.scratch.remove()


class RcloneServer(ObjectStore):
    """`rclone serve s3` over a directory."""

    def __init__(self) -> None:
        super().__init__("rclone")
        try:
            program = find_program("rclone", VENV_PROGRAMS)
            (self._directory / self.bucket).mkdir(parents=True)
            self.start(
                program, "serve", "s3", "--addr", f"127.0.0.1:{self.port}",
                "--auth-key", f"{self.access_key},{self.secret_key}", self._directory,
                # Ignores the configuration of the user who runs the test.
                environment={"RCLONE_CONFIG": "/dev/null"})
        except BaseException:
            self.stop()
            raise

    @property
    def _directory(self) -> Path:
        return self.scratch.path / "buckets"

    def left(self) -> list[str]:
        """Everything in the bucket, with what rclone itself hides."""
        bucket = self._directory / self.bucket
        return sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())


class MotoServer(ObjectStore):
    """moto, which knows the shape of the interface but no signatures."""

    def __init__(self) -> None:
        super().__init__("moto")
        try:
            self.start(
                find_program("moto_server", VENV_PROGRAMS), "-H", "127.0.0.1", "-p", str(self.port))
            self.ask("PUT", f"/{self.bucket}")
        except BaseException:
            self.stop()
            raise


class StubServer(ObjectStore):
    """The strict stand-in of s3_stub.py."""

    # Not counted among the requests.
    probe = "/_state"

    def __init__(self, min_part_byte_count: int = 5 << 20, page_size: int = 1000) -> None:
        super().__init__("s3-stub")
        try:
            self._start(min_part_byte_count, page_size)
        except BaseException:
            self.stop()
            raise

    def _start(self, min_part_byte_count: int, page_size: int) -> None:
        command = [
            sys.executable, Path(__file__).with_name("s3_stub.py"), "--port", str(self.port),
            "--directory", self.scratch.path / "objects", "--bucket", self.bucket,
            "--access-key", self.access_key, "--secret-key", self.secret_key,
            "--min-part-bytes", str(min_part_byte_count), "--page-size", str(page_size),
        ]
        self.child = Child(command, self.scratch.path / "log", has_input=True)
        self.child.wait_until("the stand-in answers", self._answers)

    def fail(self, *rules: dict[str, Any]) -> None:
        """Adds rules; see s3_faults.py."""
        self.ask("POST", "/_faults", list(rules))

    def heal(self) -> None:
        """Removes all rules."""
        self.ask("DELETE", "/_faults")

    def damage(self, key: str, offset: int = 0, part: int | None = None) -> None:
        """Flips a bit of an object at rest, or of an uploaded part of it."""
        place = {"bucket": self.bucket, "key": key, "offset": offset, "part": part}
        self.ask("POST", "/_damage", place)

    def state(self) -> dict[str, Any]:
        """Returns the stored objects and the counts of requests."""
        state: dict[str, Any] = json.loads(self.ask("GET", "/_state"))
        return state

    def left(self) -> list[str]:
        """Everything in the bucket, and uploads under way."""
        state = self.state()
        return [entry["key"] for entry in state["objects"]] + [
            f"{entry['key']} (upload of {len(entry['parts'])} parts)" for entry in state["uploads"]]

    def freeze(self) -> None:
        """Stops the server until `thaw`; the system still accepts connections."""
        if self.child is not None:
            self.child.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        if self.child is not None:
            self.child.send(signal.SIGCONT)
