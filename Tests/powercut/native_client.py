"""The native HTTP interface without a client library: what is asked and answered is what is tested."""

import hashlib
import http.client
import json
import random
import socket
import time
from typing import Any

CHUNK_SIZE = 16384


def sha256(data: bytes) -> str:
    """The digest as the interface writes it."""
    return hashlib.sha256(data).hexdigest()


def content(name: str, byte_count: int) -> bytes:
    """The bytes of the file of this name; made anew wherever they are needed."""
    return random.Random(name).randbytes(byte_count)


class Refused(Exception):
    """An answer that was not the expected one."""


class NativeClient:
    """One connection to the service."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """One request and its answer, whatever it is."""
        self._http.request(method, path, body=body, headers=headers or {})
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def expect(
        self, wanted: tuple[int, ...], method: str, path: str, body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """One request; an answer with another status is an error."""
        status, answer = self.ask(method, path, body, headers)
        if status not in wanted:
            raise Refused(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    def create(self, name: str, byte_count: int) -> str:
        """Creates a session; its id."""
        wish = {"fileName": name, "fileSize": byte_count, "chunkSize": CHUNK_SIZE}
        body = json.dumps(wish).encode()
        kind = {"Content-Type": "application/json"}
        return str(json.loads(self.expect((201,), "POST", "/uploads/sessions", body, kind))["sessionId"])

    def status(self, session: str) -> dict[str, Any]:
        """Returns the status of a session."""
        answer: dict[str, Any] = json.loads(self.expect((200,), "GET", f"/uploads/sessions/{session}"))
        return answer

    def put(self, session: str, data: bytes, index: int, start: int = 0) -> None:
        """Sends a chunk from `start` bytes into it to its end."""
        headers, body = self._chunk(data, index, start)
        path = f"/uploads/sessions/{session}/chunks/{index}"
        self.expect((200, 201), "PUT", path, body, headers)

    def put_part(self, session: str, data: bytes, index: int, byte_count: int) -> None:
        """Sends the head of a chunk and cuts the connection."""
        headers, body = self._chunk(data, index, 0)
        lines = [f"PUT /uploads/sessions/{session}/chunks/{index} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall("\r\n".join(lines).encode() + body[:byte_count])

    def wait_for_partial(self, session: str, index: int) -> int:
        """The offset that the service announces for a chunk that broke off; 0 when it announces none."""
        for _ in range(40):
            for partial in self.status(session)["partialChunks"]:
                if partial["index"] == index:
                    return int(partial["receivedBytes"])
            time.sleep(0.01)
        return 0

    @staticmethod
    def _chunk(data: bytes, index: int, start: int) -> tuple[dict[str, str], bytes]:
        first = index * CHUNK_SIZE
        chunk = data[first : first + CHUNK_SIZE]
        last = first + len(chunk) - 1
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Range": f"bytes {first + start}-{last}/{len(data)}",
            "X-Chunk-Hash": f"sha256={sha256(chunk)}",
        }
        return headers, chunk[start:]

    def finalize(self, session: str, digest: str) -> str:
        """Finishes a session, waiting for as long as the service asks; the file's id."""
        body = json.dumps({"fileHashSha256": digest}).encode()
        kind = {"Content-Type": "application/json"}
        path = f"/uploads/sessions/{session}/finalize"
        for _ in range(20):
            status, answer = self.ask("POST", path, body, kind)
            if status != 202:
                break
            time.sleep(0.1)
        if status != 200:
            raise Refused(f"POST {path}: {status} {answer[:300]!r}")
        return str(json.loads(answer)["remoteFileId"])

    def cancel(self, session: str) -> None:
        """Gives a session up."""
        self.expect((204,), "DELETE", f"/uploads/sessions/{session}")

    def post(self, name: str, data: bytes) -> str:
        """Sends a whole file in one request; its id."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        return str(json.loads(self.expect((201,), "POST", "/files", data, headers))["remoteFileId"])

    def delete(self, file: str) -> None:
        """Deletes a finished file."""
        self.expect((204,), "DELETE", f"/files/{file}")
