"""The clients of tus that others wrote, each as a function from an address and a file to the upload's address.

Each is used as its own documentation says. Only the waits are shorter, and the tries are more.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import aiotus
from resumable_upload import TusClient
from tusclient.client import TusClient as TuspyClient

MEBIBYTE = 1 << 20
ATTEMPTS = 1000
PAUSE = 0.05
TYPE = "application/octet-stream"

Uploader = Callable[[str, Path], str]


def tuspy(url: str, path: Path) -> str:
    """PATCH requests so long that each breaks several times: only kept bytes bring them on."""
    client = TuspyClient(url)
    uploader = client.uploader(
        str(path), chunk_size=16 * MEBIBYTE, retries=ATTEMPTS, retry_delay=PAUSE,
        metadata={"filename": path.name, "filetype": TYPE})
    uploader.upload()
    return uploader.url


def tuspy_checksums(url: str, path: Path) -> str:
    """Uploads with tuspy and a SHA-1 for each PATCH: one that breaks leaves nothing."""
    client = TuspyClient(url)
    uploader = client.uploader(
        str(path), chunk_size=MEBIBYTE, retries=ATTEMPTS, retry_delay=PAUSE, upload_checksum=True,
        metadata={"filename": path.name, "filetype": TYPE})
    uploader.upload()
    return uploader.url


def aiotus_upload(url: str, path: Path) -> str:
    configuration = aiotus.RetryConfiguration(
        retry_attempts=ATTEMPTS, max_retry_period_seconds=PAUSE)
    with open(path, "rb") as file:
        location = asyncio.run(aiotus.upload(
            url, file, {"filename": path.name.encode(), "filetype": TYPE.encode()},
            config=configuration))
    if location is None:
        raise RuntimeError("aiotus gave up; its log says why")
    return str(location)


def aiotus_in_parts(url: str, path: Path) -> str:
    """Three parts, put together by the server."""
    size = path.stat().st_size
    bounds = [0, size // 3, size // 2, size]
    pieces = [path.with_name(f"{path.name}.{number}") for number in range(3)]
    with open(path, "rb") as file:
        for piece, first, last in zip(pieces, bounds, bounds[1:], strict=False):
            piece.write_bytes(file.read(last - first))
    configuration = aiotus.RetryConfiguration(
        retry_attempts=ATTEMPTS, max_retry_period_seconds=PAUSE)
    files = [open(piece, "rb") for piece in pieces]
    try:
        location = asyncio.run(aiotus.upload_multiple(
            url, files, {"filename": path.name.encode()}, config=configuration))
    finally:
        for file, piece in zip(files, pieces, strict=True):
            file.close()
            piece.unlink()
    if location is None:
        raise RuntimeError("aiotus gave up; its log says why")
    return str(location)


def resumable_upload(url: str, path: Path) -> str:
    """Several parts at a time, each chunk with its SHA-256.

    It doubles its wait with every failure of the same chunk, up to a minute. Chunks of 1 MiB broke so often in a row
    that a run took minutes; these are longer than what the shortest connections take, and few break twice.
    """
    client = TusClient(
        url, chunk_size=MEBIBYTE // 2, checksum="sha256", max_retries=ATTEMPTS, retry_delay=PAUSE)
    return client.upload_file(
        str(path), metadata={"filename": path.name, "filetype": TYPE}, parallel_uploads=3)


UPLOADERS: dict[str, Uploader] = {
    "tuspy": tuspy,
    "tuspy with checksums": tuspy_checksums,
    "aiotus": aiotus_upload,
    "aiotus in parts": aiotus_in_parts,
    "resumable-upload in parts": resumable_upload,
}
