"""The service under test, with its owners, tokens, links and uploads."""

import base64
import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[1:1] = [str(Path(__file__).resolve().parents[1] / name) for name in ("servers", "fleet")]

from bucket import Bucket  # noqa: E402
from nodes import Node  # noqa: E402
from postgres import PostgresServer  # noqa: E402
from processes import free_port  # noqa: E402

Fields = list[tuple[str, str]]
# The bytes of every upload here. One chunk, so that a whole upload is one request.
CONTENT = random.Random(1).randbytes(4096)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
JSON: Fields = [("Content-Type", "application/json")]
TUS: Fields = [("Tus-Resumable", "1.0.0")]
APPEND: Fields = [("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "0")]
# A token cannot have the scope admin alone: it includes all of them.
SCOPES = (
    "uploads:write", "uploads:read", "files:read", "files:list", "files:delete", "links:create", "metrics:read",
    "act-as",
)
# Rights over the data of one owner.
USER = frozenset(SCOPES) - {"act-as"}


class Violation(Exception):
    """The service did what a request had no right to, or refused what it had."""


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Violation(reason)


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def bearer(text: str) -> Fields:
    return [("Authorization", f"Bearer {text}")]


def random_id() -> str:
    """An id of a session, file or link that does not exist."""
    return random.randbytes(16).hex()


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    fields: Fields
    body: bytes

    def json(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.body)
        return message

    @property
    def code(self) -> str:
        """The code of the error; empty without one, as after HEAD."""
        with contextlib.suppress(ValueError, AttributeError):
            return str(self.json().get("code", ""))
        return ""

    def field(self, name: str) -> str:
        return next((value for other, value in self.fields if other.lower() == name.lower()), "")

    def __str__(self) -> str:
        return f"{self.status} {self.code}".rstrip()


class _LocalConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Transcript:
    """Secrets that were given out, and answers that must have none of them."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.answers: list[tuple[str, bytes]] = []

    def add_secret(self, name: str, text: str) -> None:
        self.secrets[text] = name

    def add(self, name: str, answer: Answer, is_creation: bool) -> None:
        """Keeps what must have no secret. The answer to a creation gives out a credential."""
        fields = [f"{field}: {value}" for field, value in answer.fields
                  if not (is_creation and field.lower() == "location")]
        body = b"" if is_creation and answer.status < 400 else answer.body
        self.answers.append((name, "\n".join(fields).encode() + b"\n\n" + body))


class Connection:
    """A persistent connection to the service."""

    def __init__(self, transcript: Transcript, place: int | Path, standing: Fields | None = None) -> None:
        """`place` is a port, or the path of a Unix socket; `standing` are fields of every request."""
        self._transcript = transcript
        self._standing = standing or []
        self._http = (
            _LocalConnection(place) if isinstance(place, Path)
            else http.client.HTTPConnection("127.0.0.1", place, timeout=60))

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, fields: Fields | None = None, body: bytes = b"") -> Answer:
        """Sends a request; a field may be repeated."""
        self._http.putrequest(method, path, skip_accept_encoding=True)
        for name, value in self._standing + (fields or []):
            self._http.putheader(name, value)
        if body or method in ("POST", "PUT", "PATCH"):
            self._http.putheader("Content-Length", str(len(body)))
        self._http.endheaders(body or None)
        response = self._http.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        name, _, _ = path.partition("?")
        self._transcript.add(f"{method} {name}", answer, method == "POST" and not name.endswith("/finalize"))
        return answer


@dataclasses.dataclass(frozen=True)
class Upload:
    """A session of the owner under test, with the id of its file once there is one."""

    session: str
    file: str = ""


class World:
    """A service with tokens, and the owner `alice`, to whom the uploads belong."""

    OWNER = "alice"

    def __init__(self, binary: Path, directory: Path, cleanup: contextlib.ExitStack, on_postgres: bool) -> None:
        self.directory = directory
        self.audit_log = directory / "audit.jsonl"
        self.metrics_port = free_port()
        options = [
            "--identity-mode", "tokens", "--log-level", "trace", "--log-audit", str(self.audit_log),
            "--metrics-listen", f"127.0.0.1:{self.metrics_port}", "--limits-min-chunk-size", "4096",
            "--storage-reserve-bytes", "1048576", "--resumable-upload-interim", "never",
        ]
        environment = self._stores(cleanup) if on_postgres else {}
        self.node = Node(binary, directory, options, environment)
        cleanup.callback(self.node.kill)
        self.transcript = Transcript()
        self._threads = threading.local()
        self.node.start()
        self.node.wait_until_ready()
        # A service whose data directory has neither rows nor bytes makes no socket.
        self.local_socket = None if on_postgres else directory / f"node-{self.node.port}" / "admin.sock"
        self.operator = self._operator(binary, environment)
        self.user = self.token(self.OWNER, USER)

    def _stores(self, cleanup: contextlib.ExitStack) -> dict[str, str]:
        """Puts rows into PostgreSQL and bytes into a bucket; returns the environment of the service."""
        database = PostgresServer({"fsync": "off"})
        cleanup.callback(database.stop)
        (self.directory / "bucket").mkdir()
        bucket = Bucket("stub", self.directory / "bucket", cleanup)
        keys = self.directory / "master.key"
        keys.touch(mode=0o600)
        keys.write_text(base64.urlsafe_b64encode(random.randbytes(32)).decode().rstrip("=") + "\n")
        return bucket.environment | {
            "KEDGE_METADATA": f"{database.url}?allow_unsafe=on", "KEDGE_BYTES": bucket.url,
            "KEDGE_SECRETS_MASTER_KEY_FILE": str(keys),
        }

    def _operator(self, binary: Path, environment: dict[str, str]) -> Connection:
        """Returns a connection that may manage the service."""
        if self.local_socket is not None:
            if self.node.child is not None:
                self.node.child.wait_until("there is a socket for operators", self.local_socket.exists)
            return Connection(self.transcript, self.local_socket)
        run = subprocess.run(
            [binary, "token", "create", "operator", "--owner", "operator", "--scopes", "admin"],
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory)} | environment,
            capture_output=True, text=True, check=False)
        expect(run.returncode == 0, f"preparation, kedge token: {run.stderr}")
        self._add_token(run.stdout.strip())
        return Connection(self.transcript, self.node.port, bearer(run.stdout.strip()))

    @property
    def connection(self) -> Connection:
        """The connection of this thread."""
        if not hasattr(self._threads, "connection"):
            self._threads.connection = self.connect()
        connection: Connection = self._threads.connection
        return connection

    def connect(self) -> Connection:
        return Connection(self.transcript, self.node.port)

    def ask(self, method: str, path: str, fields: Fields | None = None, body: bytes = b"") -> Answer:
        return self.connection.ask(method, path, fields, body)

    def made(self, status: int, method: str, path: str, fields: Fields, body: bytes = b"") -> Answer:
        """Sends a request of the preparation, as the owner."""
        answer = self.ask(method, path, bearer(self.user) + fields, body)
        expect(answer.status == status, f"preparation, {method} {path}: {answer} {answer.body[:200]!r}")
        return answer

    # Credentials

    def token(self, owner: str, scopes: frozenset[str], seconds: int | None = None) -> str:
        return self.token_with_id(owner, scopes, seconds)[1]

    def token_with_id(
        self, owner: str, scopes: frozenset[str], seconds: int | None = None
    ) -> tuple[str, str]:
        message: dict[str, Any] = {"name": "matrix", "owner": owner, "scopes": sorted(scopes)}
        if seconds is not None:
            message["expiresInSeconds"] = seconds
        answer = self.operator.ask("POST", "/tokens", JSON, encoded(message))
        expect(answer.status == 201, f"preparation, a token: {answer} {answer.body!r}")
        text = answer.json()["token"]
        self._add_token(text)
        return answer.json()["tokenId"], text

    def _add_token(self, text: str) -> None:
        self.transcript.add_secret("a token", text)
        # The secret alone, as the log of a parser could have it.
        self.transcript.add_secret("the secret of a token", text[17:60])

    def link_with_id(self, token: str, op: str, seconds: int = 3600, **members: Any) -> tuple[str, str]:
        """Makes a link; returns its id and its text."""
        message = {"op": op, "expiresInSeconds": seconds} | members
        answer = self.ask("POST", "/links", bearer(token) + JSON, encoded(message))
        expect(answer.status == 201, f"preparation, a link: {answer} {answer.body!r}")
        text = answer.json()["url"].partition("?link=")[2]
        expect(text.startswith("kl1."), "preparation: the address has no link")
        self.add_link(text)
        return answer.json()["linkId"], text

    def add_link(self, text: str) -> None:
        """Adds a link, also one of an answer, to the secrets."""
        _, _, payload, code = text.split(".")
        self.transcript.add_secret("a link", text)
        self.transcript.add_secret("the payload of a link", payload)
        self.transcript.add_secret("the code of a link", code)

    def link(self, op: str, **members: Any) -> str:
        return self.link_with_id(self.user, op, **members)[1]

    def block(self, owner: str) -> None:
        answer = self.operator.ask("PUT", f"/owners/{owner}", JSON, encoded({"isBlocked": True}))
        expect(answer.status == 200, f"preparation, a block: {answer}")

    # Uploads

    def open_upload(self) -> Upload:
        message = {"fileName": "matrix", "fileSize": len(CONTENT), "chunkSize": len(CONTENT)}
        answer = self.made(201, "POST", "/uploads/sessions", JSON, encoded(message))
        return Upload(answer.json()["sessionId"])

    def received_upload(self) -> Upload:
        upload = self.open_upload()
        path = f"/uploads/sessions/{upload.session}/chunks/0"
        self.made(201, "PUT", path, CHUNK, CONTENT)
        return upload

    def complete_upload(self) -> Upload:
        upload = self.received_upload()
        answer = self.made(200, "POST", f"/uploads/sessions/{upload.session}/finalize", [])
        return Upload(upload.session, answer.json()["remoteFileId"])

    def canceled_upload(self) -> Upload:
        upload = self.open_upload()
        self.made(204, "DELETE", f"/uploads/sessions/{upload.session}", [])
        return upload

    def deleted_upload(self) -> Upload:
        upload = self.complete_upload()
        self.made(204, "DELETE", f"/files/{upload.file}", [])
        return upload

    def partial_upload(self) -> Upload:
        """A complete partial upload of tus."""
        fields = [*TUS, ("Upload-Length", str(len(CONTENT))), ("Upload-Concat", "partial")]
        answer = self.made(201, "POST", "/tus/", fields)
        session = answer.field("Location").rpartition("/")[2]
        self.made(204, "PATCH", f"/tus/{session}", TUS + APPEND, CONTENT)
        return Upload(session)

    def states(self) -> Iterator[tuple[str, Upload]]:
        """Yields an upload in each state."""
        yield "open", self.open_upload()
        yield "received", self.received_upload()
        yield "complete", self.complete_upload()
        yield "canceled", self.canceled_upload()
        yield "deleted", self.deleted_upload()
        yield "partial", self.partial_upload()

    def snapshot(self, *uploads: Upload) -> list[bytes]:
        """Returns what the owner has, to be compared later."""
        texts = [self.made(200, "GET", path, []).body for path in ("/uploads/sessions", "/files", "/me")]
        for upload in uploads:
            texts.append(self.made(200, "GET", f"/uploads/sessions/{upload.session}", []).body)
            if upload.file:
                texts.append(self.made(200, "GET", f"/files/{upload.file}", []).body)
        tokens = self.operator.ask("GET", "/tokens?owner=kept").json()["tokens"]
        owners = self.operator.ask("GET", "/owners/kept-owner").body
        return [*texts, encoded([token.get("revokedAt") for token in tokens]), owners]


CHUNK: Fields = [
    ("Content-Type", "application/octet-stream"),
    ("Content-Range", f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"), ("X-Chunk-Hash", f"sha256={DIGEST}"),
]
