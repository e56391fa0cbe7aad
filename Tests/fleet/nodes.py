"""Nodes of a fleet, and the load balancer in front of them."""

import contextlib
import http.client
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from access_log import AccessLog
from processes import ROOT, Child, can_connect, find_program, free_port

class Node:
    """One `kedge serve`. It keeps its port and nothing else when it is killed."""

    def __init__(
        self, binary: Path, directory: Path, options: Sequence[str], environment: dict[str, str]
    ) -> None:
        self.port = free_port()
        self.log = directory / f"node-{self.port}.log"
        self._command = [
            str(binary), "serve", "--host", "127.0.0.1", "--port", str(self.port),
            "--data", str(directory / f"node-{self.port}"), "--log-format", "json", *options,
        ]
        base = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory)}
        self._environment = base | environment
        self.child: Child | None = None
        self.peak_bytes = 0

    def start(self) -> None:
        """Starts it; it may take a moment before it serves."""
        self.child = Child(self._command, self.log, environment=self._environment)

    def wait_until_ready(self) -> None:
        """Waits until it serves."""
        if self.child is not None:
            self.child.wait_until("the node is ready", self._is_ready, 60)

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            finally:
                connection.close()
        return False

    def kill(self) -> None:
        """Ends the process as a crash does."""
        if self.child is not None:
            self.child.end(signal.SIGKILL)

    def note_memory(self) -> None:
        """Remembers the most memory that any of its processes had so far."""
        if self.child is None:
            return
        with contextlib.suppress(OSError):  # it is being killed
            for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peak_bytes = max(self.peak_bytes, int(line.split()[1]) << 10)


class Fleet:
    """Some nodes, watched."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.kill_count = 0
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Starts all at the same time, as a deployment does, and waits until they serve."""
        for node in self.nodes:
            node.start()
        self._watcher.start()
        for node in self.nodes:
            node.wait_until_ready()

    def kill_one(self, chooser: random.Random) -> None:
        """Kills a node at random and starts it again."""
        node = chooser.choice(self.nodes)
        node.kill()
        self.kill_count += 1
        node.start()

    def dead_nodes(self) -> list[Node]:
        """Nodes that ended by themselves."""
        return [node for node in self.nodes if node.child is not None and not node.child.is_running]

    @property
    def peak_bytes(self) -> int:
        """Most memory that one node had."""
        return max(node.peak_bytes for node in self.nodes)

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            for node in self.nodes:
                node.note_memory()

    def stop(self) -> None:
        """Kills all."""
        self._is_over.set()
        for node in self.nodes:
            node.kill()


class Balancer:
    """The nginx of deploy/nginx.conf in front of several nodes, in turn, each request by itself."""

    def __init__(self, directory: Path, ports: Sequence[int]) -> None:
        self.port = free_port()
        self.access_log = directory / "access.log"
        # A node that is away for a moment is asked again soon, as it would be by health checks.
        servers = "; server ".join(f"127.0.0.1:{port} max_fails=1 fail_timeout=1s" for port in ports)
        text = rendered(directory, f"127.0.0.1:{self.port}", servers)
        log = f"log_format storm '{AccessLog.FORMAT}'; access_log {self.access_log} storm;"
        assert "access_log off;" in text
        self._child = nginx(directory, text.replace("access_log off;", log), self.port)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Ends it."""
        self._child.end()


class Gate:
    """An nginx in front of an object store that can be shut: then everything is answered 503."""

    def __init__(self, directory: Path, upstream_port: int) -> None:
        self.port = free_port()
        self._sign = directory / "shut"
        directory.mkdir()
        text = rendered(directory, f"127.0.0.1:{self.port}", f"127.0.0.1:{upstream_port}")
        marker = "location / {"
        assert marker in text
        shut = f"{marker} if (-f {self._sign}) {{ return 503; }}"
        self._child = nginx(directory, text.replace(marker, shut), self.port)

    def shut(self) -> None:
        """From now on it answers 503."""
        self._sign.touch()

    def open(self) -> None:
        """From now on it lets everything through."""
        self._sign.unlink(missing_ok=True)

    def stop(self) -> None:
        """Ends it."""
        self._child.end()


def rendered(directory: Path, listen: str, upstream: str) -> str:
    """The configuration in deploy/, with these places."""
    script = ROOT / "Tests" / "support" / "render_nginx.sh"
    return subprocess.run(
        ["bash", script, listen, upstream, directory], check=True, capture_output=True, text=True,
    ).stdout


def nginx(directory: Path, configuration: str, port: int) -> Child:
    """Runs nginx until it is ended; its workers end with it."""
    file = directory / "nginx.conf"
    file.write_text(configuration)
    log = directory / "nginx.log"
    child = Child(
        [find_program("nginx"), "-c", file, "-e", log], log, last_signal=signal.SIGTERM)
    child.wait_until("nginx listens", lambda: can_connect(port))
    return child


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
