"""Starts and ends the program under test."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

# Small chunks give many promises for few bytes; the usual reserve is half of the disk; and a sweep has to
# come within the seconds that a recording takes.
SERVER_OPTIONS = (
    "--limits-min-chunk-size", "4096", "--limits-default-chunk-size", "16384",
    "--storage-reserve-bytes", "1048576", "--sweep-interval-seconds", "1", "--log-format", "json",
)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """The binary, and the fault that is put between it and the C library, if any."""

    def __init__(self, binary: Path, scratch: Path) -> None:
        self.binary = binary
        self.scratch = scratch
        self._fault: dict[str, str] = {}
        self.skipped = scratch / "skipped"

    @contextlib.contextmanager
    def with_fault(self, library: Path | None, name: str | None) -> Iterator[None]:
        """Makes processes that are started meanwhile omit or delay the calls that the fault names."""
        if library is not None and name is not None:
            self.skipped.touch()
            self._fault = {
                "LD_PRELOAD": str(library),
                "POWER_CUT_MUTANT": name,
                "POWER_CUT_SKIPPED": str(self.skipped),
            }
        try:
            yield
        finally:
            self._fault = {}

    def skipped_count(self) -> int:
        """How often the fault struck: a fault that never does proves nothing."""
        return self.skipped.stat().st_size if self.skipped.exists() else 0

    def environment(self) -> dict[str, str]:
        """The caller's settings must not change what is tested."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self.scratch), "TMPDIR": str(self.scratch)}
        return base | self._fault

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Starts a command."""
        return subprocess.Popen(
            [str(self.binary), *map(str, arguments)], env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *arguments: str | Path, seconds: float = 60) -> tuple[int, str, str]:
        """Runs a command to its end: its exit status, what it printed, and what it complained of."""
        process = self.start(*arguments)
        try:
            output, complaint = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process.returncode, output.decode().strip(), complaint.decode().strip()


class Server:
    """A service that runs; `log` holds all it said."""

    def __init__(
        self, program: Program, data: Path, port: int, log: Path, options: Sequence[str] = ()
    ) -> None:
        self.port = port
        self.log = log
        arguments = ("serve", "--host", "127.0.0.1", "--port", str(port), "--data", str(data))
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                [str(program.binary), *arguments, *SERVER_OPTIONS, *options], env=program.environment(),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )

    def wait_until_ready(self) -> bool:
        """False when it ended instead, or is not ready after half a minute."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._process.poll() is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return True
            except OSError:
                time.sleep(0.02)
            finally:
                connection.close()
        return False

    def stop(self) -> int:
        """Ends it gently; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.returncode

    def kill(self) -> None:
        """Ends it at once; does nothing when it has ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def serving(
    program: Program, data: Path, port: int, log: Path, options: Sequence[str] = ()
) -> Iterator[Server]:
    """A service that is gone afterwards, however the block ends."""
    server = Server(program, data, port, log, options)
    try:
        yield server
    finally:
        server.kill()
