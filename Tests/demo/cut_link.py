"""A network namespace for clients, one for the service, and a link between them that is cut."""

import concurrent.futures
import contextlib
import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from network import DEVICE, Namespace
from processes import Unavailable, find_program
from service import MEBIBYTE, Violation, expect

CLIENT, SERVICE = "10.88.0.1", "10.88.0.2"
RATE = "60mbit"
# All of them come before the fourth quarter of 16 MiB.
CUTS, CUT_BYTES, CUT_SECONDS = 3, 4 * MEBIBYTE, 0.3
CLONE_NEWNET = 0x40000000


def enter_namespace() -> None:
    """Moves this process and its children into a network namespace of its own."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWNET) != 0:
        raise Unavailable(f"network namespaces are not permitted: {os.strerror(ctypes.get_errno())}")


def bound(words: Iterable[str | Path]) -> list[str | Path]:
    """The command, which ends with this process, however that comes about."""
    return [find_program("setpriv"), "--pdeathsig", "KILL", "--", *words]


def run(*words: str | Path, data: bytes | None = None) -> bytes:
    done = subprocess.run(bound(words), input=data, capture_output=True, check=False, timeout=120)
    expect(done.returncode == 0, f"{words[0]} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return done.stdout


class Link:
    """The link between the clients here and the service there."""

    def __init__(self, directory: Path) -> None:
        self.there = Namespace(directory, "service")
        ip = find_program("ip")
        try:
            run(ip, "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", self.there.path)
            run(ip, "address", "add", f"{CLIENT}/24", "dev", DEVICE)
            self.there.run("ip", "address", "add", f"{SERVICE}/24", "dev", DEVICE)
            for device in ("lo", DEVICE):
                run(ip, "link", "set", device, "up")
                self.there.run("ip", "link", "set", device, "up")
            run(find_program("tc"), "qdisc", "add", "dev", DEVICE, "root",
                "tbf", "rate", RATE, "burst", "64kb", "latency", "50ms")
        except BaseException:
            self.stop()
            raise

    @contextlib.contextmanager
    def cuts(self) -> Iterator[None]:
        """Cuts the link while the caller transfers a video; raises `Violation` when that ends before the last cut."""
        is_over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            count = pool.submit(self._cut, is_over)
            try:
                yield
            finally:
                is_over.set()
            expect(count.result() == CUTS, f"the transfer ended after {count.result()} of {CUTS} cuts")

    def _cut(self, is_over: threading.Event) -> int:
        for count in range(CUTS):
            goal = self._sent_bytes() + CUT_BYTES
            while self._sent_bytes() < goal:
                if is_over.wait(0.01):
                    return count
            run(find_program("ip"), "link", "set", DEVICE, "down")
            # The end is not sent, so the service must notice by itself that the connections are gone.
            run(find_program("ss"), "--kill", "--tcp", "dst", SERVICE)
            time.sleep(CUT_SECONDS)
            run(find_program("ip"), "link", "set", DEVICE, "up")
        return CUTS

    @staticmethod
    def _sent_bytes() -> int:
        for line in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == DEVICE:
                return int(counters.split()[8])
        raise Violation(f"{DEVICE} is gone")

    def stop(self) -> None:
        self.there.stop()
