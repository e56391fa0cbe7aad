"""Checks of the extensions with which a tus upload begins and ends: creation in its three forms,
expiration, termination."""

import time
from email.utils import parsedate_to_datetime

from checks import (BEYOND, MUST, SHOULD, Check, Inapplicable, Skipped, expect, expect_absent,
                    expect_field, expect_number, expect_refusal, expect_status, expect_success,
                    registrar)
from tus import GONE, MEDIA_TYPE, NAMED, TusServer, metadata, parse_metadata
from tus_core import expect_at_most, unknown
from wire import Answer, Connection, resolve

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = b"0123456789" * 300


# creation

@check("create", "Creation, POST", MUST, "POST with Upload-Length gets 201 and the Location of an upload",
       needs=("creation",))
def create(tus: TusServer) -> None:
    first, second = tus.create(10), tus.create(10)
    expect(first != second, f"two uploads have the same address {first}")
    tus.expect_offset(first, 0, "of a new upload")


@check("create-absolute", "Creation, Location", BEYOND,
       "Location is absolute; aiotus, for one, cannot follow a path", needs=("creation",))
def create_absolute(tus: TusServer) -> None:
    location = tus.post(Upload_Length="1").get("Location") or ""
    expect("://" in location, f"POST: Location is {location!r}")


@check("create-empty", "Creation, POST", MUST, "An upload of length 0 is complete at once",
       needs=("creation",))
def create_empty(tus: TusServer) -> None:
    answer = tus.head(tus.create(0))
    expect_number(answer, "Upload-Offset", 0, "HEAD of an empty upload")
    expect_number(answer, "Upload-Length", 0, "HEAD of an empty upload")


@check("create-bad-length", "Creation, POST", BEYOND,
       "POST without a valid length is refused", needs=("creation",))
def create_bad_length(tus: TusServer) -> None:
    for value in (None, "-1", "ten", "1.5"):
        expect_refusal(tus.post(Upload_Length=value), f"POST with Upload-Length {value!r}")


@check("create-too-large", "Creation, POST", MUST, "More than Tus-Max-Size gets 413",
       needs=("creation",))
def create_too_large(tus: TusServer) -> None:
    largest = tus.offer.get("Tus-Max-Size")
    if largest is None:
        raise Inapplicable("no Tus-Max-Size")
    expect(largest.isdigit(), f"Tus-Max-Size is {largest!r}")
    answer = tus.post(Upload_Length=str(int(largest) + 1))
    expect_status(answer, 413, f"POST with Upload-Length {int(largest) + 1}")


@check("metadata", "Creation, Upload-Metadata", MUST, "HEAD echoes Upload-Metadata",
       needs=("creation",))
def echo_metadata(tus: TusServer) -> None:
    sent = {"filename": "dé jà.bin".encode(), "filetype": b"text/plain", "x-note": b"a,b c"}
    echo = tus.head(tus.create(1, Upload_Metadata=metadata(sent))).get("Upload-Metadata")
    expect(echo is not None, "HEAD: no Upload-Metadata")
    expect(parse_metadata(echo) == sent, f"HEAD: Upload-Metadata is {echo!r}")


@check("metadata-none", "Creation, Upload-Metadata", MUST, "Upload-Metadata may be left out",
       needs=("creation",))
def metadata_none(tus: TusServer) -> None:
    url = tus.create(5, Upload_Metadata=None)
    expect_absent(tus.head(url), "Upload-Metadata", "HEAD")
    expect_status(tus.patch(url, 0, b"12345"), 204, "PATCH")
    tus.expect_offset(url, 5, "of an upload without metadata")


@check("metadata-empty-value", "Creation, Upload-Metadata", MUST,
       "A key of Upload-Metadata may have no value", needs=("creation",))
def metadata_empty_value(tus: TusServer) -> None:
    url = tus.create(1, Upload_Metadata=metadata({"is_confidential": None, "name": b"n"}))
    answer = tus.head(url)
    expect_success(answer, "HEAD")
    echo = answer.get("Upload-Metadata") or ""
    expect(parse_metadata(echo) == {"is_confidential": b"", "name": b"n"},
           f"HEAD: Upload-Metadata is {echo!r}")


# creation-with-upload

@check("with-upload", "Creation With Upload", MUST,
       "The body of POST counts, and Upload-Offset is how much of it",
       needs=("creation-with-upload",))
def with_upload(tus: TusServer) -> None:
    for count in (1000, len(DATA)):
        answer = tus.post(DATA[:count], Upload_Length=str(len(DATA)), Content_Type=MEDIA_TYPE)
        url = tus.location(answer)
        expect_number(answer, "Upload-Offset", count, f"POST with {count} bytes")
        tus.expect_offset(url, count, f"after POST with {count} bytes")
        tus.finish(url, DATA)
        tus.expect_bytes(url, DATA)


@check("with-upload-too-long", "Creation With Upload", SHOULD,
       "A body longer than Upload-Length never makes the upload longer",
       needs=("creation-with-upload",))
def with_upload_too_long(tus: TusServer) -> None:
    answer = tus.post(b"123456", Upload_Length="5", Content_Type=MEDIA_TYPE)
    expect_at_most(answer, 5, "POST of 6 bytes with Upload-Length 5")


@check("with-upload-continue", "Creation With Upload; RFC 9110, 10.1.1", SHOULD,
       "Expect: 100-continue is answered before the body comes", needs=("creation-with-upload",))
def with_upload_continue(tus: TusServer) -> None:
    fields = tus.fields({
        "Upload_Length": "5", "Content_Type": MEDIA_TYPE, "Expect": "100-continue",
        "Upload_Metadata": NAMED})
    with Connection(tus.url, tus.settings) as connection:
        connection.send_head("POST", {**fields, "Content-Length": "5"})
        interim = connection.read_interim(3)
        expect(interim is not None, "nothing came within 3 s")
        expect_status(interim, 100, "before the body")
        connection.send(b"12345")
        answer = connection.read_answer()
    expect_number(answer, "Upload-Offset", 5, "POST with Expect")


@check("without-with-upload", "Creation With Upload", SHOULD,
       "Without the extension, the body of POST is not claimed to be stored",
       needs=("creation",), without="creation-with-upload")
def without_with_upload(tus: TusServer) -> None:
    answer = tus.post(b"12345", Upload_Length="5", Content_Type=MEDIA_TYPE)
    if answer.status != 201:
        expect_refusal(answer, "POST with a body")
        return
    stored = tus.offset(resolve(tus.url, answer.get("Location") or ""))
    expect(int(answer.get("Upload-Offset") or 0) == stored,
           f"POST claims {answer.get('Upload-Offset')!r}, HEAD {stored}")


# creation-defer-length

@check("defer-length", "Creation, Upload-Defer-Length", MUST,
       "An upload may begin without a length; HEAD says so until one comes",
       needs=("creation-defer-length",))
def defer_length(tus: TusServer) -> None:
    url = tus.create_deferred()
    answer = tus.head(url)
    expect_field(answer, "Upload-Defer-Length", "1", "HEAD")
    expect_absent(answer, "Upload-Length", "HEAD")
    expect_status(tus.patch(url, 0, DATA[:1000]), 204, "PATCH without Upload-Length")
    answer = tus.patch(url, 1000, DATA[1000:2000], Upload_Length=str(len(DATA)))
    expect_status(answer, 204, "PATCH with Upload-Length")
    answer = tus.head(url)
    expect_number(answer, "Upload-Length", len(DATA), "HEAD once the length is known")
    expect_absent(answer, "Upload-Defer-Length", "HEAD once the length is known")
    expect_status(tus.patch(url, 2000, DATA[2000:]), 204, "PATCH of the rest")
    tus.expect_bytes(url, DATA)


@check("defer-length-once", "Creation, Upload-Defer-Length", MUST,
       "A length that was set does not change", needs=("creation-defer-length",))
def defer_length_once(tus: TusServer) -> None:
    url = tus.create_deferred()
    expect_status(tus.patch(url, 0, b"12345", Upload_Length="10"), 204, "PATCH with Upload-Length")
    tus.patch(url, 5, b"67890", Upload_Length="20")
    expect_number(tus.head(url), "Upload-Length", 10, "HEAD after a second Upload-Length")


@check("defer-length-value", "Creation, POST", SHOULD,
       "Upload-Defer-Length other than 1 gets 400", needs=("creation-defer-length",))
def defer_length_value(tus: TusServer) -> None:
    for value in ("0", "2", "yes"):
        expect_status(tus.post(Upload_Defer_Length=value), 400,
                      f"POST with Upload-Defer-Length {value!r}")


@check("without-defer-length", "Creation, Upload-Defer-Length", SHOULD,
       "Without the extension, an upload without a length is refused",
       needs=("creation",), without="creation-defer-length")
def without_defer_length(tus: TusServer) -> None:
    expect_refusal(tus.post(Upload_Defer_Length="1"), "POST with Upload-Defer-Length: 1")


# expiration

def seconds_left(answer: Answer, doing: str) -> float:
    """Seconds until the upload expires."""
    text = answer.get("Upload-Expires")
    expect(text is not None, f"{doing}: no Upload-Expires")
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        date = None
    expect(date is not None and text.endswith(" GMT"), f"{doing}: {text!r} is not an HTTP date")
    return date.timestamp() - time.time()


@check("expires", "Expiration, Upload-Expires", SHOULD,
       "A server that advertises expiration reports Upload-Expires, an HTTP date to come",
       needs=("creation", "expiration"))
def expires(tus: TusServer) -> None:
    answer = tus.post(Upload_Length="10")
    if "Upload-Expires" not in answer:
        answer = tus.patch(tus.location(answer), 0, b"12345")
    left = seconds_left(answer, "POST and PATCH")
    expect(left > 0, f"expired {-left:.0f} s ago")


@check("expires-on-patch", "Expiration, Upload-Expires", MUST,
       "Every answer to PATCH has the Upload-Expires of an upload that expires", needs=("creation", "expiration"))
def expires_on_patch(tus: TusServer) -> None:
    answer = tus.post(Upload_Length="10")
    if "Upload-Expires" not in answer:
        raise Skipped("POST reports no Upload-Expires; uploads may not expire")
    url = tus.location(answer)
    for offset in range(2):
        left = seconds_left(tus.patch(url, offset, b"1"), "PATCH")
        expect(left > 0, f"PATCH: expired {-left:.0f} s ago")


@check("expired", "Expiration, Upload-Expires", SHOULD, "An expired upload answers 404 or 410",
       needs=("creation", "expiration"))
def expired(tus: TusServer) -> None:
    url = tus.create(10)
    answer = tus.patch(url, 0, b"12345")
    if "Upload-Expires" not in answer:
        raise Skipped("PATCH reports no Upload-Expires")
    left = seconds_left(answer, "PATCH")
    if left > tus.event_timeout:
        raise Skipped(f"uploads live {left:.0f} s; --event-timeout says how long to wait")
    # HTTP dates have whole seconds.
    time.sleep(max(left, 0) + 1.5)
    answer = tus.patch(url, 5, b"67890")
    expect_status(answer, (404, 410), "PATCH of an expired upload")
    expect_status(tus.head(url), (404, 410), "HEAD of an expired upload")


@check("without-expiration", "Expiration", SHOULD,
       "Without the extension, no answer has Upload-Expires",
       needs=("creation",), without="expiration")
def without_expiration(tus: TusServer) -> None:
    answer = tus.post(Upload_Length="10")
    expect_absent(answer, "Upload-Expires", "POST")


# termination

@check("terminate", "Termination, DELETE", MUST, "DELETE answers 204", needs=("termination",))
def terminate(tus: TusServer) -> None:
    url = tus.create(10)
    expect_status(tus.patch(url, 0, b"12345"), 204, "PATCH")
    expect_status(tus.ask("DELETE", url), 204, "DELETE of an unfinished upload")
    expect_status(tus.ask("DELETE", tus.filled(DATA)), 204, "DELETE of a complete upload")


@check("terminate-gone", "Termination, DELETE", SHOULD, "A deleted upload answers 404 or 410",
       needs=("termination",))
def terminate_gone(tus: TusServer) -> None:
    url = tus.create(10)
    expect_status(tus.patch(url, 0, b"12345"), 204, "PATCH")
    expect_success(tus.ask("DELETE", url), "DELETE")
    expect_status(tus.head(url), (404, 410), "HEAD of a deleted upload")
    expect_status(tus.patch(url, 5, b"67890"), GONE, "PATCH of a deleted upload")


@check("terminate-unknown", "not in tus 1.0.0", BEYOND, "DELETE of an unknown upload is refused",
       needs=("termination",))
def terminate_unknown(tus: TusServer) -> None:
    expect_status(tus.ask("DELETE", unknown(tus)), GONE, "DELETE of an unknown upload")


@check("without-termination", "Termination, DELETE", SHOULD,
       "Without the extension, DELETE leaves the upload alone",
       needs=("creation",), without="termination")
def without_termination(tus: TusServer) -> None:
    url = tus.create(10)
    tus.ask("DELETE", url)
    expect_success(tus.head(url), "HEAD after DELETE")
