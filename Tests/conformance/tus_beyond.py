"""Checks of what tus 1.0.0 leaves open and clients want all the same: downloads, and use from a browser."""

from checks import (BEYOND, Check, Inapplicable, Skipped, expect, expect_field, expect_status,
                    expect_success, registrar)
from tus import LONG, MEDIA_TYPE, TusServer, words
from tus_core import DATA
from wire import Answer, Connection

CHECKS: list[Check] = []
check = registrar(CHECKS)


@check("download", "not in tus 1.0.0", BEYOND, "GET of a complete upload gives its bytes")
def download(tus: TusServer) -> None:
    expect_downloads(tus)
    tus.expect_bytes(tus.filled(DATA), DATA)


@check("download-range", "RFC 9110, 14", BEYOND, "GET with Range gives 206 and the range's bytes")
def download_range(tus: TusServer) -> None:
    expect_downloads(tus)
    answer = tus.get(tus.filled(DATA), Range="bytes=100-199")
    expect_status(answer, 206, "GET with Range: bytes=100-199")
    expect_field(answer, "Content-Range", f"bytes 100-199/{len(DATA)}", "GET with Range")
    expect(answer.body == DATA[100:200], "GET with Range: other bytes")


def expect_downloads(tus: TusServer) -> None:
    if not tus.has_downloads:
        raise Inapplicable("no downloads at the upload's address")


CORS_REQUEST = ("tus-resumable", "upload-length", "upload-offset", "upload-metadata", "content-type")
CORS_ANSWER = ("location", "upload-offset", "upload-length", "tus-resumable")


@check("cors-preflight", "Fetch, 4.8", BEYOND,
       "A browser's preflights allow the methods and fields of tus")
def cors_preflight(tus: TusServer) -> None:
    # GET, HEAD and POST need no leave.
    for method, url in (("POST", tus.url), ("PATCH", tus.create(10))):
        answer = preflight(tus, method, url)
        methods = words(answer.get("Access-Control-Allow-Methods"))
        expect(method == "POST" or method in methods or "*" in methods,
               f"preflight: Access-Control-Allow-Methods is {methods}, without {method}")
        allowed = [name.lower() for name in words(answer.get("Access-Control-Allow-Headers"))]
        missing = [name for name in CORS_REQUEST if name not in allowed and "*" not in allowed]
        expect(not missing, f"preflight of {method} does not allow {', '.join(missing)}")


@check("cors-expose", "Fetch, 4.10", BEYOND, "A page may read the fields of tus in answers")
def cors_expose(tus: TusServer) -> None:
    preflight(tus, "POST", tus.url)
    answer = tus.post(Upload_Length="1", Origin=tus.origin)
    exposed = [name.lower() for name in words(answer.get("Access-Control-Expose-Headers"))]
    missing = [name for name in CORS_ANSWER if name not in exposed and "*" not in exposed]
    expect("Access-Control-Allow-Origin" in answer, "POST: no Access-Control-Allow-Origin")
    expect(not missing, f"not exposed: {', '.join(missing)}")


def preflight(tus: TusServer, method: str, url: str) -> Answer:
    if tus.origin is None:
        raise Skipped("no --origin given")
    answer = tus.ask(
        "OPTIONS", url, Tus_Resumable=None, Origin=tus.origin, Access_Control_Request_Method=method,
        Access_Control_Request_Headers=",".join(CORS_REQUEST))
    expect_success(answer, f"preflight of {method}")
    expect(answer.get("Access-Control-Allow-Origin") in (tus.origin, "*"),
           f"preflight: Access-Control-Allow-Origin is {answer.get('Access-Control-Allow-Origin')!r}")
    return answer


# Last, because a server that it holds up may be held up for a while.
@check("head-during-patch", "not in tus 1.0.0", BEYOND,
       "HEAD is answered within a second while another PATCH hangs, and its offset is taken")
def head_during_patch(tus: TusServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = tus.create(len(data))
    fields = tus.fields({"Content_Type": MEDIA_TYPE, "Upload_Offset": "0"})
    with Connection(url, tus.settings) as hung:
        hung.send_head("PATCH", {**fields, "Content-Length": str(len(data))})
        hung.send_body(data[: len(data) // 2])
        answer = tus.head(url)
        expect_success(answer, "HEAD while PATCH hangs")
        expect(answer.seconds < 1, f"HEAD took {answer.seconds:.1f} s")
        offset = int(answer.get("Upload-Offset") or -1)
        rest = tus.patch(url, offset, data[offset:])
        # The hung request may have moved on by itself between the two, as far as its bytes go; then they count.
        while rest.status == 409:
            moved = tus.offset(url)
            expect(moved > offset, f"PATCH at the announced {offset}: 409")
            offset = moved
            rest = tus.patch(url, offset, data[offset:])
        expect_status(rest, 204, f"PATCH at the announced {offset}")
        expect(rest.seconds < 2, f"PATCH took {rest.seconds:.1f} s")
    tus.expect_bytes(url, data)
