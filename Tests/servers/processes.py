"""Servers that run beside a test as processes of their own, and never outlive it."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV_PROGRAMS = ROOT / ".build-venv" / "bin"


class Unavailable(Exception):
    """A program is missing, or a server does not come up."""


def find_program(name: str, *directories: Path) -> Path:
    """Where a program is: in one of the directories, or on the path."""
    for directory in directories:
        if os.access(directory / name, os.X_OK):
            return directory / name
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = shutil.which(name, path=path)
    if found is None:
        raise Unavailable(f"{name} is not installed; `make test-deps` brings it")
    return Path(found)


def free_port() -> int:
    """A port that is free now, and that no outgoing connection takes while a server is away for a moment."""
    for _ in range(200):
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise Unavailable("no free port")


def can_connect(port: int) -> bool:
    """Whether a server accepts connections at this port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


class Scratch:
    """A directory for one server, gone with it; a place that is given stays."""

    def __init__(
        self, name: str, account: str | None = None, place: Path | None = None, parent: Path | None = None
    ) -> None:
        self._stays = place is not None
        self.path = Path(tempfile.mkdtemp(prefix=f"kedge-{name}-", dir=parent)) if place is None else place
        self.path.mkdir(exist_ok=True)
        if account is not None:
            entry = pwd.getpwnam(account)
            os.chown(self.path, entry.pw_uid, entry.pw_gid)

    def remove(self) -> None:
        """Removes it with all that is in it."""
        if not self._stays:
            shutil.rmtree(self.path, ignore_errors=True)


def unprivileged_account(program: str) -> str | None:
    """Whom a program runs as that refuses to run as root; nil when this process is not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError as error:
        raise Unavailable(f"{program} does not run as root, and there is no user postgres") from error


def as_account(account: str | None, command: Iterable[str | Path]) -> list[str]:
    """The command, run by that user."""
    words = [str(word) for word in command]
    if account is None:
        return words
    switch = [f"--reuid={account}", f"--regid={account}", "--init-groups"]
    return [str(find_program("setpriv")), *switch, "--", *words]


class Child:
    """A process that ends when this one does, however that comes about.

    Started by the main thread: the kernel ends it with the thread that started it.
    """

    def __init__(
        self, command: Iterable[str | Path], log: Path, *, account: str | None = None,
        environment: Mapping[str, str] | None = None, has_input: bool = False,
        last_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.log = log
        # Comes after the change of user, which would undo it.
        bound = [find_program("setpriv"), "--pdeathsig", last_signal.name.removeprefix("SIG"), "--"]
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                as_account(account, [*bound, *command]), cwd="/", env=environment,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE if has_input else output, stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its id."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless it has ended."""
        if self.is_running:
            self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = 10) -> None:
        """Asks it to end, and kills it when it does not."""
        self.send(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def complaint(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-2000:]

    def wait_until(self, what: str, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Waits for a condition; raises `Unavailable` when the process ends first or it takes too long."""
        deadline = time.monotonic() + seconds
        while not condition():
            if not self.is_running:
                raise Unavailable(f"not {what}, it ended: {self.complaint()}")
            if time.monotonic() > deadline:
                raise Unavailable(f"not {what} within {seconds} s: {self.complaint()}")
            time.sleep(0.02)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            # The name, in parentheses, may hold anything.
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(entry.name))
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits for nothing but its parent."""
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True
