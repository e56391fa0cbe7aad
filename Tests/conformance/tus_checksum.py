"""Checks of the tus extensions checksum and checksum-trailer."""

from checks import (BEYOND, MUST, SHOULD, Check, Inapplicable, Skipped, expect, expect_refusal,
                    expect_status, registrar)
from tus import ALGORITHMS, LONG, MEDIA_TYPE, TusServer, checksum
from wire import Answer

CHECKS: list[Check] = []
check = registrar(CHECKS)

DATA = b"what was sent, and nothing else\n" * 50
OTHER = b"WHAT WAS SENT, AND NOTHING ELSE\n" * 50
MISMATCH = 460
UNKNOWN = "rot13 MTIzNDU="
# Algorithms whose bytes the specification does not define.
UNDEFINED = ("crc32", "crc32c")


@check("checksum-algorithms", "Checksum, Tus-Checksum-Algorithm", MUST,
       "OPTIONS lists the algorithms, and sha1 is one", needs=("checksum",))
def checksum_algorithms(tus: TusServer) -> None:
    expect("sha1" in tus.algorithms, f"Tus-Checksum-Algorithm lists {tus.algorithms}")


@check("checksum-right", "Checksum, Upload-Checksum", MUST,
       "A right checksum is taken, by every known algorithm listed", needs=("checksum",))
def checksum_right(tus: TusServer) -> None:
    for algorithm in known(tus):
        expect_taken(tus, algorithm)


@check("checksum-right-crc", "not in tus 1.0.0", BEYOND,
       "A right crc32 or crc32c, most significant byte first, is taken where it is listed",
       needs=("checksum",))
def checksum_right_crc(tus: TusServer) -> None:
    names = [name for name in tus.algorithms if name in UNDEFINED]
    if not names:
        raise Inapplicable(f"none among {tus.algorithms}")
    for algorithm in names:
        expect_taken(tus, algorithm)


def expect_taken(tus: TusServer, algorithm: str) -> None:
    url = tus.create(len(DATA))
    answer = tus.patch(url, 0, DATA, Upload_Checksum=checksum(algorithm, DATA))
    expect_status(answer, 204, f"PATCH with its {algorithm}")
    tus.expect_offset(url, len(DATA), f"after PATCH with its {algorithm}")


@check("checksum-statuses", "Checksum; a MAY", BEYOND,
       "A wrong checksum gets 460, an unknown algorithm 400", needs=("checksum",))
def checksum_statuses(tus: TusServer) -> None:
    url = tus.create(len(DATA))
    answer = tus.patch(url, 0, OTHER, Upload_Checksum=checksum("sha1", DATA))
    expect_status(answer, MISMATCH, "PATCH with a wrong sha1")
    expect_status(tus.patch(url, 0, DATA, Upload_Checksum=UNKNOWN), 400, "PATCH with algorithm rot13")


@check("checksum-wrong", "Checksum, Upload-Checksum", MUST,
       "A wrong checksum is refused and no byte counts, by every known algorithm listed",
       needs=("checksum",))
def checksum_wrong(tus: TusServer) -> None:
    for algorithm in known(tus):
        url = tus.create(len(DATA))
        answer = tus.patch(url, 0, OTHER, Upload_Checksum=checksum(algorithm, DATA))
        expect_refusal(answer, f"PATCH with a wrong {algorithm}")
        tus.expect_offset(url, 0, f"after a wrong {algorithm}")
        answer = tus.patch(url, 0, DATA, Upload_Checksum=checksum(algorithm, DATA))
        expect_status(answer, 204, f"the right bytes after a wrong {algorithm}")
        tus.expect_bytes(url, DATA)


@check("checksum-wrong-later", "Checksum, Upload-Checksum", MUST,
       "A wrong checksum costs only the bytes of its own PATCH", needs=("checksum",))
def checksum_wrong_later(tus: TusServer) -> None:
    url = tus.create(100)
    expect_status(tus.patch(url, 0, DATA[:40]), 204, "PATCH without a checksum")
    answer = tus.patch(url, 40, OTHER[40:100], Upload_Checksum=checksum("sha1", DATA[40:100]))
    expect_refusal(answer, "PATCH with a wrong sha1")
    tus.expect_offset(url, 40, "after a wrong sha1")
    expect_status(tus.patch(url, 40, DATA[40:100]), 204, "PATCH of the rest")
    tus.expect_bytes(url, DATA[:100])


@check("checksum-unknown", "Checksum, Upload-Checksum", MUST,
       "An unknown algorithm is refused and no byte counts", needs=("checksum",))
def checksum_unknown(tus: TusServer) -> None:
    url = tus.create(5)
    expect_refusal(tus.patch(url, 0, b"12345", Upload_Checksum=UNKNOWN), "PATCH with algorithm rot13")
    tus.expect_offset(url, 0, "after an unknown algorithm")


@check("checksum-malformed", "Checksum, Upload-Checksum", SHOULD,
       "A checksum that is none is refused and no byte counts", needs=("checksum",))
def checksum_malformed(tus: TusServer) -> None:
    url = tus.create(5)
    for value in ("sha1", "sha1 !!!!", "sha1 c2hvcnQ="):
        answer = tus.patch(url, 0, b"12345", Upload_Checksum=value)
        expect_refusal(answer, f"PATCH with Upload-Checksum {value!r}")
        tus.expect_offset(url, 0, f"after Upload-Checksum {value!r}")


@check("checksum-cut", "not in tus 1.0.0", BEYOND,
       "Bytes whose checksum could not be checked, because the connection broke, do not count",
       needs=("checksum",))
def checksum_cut(tus: TusServer) -> None:
    data = DATA * (LONG // len(DATA))
    url = tus.create(len(data))
    tus.cut(url, data, len(data) // 2, Upload_Checksum=checksum("sha1", data))
    tus.expect_offset(url, 0, "after a PATCH with a checksum broke off")
    tus.finish(url, data)


@check("checksum-trailer-right", "Checksum, trailer", MUST,
       "A right checksum in the trailer is taken", needs=("checksum", "checksum-trailer"))
def checksum_trailer_right(tus: TusServer) -> None:
    url = tus.create(len(DATA))
    answer = trail(tus, url, DATA, checksum("sha1", DATA))
    expect_status(answer, 204, "PATCH with its sha1 in the trailer")
    tus.expect_offset(url, len(DATA), "after a right trailer")


@check("checksum-trailer-wrong", "Checksum, trailer", MUST,
       "A wrong checksum in the trailer is refused and no byte counts",
       needs=("checksum", "checksum-trailer"))
def checksum_trailer_wrong(tus: TusServer) -> None:
    url = tus.create(len(DATA))
    answer = trail(tus, url, OTHER, checksum("sha1", DATA))
    expect_refusal(answer, "PATCH with a wrong sha1 in the trailer")
    tus.expect_offset(url, 0, "after a wrong trailer")
    expect_status(trail(tus, url, DATA, checksum("sha1", DATA)), 204, "the right bytes after it")


def trail(tus: TusServer, url: str, body: bytes, value: str) -> Answer:
    return tus.ask("PATCH", url, body, trailers={"Upload-Checksum": value},
                   Content_Type=MEDIA_TYPE, Upload_Offset="0")


def known(tus: TusServer) -> list[str]:
    names = [name for name in tus.algorithms if name in ALGORITHMS and name not in UNDEFINED]
    if not names:
        raise Skipped(f"no known algorithm among {tus.algorithms}")
    return names
