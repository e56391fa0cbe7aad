"""Lets `kedge download` fetch from servers that others wrote, while it is killed, the link is cut, or the
file is replaced.

    origins.py --binary PATH_TO_KEDGE [--mib 48] [--seed N] [--only NAME] [--whole] [--table FILE]

Prints one line for each origin and trouble: the bytes that reached the client over the file's size. Without
--whole a link is cut each 2.5 MiB only; with it also each 300 KiB and each 20 MiB.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet")]

from metered_link import MeteredLink
from processes import Scratch, Unavailable
from service import MEBIBYTE, Service, Source, Violation, expect
from web_servers import WEB_SERVERS

# A kill costs at most 2 MiB of each of four connections and what their buffers held.
MOST_LOST_BY_KILL = 4 * (2 * MEBIBYTE + 256 * 1024)
# A link that the client keeps up with: what it has not read yet is in no buffer of the system's.
KILLED_LINK_BYTES_PER_SECOND = 24 * MEBIBYTE
# The most bytes that may cross a link that is cut, over the size of the file.
MOST_RATIO_OF_CUTS = 1.3
SMALL_CUTS = [5 * MEBIBYTE // 2]
ALL_CUTS = [300 * 1024, 5 * MEBIBYTE // 2, 20 * MEBIBYTE]
FILE_NAME = "video.bin"


@dataclass
class Origin:
    """Where a file is downloaded from."""

    port: int
    # The address without the scheme, host and port.
    path: str
    stop: Callable[[], None]
    # Where the file lies, when another program can put another one there.
    file: Path | None
    # Whether parts of a file can be had at all.
    has_ranges: bool = True


class Client:
    """`kedge download` of one address into a directory of its own."""

    def __init__(
            self, binary: Path, url: str, directory: Path, connections: int | None = None) -> None:
        directory.mkdir()
        self.target = directory / "target.bin"
        self._command = [binary, "download", url, "--quiet", "--output", self.target,
                         "--state-directory", directory / "state"]
        if connections is not None:
            self._command += ["--connections", str(connections)]
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": str(directory)}

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, env=self._environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, seconds: float = 180) -> str:
        """Runs until it ends, which must be well; the file's SHA-256."""
        return self.end(self.start(), seconds)

    def end(self, process: subprocess.Popen[str], seconds: float = 180) -> str:
        """Waits for a run that is under way; the file's SHA-256."""
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise Violation(f"the download did not end within {seconds} s") from error
        expect(process.returncode == 0, f"kedge download ended with {process.returncode}: {said}")
        return self.sha256()

    def sha256(self) -> str:
        with open(self.target, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass
class Trial:
    """One origin after another, and one trouble after another for each."""

    binary: Path
    directory: Path
    source: Source
    cuts: list[int]
    seed: int
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    faults: int = 0

    def run(self, only: str | None) -> None:
        for number, name in enumerate(["kedge", *WEB_SERVERS]):
            if only in (None, name):
                place = self.directory / f"origin-{number}"
                place.mkdir()
                origin = self.origin(name, place)
                try:
                    self.troubles(name, origin, place)
                finally:
                    origin.stop()

    def origin(self, name: str, place: Path) -> Origin:
        if name == "kedge":
            return self.service(place)
        files, own = place / "files", place / "own"
        files.mkdir()
        own.mkdir()
        (files / "ready.txt").write_text("ready")
        file = files / FILE_NAME
        file.write_bytes(self.source.read(0))
        # Older than the minute in which some servers do not trust their own tags.
        os.utime(file, (1_700_000_000, 1_700_000_000))
        server = WEB_SERVERS[name](name, files, own)
        return Origin(server.port, f"/{FILE_NAME}", server.stop, file, name != "python")

    def service(self, place: Path) -> Origin:
        service = Service(self.binary, place)
        service.start()
        file = service.upload_natively(service.url, self.source)
        return Origin(service.node.port, file.removeprefix(service.url), service.stop, None)

    def troubles(self, name: str, origin: Origin, place: Path) -> None:
        self.note(name, "killed twice", lambda: self.kill(origin, place / "killed"))
        for count in self.cuts:
            words = f"cut each {count / MEBIBYTE:.2g} MiB"
            if origin.has_ranges:
                self.note(name, words, lambda: self.cut(origin, place / f"cut-{count}", count))
            else:
                self.note(name, words, lambda: self.curl_cannot_resume(origin, place))
        if origin.file is not None:
            self.note(name, "replaced midway", lambda: self.replace(origin, place / "replaced"))

    def note(self, name: str, trouble: str, check: Callable[[], str]) -> None:
        try:
            result = check()
        except Violation as error:
            self.faults += 1
            result = f"FAILED: {error}"
        self.rows.append((name, trouble, result))
        print(f"{name}, {trouble}: {result}", flush=True)

    def kill(self, origin: Origin, directory: Path) -> str:
        size = self.source.byte_count
        with MeteredLink(
                origin.port, bytes_per_second=KILLED_LINK_BYTES_PER_SECOND) as link:
            client = Client(self.binary, link.url + origin.path, directory)
            for part in (1, 2):
                link.hold_at(link.byte_count + size // 3)
                process = client.start()
                held = link.wait_until_held()
                process.send_signal(signal.SIGKILL)
                process.communicate()
                link.cut()
                expect(held, f"the download stood still before kill {part}")
            sha256 = client.finish()
            crossed = link.byte_count
        expect(sha256 == self.source.sha256, "the file has other bytes")
        ratio = crossed / size
        if origin.has_ranges:
            expect(crossed <= size + 2 * MOST_LOST_BY_KILL, f"{ratio:.3f} of the file crossed the link")
            return f"{ratio:.3f}"
        return f"{ratio:.3f} (has no ranges: begins again)"

    def cut(self, origin: Origin, directory: Path, count: int) -> str:
        with MeteredLink(origin.port, count) as link:
            # A share of the file that is too small for a cut shows none.
            is_long = 4 * count > self.source.byte_count
            client = Client(
                self.binary, link.url + origin.path, directory, connections=1 if is_long else None)
            sha256 = client.finish()
            ratio = link.byte_count / self.source.byte_count
            cuts = link.cut_count
        expect(sha256 == self.source.sha256, "the file has other bytes")
        expect(ratio <= MOST_RATIO_OF_CUTS, f"{ratio:.3f} of the file crossed the link")
        expect(cuts > 0, "no connection was cut")
        return f"{ratio:.3f}, {cuts} cuts"

    def curl_cannot_resume(self, origin: Origin, place: Path) -> str:
        """Shows that it is the origin's limit: curl does not get the rest of a file from it either."""
        part = place / "part.bin"
        part.write_bytes(self.source.read(0, MEBIBYTE))
        run = subprocess.run(
            ["curl", "--silent", "--show-error", "--continue-at", "-", "--output", part,
             f"http://127.0.0.1:{origin.port}{origin.path}"],
            capture_output=True, text=True, timeout=60)
        expect(run.returncode == 33, f"curl ended with {run.returncode}: {run.stderr}")
        return "no ranges: cannot finish, nor can curl (its exit status is 33)"

    def replace(self, origin: Origin, directory: Path) -> str:
        old = self.source.read(0)
        new = random.Random(self.seed + 1).randbytes(len(old))
        sums = {hashlib.sha256(old).hexdigest(): "the old file",
                hashlib.sha256(new).hexdigest(): "the new file"}
        with MeteredLink(origin.port) as link:
            client = Client(self.binary, link.url + origin.path, directory)
            link.hold_at(len(old) // 2)
            process = client.start()
            expect(link.wait_until_held(), "the download stood still before its half")
            written = origin.file.with_suffix(".new")
            written.write_bytes(new)
            written.replace(origin.file)
            link.cut()
            sha256 = client.end(process)
        expect(sha256 in sums, "the file is a mixture")
        return sums[sha256]


def write_table(rows: list[tuple[str, str, str]], path: Path) -> None:
    lines = ["| origin | trouble | bytes that crossed the link over the file's size |", "|---|---|---|"]
    path.write_text("\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=48)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    scratch = Scratch("origins")
    # Apache's workers are another user.
    scratch.path.chmod(0o755)
    try:
        source = Source(scratch.path / "source.bin", options.seed, options.mib)
        trial = Trial(options.binary.resolve(), scratch.path, source,
                      ALL_CUTS if options.whole else SMALL_CUTS, options.seed)
        trial.run(options.only)
        if options.table is not None:
            write_table(trial.rows, options.table)
        if trial.faults > 0:
            raise Violation(f"{trial.faults} of {len(trial.rows)} failed")
    except (Violation, Unavailable) as error:
        print(f"origins, seed {options.seed}: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    print(f"origins: {len(trial.rows)} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
