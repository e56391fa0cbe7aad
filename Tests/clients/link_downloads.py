"""Downloads by link that are killed midway and begun again by the same command."""

import contextlib
import hashlib
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from metered_link import MeteredLink
from nodes import wait_for
from service import MEBIBYTE, Source, expect

# Part of the file that may be transferred twice, because it was on its way at the kill.
LARGEST_LOSS = 0.3


def moved(address: str, place: str) -> str:
    """The address by way of another host and port."""
    return urlsplit(address)._replace(netloc=urlsplit(place).netloc).geturl()


class Command:
    """A command that is run again and again, in a directory of its own; standard input is the same each time."""

    def __init__(self, words: Sequence[str | Path], directory: Path, text: str = "",
                 environment: dict[str, str] | None = None) -> None:
        self.words = [str(word) for word in words]
        self.directory = directory
        self._input = directory / "input"
        self._input.write_text(text, encoding="utf-8")
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": str(directory)} | (environment or {})
        self.log = directory / "log"

    def start(self) -> subprocess.Popen[bytes]:
        with open(self._input, "rb") as source, open(self.log, "ab") as log:
            return subprocess.Popen(self.words, cwd=self.directory, env=self._environment, stdin=source,
                                    stdout=subprocess.PIPE, stderr=log)

    def finish(self) -> str:
        """Runs it to its end; returns what it printed."""
        process = self.start()
        with process:
            try:
                output, _ = process.communicate(timeout=300)
            finally:
                process.kill()
        said = self.log.read_text(encoding="utf-8", errors="replace")
        expect(process.returncode == 0, f"{self.words[0]} ended with {process.returncode}: {said[-2000:]}")
        return output.decode()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        said = self.log.read_text(encoding="utf-8", errors="replace")
        expect(process.poll() is None, f"{self.words[0]} ended before it was killed: {said[-2000:]}")
        with process:
            process.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Lets no process outlive a test that fails."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def check_resumed(link: MeteredLink, command: Command, result: Path, source: Source,
                  progress: Path | None = None) -> int:
    """Kills the command when half of the file came, and runs it again; returns the bytes of the second run.

    `progress` is a file in which the command notes now and then how far it is.
    """
    link.hold_at(source.byte_count // 2)
    with killed(command.start()) as process:
        expect(link.wait_until_held(), f"nothing came: {command.log.read_text()}")
        held = time.time()
        if progress is not None:
            expect(wait_for(lambda: progress.exists() and progress.stat().st_mtime > held, 30),
                   f"{progress.name} is not written")
        command.kill(process)
    link.cut()
    before = link.byte_count
    expect(before < source.byte_count * 0.8, "the first run received almost everything")
    command.finish()
    again = link.byte_count - before
    expect(again < source.byte_count * (0.5 + LARGEST_LOSS),
           f"the second run received {again} bytes of {source.byte_count}")
    found = hashlib.sha256(result.read_bytes()).hexdigest()
    expect(found == source.sha256, "the bytes that came back are not those that were sent")
    return again


def aria2(address: str, name: str, directory: Path) -> Command:
    """aria2 with four connections."""
    return Command(
        ["aria2c", "--no-conf", "--quiet", "--split=4", "--max-connection-per-server=4", "--min-split-size=1M",
         "--file-allocation=none", "--auto-save-interval=1", "--disk-cache=0", "--out", name, address], directory)


def curl(address: str, name: str, directory: Path) -> Command:
    return Command(["curl", "--silent", "--show-error", "--fail", "--no-buffer", "--continue-at", "-",
                    "--output", name, address], directory)


def curl_range(address: str, source: Source) -> None:
    """One range in the middle of the file."""
    first, last = MEBIBYTE + 1, 2 * MEBIBYTE + 4321
    run = subprocess.run(["curl", "--silent", "--show-error", "--fail", "--range", f"{first}-{last}", address],
                         capture_output=True, timeout=60, check=False)
    expect(run.returncode == 0, f"curl ended with {run.returncode}: {run.stderr!r}")
    expect(run.stdout == source.read(first, last - first + 1), "the range has other bytes")
