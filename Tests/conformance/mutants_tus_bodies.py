"""Mutants of the tus reference server: checksums and concatenation."""

import time

from mutants import Mutant, maker, nothing, refused, restatus, without
from reference import Refusal, Reply, Request, Upload
from reference_tus import EXTENSIONS, TusReference
from tus import ALGORITHMS

MUTANTS: list[Mutant] = []
Right = TusReference
make = maker(Right, MUTANTS)


# Checksums

def _store_then_verify(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    body = b""
    writer = upload.begin()
    for piece in request.pieces():
        upload.write(writer, piece)
        body += piece
    checksum = checksum or request.trailers.get("upload-checksum")
    if checksum:
        self.verify(body, checksum)


def _no_trailer(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    if request.get("Trailer"):
        raise Refusal(400)
    Right.store(self, request, upload, checksum)


def _ignored_trailer(self: Right, request: Request, upload: Upload, checksum: str | None) -> None:
    if request.get("Trailer"):
        self.store_arriving(request, upload, upload.begin())
    else:
        Right.store(self, request, upload, checksum)


def _any_checksum(self: Right, text: str) -> tuple[str, bytes]:
    try:
        return Right.parse_checksum(self, text)
    except Refusal:
        return "", b""


def _verify_known(self: Right, body: bytes, text: str) -> None:
    algorithm, digest = self.parse_checksum(text)
    if algorithm and ALGORITHMS[algorithm](body) != digest:
        raise Refusal(460)


def _verify_backwards(self: Right, body: bytes, text: str) -> None:
    algorithm, digest = self.parse_checksum(text)
    backwards = digest[::-1] if algorithm.startswith("crc") else digest
    if ALGORITHMS[algorithm](body) != backwards:
        raise Refusal(460)


def _no_sha1(self: Right, request: Request) -> Reply:
    reply = Right.options(self, request)
    reply.fields["Tus-Checksum-Algorithm"] = "md5"
    return reply


make("no sha1", "checksum-algorithms", options=_no_sha1)
make("right checksums are refused", "checksum-right", "checksum-trailer-right", verify=refused(460))
make("wrong checksums are taken", "checksum-wrong", "checksum-wrong-later", "checksum-trailer-wrong",
     "checksum-statuses", verify=nothing)
make("wrong checksums get 400", "checksum-statuses", mend=restatus(Right, "PATCH", 460, 400))
make("a crc begins with its last byte", "checksum-right-crc", verify=_verify_backwards)
make("bytes count before they are checked", "checksum-wrong", "checksum-wrong-later",
     "checksum-trailer-wrong", "checksum-cut", "checksum-unknown", store=_store_then_verify)
make("what is no checksum is taken", "checksum-unknown", "checksum-malformed",
     parse_checksum=_any_checksum, verify=_verify_known)
make("trailers are refused", "checksum-trailer-right", store=_no_trailer)
make("trailers are ignored", "checksum-trailer-wrong", store=_ignored_trailer)


# Concatenation

def _reversed(self: Right, upload: Upload) -> bool:
    done = Right.collect(self, upload)
    upload.data = bytearray(b"".join(part.data for part in upload.parts[::-1]))
    return done


def _other_names(self: Right, request: Request, upload: Upload) -> Reply:
    reply = Right.head(self, request, upload)
    if upload.parts:
        reply.fields["Upload-Concat"] = "final;" + " ".join(f"/{part.name}" for part in upload.parts)
    return reply


def _relative_only(self: Right, upload: Upload) -> None:
    if "://" in (upload.concat or ""):
        raise Refusal(400)
    Right.join(self, upload)


def _patch_final(self: Right, request: Request, upload: Upload) -> Reply:
    return Reply(204, {"Upload-Offset": str(len(upload.data))}) if upload.parts else Right.patch(
        self, request, upload)


def _used_once(self: Right, upload: Upload) -> None:
    Right.join(self, upload)
    for part in upload.parts:
        part.concat = "used"


def _any_part(self: Right, upload: Upload) -> None:
    names = (upload.concat or "").partition(";")[2].split()
    upload.parts = [self.find(name) for name in names]
    self.collect(upload)


def _heir(self: Right, upload: Upload) -> None:
    Right.join(self, upload)
    upload.metadata = upload.parts[0].metadata


def _once(self: Right, upload: Upload) -> bool:
    """Puts the parts together when the final upload is made, and never again."""
    if upload.expires == 0:
        upload.expires = time.time()
        return Right.collect(self, upload)
    return upload.length is not None


def _final_at_zero(self: Right, request: Request, upload: Upload) -> Reply:
    reply = Right.head(self, request, upload)
    reply.fields.setdefault("Upload-Offset", "0")
    return reply


make("HEAD hides Upload-Concat", "partial", "final-echo", mend=without(Right, "HEAD", "Upload-Concat"))
make("parts in reverse", "final", "final-early", collect=_reversed)
make("parts under other names", "final-echo", head=_other_names)
make("only relative names", "final-addresses", "final", join=_relative_only)
make("final uploads take bytes", "final-patch", patch=_patch_final)
make("parts are used up", "final-twice", join=_used_once)
make("anything is a part", "final-of-ordinary", "final-malformed", join=_any_part)
make("final uploads inherit", "final-metadata", join=_heir)
make("early final uploads never complete", "final-early", collect=_once)
make("early final uploads have an offset", "final-early-offset", head=_final_at_zero)
make("early final uploads are not advertised", "final-of-unfinished",
     advertised=tuple(name for name in EXTENSIONS if name != "concatenation-unfinished"))
