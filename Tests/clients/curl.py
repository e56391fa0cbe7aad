"""IETF resumable uploads with curl and nothing else: what a person can do at a prompt."""

import subprocess
import time
from pathlib import Path
from urllib.parse import urljoin

from service import MEBIBYTE, Source, Violation, expect

VERSION = "Upload-Draft-Interop-Version: 9"
PARTIAL = "Content-Type: application/partial-upload"


class Answer:
    """The final answer, from the fields that curl writes; those of interim answers come before."""

    def __init__(self, text: str) -> None:
        heads = [head for head in text.replace("\r", "").split("\n\n") if head.startswith("HTTP/")]
        expect(bool(heads), f"curl saw no answer: {text!r}")
        lines = heads[-1].split("\n")
        self.status = int(lines[0].split()[1])
        self.interim = [int(head.split()[1]) for head in heads[:-1]]
        pairs = (line.partition(":") for line in lines[1:])
        self.fields = {name.strip().lower(): value.strip() for name, _, value in pairs}

    def get(self, name: str) -> str:
        """The field's value; raises `Violation` when there is none."""
        value = self.fields.get(name.lower())
        if value is None:
            raise Violation(f"the answer {self.status} has no {name}")
        return value


def command(url: str, *arguments: str, fields: tuple[str, ...] = ()) -> list[str]:
    named = [word for each in (VERSION, *fields) for word in ("--header", each)]
    return ["curl", "--silent", "--show-error", "--http1.1", "--dump-header", "-",
            "--output", "/dev/null", *named, *arguments, url]


def ask(url: str, *arguments: str, fields: tuple[str, ...] = ()) -> Answer:
    run = subprocess.run(command(url, *arguments, fields=fields), capture_output=True, text=True,
                         timeout=300, check=False)
    expect(run.returncode == 0, f"curl ended with {run.returncode}: {run.stderr}")
    return Answer(run.stdout)


def create(files: str, source: Source) -> str:
    """An empty upload, to learn its address before any byte is on its way."""
    answer = ask(files, "--request", "POST", "--data-binary", "", fields=(
        "Upload-Complete: ?0", f"Upload-Length: {source.byte_count}",
        "Content-Type: application/octet-stream",
        f'Content-Disposition: inline; filename="{source.path.name}"'))
    expect(answer.status == 201, f"creation: {answer.status}")
    return urljoin(files, answer.get("Location"))


def offset(upload: str) -> int:
    answer = ask(upload, "--head")
    expect(answer.status in (200, 204), f"HEAD: {answer.status}")
    return int(answer.get("Upload-Offset"))


def append(upload: str, first: int, path: Path, *more: str) -> list[str]:
    """The command that sends a file as the end of the upload."""
    return command(upload, "--request", "PATCH", "--upload-file", str(path), *more, fields=(
        PARTIAL, "Upload-Complete: ?1", f"Upload-Offset: {first}"))


def send(files: str, source: Source, scratch: Path) -> None:
    """Sends the file as a person does it: all that is missing, again and again.

    Raises `Violation` when five tries bring nothing.
    """
    upload = create(files, source)
    first = idle_count = 0
    while first < source.byte_count:
        rest = scratch / "rest"
        rest.write_bytes(source.read(first))
        subprocess.run(append(upload, first, rest), capture_output=True, timeout=300, check=False)
        rest.unlink()
        last, first = first, offset(upload)
        idle_count = 0 if first > last else idle_count + 1
        expect(idle_count < 5, f"nothing came through any more after {first} bytes")


def kill_midway(upload: str, source: Source) -> int:
    """Sends the file, kills curl after some MiB, and returns the offset that the service reports then."""
    rate = f"{max(source.byte_count // 4, MEBIBYTE)}"
    with subprocess.Popen(append(upload, 0, source.path, "--limit-rate", rate),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        # Time, because asking would end the request that is under way.
        time.sleep(1.5)
        expect(process.poll() is None, "curl ended before it could be killed")
        process.kill()
    kept = offset(upload)
    expect(0 < kept < source.byte_count, f"after some MiB were sent the offset is {kept}")
    return kept


def resume(upload: str, first: int, source: Source, scratch: Path) -> str:
    """Sends the rest, and returns the file's address."""
    rest = scratch / "rest"
    rest.write_bytes(source.read(first))
    run = subprocess.run(append(upload, first, rest), capture_output=True, text=True, timeout=300,
                         check=False)
    rest.unlink()
    expect(run.returncode == 0, f"curl ended with {run.returncode}: {run.stderr}")
    answer = Answer(run.stdout)
    expect(200 <= answer.status < 300, f"the last append: {answer.status}")
    expect(answer.get("Upload-Complete") == "?1", "the last append does not say that all is complete")
    return urljoin(upload, answer.fields.get("content-location") or answer.get("Location"))
