"""The programs that are measured, on the left of the link."""

import os
import select
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from network import HERE, Network
from packets import DOWN, UP
from processes import Child
from servers import KedgeServer, Nginx, RcloneServer, Source, StreamServer, sha256

DIRECTIONS = {"up": UP, "down": DOWN}


class Wrong(Exception):
    """A program delivered other bytes, or refused to work."""


@dataclass(frozen=True)
class Run:
    """One transfer, from the start of the command to its end; by the clock of the packet log."""

    begin_ns: int
    end_ns: int
    is_finished: bool

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.begin_ns) / 1e9


def wait(child: Child, end_ns: int) -> bool:
    """Waits for the end of a process without polling; whether it came in time."""
    descriptor = os.pidfd_open(child.pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        left = max(0, end_ns - time.monotonic_ns())
        return bool(poller.poll(left // 1_000_000))
    finally:
        os.close(descriptor)


class Program(ABC):
    """A client with its server; both have directories of their own."""

    name = ""
    # Ways that it can transfer.
    directions = ("up", "down")

    def __init__(self, network: Network, directory: Path) -> None:
        self.network = network
        self.directory = directory
        self.copy = directory / "copy"
        self.log = directory / "log"

    def run(
        self, direction: str, source: Source, bound_seconds: float, is_dying: bool
    ) -> tuple[Run, Callable[[], None]]:
        """Transfers once; the run, and the check of its result, which is made without the link."""
        commands = self.upload_command if direction == "up" else self.download_command
        return self._repeat(
            lambda: commands(source, is_dying), direction, source, bound_seconds, is_dying
        )

    def _repeat(
        self,
        words: Callable[[], list[str | Path]],
        direction: str,
        source: Source,
        bound_seconds: float,
        is_dying: bool,
    ) -> tuple[Run, Callable[[], None]]:
        begin = time.monotonic_ns()
        end = begin + int(bound_seconds * 1e9)
        while True:
            self.log.unlink(missing_ok=True)
            child = self.network.left.start(words(), self.log, {"RCLONE_CONFIG": "/dev/null"})
            in_time = wait(child, end)
            now = time.monotonic_ns()
            child.end(signal.SIGKILL)
            status = child.process.returncode
            if in_time and status == 0:
                return Run(begin, now, True), lambda: self.check(direction, source)
            if not in_time or now >= end:
                return Run(begin, now, False), lambda: None
            if not is_dying:
                raise Wrong(f"{self.name} {direction} ended with {status}: {child.complaint()}")
            # Where connections die, a program that gives up is started again, as a script would.
            time.sleep(0.05)

    def prepare(self, direction: str, source: Source) -> None:
        """Makes everything as before the first transfer."""
        self.copy.unlink(missing_ok=True)

    @abstractmethod
    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """The command that uploads."""

    def download_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """The command that downloads to `copy`."""
        raise NotImplementedError

    def uploaded_sha256(self) -> str:
        """The digest of the file that is on the server now."""
        raise NotImplementedError

    def check(self, direction: str, source: Source) -> None:
        """The right bytes arrived."""
        found = self.uploaded_sha256() if direction == "up" else sha256(self.copy)
        if found != source.sha256:
            raise Wrong(f"{self.name} {direction}: other bytes arrived than were sent")

    @abstractmethod
    def stop(self) -> None:
        """Ends its server."""


class Kedge(Program):
    """`kedge upload` and `kedge download`, each with new records."""

    name = "kedge"

    def __init__(self, network: Network, directory: Path, binary: Path, extra: list[str]) -> None:
        super().__init__(network, directory)
        self._binary = binary
        self._extra = extra
        self.server = KedgeServer(network, directory / "server", binary)
        self._file_id = ""

    def prepare(self, direction: str, source: Source) -> None:
        """Forgets all transfers; a file to download is on the server."""
        super().prepare(direction, source)
        shutil.rmtree(self.directory / "state", ignore_errors=True)
        if direction == "down" and not self._file_id:
            self._file_id = self.server.store(source.path)

    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """A script would repeat the command; it goes on by itself."""
        return [self._binary, "upload", source.path, *self._options()]

    def download_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Ends when the whole file is verified."""
        return [self._binary, "download", self._file_id, "-o", self.copy, *self._options()]

    def _options(self) -> list[str | Path]:
        state = self.directory / "state"
        return ["--server", self.server.url, "--state-directory", state, "--quiet", *self._extra]

    def uploaded_sha256(self) -> str:
        """The service hashed it when it arrived."""
        return self.server.sha256(self.log.read_text().split()[-1])

    def stop(self) -> None:
        """Ends the service."""
        self.server.stop()


class Curl(Program):
    """One connection to nginx."""

    name = "curl"

    def __init__(self, network: Network, directory: Path) -> None:
        super().__init__(network, directory)
        self._server = Nginx(network, directory / "server")

    def prepare(self, direction: str, source: Source) -> None:
        """A file to download is on the server."""
        super().prepare(direction, source)
        stored = self._server.files / "stored"
        if direction == "down" and not stored.exists():
            shutil.copyfile(source.path, stored)

    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """It cannot go on with an upload that broke, so each trial begins at the first byte."""
        return [*self._words(), "--upload-file", source.path, f"{self._server.url}/sent"]

    def download_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Goes on where the last trial ended."""
        resume = ["--continue-at", "-"] if is_dying else []
        return [*self._words(), *resume, "--output", self.copy, f"{self._server.url}/stored"]

    def _words(self) -> list[str | Path]:
        return ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*"]

    def uploaded_sha256(self) -> str:
        """The file that nginx has."""
        return sha256(self._server.files / "sent")

    def stop(self) -> None:
        """Ends nginx."""
        self._server.stop()


class Rclone(Program):
    """`rclone copyto` to `rclone serve webdav`."""

    name = "rclone"

    def __init__(self, network: Network, directory: Path, program: Path) -> None:
        super().__init__(network, directory)
        self._program = program
        self._server = RcloneServer(network, directory / "server", program)

    def prepare(self, direction: str, source: Source) -> None:
        """Nothing is there that it would not send again."""
        super().prepare(direction, source)
        (self._server.files / "sent").unlink(missing_ok=True)
        stored = self._server.files / "stored"
        if direction == "down" and not stored.exists():
            shutil.copyfile(source.path, stored)

    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Retries many times where connections die."""
        return [*self._words(is_dying), source.path, self._remote("sent")]

    def download_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Retries many times where connections die."""
        return [*self._words(is_dying), self._remote("stored"), self.copy]

    def _words(self, is_dying: bool) -> list[str | Path]:
        return [self._program, "copyto", "--retries", "1000" if is_dying else "3"]

    def _remote(self, name: str) -> str:
        return f':webdav,url="{self._server.url}":{name}'

    def uploaded_sha256(self) -> str:
        """The file in the directory that it serves."""
        return sha256(self._server.files / "sent")

    def stop(self) -> None:
        """Ends its server."""
        self._server.stop()


class Tuspy(Program):
    """tuspy to the tus endpoint of Kedge. It only uploads."""

    name = "tuspy"
    directions = ("up",)

    def __init__(self, network: Network, directory: Path, binary: Path, python: Path) -> None:
        super().__init__(network, directory)
        self._python = python
        self._server = KedgeServer(network, directory / "server", binary)

    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Goes on by itself where connections die."""
        return [self._python, HERE / "tus_upload.py", f"{self._server.url}/tus/", source.path]

    def uploaded_sha256(self) -> str:
        """The digest of the newest file."""
        right = self._server.network.right
        copy = self._server.directory / "sent"
        address = self.log.read_text().split()[-1]
        right.run("curl", "--silent", "--fail", "--output", copy, address)
        return sha256(copy)

    def stop(self) -> None:
        """Ends the service."""
        self._server.stop()


class Stream(Program):
    """One long TCP stream, what the link gives to a program that only sends."""

    name = "stream"

    def __init__(self, network: Network, directory: Path, seconds: float) -> None:
        super().__init__(network, directory)
        self.seconds = seconds
        self._server = StreamServer(network, directory / "server")

    def upload_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Sends for some seconds."""
        return self._command("up")

    def download_command(self, source: Source, is_dying: bool) -> list[str | Path]:
        """Receives for some seconds."""
        return self._command("down")

    def _command(self, direction: str) -> list[str | Path]:
        return ["python3", HERE / "stream.py", direction, str(self._server.port), str(self.seconds)]

    def check(self, direction: str, source: Source) -> None:
        """Its bytes are zeros."""

    def stop(self) -> None:
        """Ends the other end."""
        self._server.stop()
