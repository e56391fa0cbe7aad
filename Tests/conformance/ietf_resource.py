"""Checks of the upload resource of an IETF resumable upload: asking for the offset, and cancelling."""

from checks import (MUST, SHOULD, Check, expect, expect_absent, expect_number, expect_status,
                    expect_success, registrar)
from ietf import LONG, IetfServer, limits
from wire import Connection, like

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = bytes(range(256)) * 40


@check("offset", "4.3 Offset Retrieval", MUST, "HEAD reports the offset and the completeness")
def offset(server: IetfServer) -> None:
    url = server.create()
    server.expect_open(url, 0, "of a new upload")
    expect_success(server.patch(url, 0, DATA[:100], False), "append")
    server.expect_open(url, 100, "after 100 bytes")


@check("offset-204", "Offset Retrieval", MUST, "HEAD answers 204", last=4)
def offset_204(server: IetfServer) -> None:
    expect_status(server.head(server.create()), 204, "HEAD")


@check("offset-200-204", "Offset Retrieval", MUST, "HEAD answers 200 or 204", first=5, last=7)
def offset_200_204(server: IetfServer) -> None:
    expect_status(server.head(server.create()), (200, 204), "HEAD")


@check("offset-length", "4.3 Offset Retrieval", MUST, "HEAD reports Upload-Length once it is known", first=7)
def offset_length(server: IetfServer) -> None:
    url = server.create()
    expect_absent(server.head(url), "Upload-Length", "HEAD while the length is unknown")
    expect_number(server.head(server.create(1000)), "Upload-Length", 1000, "HEAD")
    expect_success(server.patch(url, 0, DATA[:100], False, length=1000), "append with Upload-Length")
    expect_number(server.head(url), "Upload-Length", 1000, "HEAD after an append with Upload-Length")


@check("offset-length-from-content", "4.1.3 Length", MUST,
       "The length follows from the Content-Length of a completing append that broke off", first=7)
def offset_length_from_content(server: IetfServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = server.create()
    server.cut(url, data, len(data) // 2)
    server.expect_bytes(server.finish(url, data), data)
    url = server.create()
    server.cut(url, data, len(data) // 2)
    expect_number(server.head(url), "Upload-Length", len(data), "HEAD after a completing append broke off")


@check("offset-limits", "4.3 Offset Retrieval", MUST, "HEAD reports Upload-Limit", first=8)
def offset_limits(server: IetfServer) -> None:
    limits(server.head(server.create()), "HEAD")


@check("offset-no-store", "4.3 Offset Retrieval", SHOULD, "HEAD answers Cache-Control: no-store")
def offset_no_store(server: IetfServer) -> None:
    value = server.head(server.create()).get("Cache-Control") or ""
    expect("no-store" in value, f"HEAD: Cache-Control is {value!r}")


@check("offset-unknown", "4.3 Offset Retrieval", MUST,
       "HEAD of an unknown upload is refused and has no Upload-Offset")
def offset_unknown(server: IetfServer) -> None:
    answer = server.head(like(server.create()))
    expect_status(answer, (403, 404, 410), "HEAD of an unknown upload")
    expect_absent(answer, "Upload-Offset", "HEAD of an unknown upload")


@check("offset-complete", "4 Upload Resource", SHOULD,
       "HEAD of a complete upload reports it as complete, for some time")
def offset_complete(server: IetfServer) -> None:
    url = server.create()
    expect_success(server.patch(url, 0, DATA, True), "completing append")
    server.expect_state(url, len(DATA), True, "of a complete upload")


@check("offset-during-append", "4.6 Concurrency", SHOULD,
       "HEAD is answered within a second while an append hangs")
def offset_during_append(server: IetfServer) -> None:
    url = server.create()
    with hang(server, url):
        answer = server.head(url)
        expect_success(answer, "HEAD while an append hangs")
        expect(answer.seconds < 1, f"HEAD took {answer.seconds:.1f} s")


@check("offset-is-taken", "4.6 Concurrency", MUST,
       "An offset announced while an append hangs is taken by the next append")
def offset_is_taken(server: IetfServer) -> None:
    data = long_data()
    url = server.create()
    with hang(server, url):
        at, _ = server.state(url)
        answer = server.patch(url, at, data[at:], True)
        expect_success(answer, f"append at the announced {at}")
        server.expect_bytes(answer, data)


@check("cancel", "4.5 Upload Cancellation", MUST, "DELETE succeeds; the upload is then gone")
def cancel(server: IetfServer) -> None:
    url = server.create(body=DATA[:100])
    expect_success(server.delete(url), "DELETE")
    expect_status(server.head(url), (403, 404, 410), "HEAD of a cancelled upload")
    answer = server.patch(url, 100, DATA[100:], True)
    expect(400 <= answer.status < 500, f"append to a cancelled upload: {answer.status}")


@check("cancel-204", "Upload Cancellation", MUST, "DELETE answers 204", last=7)
def cancel_204(server: IetfServer) -> None:
    expect_status(server.delete(server.create()), 204, "DELETE")


@check("cancel-during-append", "4.6 Concurrency", SHOULD,
       "DELETE is answered within a second while an append hangs")
def cancel_during_append(server: IetfServer) -> None:
    url = server.create()
    with hang(server, url):
        answer = server.delete(url)
        expect_success(answer, "DELETE while an append hangs")
        expect(answer.seconds < 1, f"DELETE took {answer.seconds:.1f} s")
        expect_status(server.head(url), (403, 404, 410), "HEAD after DELETE")


def long_data() -> bytes:
    return DATA * (LONG // len(DATA))


def hang(server: IetfServer, url: str) -> Connection:
    """A completing append that stops half-way and keeps its connection."""
    data = long_data()
    fields = server.fields(True, 0, more={
        "Content_Type": server.dialect.media_type, "Content_Length": str(len(data))})
    connection = Connection(url, server.settings)
    connection.send_head("PATCH", fields)
    connection.send_body(data[: len(data) // 2])
    connection.settle()
    return connection
