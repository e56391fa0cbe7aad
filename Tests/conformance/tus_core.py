"""Checks of the tus 1.0.0 core protocol."""

import time

from checks import (BEYOND, MUST, SHOULD, Check, describe, expect, expect_absent, expect_field,
                    expect_number, expect_refusal, expect_status, registrar)
from tus import GONE, LONG, MEDIA_TYPE, VERSION, TusServer, words
from wire import Answer, like

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = bytes(range(256)) * 40


def unknown(tus: TusServer) -> str:
    """An address that looks like an upload's and is none."""
    return like(tus.create(1))


@check("options", "Core, OPTIONS", MUST, "OPTIONS answers 200 or 204 with Tus-Version 1.0.0")
def options(tus: TusServer) -> None:
    expect_status(tus.offer, (200, 204), "OPTIONS")
    versions = words(tus.offer.get("Tus-Version"))
    expect(VERSION in versions, f"OPTIONS: Tus-Version is {versions}")


@check("options-ignores-version", "Core, Tus-Resumable", MUST, "OPTIONS ignores Tus-Resumable")
def options_ignores_version(tus: TusServer) -> None:
    answer = tus.ask("OPTIONS", Tus_Resumable="0.0.1")
    expect_status(answer, (200, 204), "OPTIONS with Tus-Resumable: 0.0.1")


@check("version-in-answers", "Core, Tus-Resumable", MUST,
       "Every answer but that to OPTIONS carries Tus-Resumable")
def version_in_answers(tus: TusServer) -> None:
    url = tus.create(10)
    expect_field(tus.post(Upload_Length="1"), "Tus-Resumable", VERSION, "POST")
    expect_field(tus.head(url), "Tus-Resumable", VERSION, "HEAD")
    expect_field(tus.patch(url, 0, b"12345"), "Tus-Resumable", VERSION, "PATCH")
    expect_field(tus.patch(url, 9, b"0"), "Tus-Resumable", VERSION, "PATCH at a wrong offset")
    expect_field(tus.head(unknown(tus)), "Tus-Resumable", VERSION, "HEAD of an unknown upload")


@check("version-412", "Core, Tus-Version", MUST,
       "A request of another version gets 412 with Tus-Version and is not processed")
def version_412(tus: TusServer) -> None:
    url = tus.create(5)
    answer = tus.patch(url, 0, b"12345", Tus_Resumable="0.2.2")
    expect_status(answer, 412, "PATCH with Tus-Resumable: 0.2.2")
    expect(VERSION in words(answer.get("Tus-Version")), "412: Tus-Version does not name 1.0.0")
    tus.expect_offset(url, 0, "after a refused version")


@check("head-offset", "Core, HEAD", MUST, "HEAD reports Upload-Offset, also when it is 0")
def head_offset(tus: TusServer) -> None:
    answer = tus.head(tus.create(10))
    expect_status(answer, (200, 204), "HEAD")
    expect_number(answer, "Upload-Offset", 0, "HEAD of a new upload")


@check("head-complete", "Core, HEAD", MUST, "HEAD reports Upload-Offset of a complete upload")
def head_complete(tus: TusServer) -> None:
    answer = tus.head(tus.filled(DATA))
    expect_status(answer, (200, 204), "HEAD")
    expect_number(answer, "Upload-Offset", len(DATA), "HEAD of a complete upload")


@check("head-length", "Core, HEAD", MUST, "HEAD reports Upload-Length when it is known")
def head_length(tus: TusServer) -> None:
    expect_number(tus.head(tus.create(10)), "Upload-Length", 10, "HEAD")


@check("head-no-store", "Core, HEAD", MUST, "HEAD answers Cache-Control: no-store")
def head_no_store(tus: TusServer) -> None:
    value = tus.head(tus.create(10)).get("Cache-Control") or ""
    expect("no-store" in words(value), f"HEAD: Cache-Control is {value!r}")


@check("head-unknown", "Core, HEAD", SHOULD,
       "HEAD of an unknown upload gets 404, 410 or 403 without Upload-Offset")
def head_unknown(tus: TusServer) -> None:
    answer = tus.head(unknown(tus))
    expect_status(answer, GONE, "HEAD of an unknown upload")
    expect_absent(answer, "Upload-Offset", "HEAD of an unknown upload")


@check("patch", "Core, PATCH", MUST, "PATCH applies the bytes, answers 204 and the new Upload-Offset")
def patch(tus: TusServer) -> None:
    url = tus.create(len(DATA))
    for first, last in ((0, 1), (1, 4000), (4000, len(DATA))):
        answer = tus.patch(url, first, DATA[first:last])
        expect_status(answer, 204, "PATCH")
        expect_number(answer, "Upload-Offset", last, "PATCH")
        tus.expect_offset(url, last, "after PATCH")


@check("patch-chunked", "not in tus 1.0.0", BEYOND, "PATCH takes a body without Content-Length")
def patch_chunked(tus: TusServer) -> None:
    url = tus.create(len(DATA))
    answer = tus.ask("PATCH", url, DATA, chunked=True, Content_Type=MEDIA_TYPE, Upload_Offset="0")
    expect_status(answer, 204, "PATCH with Transfer-Encoding: chunked")
    tus.expect_offset(url, len(DATA), "after PATCH")


@check("patch-empty", "Core, PATCH", SHOULD, "PATCH without bytes at the offset changes nothing")
def patch_empty(tus: TusServer) -> None:
    url = tus.create(5)
    answer = tus.patch(url, 0, b"")
    expect_status(answer, 204, "PATCH without bytes")
    expect_number(answer, "Upload-Offset", 0, "PATCH without bytes")


@check("patch-ahead", "Core, PATCH", MUST, "An Upload-Offset too high gets 409 and changes nothing")
def patch_ahead(tus: TusServer) -> None:
    url = tus.create(10)
    expect_status(tus.patch(url, 5, b"67890"), 409, "PATCH at 5 of an empty upload")
    tus.expect_offset(url, 0, "after 409")


@check("patch-behind", "Core, PATCH", MUST, "An Upload-Offset too low gets 409 and changes nothing")
def patch_behind(tus: TusServer) -> None:
    url = tus.create(10)
    expect_status(tus.patch(url, 0, b"12345"), 204, "PATCH")
    expect_status(tus.patch(url, 2, b"xyz"), 409, "PATCH at 2 after five bytes")
    tus.expect_offset(url, 5, "after 409")
    expect_status(tus.patch(url, 5, b"67890"), 204, "PATCH of the rest")
    tus.expect_bytes(url, b"1234567890")


@check("patch-without-offset", "Core, Upload-Offset", SHOULD,
       "PATCH without a valid Upload-Offset is refused and changes nothing")
def patch_without_offset(tus: TusServer) -> None:
    url = tus.create(5)
    for value in (None, "-1", "abc", "0x0", ""):
        answer = tus.patch(url, None, b"12345", Upload_Offset=value)
        expect_refusal(answer, f"PATCH with Upload-Offset {value!r}")
        tus.expect_offset(url, 0, f"after Upload-Offset {value!r}")


@check("patch-media-type", "Core, PATCH", SHOULD,
       "PATCH with another Content-Type gets 415 and changes nothing")
def patch_media_type(tus: TusServer) -> None:
    url = tus.create(5)
    answer = tus.patch(url, 0, b"12345", Content_Type="application/octet-stream")
    expect_status(answer, 415, "PATCH with application/octet-stream")
    tus.expect_offset(url, 0, "after a refused Content-Type")


@check("patch-unknown", "Core, PATCH", SHOULD, "PATCH of an unknown upload gets 404, 410 or 403")
def patch_unknown(tus: TusServer) -> None:
    expect_status(tus.patch(unknown(tus), 0, b"1"), GONE, "PATCH of an unknown upload")


@check("patch-too-long", "Creation, Upload-Length", SHOULD,
       "PATCH past Upload-Length never makes the upload longer")
def patch_too_long(tus: TusServer) -> None:
    for chunked in (False, True):
        url = tus.create(5)
        answer = tus.ask("PATCH", url, b"123456", chunked=chunked, Content_Type=MEDIA_TYPE, Upload_Offset="0")
        expect_at_most(answer, 5, "PATCH of 6 bytes into an upload of 5")
        # It may be gone.
        expect_at_most(tus.head(url), 5, "HEAD of an upload of 5 after PATCH of 6 bytes")


def expect_at_most(answer: Answer, length: int, doing: str) -> None:
    """A server may take what fits, says so, and leaves the rest."""
    expect(answer.status < 500, f"{doing}: {describe(answer)}")
    if answer.status < 300:
        offset = answer.get("Upload-Offset")
        expect(offset is not None and int(offset) <= length, f"{doing}: Upload-Offset is {offset!r}")


@check("method-override", "Core, X-HTTP-Method-Override", MUST,
       "X-HTTP-Method-Override is the method, whatever the real one is")
def method_override(tus: TusServer) -> None:
    url = tus.create(5)
    answer = tus.ask("POST", url, b"12345", X_HTTP_Method_Override="PATCH",
                     Content_Type=MEDIA_TYPE, Upload_Offset="0")
    expect_status(answer, 204, "POST that stands for PATCH")
    tus.expect_offset(url, 5, "after POST that stood for PATCH")
    answer = tus.ask("POST", url, b"", X_HTTP_Method_Override="HEAD")
    expect_status(answer, (200, 204), "POST that stands for HEAD")
    expect_number(answer, "Upload-Offset", 5, "POST that stands for HEAD")
    if "termination" in tus.extensions:
        answer = tus.ask("POST", url, b"", X_HTTP_Method_Override="DELETE")
        expect_status(answer, 204, "POST that stands for DELETE")


@check("cut-keeps-bytes", "Core, PATCH", SHOULD,
       "Bytes that arrived before the connection broke are kept")
def cut_keeps_bytes(tus: TusServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = tus.create(len(data))
    tus.cut(url, data, len(data) // 2)
    # A server may need a moment to see the end of the connection.
    deadline = time.monotonic() + 5
    while tus.offset(url) == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    # A server that notices the break only now may not discard the bytes it has reported.
    time.sleep(1)
    offset = tus.offset(url)
    expect(offset > 0, f"of {len(data) // 2} bytes that were sent none is kept")
    expect(offset <= len(data) // 2, f"Upload-Offset {offset} is more than was sent")


@check("cut-resumes", "Core, HEAD and PATCH", MUST,
       "After a broken connection the announced offset is taken and the upload completes")
def cut_resumes(tus: TusServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = tus.create(len(data))
    tus.cut(url, data, len(data) // 3)
    tus.finish(url, data)
    tus.expect_offset(url, len(data), "of the completed upload")
    tus.expect_bytes(url, data)
