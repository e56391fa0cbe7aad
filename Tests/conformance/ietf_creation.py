"""Checks of how an IETF resumable upload is created and announced."""

import base64
import hashlib

from checks import (MUST, SHOULD, Check, Inapplicable, Skipped, expect, expect_field,
                    expect_refusal, expect_status, expect_success, registrar)
from ietf import LONG, IetfServer, limits, problem
from wire import Answer, Connection, resolve

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = bytes(range(256)) * 40
LENGTH_PROBLEM = "https://iana.org/assignments/http-problem-types#inconsistent-upload-length"


@check("create-empty", "4.2 Upload Creation", MUST,
       "Creation without content gets success and the Location of an empty upload")
def create_empty(server: IetfServer) -> None:
    first, second = server.create(), server.create()
    expect(first != second, f"two uploads have the same address {first}")
    server.expect_open(first, 0, "of a new upload")


@check("create-201", "4.2 Upload Creation", SHOULD, "An upload that is not complete is created with 201")
def create_201(server: IetfServer) -> None:
    expect_status(server.post(DATA[:100], False), 201, "creation")


@check("create-completeness", "4.2 Upload Creation", SHOULD,
       "The answer to a creation that is not complete says so")
def create_completeness(server: IetfServer) -> None:
    server.expect_completeness(server.post(DATA[:100], False), False, "creation")


@check("create-partial", "4.2 Upload Creation", MUST, "Content that comes with the creation counts")
def create_partial(server: IetfServer) -> None:
    url = server.create(body=DATA[:1000])
    server.expect_open(url, 1000, "after 1000 bytes with the creation")
    answer = server.finish(url, DATA)
    server.expect_bytes(answer, DATA)


@check("create-whole", "4.2 Upload Creation", MUST, "A whole upload in one request succeeds")
def create_whole(server: IetfServer) -> None:
    answer = server.post(DATA, True)
    expect_success(answer, "creation with all bytes")
    found = answer.get(server.dialect.completeness)
    expect(found in (None, server.dialect.completes(True)),
           f"creation with all bytes: {server.dialect.completeness} is {found!r}")
    server.expect_bytes(answer, DATA)


@check("create-whole-completeness", "4.2 Upload Creation", SHOULD,
       "The answer to a whole upload carries Upload-Complete: ?1", first=9)
def create_whole_completeness(server: IetfServer) -> None:
    server.expect_completeness(server.post(DATA, True), True, "creation with all bytes")


@check("create-whole-empty", "4.2 Upload Creation", MUST, "An upload may have no bytes at all")
def create_whole_empty(server: IetfServer) -> None:
    expect_success(server.post(b"", True), "creation of a whole upload without bytes")


@check("create-chunked", "9 Transfer Codings", MUST, "The offset counts content, not transfer coding")
def create_chunked(server: IetfServer) -> None:
    answer = server.post(DATA, False, chunked=True)
    expect_success(answer, "creation with Transfer-Encoding: chunked")
    server.expect_open(resolve(server.url, answer.get("Location") or ""), len(DATA), "after creation")


@check("create-limits", "4.2 Upload Creation", MUST, "The answer to a creation announces Upload-Limit",
       first=8)
def create_limits(server: IetfServer) -> None:
    limits(server.post(b"", False), "creation")


@check("create-length-conflict", "4.1.3 Length", MUST,
       "An Upload-Length that differs from the content of a whole upload is refused", first=7)
def create_length_conflict(server: IetfServer) -> None:
    for length in (len(DATA) - 1, len(DATA) + 1):
        answer = server.post(DATA, True, length)
        expect_refusal(answer, f"{len(DATA)} bytes with Upload-Length {length}")


@check("create-length-problem", "7.3 Inconsistent Length", SHOULD,
       "The refusal is 400 with the registered problem type", first=7)
def create_length_problem(server: IetfServer) -> None:
    answer = server.post(DATA, True, len(DATA) + 1)
    expect_status(answer, 400, "inconsistent lengths")
    found = problem(answer).get("type")
    expect(found == LENGTH_PROBLEM, f"type is {found!r}")


@check("create-too-large", "4.1.4 Limits", SHOULD, "An upload above max-size is refused", first=6)
def create_too_large(server: IetfServer) -> None:
    answer = server.post(b"", False, largest(server) + 1)
    expect_refusal(answer, "creation above max-size")


@check("create-too-large-limits", "4.1.4 Limits", SHOULD, "The refusal is 413 with Upload-Limit", first=8)
def create_too_large_limits(server: IetfServer) -> None:
    answer = server.post(b"", False, largest(server) + 1)
    expect_status(answer, 413, "creation above max-size")
    limits(answer, "413")


def largest(server: IetfServer) -> int:
    members = limits(server.post(b"", False), "creation")
    # Integers of structured fields end here.
    if members.get("max-size", 10**15) >= 10**15 - 1:
        raise Inapplicable("no max-size in Upload-Limit")
    return members["max-size"]


# 104 Upload Resumption Supported

def announce(server: IetfServer, complete: bool) -> Answer:
    answer = server.post(DATA, complete, len(DATA) if server.at_least(6) else None)
    expect_success(answer, "creation")
    return answer


def interim_of(server: IetfServer, complete: bool = False) -> tuple[Answer, Answer]:
    """The first 104 with a Location, and the final answer."""
    answer = announce(server, complete)
    found = [interim for interim in server.interim(answer) if "Location" in interim]
    if not found:
        raise no_interim(server, "no 104 with a Location was sent")
    return found[0], answer


def no_interim(server: IetfServer, reason: str) -> Exception:
    """Returns `Inapplicable` without a version, because a request without one does not ask for a 104."""
    return Inapplicable(reason) if server.dialect.version is None else Skipped(reason)


@check("104", "4.2 Upload Creation", SHOULD, "A 104 with a Location announces the upload", last=9)
def interim(server: IetfServer) -> None:
    for complete in (False, True):
        found = server.interim(announce(server, complete))
        expect(bool(found), "no 104 came before the final answer")
        expect("Location" in found[0], "the first 104 has no Location")


@check("104-version", "Appendix, draft versions", MUST, "Each 104 names the interop version", last=9)
def interim_version(server: IetfServer) -> None:
    found, _ = interim_of(server)
    expect_field(found, "Upload-Draft-Interop-Version", server.dialect.version or "", "104")


@check("104-location", "4.2 Upload Creation", MUST, "The 104 and the final answer have the same Location")
def interim_location(server: IetfServer) -> None:
    found, answer = interim_of(server)
    expect_field(answer, "Location", found.get("Location") or "", "final answer")
    server.expect_open(resolve(server.url, found.get("Location") or ""), len(DATA), "of that address")


@check("104-limits", "4.2 Upload Creation", MUST, "The 104 that announces the upload has Upload-Limit",
       first=8)
def interim_limits(server: IetfServer) -> None:
    found, _ = interim_of(server)
    limits(found, "104")


@check("104-early", "4.2 Upload Creation", SHOULD, "The 104 comes before the content", last=9)
def interim_early(server: IetfServer) -> None:
    with begin(server, len(DATA)) as connection:
        found = connection.read_interim(3)
        expect(found is not None and found.status == 104, "no 104 within 3 s of the request's fields")


@check("104-resumes", "4.2 Upload Creation", MUST,
       "An upload that broke off after its 104 goes on at the announced address")
def interim_resumes(server: IetfServer) -> None:
    data = DATA * (LONG // len(DATA))
    with begin(server, len(data)) as connection:
        if connection.read_interim(3) is None:
            raise no_interim(server, "no 104 came before the content")
        connection.send_body(data[: len(data) // 2])
        connection.settle()
        url = server.announced(connection.interim)
    expect(url is not None, "the 104 has no Location")
    offset, complete = server.state(url)
    expect(offset <= len(data) // 2, f"offset {offset} is more than was sent")
    expect(not complete, "the upload counts as complete although its end never came")
    server.expect_bytes(server.finish(url, data), data)


def begin(server: IetfServer, length: int) -> Connection:
    """A creation of a whole upload whose content has not begun."""
    connection = Connection(server.url, server.settings)
    connection.send_head("POST", server.fields(True, more={
        "Content_Length": str(length), "Content_Type": "application/octet-stream"}))
    return connection


@check("104-and-100", "5 Status Code 104", MUST,
       "A request that expects 100 (Continue) gets it, 104 or not", first=8)
def interim_and_100(server: IetfServer) -> None:
    fields = server.fields(True, more={
        "Content_Length": "5", "Content_Type": "text/plain", "Expect": "100-continue"})
    with Connection(server.url, server.settings) as connection:
        connection.send_head("POST", fields)
        while (found := connection.read_interim(3)) is not None and found.status != 100:
            pass
        expect(found is not None, "no 100 came")
        connection.send(b"12345")
        expect_success(connection.read_answer(), "creation after 100")


@check("104-never-without-version", "Appendix, draft versions", MUST,
       "A creation of no version, or of an unknown one, gets no 104", last=9)
def interim_never_without_version(server: IetfServer) -> None:
    for version in (None, "99"):
        answer = server.post(DATA, True, Upload_Draft_Interop_Version=version)
        expect(not server.interim(answer), f"104 for version {version}")


@check("unknown-version-falls-back", "Upgrading to resumable uploads", SHOULD,
       "A whole upload of an unknown version is an ordinary upload", last=9)
def unknown_version_falls_back(server: IetfServer) -> None:
    for version in ("1", "99", "many"):
        answer = server.post(DATA, True, Upload_Draft_Interop_Version=version)
        expect_success(answer, f"whole upload of version {version}")


# Discovery

@check("options-limits", "4.1.4 Limits", SHOULD, "OPTIONS answers with Upload-Limit", first=6)
def options_limits(server: IetfServer) -> None:
    answer = server.options()
    expect_success(answer, "OPTIONS")
    limits(answer, "OPTIONS")


@check("options-accept-patch", "4.1.4 Limits", SHOULD, "OPTIONS accepts application/partial-upload",
       first=8, last=8)
def options_accept_patch(server: IetfServer) -> None:
    found = server.options().get("Accept-Patch") or ""
    expect("application/partial-upload" in found, f"OPTIONS: Accept-Patch is {found!r}")


# Digests. Version 9 leaves them to RFC 9530.

def digest(data: bytes) -> str:
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


@check("create-repr-digest", "10.1 Representation Digests; RFC 9530", SHOULD,
       "An upload that does not have its Repr-Digest fails", first=6)
def create_repr_digest(server: IetfServer) -> None:
    expect_success(server.post(DATA, True, Repr_Digest=digest(DATA)), "upload with its Repr-Digest")
    answer = server.post(DATA, True, Repr_Digest=digest(b"other"))
    expect_refusal(answer, "upload with another Repr-Digest")
    answer = server.post(DATA[:100], False, Repr_Digest=digest(b"other"))
    expect_success(answer, "creation with a Repr-Digest")
    url = resolve(server.url, answer.get("Location") or "")
    expect_refusal(server.patch(url, 100, DATA[100:], True), "the end of an upload with another Repr-Digest")


@check("create-content-digest", "10.2 Content Digests; RFC 9530", SHOULD,
       "Content that does not have its Content-Digest does not count", first=6)
def create_content_digest(server: IetfServer) -> None:
    expect_success(server.post(DATA, False, Content_Digest=digest(DATA)), "creation with its Content-Digest")
    answer = server.post(DATA, False, Content_Digest=digest(b"other"))
    expect_refusal(answer, "creation with another Content-Digest")
