"""Uploaders that note each promise the service makes, and the moment at which it made it."""

import dataclasses
import random
import threading
from collections.abc import Callable

from native_client import CHUNK_SIZE, NativeClient, content, sha256

NEVER = 1 << 62


@dataclasses.dataclass
class Change:
    """Something that was asked for at one moment and promised at a later one.

    A cut between the two may find it done or not.
    """

    begun: int = NEVER
    promised: int = NEVER


@dataclasses.dataclass
class SessionRecord:
    """The promises about one session. Moments are sizes of the log of writes."""

    id: str
    name: str
    byte_count: int
    created: int
    chunks: dict[int, int] = dataclasses.field(default_factory=dict)
    """Index of each acknowledged chunk, and when."""
    partials: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)
    """When, which chunk, and the offset that was announced."""
    canceled: Change = dataclasses.field(default_factory=Change)
    finalized: Change = dataclasses.field(default_factory=Change)
    file: str = ""


@dataclasses.dataclass
class FileRecord:
    """The promises about one finished file."""

    id: str
    name: str
    byte_count: int
    created: int
    deleted: Change = dataclasses.field(default_factory=Change)


class History:
    """All promises of one run."""

    def __init__(self) -> None:
        self.sessions: list[SessionRecord] = []
        self.files: list[FileRecord] = []
        self.moments: list[tuple[str, int]] = []
        """Each acknowledgement: its kind, and when."""
        self._lock = threading.Lock()

    def note(self, kind: str, moment: int, *records: SessionRecord | FileRecord) -> int:
        """Adds an acknowledgement and what it made known."""
        with self._lock:
            self.moments.append((kind, moment))
            for record in records:
                if isinstance(record, SessionRecord):
                    self.sessions.append(record)
                else:
                    self.files.append(record)
        return moment


class Uploader:
    """One client that does one thing after another, as a seed decides."""

    def __init__(self, name: str, port: int, history: History, position: Callable[[], int]) -> None:
        self._name = name
        self._random = random.Random(name)
        self._client = NativeClient(port)
        self._history = history
        self._position = position
        self._own_files: list[FileRecord] = []

    def run(self, rounds: int) -> None:
        """Makes that many uploads."""
        for number in range(rounds):
            name = f"{self._name}-{number}"
            if self._random.random() < 0.15:
                self._post(name)
            else:
                self._upload(name)
            if len(self._own_files) > 3 or (self._own_files and self._random.random() < 0.2):
                self._delete_one()
        self._client.close()

    def _upload(self, name: str) -> None:
        byte_count = self._random.randint(1, 6) * CHUNK_SIZE + self._random.randint(1, CHUNK_SIZE)
        data = content(name, byte_count)
        session = self._client.create(name, byte_count)
        record = SessionRecord(session, name, byte_count, self._position())
        self._history.note("create", record.created, record)
        indices = list(range((byte_count + CHUNK_SIZE - 1) // CHUNK_SIZE))
        if self._random.random() < 0.5:
            self._random.shuffle(indices)
        fate = self._random.random()
        if fate < 0.25:
            indices = indices[: self._random.randint(0, len(indices) - 1)]
        for index in indices:
            self._send(record, data, index)
        if fate < 0.1:
            self._cancel(record)
        elif fate >= 0.25:
            self._finalize(record, data)

    def _send(self, record: SessionRecord, data: bytes, index: int) -> None:
        start = 0
        byte_count = min(CHUNK_SIZE, len(data) - index * CHUNK_SIZE)
        if byte_count > 1 and self._random.random() < 0.15:
            self._client.put_part(record.id, data, index, self._random.randint(1, byte_count - 1))
            start = self._client.wait_for_partial(record.id, index)
            if start:
                moment = self._history.note("partial", self._position())
                record.partials.append((moment, index, start))
                if self._random.random() < 0.3:
                    return
        self._client.put(record.id, data, index, start)
        record.chunks[index] = self._history.note("chunk", self._position())

    def _finalize(self, record: SessionRecord, data: bytes) -> None:
        if len(record.chunks) * CHUNK_SIZE < len(data):
            return
        record.finalized.begun = self._position()
        record.file = self._client.finalize(record.id, sha256(data))
        record.finalized.promised = self._position()
        self._add_file("finalize", record.file, record.name, len(data), record.finalized.promised)

    def _cancel(self, record: SessionRecord) -> None:
        record.canceled.begun = self._position()
        self._client.cancel(record.id)
        record.canceled.promised = self._history.note("cancel", self._position())

    def _post(self, name: str) -> None:
        data = content(name, self._random.randint(1, 3 * CHUNK_SIZE))
        file = self._client.post(name, data)
        self._add_file("post", file, name, len(data), self._position())

    def _add_file(self, kind: str, file: str, name: str, byte_count: int, moment: int) -> None:
        record = FileRecord(file, name, byte_count, moment)
        self._history.note(kind, moment, record)
        self._own_files.append(record)

    def _delete_one(self) -> None:
        record = self._own_files.pop(self._random.randrange(len(self._own_files)))
        record.deleted.begun = self._position()
        self._client.delete(record.id)
        record.deleted.promised = self._history.note("delete", self._position())


def run_uploaders(
    seed: str, port: int, position: Callable[[], int], uploaders: int, rounds: int
) -> History:
    """Runs several uploaders at the same time; the first error of any of them is an error."""
    history = History()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            # The first one goes on alone: then no syncs of other uploaders make up for a missing one.
            own_rounds = rounds * 2 if number == 0 else rounds
            Uploader(f"{seed}-{number}", port, history, position).run(own_rounds)
        except BaseException as error:  # the thread that waits raises it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(uploaders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return history
