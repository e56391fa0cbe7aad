"""The servers on the right of the link: Kedge, nginx, `rclone serve webdav`, and a plain stream."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from network import HERE, Network
from processes import Child, find_program, free_port

NGINX = """
worker_processes 2; daemon off; pid {directory}/nginx.pid; user root;
events {{ worker_connections 256; }}
http {{
    access_log off; sendfile on;
    client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port}; root {directory}/files; client_max_body_size 0;
        location / {{ dav_methods PUT; }}
    }}
}}
"""


class Server:
    """A server with a directory of its own."""

    def __init__(self, network: Network, directory: Path) -> None:
        self.network = network
        self.directory = directory
        self.files = directory / "files"
        self.files.mkdir(parents=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._child: Child | None = None

    def start(self, *words: str | Path) -> None:
        """Starts it, and waits until it listens."""
        self._child = self.network.right.start(words, self.directory / "log")
        self._child.wait_until(
            f"{words[0]} listens", lambda: self.network.right.is_listening(self.port), 60
        )

    @property
    def pid(self) -> int:
        """The process."""
        assert self._child is not None
        return self._child.pid

    def stop(self) -> None:
        """Ends it and removes its files."""
        if self._child is not None:
            self._child.end(seconds=30)
        shutil.rmtree(self.directory, ignore_errors=True)


class KedgeServer(Server):
    """`kedge serve` with its defaults."""

    def __init__(self, network: Network, directory: Path, binary: Path) -> None:
        super().__init__(network, directory)
        self._binary = binary
        self.start(
            binary,
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--data",
            directory / "data",
        )

    def sha256(self, file_id: str) -> str:
        """The digest of a stored file, asked for past the link."""
        facts = self.network.right.run(
            "curl", "--silent", "--fail", f"{self.url}/files/{file_id}/meta"
        )
        return str(json.loads(facts)["sha256"])

    def store(self, path: Path) -> str:
        """Uploads a file past the link; its id."""
        state = self.directory / "state"
        words = ("upload", path, "--server", self.url, "--state-directory", state, "--quiet")
        return self.network.right.run(self._binary, *words).strip()


class Nginx(Server):
    """nginx that stores what is PUT and serves it."""

    def __init__(self, network: Network, directory: Path) -> None:
        super().__init__(network, directory)
        configuration = directory / "nginx.conf"
        configuration.write_text(NGINX.format(directory=directory, port=self.port))
        self.start(find_program("nginx"), "-c", configuration, "-e", directory / "error.log")


class RcloneServer(Server):
    """`rclone serve webdav` over a directory."""

    def __init__(self, network: Network, directory: Path, program: Path) -> None:
        super().__init__(network, directory)
        # Without a cache of directories it finds files that others put there.
        words = ("serve", "webdav", self.files, "--dir-cache-time", "0s")
        self.start(program, *words, "--addr", f"127.0.0.1:{self.port}")


class StreamServer(Server):
    """The other end of the plain stream."""

    def __init__(self, network: Network, directory: Path) -> None:
        super().__init__(network, directory)
        self.start(sys.executable, HERE / "stream.py", "serve", str(self.port))


class Source:
    """A file of random bytes that no other is equal to."""

    def __init__(self, path: Path, byte_count: int, random_bytes: Callable[[int], bytes]) -> None:
        self.path = path
        self.byte_count = byte_count
        digest = hashlib.sha256()
        rest = byte_count
        with open(path, "wb") as file:
            while rest > 0:
                piece = random_bytes(min(rest, 1 << 20))
                digest.update(piece)
                file.write(piece)
                rest -= len(piece)
        self.sha256 = digest.hexdigest()


def sha256(path: Path) -> str:
    """The digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
