"""A tus 1.0.0 server in memory that does everything right. Its steps are methods, so that a mutant can do one
of them wrong."""

import base64
import binascii
import time
from email.utils import formatdate
from urllib.parse import urlsplit

from reference import Application, Refusal, Reply, Request, Upload
from tus import ALGORITHMS, MEDIA_TYPE, VERSION

EXTENSIONS = (
    "creation", "creation-with-upload", "creation-defer-length", "expiration", "checksum",
    "checksum-trailer", "termination", "concatenation", "concatenation-unfinished")
LARGEST = 1 << 30
EXPOSED = ("Location, Upload-Offset, Upload-Length, Upload-Metadata, Upload-Expires, Upload-Concat, "
           "Upload-Defer-Length, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size")


def number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


class TusReference(Application):
    """Does what `active` says, and says what `advertised` says; the two differ in mutants only."""

    advertised: tuple[str, ...] = EXTENSIONS
    active: tuple[str, ...] = EXTENSIONS
    lifetime = 3600.0

    def __init__(self) -> None:
        self.uploads: dict[str, Upload] = {}

    # Requests

    def answer(self, request: Request) -> Reply:
        method = self.method(request)
        if method == "OPTIONS":
            return self.options(request)
        self.check_version(request)
        if method == "POST":
            return self.post(request)
        upload = self.find(request.path)
        return getattr(self, method.lower())(request, upload)

    def mend(self, request: Request, reply: Reply) -> Reply:
        if request.method != "OPTIONS":
            reply.fields.setdefault("Tus-Resumable", VERSION)
        if origin := request.get("Origin"):
            reply.fields |= {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": "POST, HEAD, PATCH, DELETE, GET",
                "Access-Control-Allow-Headers": request.get("Access-Control-Request-Headers") or "",
                "Access-Control-Expose-Headers": EXPOSED}
        return reply

    def method(self, request: Request) -> str:
        return request.get("X-HTTP-Method-Override") or request.method

    def check_version(self, request: Request) -> None:
        if request.get("Tus-Resumable") not in (VERSION, None):
            raise Refusal(412, {"Tus-Version": VERSION})

    def find(self, path: str) -> Upload:
        upload = self.uploads.get(path.rpartition("/")[2])
        if upload is None:
            raise Refusal(404)
        if self.is_expired(upload):
            raise Refusal(410)
        return upload

    def is_expired(self, upload: Upload) -> bool:
        return upload.length != len(upload.data) and time.time() > upload.expires

    def options(self, request: Request) -> Reply:
        return Reply(204, {
            "Tus-Version": VERSION, "Tus-Extension": ",".join(self.advertised),
            "Tus-Max-Size": str(LARGEST), "Tus-Checksum-Algorithm": ",".join(ALGORITHMS)})

    # Creation

    def post(self, request: Request) -> Reply:
        upload = Upload(concat=request.get("Upload-Concat"), metadata=request.get("Upload-Metadata"))
        if upload.concat is not None and upload.concat != "partial":
            self.join(upload)
        else:
            upload.length = self.declared_length(request)
        upload.expires = time.time() + self.lifetime
        if not self.takes_upload(request, upload):
            self.add(upload)
            return Reply(201, {"Location": self.location(request, upload), **self.expiry(upload)})
        self.store(request, upload, request.get("Upload-Checksum"))
        self.add(upload)
        return Reply(201, {"Location": self.location(request, upload), "Upload-Offset": str(len(upload.data)),
                           **self.expiry(upload)})

    def takes_upload(self, request: Request, upload: Upload) -> bool:
        return ("creation-with-upload" in self.active and request.get("Content-Type") == MEDIA_TYPE
                and not upload.parts)

    def add(self, upload: Upload) -> None:
        self.uploads[upload.name] = upload

    def location(self, request: Request, upload: Upload) -> str:
        return f"http://{request.get('Host')}/tus/{upload.name}"

    def expiry(self, upload: Upload) -> dict[str, str]:
        if "expiration" not in self.active or upload.length == len(upload.data):
            return {}
        return {"Upload-Expires": formatdate(upload.expires, usegmt=True)}

    def declared_length(self, request: Request) -> int | None:
        deferred = request.get("Upload-Defer-Length")
        if deferred is not None:
            if deferred != "1" or "creation-defer-length" not in self.active:
                raise Refusal(400)
            return None
        length = number(request.get("Upload-Length"))
        if length is None:
            raise Refusal(400)
        if length > LARGEST:
            raise Refusal(413)
        return length

    # Concatenation

    def join(self, upload: Upload) -> None:
        """Names the parts of a final upload; the bytes follow when all are complete."""
        kind, _, names = (upload.concat or "").partition(";")
        if "concatenation" not in self.active or kind != "final" or not names.strip():
            raise Refusal(400)
        upload.parts = [self.find(urlsplit(name).path) for name in names.split()]
        if any(part.concat != "partial" for part in upload.parts):
            raise Refusal(400)
        if not self.collect(upload) and "concatenation-unfinished" not in self.active:
            raise Refusal(400)

    def collect(self, upload: Upload) -> bool:
        """Puts the bytes of a final upload together once they are all there."""
        if any(part.length != len(part.data) for part in upload.parts):
            return False
        upload.data = bytearray(b"".join(part.data for part in upload.parts))
        upload.length = len(upload.data)
        return True

    # One upload

    def head(self, request: Request, upload: Upload) -> Reply:
        fields = {"Cache-Control": "no-store", **self.expiry(upload)}
        if not upload.parts or self.collect(upload):
            fields["Upload-Offset"] = str(len(upload.data))
        if upload.length is not None:
            fields["Upload-Length"] = str(upload.length)
        elif not upload.parts:
            fields["Upload-Defer-Length"] = "1"
        if upload.metadata is not None:
            fields["Upload-Metadata"] = upload.metadata
        if upload.concat is not None:
            fields["Upload-Concat"] = upload.concat
        return Reply(200, fields)

    def get(self, request: Request, upload: Upload) -> Reply:
        if upload.length != len(upload.data):
            return Reply(404)
        bounds = request.get("Range")
        if bounds is None:
            return Reply(200, {}, bytes(upload.data))
        first, _, last = bounds.removeprefix("bytes=").partition("-")
        return Reply(206, {"Content-Range": f"bytes {first}-{last}/{upload.length}"},
                     bytes(upload.data[int(first) : int(last) + 1]))

    def patch(self, request: Request, upload: Upload) -> Reply:
        if upload.parts:
            raise Refusal(403)
        self.check_media_type(request)
        self.check_offset(request, upload)
        self.take_length(request, upload)
        self.store(request, upload, request.get("Upload-Checksum"))
        return Reply(204, {"Upload-Offset": str(len(upload.data)), **self.expiry(upload)})

    def delete(self, request: Request, upload: Upload) -> Reply:
        if "termination" not in self.active:
            raise Refusal(405)
        del self.uploads[upload.name]
        return Reply(204)

    def check_media_type(self, request: Request) -> None:
        if request.get("Content-Type") != MEDIA_TYPE:
            raise Refusal(415)

    def check_offset(self, request: Request, upload: Upload) -> None:
        offset = number(request.get("Upload-Offset"))
        if offset is None:
            raise Refusal(400)
        if offset != len(upload.data):
            raise Refusal(409)

    def take_length(self, request: Request, upload: Upload) -> None:
        length = number(request.get("Upload-Length"))
        if length is not None and upload.length not in (None, length):
            raise Refusal(400)
        if length is not None:
            upload.length = length

    # Bytes

    def store(self, request: Request, upload: Upload, checksum: str | None) -> None:
        """Bytes with a checksum count together or not at all; others as they arrive."""
        if upload.length is not None and (request.length or 0) > upload.length - len(upload.data):
            raise Refusal(413)
        late = "upload-checksum" in (request.get("Trailer") or "").lower()
        writer = upload.begin()
        if checksum is None and not late:
            self.store_arriving(request, upload, writer)
            return
        if checksum is not None:
            self.parse_checksum(checksum)
        body = b"".join(request.pieces())
        self.verify(body, checksum or request.trailers.get("upload-checksum", ""))
        upload.write(writer, body)

    def store_arriving(self, request: Request, upload: Upload, writer: object) -> None:
        for piece in request.pieces():
            if upload.length is not None and len(upload.data) + len(piece) > upload.length:
                raise Refusal(413)
            if not upload.write(writer, piece):
                raise Refusal(409)

    def parse_checksum(self, text: str) -> tuple[str, bytes]:
        algorithm, _, value = text.partition(" ")
        try:
            digest = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise Refusal(400) from error
        if algorithm not in ALGORITHMS or len(digest) != len(ALGORITHMS[algorithm](b"")):
            raise Refusal(400)
        return algorithm, digest

    def verify(self, body: bytes, text: str) -> None:
        algorithm, digest = self.parse_checksum(text)
        if ALGORITHMS[algorithm](body) != digest:
            raise Refusal(460)
