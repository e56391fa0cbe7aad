"""Mutants of the IETF reference server."""

import json
from typing import Any

from ietf import Dialect
from mutants import Mutant, held, maker, mending, nothing, refused, restatus, without
from reference import Broken, Refusal, Reply, Request, Upload
from reference_ietf import IetfReference
from reference_tus import number

MUTANTS: list[Mutant] = []
Right = IetfReference
make = maker(Right, MUTANTS)


# Creation

def _no_content(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    b"".join(request.pieces())


def _store_framing(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    Right.store(self, request, upload, dialect)
    if request.length is None:
        upload.data += b"0\r\n\r\n"


def _finished_open(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    reply = Right.finished(self, request, upload, dialect)
    reply.fields[dialect.completeness] = dialect.completes(False)
    return reply


def _finished_something(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    if not upload.data:
        raise Refusal(400)
    return Right.finished(self, request, upload, dialect)


def _finished_other(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    upload.data.reverse()
    return Right.finished(self, request, upload, dialect)


def _any_length(self: Right, request: Request, upload: Upload, complete: bool) -> None:
    upload.length = None


def _unregistered(request: Request, reply: Reply) -> None:
    if reply.fields.get("Content-Type") == "application/problem+json":
        reply.body = json.dumps({"type": "about:blank"}).encode()


def _no_largest(self: Right, request: Request, dialect: Dialect | None) -> Reply:
    try:
        return Right.post(self, request, dialect)
    except Refusal as refusal:
        if refusal.reply.status != 413:
            raise
        return Reply(201, {"Location": "/uploads/large"})


make("creation without Location", "create-empty", "create-partial", mend=without(Right, "POST", "Location"))
make("all uploads have one address", "create-empty", location=lambda self, upload: "/uploads/one")
make("creation gets 200", "create-201", mend=restatus(Right, "POST", 201, 200))
make("creation hides the completeness", "create-completeness", "create-whole-completeness",
     mend=without(Right, "POST", "Upload-Complete"))
make("content is dropped", "create-partial", "create-chunked", "append", "append-chunked",
     "offset", "append-cut-keeps-bytes", store=_no_content)
make("a whole upload counts as open", "create-whole", finished=_finished_open)
make("a whole upload is other bytes", "create-whole", "create-partial", "append", "append-empty-end",
     "append-cut-resumes", "104-resumes", "offset-is-taken", "append-behind", finished=_finished_other)
make("an upload has bytes", "create-whole-empty", finished=_finished_something)
make("framing counts as content", "create-chunked", "append-chunked", store=_store_framing)
make("no limits", "create-limits", "104-limits", "offset-limits", limits=lambda self, dialect: {})
make("limits are text", "create-limits", "104-limits", "offset-limits",
     limits=lambda self, dialect: {"Upload-Limit": "max-size=\"1 GB\""})
make("lengths may differ", "create-length-conflict", "append-length-conflict", "append-too-long",
     "offset-length", "offset-length-from-content", take_length=_any_length)
make("problems of no type", "create-length-problem", "append-length-problem", "append-conflict-problem",
     mend=mending(Right, _unregistered))
make("inconsistent lengths get 422", "create-length-problem", "append-length-problem",
     mend=mending(Right, lambda request, reply: setattr(
         reply, "status", 422 if reply.status == 400 else reply.status)))
make("nothing is too large", "create-too-large", "create-too-large-limits", post=_no_largest)
make("413 without limits", "create-too-large-limits", mend=mending(
    Right, lambda request, reply: reply.status == 413 and reply.fields.pop("Upload-Limit", None)))


# 104, versions, discovery, digests

def _interim_bare(self: Right, request: Request, dialect: Dialect, fields: dict[str, str]) -> None:
    request.interim(104, fields)


def _interim_elsewhere(self: Right, request: Request, dialect: Dialect, fields: dict[str, str]) -> None:
    Right.interim(self, request, dialect, {**fields, "Location": "/uploads/elsewhere"})


def _interim_always(self: Right, request: Request, dialect: Dialect, fields: dict[str, str]) -> None:
    request.interim(104, {"Upload-Draft-Interop-Version": "9", **fields})


def _ordinary_announced(self: Right, request: Request) -> Reply:
    request.interim(104, {"Upload-Draft-Interop-Version": "9", "Location": "/uploads/x"})
    return Right.ordinary(self, request)


def _late(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    Right.store(self, request, upload, dialect)
    if request.method == "POST":
        Right.announce(self, request, upload, dialect)


def _store_or_forget(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    try:
        Right.store(self, request, upload, dialect)
    except Broken:
        del self.uploads[upload.name]
        raise


def _store_or_complete(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    try:
        Right.store(self, request, upload, dialect)
    except Broken:
        upload.complete = True
        raise


def _strict_version(self: Right, request: Request) -> Dialect:
    return Right.dialect(self, request) or refused(400)()


def _no_content_digest(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    writer = upload.begin()
    for piece in request.pieces():
        upload.write(writer, piece)


def _no_repr_digest(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    upload.digest = None
    return Right.finished(self, request, upload, dialect)


make("no 104", "104", "104-early", announce=nothing)
make("104 without Location", "104", announce=lambda self, request, upload, dialect: self.interim(
    request, dialect, {}))
make("104 without version", "104-version", "append-progress", interim=_interim_bare)
make("104 of another Location", "104-location", "append-progress", interim=_interim_elsewhere)
make("104 after the content", "104-early", announce=nothing, store=_late)
make("broken uploads are forgotten", "104-resumes", "append-cut-resumes", "append-cut-keeps-bytes",
     "offset-length-from-content", store=_store_or_forget)
make("broken uploads are complete", "104-resumes", "append-cut-resumes", store=_store_or_complete)
make("no 100 is sent", "104-and-100", continues=False)
make("104 without a version", "104-never-without-version", interim=_interim_always)
make("104 for unknown versions", "104-never-without-version", ordinary=_ordinary_announced)
make("unknown versions are refused", "unknown-version-falls-back", dialect=_strict_version)
make("OPTIONS has no limits", "options-limits", mend=without(Right, "OPTIONS", "Upload-Limit"))
make("OPTIONS is refused", "options-limits", mend=restatus(Right, "OPTIONS", 204, 405))
make("OPTIONS accepts nothing", "options-accept-patch", version="8",
     mend=without(Right, "OPTIONS", "Accept-Patch"))
make("Content-Digest is ignored", "create-content-digest", "append-content-digest",
     store=_no_content_digest)
make("Repr-Digest is ignored", "create-repr-digest", finished=_no_repr_digest)


# Offset retrieval and cancellation

def _head_unknown(request: Request, reply: Reply) -> None:
    if request.method == "HEAD" and reply.status == 404:
        reply.fields["Upload-Offset"] = "0"


def _finished_and_gone(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    del self.uploads[upload.name]
    return Right.finished(self, request, upload, dialect)


def _locked(method: str) -> Any:
    def step(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
        with held(upload):
            return getattr(Right, method)(self, request, upload, dialect)

    return step


def _never_taken(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    """The first writer keeps the upload for ever."""
    writer = upload.writer
    if writer is None:
        Right.store(self, request, upload, dialect)
    elif request.length:
        raise Refusal(409, self.state(upload, dialect))


make("HEAD hides the offset", "offset", "create-empty", mend=without(Right, "HEAD", "Upload-Offset"))
make("HEAD hides the completeness", "offset", mend=without(Right, "HEAD", "Upload-Complete"))
make("HEAD gets 200", "offset-204", version="4", mend=restatus(Right, "HEAD", 204, 200))
make("HEAD gets 206", "offset-200-204", version="6", mend=restatus(Right, "HEAD", 204, 206))
make("HEAD hides the length", "offset-length", "offset-length-from-content",
     mend=without(Right, "HEAD", "Upload-Length"))
make("HEAD may be cached", "offset-no-store", mend=without(Right, "HEAD", "Cache-Control"))
make("unknown uploads have an offset", "offset-unknown", mend=mending(Right, _head_unknown))
make("complete uploads are forgotten", "offset-complete", finished=_finished_and_gone)
make("others wait for appends", "offset-during-append", "cancel-during-append", "offset-is-taken",
     head=_locked("head"), patch=_locked("patch"), delete=_locked("delete"))
make("a hung append is never replaced", "offset-is-taken", store=_never_taken)
make("cancelled uploads stay", "cancel", "cancel-during-append",
     delete=lambda self, request, upload, dialect: Reply(204))
make("DELETE is refused", "cancel", delete=refused(405))
make("DELETE gets 200", "cancel-204", version="4", mend=restatus(Right, "DELETE", 204, 200))


# Appends

def _append_some(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    if not request.length:
        raise Refusal(400)
    return Right.patch(self, request, upload, dialect)


def _length_is_end(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    reply = Right.patch(self, request, upload, dialect)
    upload.complete = len(upload.data) == upload.length
    return reply


def _offset_lenient(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    if number(request.get("Upload-Offset")) is None:
        raise Refusal(400)


def _offset_optional(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    if number(request.get("Upload-Offset")) is not None:
        Right.check_offset(self, request, upload, dialect)


def _conflict_without(name: str) -> Any:
    return mending(Right, lambda request, reply: reply.status == 409 and reply.fields.pop(name, None))


def _reopened(self: Right, request: Request, upload: Upload, dialect: Dialect) -> Reply:
    if upload.complete:
        upload.complete, upload.length = False, None
    return Right.patch(self, request, upload, dialect)


def _store_whole(self: Right, request: Request, upload: Upload, dialect: Dialect) -> None:
    upload.write(upload.begin(), b"".join(request.pieces()))


def _boast(self: Right, request: Request, dialect: Dialect, fields: dict[str, str]) -> None:
    Right.interim(self, request, dialect, {**fields, "Upload-Offset": str(1 << 40)})


make("appends hide the completeness", "append-completeness", mend=without(Right, "PATCH", "Upload-Complete"))
make("early appends hide the completeness", "append-completeness-early", version="4",
     mend=without(Right, "PATCH", "Upload-Complete"))
make("early appends say the wrong word", "append-completeness-early", version="3", mend=mending(
    Right, lambda request, reply: request.method == "PATCH" and reply.fields.update(
        {"Upload-Incomplete": "?1"})))
make("early appends hide the offset", "append-offset", version="4",
     mend=without(Right, "PATCH", "Upload-Offset"))
make("no empty append", "append-empty-end", "append-length-is-no-end", patch=_append_some)
make("the length is the end", "append-length-is-no-end", patch=_length_is_end)
make("a wrong offset is taken", "append-ahead", "append-behind", check_offset=_offset_lenient)
make("a wrong offset gets 400", "append-ahead", "append-behind", mend=restatus(Right, "PATCH", 409, 400))
make("409 without offset", "append-ahead", "append-behind", mend=_conflict_without("Upload-Offset"))
make("409 without completeness", "append-conflict-open", mend=_conflict_without("Upload-Complete"))
make("the offset is optional", "append-without-offset", check_offset=_offset_optional)
make("every media type is taken", "append-media-type", "append-media-type-415", check_media_type=nothing)
make("a wrong media type gets 400", "append-media-type-415", mend=restatus(Right, "PATCH", 415, 400))
make("complete uploads go on", "append-to-complete", patch=_reopened)
make("uploads grow past their length", "append-too-long", check_length=nothing)
make("broken appends leave nothing", "append-cut-keeps-bytes", store=_store_whole)
make("progress is exaggerated", "append-progress", interim=_boast)
