"""The service under test with the file that all clients upload, and what must be true of every upload."""

import hashlib
import json
import random
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from nodes import Node
from transfers import Violation

MEBIBYTE = 1 << 20


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Violation(reason)


class Source:
    """A file of random bytes, some more than whole chunks."""

    def __init__(self, path: Path, seed: int, mebibytes: int) -> None:
        self.path = path
        self.byte_count = mebibytes * MEBIBYTE + 12_345
        chooser = random.Random(seed)
        digest = hashlib.sha256()
        with open(path, "wb") as file:
            for count in [MEBIBYTE] * mebibytes + [12_345]:
                piece = chooser.randbytes(count)
                digest.update(piece)
                file.write(piece)
        self.sha256 = digest.hexdigest()

    def read(self, first: int, count: int = -1) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(first)
            return file.read(count)


@dataclass(frozen=True)
class Download:
    """The result of a GET."""

    sha256: str
    byte_count: int
    etag: str


def download(url: str) -> Download:
    """Reads all of it, wherever the service sends us; raises `Violation` when it is not there."""
    digest = hashlib.sha256()
    byte_count = 0
    try:
        # Whole files may come from a bucket, which has other entity tags; ranges come from the service.
        first = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
        with urllib.request.urlopen(first, timeout=60) as answer:
            etag = answer.headers["ETag"] or ""
        with urllib.request.urlopen(url, timeout=60) as answer:
            while piece := answer.read(MEBIBYTE):
                digest.update(piece)
                byte_count += len(piece)
    except urllib.error.HTTPError as error:
        raise Violation(f"GET {urlsplit(url).path}: {error.code}") from error
    return Download(digest.hexdigest(), byte_count, etag)


def expect_stored_once(names: list[str], source: Source) -> None:
    """`names` are the SHA-256 of everything stored that has the source's size."""
    expect(names == [source.sha256], f"the same content is stored as {names}")


class Service:
    """One `kedge serve`, on an embedded store unless its options say otherwise."""

    def __init__(self, binary: Path, directory: Path, options: Sequence[str] = (),
                 environment: Mapping[str, str] | None = None) -> None:
        self.binary = binary
        self.directory = directory
        self.node = Node(binary, directory, options, dict(environment or {}))
        self.url = f"http://127.0.0.1:{self.node.port}"
        self.data = directory / f"node-{self.node.port}"

    def start(self) -> None:
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Starts it; it serves a moment later."""
        self.node.start()

    def wait(self) -> None:
        """Waits until it serves."""
        self.node.wait_until_ready()

    def kill(self) -> None:
        self.node.kill()

    def stop(self) -> None:
        if self.node.child is not None:
            self.node.child.end()

    def here(self, url: str) -> str:
        """Returns the URL of the service itself, without the proxy before it."""
        return self.url + urlsplit(url).path

    def check_upload(self, url: str, source: Source) -> str:
        """Downloads an upload and compares it with its source; returns its entity tag."""
        found = download(self.here(url))
        expect(found.byte_count == source.byte_count,
               f"{found.byte_count} bytes came back of {source.byte_count}")
        expect(found.sha256 == source.sha256, "the bytes that came back are not those that were sent")
        expect(source.sha256 in found.etag and not found.etag.startswith("W/"),
               f"the entity tag is {found.etag}")
        return found.etag

    def check_one_blob(self, source: Source) -> None:
        """All uploads of one content are stored once."""
        blobs = [path for path in (self.data / "blobs").rglob("*") if path.is_file()]
        same = [path.name for path in blobs if path.stat().st_size == source.byte_count]
        expect_stored_once(same, source)

    def file_names(self) -> list[str]:
        """The names of the newest files, newest first."""
        with urllib.request.urlopen(f"{self.url}/files?limit=1000", timeout=60) as answer:
            return [file["fileName"] for file in json.load(answer)["files"]]

    def newest_file(self, name: str) -> str:
        """The address of the newest file, which must have this name."""
        with urllib.request.urlopen(f"{self.url}/files?limit=1", timeout=60) as answer:
            files = json.load(answer)["files"]
        expect([file["fileName"] for file in files] == [name], f"the newest file is not {name}")
        return f"{self.url}/files/{files[0]['remoteFileId']}"

    def upload_natively(self, server: str, source: Source) -> str:
        """With the command of Kedge; returns the file's address."""
        run = subprocess.run(
            [self.binary, "upload", source.path, "--quiet", "--server", server,
             "--state-directory", self.directory / "state"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory)},
            capture_output=True, text=True, timeout=600, check=False)
        expect(run.returncode == 0, f"kedge upload ended with {run.returncode}: {run.stderr}")
        return f"{self.url}/files/{run.stdout.strip()}"
