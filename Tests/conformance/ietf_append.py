"""Checks of appends to an IETF resumable upload."""

import time

from checks import (MUST, SHOULD, Check, Inapplicable, Skipped, expect, expect_absent, expect_field,
                    expect_number, expect_refusal, expect_status, expect_success, registrar)
from ietf import LONG, IetfServer, problem
from ietf_creation import LENGTH_PROBLEM, digest
from wire import Answer, Connection

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = bytes(range(256)) * 40
OFFSET_PROBLEM = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"


@check("append", "4.4 Upload Append", MUST, "Appends succeed and move the offset; the last completes")
def append(server: IetfServer) -> None:
    url = server.create()
    for first, last in ((0, 1), (1, 4000)):
        expect_success(server.patch(url, first, DATA[first:last], False), "append")
        server.expect_open(url, last, "after append")
    answer = server.patch(url, 4000, DATA[4000:], True)
    expect_success(answer, "completing append")
    server.expect_bytes(answer, DATA)


@check("append-completeness", "4.4 Upload Append", MUST,
       "The answers to appends report the completeness", first=7)
def append_completeness(server: IetfServer) -> None:
    answers_report_completeness(server)


@check("append-completeness-early", "Upload Append", SHOULD,
       "The answers to appends report the completeness", last=6)
def append_completeness_early(server: IetfServer) -> None:
    answers_report_completeness(server)


def answers_report_completeness(server: IetfServer) -> None:
    url = server.create()
    server.expect_completeness(server.patch(url, 0, DATA[:100], False), False, "append")
    server.expect_completeness(server.patch(url, 100, DATA[100:], True), True, "completing append")


@check("append-offset", "Upload Append", SHOULD, "The answer to an append reports the new offset", last=6)
def append_offset(server: IetfServer) -> None:
    answer = server.patch(server.create(), 0, DATA[:100], False)
    expect_number(answer, "Upload-Offset", 100, "append")


@check("append-empty-end", "4.4 Upload Append", MUST, "An append without content may complete the upload")
def append_empty_end(server: IetfServer) -> None:
    url = server.create()
    expect_success(server.patch(url, 0, DATA, False), "append")
    server.expect_open(url, len(DATA), "before the end was said")
    answer = server.patch(url, len(DATA), b"", True)
    expect_success(answer, "append without content")
    server.expect_bytes(answer, DATA)


@check("append-length-is-no-end", "4.1.3 Length", MUST,
       "An upload whose offset has reached its length is complete only once that is said", first=6)
def append_length_is_no_end(server: IetfServer) -> None:
    url = server.create(100)
    expect_success(server.patch(url, 0, DATA[:100], False), "append up to the length")
    server.expect_open(url, 100, "at the length, before the end was said")
    expect_success(server.patch(url, 100, b"", True), "append without content")


@check("append-chunked", "9 Transfer Codings", MUST, "An append may come without Content-Length")
def append_chunked(server: IetfServer) -> None:
    url = server.create()
    answer = server.patch(url, 0, DATA, False, chunked=True)
    expect_success(answer, "append with Transfer-Encoding: chunked")
    server.expect_open(url, len(DATA), "after append")


@check("append-ahead", "4.4 Upload Append", MUST,
       "An offset too high gets 409 with the right Upload-Offset and changes nothing")
def append_ahead(server: IetfServer) -> None:
    url = server.create(body=DATA[:100])
    expect_conflict(server.patch(url, 150, DATA[150:], True), 100)
    server.expect_open(url, 100, "after 409")


@check("append-behind", "4.4 Upload Append", MUST,
       "An offset too low gets 409 with the right Upload-Offset and changes nothing")
def append_behind(server: IetfServer) -> None:
    url = server.create(body=DATA[:100])
    expect_conflict(server.patch(url, 50, b"x" * 100, True), 100)
    server.expect_open(url, 100, "after 409")
    server.expect_bytes(server.finish(url, DATA), DATA)


def expect_conflict(answer: Answer, offset: int) -> None:
    expect_status(answer, 409, "append at a wrong offset")
    expect_number(answer, "Upload-Offset", offset, "409")


@check("append-conflict-open", "4.4 Upload Append", SHOULD, "The 409 says that the upload is not complete",
       first=7)
def append_conflict_open(server: IetfServer) -> None:
    answer = server.patch(server.create(), 50, DATA, True)
    server.expect_completeness(answer, False, "409")


@check("append-conflict-problem", "7.1 Mismatching Offset", SHOULD,
       "The problem of a wrong offset has the registered type and both offsets", first=6)
def append_conflict_problem(server: IetfServer) -> None:
    found = problem(server.patch(server.create(), 50, DATA, True))
    wanted = {"type": OFFSET_PROBLEM, "expected-offset": 0, "provided-offset": 50}
    for member, value in wanted.items():
        expect(found.get(member) == value, f"{member} is {found.get(member)!r}, expected {value!r}")


@check("append-without-offset", "4.4 Upload Append", MUST,
       "An append without a valid Upload-Offset is refused and changes nothing")
def append_without_offset(server: IetfServer) -> None:
    url = server.create()
    for value in (None, "abc", "-1", "?1"):
        answer = server.patch(url, value, DATA, False)
        expect_refusal(answer, f"append with Upload-Offset {value!r}")
        server.expect_open(url, 0, f"after Upload-Offset {value!r}")


@check("append-media-type", "RFC 5789, 2.2", SHOULD,
       "An append of another media type is refused and changes nothing", first=6)
def append_media_type(server: IetfServer) -> None:
    url = server.create()
    answer = server.patch(url, 0, DATA, False, Content_Type="application/octet-stream")
    expect_refusal(answer, "append of application/octet-stream")
    server.expect_open(url, 0, "after a refused media type")


@check("append-media-type-415", "RFC 5789, 2.2", SHOULD, "The refusal is 415", first=6)
def append_media_type_415(server: IetfServer) -> None:
    answer = server.patch(server.create(), 0, DATA, False, Content_Type="application/octet-stream")
    expect_status(answer, 415, "append of application/octet-stream")


@check("append-to-complete", "4.4 Upload Append", MUST, "More content for a complete upload is refused")
def append_to_complete(server: IetfServer) -> None:
    url = server.create()
    expect_success(server.patch(url, 0, DATA, True), "completing append")
    expect_refusal(server.patch(url, len(DATA), b"more", True), "append to a complete upload")
    answer = server.head(url)
    if answer.status < 300:
        expect_number(answer, "Upload-Offset", len(DATA), "HEAD after a refused append")


@check("append-length-conflict", "4.1.3 Length", MUST, "A length that was given does not change", first=6)
def append_length_conflict(server: IetfServer) -> None:
    url = server.create(1000)
    expect_refusal(server.patch(url, 0, DATA[:100], False, length=2000), "append with another Upload-Length")
    url = server.create(1000)
    expect_refusal(server.patch(url, 0, DATA[:100], True), "completing append of 100 of 1000 bytes")


@check("append-length-problem", "7.3 Inconsistent Length", SHOULD,
       "The refusal is 400 with the registered problem type", first=7)
def append_length_problem(server: IetfServer) -> None:
    answer = server.patch(server.create(1000), 0, DATA[:100], False, length=2000)
    expect_status(answer, 400, "append with another Upload-Length")
    found = problem(answer).get("type")
    expect(found == LENGTH_PROBLEM, f"type is {found!r}")


@check("append-too-long", "4.4 Upload Append", MUST, "An append past the length is refused", first=6)
def append_too_long(server: IetfServer) -> None:
    for chunked in (False, True):
        url = server.create(100)
        answer = server.patch(url, 0, DATA[:101], False, chunked=chunked)
        expect_refusal(answer, f"append of 101 bytes to an upload of 100, chunked: {chunked}")
        found = server.head(url)
        if found.status < 300:
            expect(int(found.get("Upload-Offset") or 0) <= 100, "the upload is longer than its length")


@check("append-cut-keeps-bytes", "4.4 Upload Append", SHOULD,
       "Bytes that arrived before the connection broke are kept")
def append_cut_keeps_bytes(server: IetfServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = server.create()
    server.cut(url, data, len(data) // 2)
    # A server may need a moment to see the end of the connection.
    deadline = time.monotonic() + 5
    while server.state(url)[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    # A server that notices the break only now may not discard the bytes it has reported.
    time.sleep(1)
    expect(server.state(url)[0] > 0, f"of {len(data) // 2} bytes that were sent none is kept")


@check("append-cut-resumes", "4.4 Upload Append", MUST,
       "After a broken connection the upload is not complete, and the announced offset is taken")
def append_cut_resumes(server: IetfServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = server.create()
    server.cut(url, data, len(data) // 3)
    offset, complete = server.state(url)
    expect(offset <= len(data) // 3, f"offset {offset} is more than was sent")
    expect(not complete, "the upload counts as complete although its end never came")
    server.expect_bytes(server.finish(url, data), data)


@check("append-progress", "4.4 Upload Append", MUST,
       "A 104 during an append has a true offset, the version, and no Location",
       first=5, last=9)
def append_progress(server: IetfServer) -> None:
    data = bytes(16 * LONG)
    # A MAY before version 7.
    seconds = max(4, server.event_timeout) if server.at_least(7) else 4
    url = server.create()
    fields = server.fields(True, 0, more={
        "Content_Type": server.dialect.media_type, "Content_Length": str(len(data))})
    with Connection(url, server.settings) as connection:
        connection.send_head("PATCH", fields)
        for start in range(0, len(data), LONG):
            connection.send_body(data[start : start + LONG])
            # Servers report once in a while; when one has, the rest may go at once.
            if not connection.interim:
                time.sleep(seconds * LONG / len(data))
        answer = connection.read_answer()
    expect_success(answer, "append")
    found = server.interim(answer)
    if not found:
        reason = f"no 104 was sent in the {seconds:.0f} s that the append took"
        raise Skipped(reason) if server.at_least(7) else Inapplicable(reason)
    last = 0
    for interim in found:
        expect_absent(interim, "Location", "104")
        expect_field(interim, "Upload-Draft-Interop-Version", server.dialect.version or "", "104")
        offset = int(interim.get("Upload-Offset") or -1)
        expect(last <= offset <= len(data), f"104: Upload-Offset {offset} after {last}")
        last = offset


@check("append-content-digest", "10.2 Content Digests; RFC 9530", SHOULD,
       "Content that does not have its Content-Digest does not count", first=6)
def append_content_digest(server: IetfServer) -> None:
    url = server.create()
    answer = server.patch(url, 0, DATA[:100], False, Content_Digest=digest(DATA[:100]))
    expect_success(answer, "append with its Content-Digest")
    answer = server.patch(url, 100, DATA[100:200], False, Content_Digest=digest(b"other"))
    expect_refusal(answer, "append with another Content-Digest")
    server.expect_open(url, 100, "after another Content-Digest")
