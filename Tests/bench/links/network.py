"""Two network namespaces and the link between them.

The programs on the left are clients, those on the right are servers. A server listens on 127.0.0.1
of the right namespace, as `kedge serve` demands it, and the left namespace reaches this address
through the link: its own loopback device stays down, and both ends permit such addresses on the
wire (`route_localnet`). So there is no forwarder and no translation of addresses between a client
and a server, and both see the link's connection itself.

A namespace lives as long as the processes inside. They end with this program, however it ends.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "servers"))

from packets import PacketLog  # noqa: E402
from processes import Child, Unavailable, find_program  # noqa: E402

DEVICE = "link0"
LEFT_ADDRESS = "10.77.0.1"
TUN = Path("/dev/net/tun")
# Defaults of most systems, whatever this one has.
CONGESTION_CONTROL = "cubic"
SYSTEM_CONTROLS = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    # A transfer must not begin with the window that an earlier one has found.
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    f"net.ipv4.conf.{DEVICE}.rp_filter": "0",
    f"net.ipv4.conf.{DEVICE}.route_localnet": "1",
}


def reason_to_skip() -> str | None:
    """Why this machine cannot have such a network; None when it can."""
    if os.geteuid() != 0:
        return "network namespaces with TUN devices need root"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} is missing or not permitted"
    trial = subprocess.run(
        ["unshare", "--net", "true"], capture_output=True, text=True, check=False
    )
    if trial.returncode != 0:
        return f"network namespaces are not permitted: {trial.stderr.strip()}"
    try:
        for name in ("ip", "cc", "nsenter"):
            find_program(name)
    except Unavailable as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Shape:
    """The properties of a link; both directions are equal."""

    round_trip_ms: int
    loss: float = 0
    bits_per_second: int = 50_000_000
    death_bytes: int = 0
    death_ms: int = 0

    @property
    def queue_bytes(self) -> int:
        """The queue before each line: what the line sends in a round trip, at least in 100 ms."""
        return self.bits_per_second * max(self.round_trip_ms, 100) // 8000

    @property
    def is_dying(self) -> bool:
        """Whether connections die on it."""
        return self.death_bytes > 0 or self.death_ms > 0

    @property
    def name(self) -> str:
        """A word for options and rows: 20ms-0.5%, 20ms-dies-300KiB."""
        if self.death_bytes:
            return f"{self.round_trip_ms}ms-dies-{self.death_bytes >> 10}KiB"
        if self.death_ms:
            return f"{self.round_trip_ms}ms-dies-{self.death_ms // 1000}s"
        return f"{self.round_trip_ms}ms-{self.loss * 100:g}%"


class Namespace:
    """A network namespace, held by a process that does nothing."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._holder = Child(["unshare", "--net", "sleep", "infinity"], directory / f"{name}.log")
        own = os.readlink("/proc/self/ns/net")
        self.path = Path(f"/proc/{self._holder.pid}/ns/net")
        self._holder.wait_until(
            "the namespace is there",
            lambda: os.readlink(self.path) != own and self._holder_name() == "sleep",
        )

    def _holder_name(self) -> str:
        return Path(f"/proc/{self._holder.pid}/comm").read_text().strip()

    def command(self, words: Iterable[str | Path]) -> list[str | Path]:
        """The command, run inside."""
        return [find_program("nsenter"), f"--net={self.path}", "--", *words]

    def start(
        self, words: Iterable[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> Child:
        """Starts a program inside."""
        base = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": str(self._directory)}
        return Child(self.command(words), log, environment=base | dict(environment or {}))

    def run(self, *words: str | Path) -> str:
        """Runs a program inside to its end; its output."""
        done = subprocess.run(self.command(words), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def is_listening(self, port: int) -> bool:
        """Whether a server inside listens on the port."""
        # A socket of IPv6 may be bound to an address of IPv4, as ::ffff:127.0.0.1.
        tables = [
            Path(f"/proc/{self._holder.pid}/net/{name}").read_text() for name in ("tcp", "tcp6")
        ]
        return re.search(rf"0100007F:{port:04X} \S+ 0A ", "\n".join(tables)) is not None

    def received_bytes(self) -> int:
        """IP bytes that the link brought here."""
        return self._device_counter(0)

    def sent_bytes(self) -> int:
        """IP bytes that went to the link from here."""
        return self._device_counter(8)

    def _device_counter(self, column: int) -> int:
        table = Path(f"/proc/{self._holder.pid}/net/dev").read_text()
        found = re.search(rf"{DEVICE}:\s*(.*)", table)
        return int(found[1].split()[column]) if found else 0

    def stop(self) -> None:
        """Ends the holder; the namespace is gone with the last process inside."""
        self._holder.end(signal.SIGKILL)


class Network:
    """Both namespaces, and the program that joins them."""

    def __init__(self, directory: Path, congestion_control: str = CONGESTION_CONTROL) -> None:
        self._directory = directory
        self._program = directory / "link"
        source = HERE / "link.c"
        subprocess.run(
            ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", self._program, source],
            check=True,
        )
        self.left = Namespace(directory, "left")
        try:
            self.right = Namespace(directory, "right")
        except BaseException:
            self.left.stop()
            raise
        for space in (self.left, self.right):
            space.run("ip", "tuntap", "add", "dev", DEVICE, "mode", "tun")
            space.run("ip", "link", "set", DEVICE, "up", "mtu", "1500")
            for name, value in SYSTEM_CONTROLS.items():
                space.run("sysctl", "-qw", f"{name}={value}")
        self.left.run("ip", "address", "add", f"{LEFT_ADDRESS}/32", "dev", DEVICE)
        # A route may name any algorithm; the setting of a namespace permits only some.
        route = ("ip", "route", "add", "dev", DEVICE, "congctl", congestion_control)
        self.left.run(*route, "127.0.0.1/32", "src", LEFT_ADDRESS)
        self.right.run("ip", "link", "set", "lo", "up")
        self.right.run(*route, f"{LEFT_ADDRESS}/32")

    @contextmanager
    def link(self, shape: Shape, seed: int) -> Iterator[PacketLog]:
        """Joins the namespaces while the caller transfers. The log is complete afterwards.

        Each transfer gets a link of its own, so that all meet the same losses and deaths.
        """
        log = self._directory / "packets"
        words = [
            self._program,
            self.left.path,
            self.right.path,
            DEVICE,
            shape.round_trip_ms * 500,
            shape.bits_per_second,
            shape.queue_bytes,
            shape.loss,
            seed,
            shape.death_bytes,
            shape.death_ms,
            log,
        ]
        output = self._directory / "link.log"
        output.unlink(missing_ok=True)
        program = Child([str(word) for word in words], output)
        packets = PacketLog()
        try:
            program.wait_until("the link is up", lambda: output.read_text() == "ready\n")
            yield packets
        finally:
            program.end()
        if program.process.returncode != 0:
            raise Unavailable(f"the link failed: {program.complaint()}")
        packets.read(log)

    def stop(self) -> None:
        """Ends both namespaces."""
        self.left.stop()
        self.right.stop()
