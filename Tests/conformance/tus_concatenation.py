"""Checks of the tus extensions concatenation and concatenation-unfinished."""

import time
from urllib.parse import urlsplit

from checks import (BEYOND, MUST, SHOULD, Check, Inapplicable, expect, expect_absent,
                    expect_field, expect_number, expect_refusal, expect_status, registrar)
from tus import GONE, TusServer, metadata
from tus_core import unknown
from wire import Answer

CHECKS: list[Check] = []
check = registrar(CHECKS)

FIRST = b"The first part, " * 400
SECOND = b"and the second." * 500
NEEDS = ("creation", "concatenation")


def part(tus: TusServer, data: bytes, **fields: str | None) -> str:
    return tus.filled(data, Upload_Concat="partial", **fields)


def join(tus: TusServer, *parts: str) -> Answer:
    return tus.post(Upload_Concat="final;" + " ".join(parts))


def path(url: str) -> str:
    return urlsplit(url).path


def complete(tus: TusServer, url: str, length: int) -> Answer:
    """HEAD of a final upload once it is put together, for which a server may take a moment."""
    deadline = time.monotonic() + 10
    while True:
        answer = tus.head(url)
        if (answer.get("Upload-Offset") == str(length) or answer.status >= 400
                or time.monotonic() > deadline):
            return answer
        time.sleep(0.1)


@check("partial", "Concatenation, Upload-Concat", MUST, "HEAD of a partial upload says so",
       needs=NEEDS)
def partial(tus: TusServer) -> None:
    url = tus.create(10, Upload_Concat="partial")
    expect_field(tus.head(url), "Upload-Concat", "partial", "HEAD of a partial upload")


@check("final", "Concatenation, Upload-Concat", MUST,
       "A final upload has its parts' bytes in the order named", needs=NEEDS)
def final(tus: TusServer) -> None:
    first, second = part(tus, FIRST), part(tus, SECOND)
    url = tus.location(join(tus, second, first))
    length = len(FIRST) + len(SECOND)
    answer = complete(tus, url, length)
    expect_number(answer, "Upload-Length", length, "HEAD of the final upload")
    expect_number(answer, "Upload-Offset", length, "HEAD of the final upload")
    tus.expect_bytes(url, SECOND + FIRST)


@check("final-echo", "Concatenation, Upload-Concat", MUST,
       "HEAD of a final upload names its parts as they were named", needs=NEEDS)
def final_echo(tus: TusServer) -> None:
    first, second = part(tus, FIRST), part(tus, SECOND)
    url = tus.location(join(tus, path(first), path(second)))
    expect_field(complete(tus, url, len(FIRST) + len(SECOND)), "Upload-Concat",
                 f"final;{path(first)} {path(second)}", "HEAD of the final upload")


@check("final-addresses", "Concatenation, Upload-Concat", MUST,
       "Parts are named by absolute or by relative addresses", needs=NEEDS)
def final_addresses(tus: TusServer) -> None:
    for forms in ((str, str), (path, path), (str, path)):
        # New partial uploads each time: a server may delete them once they are used.
        parts = part(tus, FIRST), part(tus, SECOND)
        tus.location(join(tus, *(form(url) for form, url in zip(forms, parts, strict=True))))


@check("final-patch", "Concatenation, PATCH", MUST, "PATCH of a final upload gets 403", needs=NEEDS)
def final_patch(tus: TusServer) -> None:
    url = tus.location(join(tus, part(tus, FIRST)))
    complete(tus, url, len(FIRST))
    expect_status(tus.patch(url, len(FIRST), b"more"), 403, "PATCH of a final upload")
    expect_status(tus.patch(url, 0, b""), 403, "PATCH of a final upload without bytes")


@check("final-twice", "Concatenation; a MAY", BEYOND, "A part serves in several final uploads", needs=NEEDS)
def final_twice(tus: TusServer) -> None:
    shared = part(tus, FIRST)
    other = part(tus, SECOND)
    for parts, data in (((shared,), FIRST), ((other, shared), SECOND + FIRST)):
        if tus.head(shared).status in GONE:
            raise Inapplicable("parts are deleted once they are used")
        url = tus.location(join(tus, *parts))
        expect_number(complete(tus, url, len(data)), "Upload-Length", len(data), "HEAD")
        tus.expect_bytes(url, data)


@check("final-unknown", "not in tus 1.0.0", BEYOND, "A part that does not exist is refused", needs=NEEDS)
def final_unknown(tus: TusServer) -> None:
    expect_refusal(join(tus, part(tus, FIRST), unknown(tus)), "POST with an unknown part")


@check("final-of-ordinary", "not in tus 1.0.0", BEYOND,
       "An upload that is not partial is no part", needs=NEEDS)
def final_of_ordinary(tus: TusServer) -> None:
    expect_refusal(join(tus, tus.filled(FIRST)), "POST with an ordinary upload as part")


@check("final-malformed", "not in tus 1.0.0", BEYOND,
       "An Upload-Concat that is neither is refused", needs=NEEDS)
def final_malformed(tus: TusServer) -> None:
    for value in ("final", "final;", "whole"):
        expect_refusal(tus.post(Upload_Concat=value), f"POST with Upload-Concat {value!r}")


@check("final-metadata", "Concatenation", MUST, "A final upload does not inherit metadata", needs=NEEDS)
def final_metadata(tus: TusServer) -> None:
    url = tus.location(join(tus, part(tus, FIRST, Upload_Metadata=metadata({"secret": b"yes"}))))
    echo = complete(tus, url, len(FIRST)).get("Upload-Metadata") or ""
    expect("secret" not in echo, f"HEAD: Upload-Metadata is {echo!r}")


@check("final-of-unfinished", "Concatenation", SHOULD,
       "Without concatenation-unfinished, a part that is not complete is refused",
       needs=NEEDS, without="concatenation-unfinished")
def final_of_unfinished(tus: TusServer) -> None:
    unfinished = tus.create(10, Upload_Concat="partial")
    expect_refusal(join(tus, unfinished), "POST with an unfinished part")


@check("final-early", "Concatenation, concatenation-unfinished", MUST,
       "A final upload may be named before its parts are complete, and completes with them",
       needs=(*NEEDS, "concatenation-unfinished"))
def final_early(tus: TusServer) -> None:
    first, second = (tus.create(len(data), Upload_Concat="partial") for data in (FIRST, SECOND))
    url = tus.location(join(tus, first, second))
    expect_status(tus.patch(first, 0, FIRST), 204, "PATCH of the first part")
    expect_status(tus.patch(second, 0, SECOND), 204, "PATCH of the second part")
    length = len(FIRST) + len(SECOND)
    answer = complete(tus, url, length)
    expect_number(answer, "Upload-Offset", length, "HEAD after the parts are complete")
    expect_number(answer, "Upload-Length", length, "HEAD after the parts are complete")
    tus.expect_bytes(url, FIRST + SECOND)


@check("final-early-offset", "Concatenation, HEAD", SHOULD,
       "HEAD of a final upload has no Upload-Offset before its parts are complete",
       needs=(*NEEDS, "concatenation-unfinished"))
def final_early_offset(tus: TusServer) -> None:
    url = tus.location(join(tus, tus.create(10, Upload_Concat="partial")))
    expect_absent(tus.head(url), "Upload-Offset", "HEAD of an unfinished final upload")


@check("without-concatenation", "Concatenation", SHOULD,
       "Without the extension, no final upload is made",
       needs=("creation",), without="concatenation")
def without_concatenation(tus: TusServer) -> None:
    answer = join(tus, part(tus, FIRST))
    if answer.status != 201:
        expect_refusal(answer, "POST with Upload-Concat: final")
        return
    # A server that does not know the field may well make an upload of no length.
    found = tus.head(tus.location(answer))
    expect("final" not in (found.get("Upload-Concat") or ""), "HEAD names a final upload")
    expect(found.get("Upload-Offset") in (None, "0"), f"HEAD: Upload-Offset is {found.get('Upload-Offset')!r}")
