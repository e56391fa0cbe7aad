"""A request for each operation, and the facts that the contract cannot state."""

import dataclasses
from collections.abc import Callable

from world import APPEND, CHUNK, CONTENT, JSON, TUS, Fields, Upload, World, encoded

IETF = [("Upload-Draft-Interop-Version", "8")]
FINAL_APPEND: Fields = [
    ("Content-Type", "application/partial-upload"), ("Upload-Offset", "0"), ("Upload-Complete", "?1"),
]
NEW_SESSION = encoded({"fileName": "matrix", "fileSize": len(CONTENT), "chunkSize": len(CONTENT)})
NEW_TOKEN = encoded({"name": "matrix", "owner": "made", "scopes": ["files:read"]})


@dataclasses.dataclass(frozen=True)
class Target:
    """The object that a request names: the text of its id, and the upload behind it, if there is one."""

    id: str = ""
    upload: Upload | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """A request for an operation, its success, and the rules that `security` in the contract cannot state."""

    success: int
    fields: Fields = dataclasses.field(default_factory=list)
    body: bytes | Callable[[Target], bytes] = b""
    # Makes the object that the request names. Without it, the request names none.
    make: Callable[[World], Target] | None = None
    # The code of an answer about an object of another owner. Empty where objects have no owner.
    unknown: str = ""
    # Scopes that are needed beside one of the contract's.
    further_scopes: frozenset[str] = frozenset()
    # Whether the links of the contract pass.
    accepts_links: bool = True
    note: str = ""

    def path(self, pattern: str, target: Target) -> str:
        for name in ("{sessionId}", "{fileId}", "{linkId}", "{tokenId}", "{owner}"):
            pattern = pattern.replace(name, target.id)
        return pattern.replace("{index}", "0")

    def content(self, target: Target) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body(target)


def open_session(world: World) -> Target:
    upload = world.open_upload()
    return Target(upload.session, upload)


def received_session(world: World) -> Target:
    upload = world.received_upload()
    return Target(upload.session, upload)


def complete_session(world: World) -> Target:
    upload = world.complete_upload()
    return Target(upload.session, upload)


def file(world: World) -> Target:
    upload = world.complete_upload()
    return Target(upload.file, upload)


def link(world: World) -> Target:
    return Target(world.link_with_id(world.user, "put")[0])


def token(world: World) -> Target:
    return Target(world.token_with_id("kept", frozenset(["files:read"]))[0])


def owner(world: World) -> Target:
    return Target("kept-owner")


def session(success: int, fields: Fields | None = None, body: bytes = b"", **facts: object) -> Row:
    """A row whose request names an open session."""
    facts.setdefault("make", open_session)
    return Row(success, fields or [], body, unknown="SESSION_NOT_FOUND", **facts)  # type: ignore[arg-type]


def of_file(success: int, **facts: object) -> Row:
    """A row whose request names a file."""
    return Row(success, make=file, unknown="FILE_NOT_FOUND", **facts)  # type: ignore[arg-type]


def new_link(op: str, member: str, needed: str, row: Row) -> Row:
    """A row that makes a link for an object in its body."""
    def body(target: Target) -> bytes:
        members = {member: target.id} if member else {}
        return encoded({"op": op, "expiresInSeconds": 60} | members)
    return dataclasses.replace(
        row, fields=JSON, body=body, further_scopes=frozenset([needed]), note=f"({op})")


ROWS: dict[str, list[Row]] = {
    "GET /": [Row(200)],
    "GET /openapi.yaml": [Row(200)],
    "GET /healthz": [Row(200)],
    "GET /readyz": [Row(200)],
    "GET /me": [Row(200)],
    "GET /metrics": [Row(200)],
    "POST /uploads/sessions": [Row(201, JSON, NEW_SESSION)],
    "GET /uploads/sessions": [Row(200)],
    "GET /uploads/sessions/{sessionId}": [session(200)],
    "DELETE /uploads/sessions/{sessionId}": [session(204)],
    "PUT /uploads/sessions/{sessionId}/chunks/{index}": [session(201, CHUNK, CONTENT)],
    "POST /uploads/sessions/{sessionId}/finalize": [session(200, make=received_session)],
    "POST /files": [
        Row(201, [("Content-Type", "text/plain")], CONTENT),
        Row(201, [*IETF, ("Upload-Complete", "?0"), ("Upload-Length", "9")], note="(IETF)"),
    ],
    "OPTIONS /files": [Row(200)],
    "GET /files": [Row(200)],
    "GET /files/{fileId}": [of_file(200)],
    "HEAD /files/{fileId}": [of_file(200)],
    "DELETE /files/{fileId}": [of_file(204)],
    "GET /files/{fileId}/meta": [of_file(200)],
    "GET /files/{fileId}/chunks": [of_file(200)],
    "POST /links": [
        new_link("put", "", "uploads:write", Row(201)),
        new_link("session", "sessionId", "uploads:write", session(201)),
        new_link("get", "fileId", "files:read", of_file(201)),
    ],
    "DELETE /links/{linkId}": [Row(204, make=link, unknown="NOT_FOUND")],
    "OPTIONS /tus/": [Row(204)],
    "POST /tus/": [Row(201, [*TUS, ("Upload-Length", str(len(CONTENT)))])],
    "OPTIONS /tus/{sessionId}": [Row(204, make=open_session)],
    "HEAD /tus/{sessionId}": [session(200, TUS)],
    "PATCH /tus/{sessionId}": [session(204, TUS + APPEND, CONTENT)],
    "GET /tus/{sessionId}": [session(200, TUS, make=complete_session)],
    "DELETE /tus/{sessionId}": [
        session(204, TUS),
        # It deletes a file, and no link does that.
        session(204, TUS, make=complete_session, further_scopes=frozenset(["files:delete"]),
                accepts_links=False, note="(complete)"),
    ],
    "OPTIONS /uploads/resumable/{sessionId}": [Row(200, make=open_session)],
    "HEAD /uploads/resumable/{sessionId}": [session(204)],
    "GET /uploads/resumable/{sessionId}": [session(204)],
    "PATCH /uploads/resumable/{sessionId}": [session(201, FINAL_APPEND, CONTENT)],
    "DELETE /uploads/resumable/{sessionId}": [session(204)],
    "GET /tokens": [Row(200)],
    "POST /tokens": [Row(201, JSON, NEW_TOKEN)],
    "DELETE /tokens/{tokenId}": [Row(204, make=token)],
    "GET /owners": [Row(200)],
    "GET /owners/{owner}": [Row(200, make=owner)],
    "PUT /owners/{owner}": [Row(200, JSON, encoded({"isBlocked": False}), make=owner)],
}
