"""Holds a service that was started on an image against the promises made before the cut."""

import contextlib
import dataclasses
import http.client
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from disks import FileSystem, mounted
from native_client import CHUNK_SIZE, NativeClient, Refused, content, sha256
from program import Program, Server, free_port, serving
from workload import FileRecord, History, SessionRecord

Rows = Callable[[Path], contextlib.AbstractContextManager[Sequence[str]]]


def no_rows(_: Path) -> contextlib.AbstractContextManager[Sequence[str]]:
    """The service has its rows in its own directory."""
    return contextlib.nullcontext(())


@dataclasses.dataclass
class Findings:
    """The findings in one image."""

    promises: int = 0
    violations: list[str] = dataclasses.field(default_factory=list)

    def promise(self, kept: bool, text: str) -> bool:
        """Counts a promise, and keeps the text when it was broken."""
        self.promises += 1
        if not kept:
            self.violations.append(text)
        return kept


class ServiceCheck:
    """Everything about one service after one cut."""

    def __init__(self, client: NativeClient, moment: int, findings: Findings) -> None:
        self._client = client
        self._moment = moment
        self._findings = findings

    def sessions(self, history: History) -> None:
        """Asks for every session whose creation was acknowledged, and finishes those that are open."""
        for record in history.sessions:
            if record.created <= self._moment:
                self._guarded(f"session {record.name}", partial(self._session, record))

    def files(self, history: History) -> None:
        """Reads every file that was promised."""
        for record in history.files:
            if record.created <= self._moment:
                self._guarded(f"file {record.name}", partial(self._file, record))

    def _guarded(self, what: str, check: Callable[[], None]) -> None:
        try:
            check()
        except (Refused, OSError, http.client.HTTPException) as error:
            # The connection is in an unknown state; the next request makes a new one.
            self._client.close()
            self._findings.promise(False, f"{what}: {error}")

    def _session(self, record: SessionRecord) -> None:
        status = self._client.status(record.id)
        state, promise = status["state"], self._findings.promise
        if record.canceled.promised <= self._moment:
            promise(state == "canceled", f"session {record.name}: canceled, now {state}")
        elif record.finalized.promised <= self._moment:
            kept = state == "completed" and status.get("remoteFileId") == record.file
            promise(kept, f"session {record.name}: completed as {record.file}, now {status}")
        elif state == "completed" and record.finalized.begun <= self._moment:
            self._holds(record.name, record.byte_count, status["remoteFileId"])
        elif state == "canceled" and record.canceled.begun <= self._moment:
            promise(True, "")
        elif promise(state == "open", f"session {record.name}: open, now {state}"):
            self._open_session(record, status)

    def _open_session(self, record: SessionRecord, status: dict[str, Any]) -> None:
        received = set(status["receivedChunks"])
        partials = {part["index"]: part["receivedBytes"] for part in status["partialChunks"]}
        name = f"session {record.name}"
        for index, promised in record.chunks.items():
            if promised <= self._moment:
                self._findings.promise(index in received, f"{name}: chunk {index} is asked for again")
        for promised, index, offset in record.partials:
            if promised <= self._moment:
                kept = index in received or partials.get(index, 0) >= offset
                text = f"{name}: chunk {index} had {offset} bytes, now {partials.get(index, 0)}"
                self._findings.promise(kept, text)
        data = content(record.name, record.byte_count)
        for index in range((len(data) + CHUNK_SIZE - 1) // CHUNK_SIZE):
            if index not in received:
                self._client.put(record.id, data, index, partials.get(index, 0))
        self._holds(record.name, len(data), self._client.finalize(record.id, sha256(data)))

    def _file(self, record: FileRecord) -> None:
        status, _ = self._client.ask("HEAD", f"/files/{record.id}")
        if record.deleted.promised <= self._moment:
            self._findings.promise(status == 410, f"file {record.name}: deleted, now {status}")
        elif not (status == 410 and record.deleted.begun <= self._moment):
            self._holds(record.name, record.byte_count, record.id)

    def _holds(self, name: str, byte_count: int, file: str) -> None:
        """Reads a file back; the digest alone would be what the service believes."""
        data = content(name, byte_count)
        status, answer = self._client.ask("GET", f"/files/{file}")
        if self._findings.promise(status == 200, f"file {name}: status {status}"):
            self._findings.promise(answer == data, f"file {name}: {describe(answer, data)}")
            meta = json.loads(self._client.expect((200,), "GET", f"/files/{file}/meta"))
            self._findings.promise(meta["sha256"] == sha256(data), f"file {name}: another digest")


def describe(found: bytes, wanted: bytes) -> str:
    """Where two contents differ."""
    pairs = enumerate(zip(found, wanted, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(found), len(wanted)))
    return f"{len(found)} bytes of {len(wanted)}, other bytes from {first}"


def check_database(data: Path, scratch: Path, findings: Findings) -> None:
    """Lets SQLite check a copy, so that the original stays as the cut left it."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for path in data.glob("*.sqlite*"):
        shutil.copy(path, copy)
    databases = list(copy.glob("*.sqlite"))
    if not databases:
        return
    connection = sqlite3.connect(databases[0])
    try:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        answer = str(error)
    finally:
        connection.close()
    findings.promise(answer == "ok", f"database: {answer}")


def check_image(
    program: Program, image: Path, kind: FileSystem, history: History, moment: int, rows: Rows = no_rows
) -> Findings:
    """Mounts an image, starts the service on it and checks all that was promised by then.

    `rows` starts the database that is in a directory, if any, and gives the service's options for it.
    """
    findings = Findings()
    scratch = program.scratch
    directory = scratch / "image"
    with mounted(image, directory, kind), rows(directory) as options:
        data = directory / "data"
        check_database(data, scratch, findings)
        log = scratch / "checked.log"
        with serving(program, data, free_port(), log, options) as server:
            if findings.promise(server.wait_until_ready(), f"no start: {tail(log)}"):
                ask_service(server, history, moment, findings)
                findings.promise(server.stop() == 0, f"no clean end: {tail(log)}")
        status, output, complaint = program.run("fsck", "--data", data, *options)
        findings.promise(status == 0, f"fsck: {status} {output} {complaint}")
        check_database(data, scratch, findings)
    return findings


def ask_service(server: Server, history: History, moment: int, findings: Findings) -> None:
    """Asks about sessions and files, in an order that finds files also through their sessions."""
    client = NativeClient(server.port)
    try:
        check = ServiceCheck(client, moment, findings)
        check.files(history)
        check.sessions(history)
    finally:
        client.close()
    lost = [line for line in server.log.read_text().splitlines() if '"critical"' in line]
    findings.promise(not lost, f"log: {lost[:1]}")


def tail(log: Path) -> str:
    """The end of a log, on one line."""
    return " | ".join(log.read_text(errors="replace").splitlines()[-3:])


def choose_moments(
    history: History, count: int, first: int, last: int, chooser: random.Random
) -> list[int]:
    """Mostly moments right after an acknowledgement, when least has reached the disk by itself.

    Rare kinds of acknowledgement get as many cuts as common ones; every third cut is at any moment.
    """
    kinds: dict[str, list[int]] = {}
    for kind, moment in history.moments:
        kinds.setdefault(kind, []).append(moment)
    names = sorted(kinds)
    moments = []
    for number in range(count):
        if number % 3 == 2:
            moments.append(chooser.randint(first, last))
        else:
            moments.append(chooser.choice(kinds[chooser.choice(names)]))
    return moments
