#!/usr/bin/env python3
"""Cuts uploads at every sixteenth of their body, in every protocol, politely and rudely.

    cut_bodies.py --binary KEDGE [--long]

Each body ends after so many sixteenths, with the end of the stream (FIN) or with a reset (RST). Nothing that
was not sent may be announced, what is announced must survive kill -9, and the upload goes on from there to
the right file. A body that counts only as a whole leaves nothing behind.
"""

import base64
import contextlib
import dataclasses
import hashlib
import http.client
import json
import socket
import struct
import sys
import time
from collections.abc import Iterator

from proof import SMALL_CHUNKS, Stage, arguments, expect, run_proof, started
import native_client
from native_client import NativeClient, content, sha256

BODY = 512 << 10
# The bytes that a connection may have in its buffers when it ends: see docs/DURABILITY.md.
BUFFERED = 64 << 10
PARTS = 16


@dataclasses.dataclass
class Cut:
    """One upload that was cut."""

    protocol: str
    sent: int
    is_rude: bool
    session: str
    name: str
    announced: int = 0

    def __str__(self) -> str:
        return f"{self.protocol}, {self.sent} of {BODY} bytes, {'RST' if self.is_rude else 'FIN'}"


class Cutter:
    """Begins uploads and cuts them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.client = NativeClient(port)

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> http.client.HTTPResponse:
        """A request of its own connection; the body of the answer has been read.

        IETF uploads name no version of the draft: then there is no 104, which this client does not know.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            answer.read()
            return answer

    def begin(self, protocol: str, name: str) -> str:
        """A new upload; its id."""
        if protocol == "native":
            return self.client.create(name, BODY)
        if protocol.startswith("tus"):
            answer = self.ask("POST", "/tus/", {"Tus-Resumable": "1.0.0", "Upload-Length": str(BODY)})
        else:
            answer = self.ask("POST", "/files", {
                "Upload-Complete": "?0",
                "Upload-Length": str(BODY), "Content-Type": "application/octet-stream"})
        expect(answer.status == 201, f"{protocol}: creation is answered {answer.status}")
        return str(answer.getheader("Location")).rpartition("/")[2]

    def head(self, protocol: str, session: str, data: bytes, first: int) -> tuple[str, str, dict[str, str]]:
        """Method, path and fields of the request that sends what is left."""
        if protocol == "native":
            fields = {
                "Content-Type": "application/octet-stream",
                "Content-Range": f"bytes {first}-{BODY - 1}/{BODY}",
                "X-Chunk-Hash": f"sha256={sha256(data)}"}
            return "PUT", f"/uploads/sessions/{session}/chunks/0", fields
        if protocol.startswith("tus"):
            fields = {
                "Tus-Resumable": "1.0.0", "Upload-Offset": str(first),
                "Content-Type": "application/offset+octet-stream"}
            if protocol == "tus with a checksum":
                digest = base64.b64encode(hashlib.sha1(data[first:]).digest()).decode()
                fields["Upload-Checksum"] = f"sha1 {digest}"
            return "PATCH", f"/tus/{session}", fields
        if protocol == "whole":
            return "POST", "/files", {"Content-Type": "application/octet-stream"}
        return "PATCH", f"/uploads/resumable/{session}", {
            "Upload-Complete": "?1", "Upload-Offset": str(first),
            "Content-Type": "application/partial-upload"}

    def cut(self, cut: Cut, data: bytes) -> None:
        """Sends a part of the body and ends the connection."""
        method, path, fields = self.head(cut.protocol, cut.session, data, 0)
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {BODY}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + data[: cut.sent])
            if cut.is_rude:
                # A reset takes what is in the system's buffers along; so some of it is read first.
                time.sleep(0.03)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def offset(self, cut: Cut) -> int:
        """Returns the offset that the service reports."""
        if cut.protocol == "native":
            status = self.client.status(cut.session)
            if 0 in status["receivedChunks"]:
                return BODY
            return sum(int(part["receivedBytes"]) for part in status["partialChunks"])
        _, path, fields = self.head(cut.protocol, cut.session, b"", 0)
        version = {name: fields[name] for name in fields if name == "Tus-Resumable"}
        answer = self.ask("HEAD", path, version)
        expect(answer.status in (200, 204), f"{cut}: HEAD is answered {answer.status}")
        return int(answer.getheader("Upload-Offset") or 0)

    def settled_offset(self, cut: Cut) -> int:
        """Waits a moment for the end of the stream to be noticed, then asks."""
        deadline = time.monotonic() + 5
        least = 0 if cut.is_rude or cut.protocol == "tus with a checksum" else cut.sent - BUFFERED
        while True:
            found = self.offset(cut)
            if found >= least or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def finish(self, cut: Cut, data: bytes) -> None:
        """Sends the rest, and holds the file against what was meant."""
        if cut.announced < BODY:
            method, path, fields = self.head(cut.protocol, cut.session, data, cut.announced)
            answer = self.ask(method, path, fields, data[cut.announced :])
            expect(answer.status in (200, 201, 204), f"{cut}: the rest is answered {answer.status}")
        elif cut.protocol == "IETF":
            method, path, fields = self.head(cut.protocol, cut.session, data, cut.announced)
            self.ask(method, path, fields)
        if cut.protocol == "native":
            file = self.client.finalize(cut.session, sha256(data))
        else:
            file = str(self.client.status(cut.session).get("remoteFileId"))
        found = self.client.expect((200,), "GET", f"/files/{file}")
        expect(found == data, f"{cut}: the file has other bytes")


def cuts(protocols: tuple[str, ...], rounds: int) -> Iterator[tuple[str, int, bool, int]]:
    """Every protocol, every sixteenth, both ends; not yet begun."""
    for number in range(rounds):
        for protocol in protocols:
            for part in range(PARTS + 1):
                for is_rude in (False, True):
                    yield protocol, BODY * part // PARTS, is_rude, number


def play(stage: Stage) -> str:
    """All cuts, a kill, and all resumptions; what they showed."""
    native_client.CHUNK_SIZE = BODY  # the whole body is one chunk
    node = started(stage.node(*SMALL_CHUNKS))
    cutter = Cutter(node.port)
    done = []
    protocols = ("native", "tus", "IETF", "tus with a checksum")
    for protocol, sent, is_rude, number in cuts(protocols, 5 if stage.options.long else 1):
        name = f"{protocol}-{sent}-{is_rude}-{number}"
        cut = Cut(protocol, sent, is_rude, cutter.begin(protocol, name), name)
        cutter.cut(cut, content(name, BODY))
        cut.announced = cutter.settled_offset(cut)
        expect(cut.announced <= sent, f"{cut}: {cut.announced} bytes are announced")
        if protocol == "tus with a checksum":
            expect(cut.announced in (0, BODY), f"{cut}: {cut.announced} unchecked bytes are announced")
        elif not is_rude:
            expect(cut.announced >= sent - BUFFERED, f"{cut}: only {cut.announced} bytes were kept")
        done.append(cut)
    wholes = check_wholes(cutter)
    cutter.client.close()
    node.kill()
    started(node)
    for cut in done:
        found = cutter.offset(cut)
        expect(found >= cut.announced, f"{cut}: {cut.announced} were announced, {found} after kill -9")
        cut.announced = found
        cutter.finish(cut, content(cut.name, BODY))
    return f"{len(done)} cuts of {len(protocols)} kinds of uploads resumed, {wholes} whole bodies left nothing"


def check_wholes(cutter: Cutter) -> int:
    """Files in one request: cut, they are no files; how many."""
    count = 0
    for protocol, sent, is_rude, _ in cuts(("whole",), 1):
        if sent < BODY:
            cutter.cut(Cut(protocol, sent, is_rude, "", ""), content("whole", BODY))
            count += 1
    time.sleep(0.5)
    files = json.loads(cutter.client.expect((200,), "GET", "/files"))["files"]
    names = {entry.get("fileHashSha256", entry.get("sha256")) for entry in files}
    expect(sha256(content("whole", BODY)) not in names, "a file that was cut is listed")
    return count


if __name__ == "__main__":
    sys.exit(run_proof("cut-bodies", arguments(__doc__).parse_args(), play))
