"""A server of IETF resumable uploads in memory, in every dialect, that does everything right. Its steps are
methods, so that a mutant can do one of them wrong."""

import json

from ietf import FINAL, VERSIONS, Dialect
from ietf_append import OFFSET_PROBLEM
from ietf_creation import LENGTH_PROBLEM, digest
from reference import Application, Refusal, Reply, Request, Upload
from reference_tus import number

LARGEST = 1 << 30
LIMITS = f"max-size={LARGEST}, max-age=3600"
PROGRESS = 1 << 20


def problem(status: int, fields: dict[str, str], **members: object) -> Refusal:
    return Refusal(status, {"Content-Type": "application/problem+json", **fields},
                   json.dumps(members).encode())


class IetfReference(Application):
    """Uploads are created with POST to /files, and live at /uploads."""

    def __init__(self) -> None:
        self.uploads: dict[str, Upload] = {}
        self.files: dict[str, bytes] = {}

    # Requests

    def answer(self, request: Request) -> Reply:
        if request.method == "OPTIONS":
            return Reply(204, {"Upload-Limit": LIMITS, "Accept-Patch": "application/partial-upload"})
        if request.path.startswith("/files/"):
            return self.download(request)
        dialect = self.dialect(request)
        if request.method == "POST":
            return self.post(request, dialect)
        upload = self.uploads.get(request.path.rpartition("/")[2])
        if upload is None:
            raise Refusal(404)
        return getattr(self, request.method.lower())(request, upload, dialect or Dialect(FINAL))

    def dialect(self, request: Request) -> Dialect | None:
        """The dialect asked for; none when it is unknown."""
        text = request.get("Upload-Draft-Interop-Version")
        if text is None:
            return Dialect(FINAL)
        return Dialect.of(text) if text in VERSIONS else None

    def completes(self, request: Request, dialect: Dialect) -> bool | None:
        text = request.get(dialect.completeness)
        return None if text not in ("?0", "?1") else text == dialect.completes(True)

    def download(self, request: Request) -> Reply:
        data = self.files.get(request.path.rpartition("/")[2])
        return Reply(404) if data is None else Reply(200, {}, data)

    # Creation

    def post(self, request: Request, dialect: Dialect | None) -> Reply:
        complete = None if dialect is None else self.completes(request, dialect)
        if dialect is None or complete is None:
            return self.ordinary(request)
        upload = Upload(digest=request.get("Repr-Digest"))
        self.take_length(request, upload, complete)
        if (upload.length or 0) > LARGEST:
            raise Refusal(413, self.limits(dialect))
        self.uploads[upload.name] = upload
        self.announce(request, upload, dialect)
        self.store(request, upload, dialect)
        if complete:
            return self.finished(request, upload, dialect)
        return Reply(201, {"Location": self.location(upload), **self.limits(dialect),
                           **self.state(upload, dialect)})

    def ordinary(self, request: Request) -> Reply:
        upload = Upload(data=bytearray(b"".join(request.pieces())))
        return Reply(200, {"Content-Location": self.keep(upload)})

    def location(self, upload: Upload) -> str:
        return f"/uploads/{upload.name}"

    def limits(self, dialect: Dialect) -> dict[str, str]:
        return {"Upload-Limit": LIMITS} if dialect.number >= 6 else {}

    def state(self, upload: Upload, dialect: Dialect) -> dict[str, str]:
        return {dialect.completeness: dialect.completes(upload.complete),
                "Upload-Offset": str(len(upload.data))}

    def announce(self, request: Request, upload: Upload, dialect: Dialect) -> None:
        self.interim(request, dialect, {"Location": self.location(upload), **self.limits(dialect)})

    def interim(self, request: Request, dialect: Dialect, fields: dict[str, str]) -> None:
        if dialect.version is not None:
            request.interim(104, {"Upload-Draft-Interop-Version": dialect.version, **fields})

    # One upload

    def head(self, request: Request, upload: Upload, dialect: Dialect) -> Reply:
        fields = {"Cache-Control": "no-store", **self.state(upload, dialect), **self.limits(dialect)}
        if upload.length is not None:
            fields["Upload-Length"] = str(upload.length)
        return Reply(204, fields)

    def patch(self, request: Request, upload: Upload, dialect: Dialect) -> Reply:
        self.check_media_type(request, dialect)
        complete = self.completes(request, dialect)
        if complete is None:
            raise Refusal(400)
        self.check_offset(request, upload, dialect)
        if upload.complete:
            raise problem(400, self.state(upload, dialect), type=LENGTH_PROBLEM)
        self.take_length(request, upload, complete)
        self.store(request, upload, dialect)
        if complete:
            return self.finished(request, upload, dialect)
        return Reply(204, self.state(upload, dialect))

    def delete(self, request: Request, upload: Upload, dialect: Dialect) -> Reply:
        del self.uploads[upload.name]
        return Reply(204)

    def check_media_type(self, request: Request, dialect: Dialect) -> None:
        if dialect.media_type not in (None, request.get("Content-Type")):
            raise Refusal(415)

    def check_offset(self, request: Request, upload: Upload, dialect: Dialect) -> None:
        offset = number(request.get("Upload-Offset"))
        if offset is None:
            raise Refusal(400)
        current = len(upload.data)
        if offset != current:
            raise problem(409, self.state(upload, dialect), **{
                "type": OFFSET_PROBLEM, "expected-offset": current, "provided-offset": offset})

    def take_length(self, request: Request, upload: Upload, complete: bool) -> None:
        """The length from both of its sources, which must agree with each other and with what is known."""
        known = {upload.length, number(request.get("Upload-Length"))}
        if complete and request.length is not None:
            known.add(len(upload.data) + request.length)
        known.discard(None)
        if len(known) > 1:
            raise problem(400, {}, type=LENGTH_PROBLEM)
        upload.length = known.pop() if known else None

    # Bytes

    def store(self, request: Request, upload: Upload, dialect: Dialect) -> None:
        wanted = request.get("Content-Digest")
        writer = upload.begin()
        if wanted is not None:
            body = b"".join(request.pieces())
            if digest(body) != wanted:
                raise Refusal(422)
            upload.write(writer, body)
            return
        for piece in request.pieces():
            self.check_length(upload, len(piece))
            before = len(upload.data) // PROGRESS
            if not upload.write(writer, piece):
                raise Refusal(409, self.state(upload, dialect))
            if len(upload.data) // PROGRESS > before:
                self.interim(request, dialect, {"Upload-Offset": str(len(upload.data))})

    def check_length(self, upload: Upload, more: int) -> None:
        if upload.length is not None and len(upload.data) + more > upload.length:
            self.uploads.pop(upload.name, None)
            raise problem(400, {}, type=LENGTH_PROBLEM)

    def finished(self, request: Request, upload: Upload, dialect: Dialect) -> Reply:
        upload.complete = True
        upload.length = len(upload.data)
        fields = self.state(upload, dialect)
        if upload.digest not in (None, digest(bytes(upload.data))):
            return Reply(422, fields)
        return Reply(200, {**fields, "Content-Location": self.keep(upload)})

    def keep(self, upload: Upload) -> str:
        self.files[upload.name] = bytes(upload.data)
        return f"/files/{upload.name}"
