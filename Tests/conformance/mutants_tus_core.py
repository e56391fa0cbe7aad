"""Mutants of the tus reference server: the core protocol, downloads and CORS."""

from typing import Any

from mutants import Mutant, held, maker, mending, nothing, refused, restatus, without
from reference import Refusal, Reply, Request, Upload
from reference_tus import TusReference, number

MUTANTS: list[Mutant] = []
Right = TusReference
make = maker(Right, MUTANTS)


def _options_old(self: Right, request: Request) -> Reply:
    reply = Right.options(self, request)
    reply.fields["Tus-Version"] = "0.2.2"
    return reply


def _options_checked(self: Right, request: Request) -> Reply:
    self.check_version(request)
    return Right.options(self, request)


def _no_version_in_errors(request: Request, reply: Reply) -> None:
    if reply.status >= 400:
        reply.fields.pop("Tus-Resumable", None)


def _head_without_offset(when: Any) -> Any:
    def head(self: Right, request: Request, upload: Upload) -> Reply:
        reply = Right.head(self, request, upload)
        if when(upload):
            reply.fields.pop("Upload-Offset", None)
        return reply

    return head


def _find_or_make(self: Right, path: str) -> Upload:
    name = path.rpartition("/")[2]
    return self.uploads.setdefault(name, Upload(name, length=1, concat="partial"))


def _store_sized(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    if request.length is None:
        raise Refusal(411)
    Right.store(self, request, upload, checksum)


def _store_some(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    if request.length == 0:
        raise Refusal(400)
    Right.store(self, request, upload, checksum)


def _offset_code(self: Right, request: Request, upload: Upload) -> None:
    if number(request.get("Upload-Offset")) != len(upload.data):
        raise Refusal(400)


def _offset_lenient(self: Right, request: Request, upload: Upload) -> None:
    if number(request.get("Upload-Offset")) is None:
        raise Refusal(400)


def _offset_optional(self: Right, request: Request, upload: Upload) -> None:
    offset = number(request.get("Upload-Offset"))
    if offset not in (None, len(upload.data)):
        raise Refusal(409)


def _store_any_length(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    length, upload.length = upload.length, None
    Right.store(self, request, upload, checksum)
    upload.length = length


def _store_whole(self: Right, request: Request, upload: Upload, writer: object) -> None:
    upload.write(writer, b"".join(request.pieces()))


def _head_too_far(self: Right, request: Request, upload: Upload) -> Reply:
    reply = Right.head(self, request, upload)
    if 0 < len(upload.data) < (upload.length or 0):
        reply.fields["Upload-Offset"] = str(len(upload.data) + 1)
    return reply


def _head_locked(self: Right, request: Request, upload: Upload) -> Reply:
    with held(upload):
        return Right.head(self, request, upload)


def _patch_locked(self: Right, request: Request, upload: Upload) -> Reply:
    with held(upload):
        return Right.patch(self, request, upload)


def _get_other(self: Right, request: Request, upload: Upload) -> Reply:
    reply = Right.get(self, request, upload)
    reply.body = reply.body[::-1]
    return reply


def _get_no_range(self: Right, request: Request, upload: Upload) -> Reply:
    return Reply(200, {}, bytes(upload.data))


make("another version", "options", options=_options_old)
make("OPTIONS is refused", "options", options=refused(405))
make("OPTIONS checks the version", "options-ignores-version", options=_options_checked)
make("errors name no version", "version-in-answers", mend=mending(Right, _no_version_in_errors))
make("every version is taken", "version-412", check_version=nothing)
make("412 without versions", "version-412", check_version=lambda self, request: (
    Right.check_version(self, request) if request.get("Tus-Resumable") == "1.0.0" else refused(412)()))
make("HEAD hides 0", "head-offset", head=_head_without_offset(lambda upload: not upload.data))
make("HEAD hides a complete offset", "head-complete",
     head=_head_without_offset(lambda upload: len(upload.data) == upload.length))
make("HEAD hides the length", "head-length", mend=without(Right, "HEAD", "Upload-Length"))
make("HEAD may be cached", "head-no-store", mend=without(Right, "HEAD", "Cache-Control"))
make("unknown uploads appear", "head-unknown", "patch-unknown", "terminate-unknown", "final-unknown",
     find=_find_or_make)
make("unknown uploads break the server", "head-unknown", "patch-unknown", "terminate-unknown",
     find=lambda self, path: self.uploads.get(path.rpartition("/")[2]) or refused(500)())
make("PATCH gets 200", "patch", mend=restatus(Right, "PATCH", 204, 200))
make("PATCH reports no offset", "patch", mend=without(Right, "PATCH", "Upload-Offset"))
make("PATCH stores nothing", "patch", "cut-keeps-bytes", "defer-length",
     store_arriving=lambda self, request, upload, writer: b"".join(request.pieces()))
make("a length is required", "patch-chunked", store=_store_sized)
make("no empty PATCH", "patch-empty", store=_store_some)
make("a wrong offset gets 400", "patch-ahead", "patch-behind", check_offset=_offset_code)
make("a wrong offset is taken", "patch-ahead", "patch-behind", check_offset=_offset_lenient)
make("the offset is optional", "patch-without-offset", check_offset=_offset_optional)
make("every media type is taken", "patch-media-type", check_media_type=nothing)
make("a wrong media type gets 400", "patch-media-type", mend=restatus(Right, "PATCH", 415, 400))
make("uploads grow past their length", "patch-too-long", "with-upload-too-long", store=_store_any_length)
make("the override is ignored", "method-override", method=lambda self, request: request.method)
make("broken requests leave nothing", "cut-keeps-bytes", store_arriving=_store_whole)
make("the offset is too high", "cut-resumes", "patch", "create", "with-upload",
     head=_head_too_far, post=lambda self, request: Reply(200))
make("the announced offset is not taken", "cut-resumes", "patch", head=_head_too_far)
make("HEAD waits for PATCH", "head-during-patch", head=_head_locked, patch=_patch_locked)
make("downloads are other bytes", "download", "download-range", "final", "cut-resumes", "with-upload",
     "checksum-wrong", "patch-behind", get=_get_other)
make("the range is ignored", "download-range", get=_get_no_range)
make("the range starts elsewhere", "download-range", mend=mending(
    Right, lambda request, reply: reply.fields.pop("Content-Range", None)))
make("preflights allow nothing", "cors-preflight", mend=without(
    Right, "OPTIONS", "Access-Control-Allow-Headers"))
make("preflights allow no PATCH", "cors-preflight", mend=mending(
    Right, lambda request, reply: reply.fields.update({"Access-Control-Allow-Methods": "GET, POST"})))
make("preflights are refused", "cors-preflight", "cors-expose", mend=without(
    Right, "OPTIONS", "Access-Control-Allow-Origin"))
make("answers hide their fields", "cors-expose", mend=without(
    Right, "POST", "Access-Control-Expose-Headers"))
