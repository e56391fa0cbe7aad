"""Mutants of the tus reference server: creation, expiration and termination."""


from mutants import Mutant, maker, mending, restatus, without
from reference import Refusal, Reply, Request, Upload
from reference_tus import TusReference, number
from tus import parse_metadata

MUTANTS: list[Mutant] = []
Right = TusReference
make = maker(Right, MUTANTS)


def _one_location(request: Request, reply: Reply) -> None:
    if "Location" in reply.fields:
        reply.fields["Location"] = "/tus/the-only-one"


def _empty_is_unknown(self: Right, request: Request) -> int | None:
    return Right.declared_length(self, request) or None


def _any_length(self: Right, request: Request) -> int | None:
    try:
        return Right.declared_length(self, request)
    except Refusal as refusal:
        if refusal.reply.status == 413:
            raise
        return 10


def _no_largest(self: Right, request: Request) -> int | None:
    try:
        return Right.declared_length(self, request)
    except Refusal as refusal:
        if refusal.reply.status != 413:
            raise
        return number(request.get("Upload-Length"))


def _needs_name(self: Right, request: Request) -> Reply:
    if request.get("Upload-Metadata") is None:
        raise Refusal(400)
    return Right.post(self, request)


def _needs_values(self: Right, request: Request) -> Reply:
    if not all(parse_metadata(request.get("Upload-Metadata") or "x eA==").values()):
        raise Refusal(400)
    return Right.post(self, request)


def _claims(self: Right, request: Request) -> Reply:
    """Says that the body is stored, and throws it away."""
    reply = Right.post(self, request)
    if reply.status == 201 and request.length:
        self.uploads[reply.fields["Location"].rpartition("/")[2]].data.clear()
        reply.fields["Upload-Offset"] = str(request.length)
    return reply


def _any_deferral(self: Right, request: Request) -> int | None:
    return None if request.get("Upload-Defer-Length") else Right.declared_length(self, request)


def _new_length(self: Right, request: Request, upload: Upload) -> None:
    upload.length = number(request.get("Upload-Length")) or upload.length


def _other_date(request: Request, reply: Reply) -> None:
    if "Upload-Expires" in reply.fields:
        reply.fields["Upload-Expires"] = "2099-01-01T00:00:00Z"


make("creation gets 200", "create", mend=restatus(Right, "POST", 201, 200))
make("all uploads have one address", "create", mend=mending(Right, _one_location))
make("Location is a path", "create-absolute", location=lambda self, request, upload: f"/tus/{upload.name}")
make("no bytes is no length", "create-empty", declared_length=_empty_is_unknown)
make("any length will do", "create-bad-length", "without-defer-length", advertised=("creation",),
     active=("creation",), declared_length=_any_length)
make("nothing is too large", "create-too-large", declared_length=_no_largest)
make("metadata is forgotten", "metadata", "metadata-empty-value",
     mend=without(Right, "HEAD", "Upload-Metadata"))
make("metadata is required", "metadata-none", post=_needs_name)
make("metadata needs values", "metadata-empty-value", post=_needs_values)
make("the body of POST is lost", "with-upload", "with-upload-continue",
     post=lambda self, request: Reply(500) if request.length else Right.post(self, request))
make("the body of POST is claimed", "with-upload", post=_claims)
make("an unadvertised body of POST is claimed", "without-with-upload", advertised=("creation",), post=_claims)
make("no 100 is sent", "with-upload-continue", continues=False)
make("HEAD hides the deferral", "defer-length", mend=without(Right, "HEAD", "Upload-Defer-Length"))
make("the length changes", "defer-length-once", take_length=_new_length)
make("any deferral will do", "defer-length-value", declared_length=_any_deferral)
make("what is done is not advertised", "without-defer-length", "without-expiration",
     "without-termination", "without-concatenation", advertised=("creation",))
make("no date at all", "expires", expiry=lambda self, upload: {})
make("a date of another form", "expires", "expires-on-patch", mend=mending(Right, _other_date))
make("a date in the past", "expires", "expires-on-patch", lifetime=-10.0,
     is_expired=lambda self, upload: False)
make("no date after PATCH", "expires-on-patch", mend=without(Right, "PATCH", "Upload-Expires"))
make("expired uploads go on", "expired", lifetime=0.5, is_expired=lambda self, upload: False)
make("deleted uploads stay", "terminate-gone", delete=lambda self, request, upload: Reply(204))
make("DELETE gets 200", "terminate", mend=restatus(Right, "DELETE", 204, 200))
