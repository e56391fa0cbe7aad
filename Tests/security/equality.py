"""Another owner's object is answered like an unknown one, byte for byte."""

import re
import socket
from collections.abc import Callable, Iterator

from contract import Operation
from operations import ROWS
from world import JSON, TUS, USER, Fields, World, bearer, encoded, expect, random_id

REQUEST_ID = "same-request"
DATE = re.compile(rb"(?mi)^date: .*\r\n")
# In the answer that has created a session, these differ always.
NEW = re.compile(rb'"(?:sessionId|expiresAt|uploadLink)":"[^"]*"|/uploads/sessions/[0-9a-f]{32}')
PATTERN = re.compile(r"\{(sessionId|fileId|linkId)\}")
# Fields that change what an operation reads before it answers.
VARIANTS: dict[str, list[tuple[str, Fields]]] = {
    "GET /files/{fileId}": [("", [("Range", "bytes=0-9")]), ("", [("If-None-Match", "*")])],
    "GET /tus/{sessionId}": [("", [("Range", "bytes=0-9")])],
    "GET /uploads/sessions/{sessionId}": [("?chunks=digests", []), ("?storedFiles=true", [])],
    "PATCH /tus/{sessionId}": [("", [("Upload-Offset", "9")])],
    "HEAD /uploads/resumable/{sessionId}": [("", [("Upload-Draft-Interop-Version", "8")])],
}


def exchange(port: int, method: str, path: str, fields: Fields, body: bytes) -> bytes:
    """Sends a request over a connection of its own; returns the bytes of the answer without the date."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in [*fields, ("X-Request-ID", REQUEST_ID)]]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        while data := connection.recv(65536):
            answer += data
    return DATE.sub(b"", answer, count=1)


class Equality:
    """Asks for foreign and for unknown objects."""

    def __init__(self, world: World, operations: dict[str, Operation]) -> None:
        self.world = world
        self.operations = operations
        self.uploads = list(world.states())
        self.mine = world.complete_upload()
        self.stranger = bearer(world.token("mallory", USER))
        self.pair_count = 0

    def run(self) -> int:
        """Compares all answers; returns the number of pairs."""
        failures = [*self._paths(), *self._bodies()]
        expect(not failures, f"{len(failures)} differences:\n  " + "\n  ".join(failures))
        return self.pair_count

    def _paths(self) -> Iterator[str]:
        for name, operation in self.operations.items():
            found = PATTERN.search(operation.path)
            if not found or operation.is_public:
                continue
            for credential, fields, query in self._credentials(operation, found[1]):
                for state, target in self._ids(found[1]):
                    for more, changes in [("", []), *VARIANTS.get(name, [])]:
                        yield from self._difference(
                            f"{name}{more} of a {state} object with {credential}", target,
                            self._request(operation, fields + changes, query, more))

    def _request(
        self, operation: Operation, fields: Fields, query: str, more: str
    ) -> Callable[[str], tuple[str, str, Fields, bytes]]:
        row = ROWS[operation.name][0]
        replaced = {name.lower() for name, _ in fields}
        kept = [(name, value) for name, value in row.fields if name.lower() not in replaced]

        def request(target: str) -> tuple[str, str, Fields, bytes]:
            path = PATTERN.sub(target, operation.path).replace("{index}", "0") + more
            if query:
                path += ("&" if more else "?") + query
            body = row.body if isinstance(row.body, bytes) else b""
            return operation.method, path, kept + fields, body
        return request

    def _credentials(self, operation: Operation, parameter: str) -> Iterator[tuple[str, Fields, str]]:
        """Yields name, fields and query of credentials that are not for the objects."""
        yield "a token of another owner", self.stranger, ""
        if "session" in operation.link_kinds:
            yield "a link of another session", [], "link=" + self.world.link("session", sessionId=self.mine.session)
        if "get" in operation.link_kinds:
            yield "a link of another file", [], "link=" + self.world.link("get", fileId=self.mine.file)

    def _ids(self, parameter: str) -> Iterator[tuple[str, str]]:
        if parameter == "linkId":
            yield "valid", self.world.link_with_id(self.world.user, "put")[0]
            return
        for state, upload in self.uploads:
            text = upload.session if parameter == "sessionId" else upload.file
            if text:
                yield state, text

    def _bodies(self) -> Iterator[str]:
        """Compares requests that name an object elsewhere than in their path."""
        def post(path: str, member: str, others: dict[str, object]) -> Callable[[str], tuple[str, str, Fields, bytes]]:
            return lambda target: ("POST", path, self.stranger + JSON, encoded(others | {member: target}))

        def concatenate(target: str) -> tuple[str, str, Fields, bytes]:
            return "POST", "/tus/", [*self.stranger, *TUS, ("Upload-Concat", f"final;/tus/{target}")], b""

        for state, upload in self.uploads:
            # An id that cannot be adopted does not count, so a new session begins.
            adopting: dict[str, object] = {"fileName": "matrix", "fileSize": 4096}
            yield from self._difference(
                f"adoption of a {state} session", upload.session,
                post("/uploads/sessions", "adoptSessionId", adopting), b"201")
            yield from self._difference(
                f"a link for a {state} session", upload.session,
                post("/links", "sessionId", {"op": "session", "expiresInSeconds": 60}))
            yield from self._difference(f"concatenation of a {state} session", upload.session, concatenate)
            if upload.file:
                yield from self._difference(
                    f"a link for a {state} file", upload.file,
                    post("/links", "fileId", {"op": "get", "expiresInSeconds": 60}))

    def _difference(
        self, name: str, foreign: str, request: Callable[[str], tuple[str, str, Fields, bytes]],
        *further_statuses: bytes,
    ) -> Iterator[str]:
        """Yields the difference between the answers about a foreign object and an unknown one."""
        self.pair_count += 1
        answers = []
        for target in (foreign, random_id()):
            answer = exchange(self.world.node.port, *request(target))
            # An answer may repeat the id that the client has sent.
            answers.append(NEW.sub(b"NEW", answer.replace(target.encode(), b"ID")))
        if answers[0].split(b" ", 2)[1] not in (b"404", b"400", *further_statuses):
            yield f"{name}: {answers[0][:300]!r}"
        elif answers[0] != answers[1]:
            yield f"{name}: {answers[0]!r} and {answers[1]!r}"
