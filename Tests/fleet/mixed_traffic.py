"""Uploads whose every request goes to another node of a fleet, and the sums that their owner must have."""

import base64
import contextlib
import hashlib
import json
import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from nodes import Node
from transfers import Violation
from wire import Answer, Settings, WireError, ask

# A bucket has no smaller chunks. Files of the native protocol have up to three.
CHUNK_BYTES = 5 << 20
PIECE_BYTES = 512 << 10
SETTINGS = Settings(timeout=60)
IETF = {"Upload-Draft-Interop-Version": "8"}
TUS = {"Tus-Resumable": "1.0.0"}
OFFSET_TYPE = {"Content-Type": "application/offset+octet-stream"}


def path_in(answer: Answer, field: str) -> str:
    """The path of the address in a field, which must be there."""
    address = answer.get(field)
    if address is None:
        raise Violation(f"an answer {answer.status} has no {field}")
    return urlsplit(address).path


def members(answer: Answer) -> dict[str, Any]:
    """The object in the body."""
    found: dict[str, Any] = json.loads(answer.body)
    return found


class Pool:
    """The nodes that get requests, as a load balancer knows them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._nodes: list[Node] = []
        self._busy: dict[Node, int] = {}

    def add(self, node: Node) -> None:
        """Sends requests to it, too."""
        with self._changed:
            self._nodes.append(node)
            self._busy[node] = 0

    def remove(self, node: Node) -> None:
        """Sends no more requests to it, and waits for the answers that it owes."""
        with self._changed:
            self._nodes.remove(node)
            if not self._changed.wait_for(lambda: self._busy[node] == 0, 60):
                raise Violation("a node does not answer")

    @contextlib.contextmanager
    def node(self, chooser: random.Random) -> Iterator[Node]:
        """Lends a node at random."""
        with self._changed:
            node = chooser.choice(self._nodes)
            self._busy[node] += 1
        try:
            yield node
        finally:
            with self._changed:
                self._busy[node] -= 1
                self._changed.notify_all()


class Traffic:
    """Uploads of all kinds, one after the other; several may run at the same time."""

    def __init__(self, pool: Pool, seed: str) -> None:
        self._pool = pool
        self._chooser = random.Random(seed)
        # Sizes of the files that were not deleted, and of the sessions that were left open, by their paths.
        self.files: dict[str, int] = {}
        self.open: dict[str, int] = {}
        # Sizes of partial uploads that were put together. They stay for a while.
        self.parts: list[int] = []
        self._digests: dict[str, str] = {}
        self.count = 0

    def run_once(self) -> None:
        """One upload by one of the protocols; raises `Violation` at any answer that it does not expect."""
        kinds = [self._native, self._canceled, self._left_open, self._tus, self._tus_unknown_size,
                 self._tus_terminated, self._tus_in_parts, self._ietf, self._delete_file]
        self._chooser.choice(kinds)()
        self.count += 1

    def finish_open(self) -> None:
        """Completes half of the sessions that were left open."""
        for path in list(self.open)[::2]:
            size = self.open.pop(path)
            self._finish(path, self._content(size))

    def check_files(self) -> None:
        """Reads every file that was not deleted."""
        for path, size in self.files.items():
            content = self._ask("GET", path, {200}).body
            if len(content) != size or hashlib.sha256(content).hexdigest() != self._digests[path]:
                raise Violation(f"{path} has other bytes")

    def _ask(self, method: str, path: str, statuses: set[int], fields: Mapping[str, str] | None = None,
             body: bytes | None = None) -> Answer:
        """Sends one request to one node."""
        with self._pool.node(self._chooser) as node:
            try:
                answer = ask(f"http://127.0.0.1:{node.port}{path}", method, dict(fields or {}), SETTINGS, body)
            except WireError as error:
                raise Violation(f"{method} {path}: {error!r}") from error
        if answer.status not in statuses:
            raise Violation(f"{method} {path} is answered {answer.status} {answer.body[:500]!r} by {node.log.name}")
        return answer

    def _new_content(self, most: int = 3 * PIECE_BYTES) -> bytes:
        return self._chooser.randbytes(self._chooser.randrange(1, most))

    @staticmethod
    def _content(size: int) -> bytes:
        """The bytes of a session that is left open."""
        return random.Random(size).randbytes(size)

    def _keep(self, file: str, content: bytes) -> None:
        self.files[file] = len(content)
        self._digests[file] = hashlib.sha256(content).hexdigest()

    def _create(self, content: bytes) -> str:
        """A session of the native protocol, asked for twice as by a client that lost the answer."""
        body = json.dumps({"fileName": "mixed.bin", "fileSize": len(content), "chunkSize": CHUNK_BYTES}).encode()
        fields = {"Content-Type": "application/json", "Idempotency-Key": self._chooser.randbytes(16).hex()}
        path = path_in(self._ask("POST", "/uploads/sessions", {201}, fields, body), "Location")
        again = members(self._ask("POST", "/uploads/sessions", {200, 201}, fields, body))["sessionId"]
        if again != path.rpartition("/")[2]:
            raise Violation(f"the repeated creation of {path} made {again}")
        return path

    def _send(self, path: str, content: bytes, indices: list[int]) -> None:
        for index in indices:
            first = index * CHUNK_BYTES
            chunk = content[first:first + CHUNK_BYTES]
            self._ask("PUT", f"{path}/chunks/{index}", {200, 201}, {
                "Content-Range": f"bytes {first}-{first + len(chunk) - 1}/{len(content)}",
                "X-Chunk-Hash": f"sha256={hashlib.sha256(chunk).hexdigest()}"}, chunk)

    def _indices(self, content: bytes) -> list[int]:
        indices = list(range(-(-len(content) // CHUNK_BYTES)))
        self._chooser.shuffle(indices)
        return indices

    def _finish(self, path: str, content: bytes) -> None:
        status = members(self._ask("GET", path, {200}))
        if status["chunkSize"] != CHUNK_BYTES:
            raise Violation(f"{path} has chunks of {status['chunkSize']} bytes")
        received = set(status["receivedChunks"])
        self._send(path, content, [index for index in self._indices(content) if index not in received])
        fields = {"Content-Type": "application/json"}
        deadline = time.monotonic() + 60
        while (answer := self._ask("POST", f"{path}/finalize", {200, 202}, fields, b"{}")).status == 202:
            if time.monotonic() > deadline:
                raise Violation(f"{path} is not finalized")
            time.sleep(0.1)
        self._keep(f"/files/{members(answer)['remoteFileId']}", content)

    def _native(self) -> None:
        content = self._new_content(3 * CHUNK_BYTES)
        self._finish(self._create(content), content)

    def _canceled(self) -> None:
        content = self._new_content(3 * CHUNK_BYTES)
        path = self._create(content)
        self._send(path, content, self._indices(content)[:1])
        self._ask("DELETE", path, {204})
        self._ask("DELETE", path, {204})

    def _left_open(self) -> None:
        size = self._chooser.randrange(CHUNK_BYTES, 3 * CHUNK_BYTES)
        content = self._content(size)
        path = self._create(content)
        self._send(path, content, self._indices(content)[:1])
        self.open[path] = size

    def _append(self, path: str, content: bytes, more: Mapping[str, str] | None = None) -> None:
        """Sends all of it by tus, in pieces; the last one has more fields."""
        offset = 0
        while offset < len(content):
            piece = content[offset:offset + self._chooser.randrange(1, PIECE_BYTES)]
            is_last = offset + len(piece) == len(content)
            fields = TUS | OFFSET_TYPE | {"Upload-Offset": str(offset)} | (dict(more or {}) if is_last else {})
            answer = self._ask("PATCH", path, {204}, fields, piece)
            offset += len(piece)
            seen = self._ask("HEAD", path, {200, 204}, TUS).get("Upload-Offset")
            if (answer.get("Upload-Offset"), seen) != (str(offset), str(offset)):
                raise Violation(f"{path} has the offset {seen} after {offset} bytes")

    def _keep_tus(self, path: str, content: bytes) -> None:
        """Waits until an upload has become a file."""
        deadline = time.monotonic() + 60
        while (file := self._ask("HEAD", path, {200, 204}, TUS).get("Content-Location")) is None:
            if time.monotonic() > deadline:
                raise Violation(f"{path} does not become a file")
            time.sleep(0.1)
        self._keep(urlsplit(file).path, content)

    def _new_tus(self, fields: Mapping[str, str]) -> str:
        name = base64.b64encode(b"mixed.bin").decode()
        named = TUS | {"Upload-Metadata": f"filename {name}"}
        return path_in(self._ask("POST", "/tus/", {201}, named | dict(fields), b""), "Location")

    def _tus(self) -> None:
        content = self._new_content()
        path = self._new_tus({"Upload-Length": str(len(content))})
        self._append(path, content)
        self._keep_tus(path, content)

    def _tus_unknown_size(self) -> None:
        content = self._new_content()
        path = self._new_tus({"Upload-Defer-Length": "1"})
        self._append(path, content, {"Upload-Length": str(len(content))})
        self._keep_tus(path, content)

    def _tus_terminated(self) -> None:
        content = self._new_content()
        path = self._new_tus({"Upload-Length": str(len(content) + 1)})
        self._append(path, content)
        self._ask("DELETE", path, {204}, TUS)

    def _tus_in_parts(self) -> None:
        contents = [self._new_content(), self._new_content()]
        paths = [self._new_tus({"Upload-Length": str(len(part)), "Upload-Concat": "partial"}) for part in contents]
        for path, part in zip(paths, contents, strict=True):
            self._append(path, part)
        final = self._new_tus({"Upload-Concat": f"final;{' '.join(paths)}"})
        self._keep_tus(final, b"".join(contents))
        self.parts += map(len, contents)

    def _ietf(self) -> None:
        content = self._new_content()
        half = len(content) // 2
        created = self._ask("POST", "/files", {201}, IETF | {"Upload-Complete": "?0"}, content[:half])
        path = path_in(created, "Location")
        offset = self._ask("HEAD", path, {200, 204}, IETF).get("Upload-Offset")
        if offset != str(half):
            raise Violation(f"{path} has the offset {offset} after {half} bytes")
        answer = self._ask("PATCH", path, {200, 201, 204}, IETF | {
            "Content-Type": "application/partial-upload", "Upload-Offset": str(half), "Upload-Complete": "?1"},
            content[half:])
        self._keep(path_in(answer, "Content-Location"), content)

    def _delete_file(self) -> None:
        if not self.files:
            return
        path = self._chooser.choice(list(self.files))
        del self.files[path]
        self._ask("DELETE", path, {204})
        self._ask("GET", path, {404, 410})


class Crowd:
    """Several uploads at a time, until they are asked to end."""

    def __init__(self, traffic: list[Traffic]) -> None:
        self._traffic = traffic
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begins."""
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in self._traffic]
        for thread in self._threads:
            thread.start()

    def wait_for(self, count: int, seconds: float) -> None:
        """Waits until so many uploads more are over; raises the first failure."""
        target = self.count + count
        deadline = time.monotonic() + seconds
        while self.count < target:
            if self._failures:
                raise self._failures[0]
            if time.monotonic() > deadline:
                raise Violation(f"{self.count} uploads were made within {seconds} s, and not {target}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Waits for the uploads that have begun; raises the first failure."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)
        if self._failures:
            raise self._failures[0]

    @property
    def count(self) -> int:
        """Uploads that are over."""
        return sum(each.count for each in self._traffic)

    def _run(self, traffic: Traffic) -> None:
        try:
            while not self._is_over.is_set() and not self._failures:
                traffic.run_once()
        except Exception as error:  # noqa: BLE001  raised again by the main thread
            self._failures.append(error)
