"""Uploaders that go on through outages, and note each promise the service makes."""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable

import proof  # noqa: F401
from native_client import CHUNK_SIZE, NativeClient, Refused, content, sha256
from workload import FileRecord, History, SessionRecord

# Answers that say "again".
AGAIN = (408, 425, 429, 500, 502, 503, 504)


def now() -> int:
    """This moment, as `History` counts them."""
    return time.monotonic_ns()


class PatientClient(NativeClient):
    """Asks again until it is answered, or its timeout is over."""

    timeout = 60.0

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.repeats = 0

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """One request, as often as it takes."""
        deadline, trial = time.monotonic() + self.timeout, 0
        while True:
            try:
                status, answer = super().ask(method, path, body, headers)
                if status not in AGAIN or time.monotonic() > deadline:
                    return status, answer
            except (OSError, http.client.HTTPException):
                self.close()
                if time.monotonic() > deadline:
                    raise
            trial += 1
            self.repeats += 1
            time.sleep(min(0.5, 0.02 * 2**trial))

    def put(self, session: str, data: bytes, index: int, start: int = 0) -> None:
        """Sends a chunk; when its rest does not fit any more, the service says from where."""
        for _ in range(20):
            try:
                return super().put(session, data, index, start)
            except Refused as error:
                if "OFFSET_MISMATCH" not in str(error) and "CHUNK_BUSY" not in str(error):
                    raise
            status = self.status(session)
            if index in status["receivedChunks"]:
                return None
            found = {part["index"]: part["receivedBytes"] for part in status["partialChunks"]}
            start = found.get(index, 0)
            time.sleep(0.05)
        raise Refused(f"chunk {index} is not taken")


class PatientUploader:
    """One client that uploads one file after another until `is_over`."""

    def __init__(self, name: str, port: int, history: History) -> None:
        self._name = name
        self._random = random.Random(name)
        self.client = PatientClient(port)
        self._history = history
        self.lost: list[str] = []
        """Promises that were found broken on the way."""

    def run(self, is_over: Callable[[], bool]) -> None:
        """Uploads until it is over; what is under way then stays open."""
        number = 0
        while not is_over():
            name = f"{self._name}-{number}"
            number += 1
            try:
                if self._random.random() < 0.2:
                    self._post(name)
                else:
                    self._upload(name, is_over)
            except Refused as error:
                self.lost.append(f"{name}: {error}")
        self.client.close()

    def _post(self, name: str) -> None:
        data = content(name, self._random.randint(1, CHUNK_SIZE))
        file = self.client.post(name, data)
        self._history.note("post", now(), FileRecord(file, name, len(data), now()))

    def _upload(self, name: str, is_over: Callable[[], bool]) -> None:
        data = content(name, self._random.randint(1, 8) * CHUNK_SIZE + self._random.randint(1, 999))
        record = SessionRecord(self.client.create(name, len(data)), name, len(data), now())
        self._history.note("create", record.created, record)
        for index in range((len(data) + CHUNK_SIZE - 1) // CHUNK_SIZE):
            if is_over():
                return
            self._send(record, data, index)
        record.finalized.begun = now()
        file = self.client.finalize(record.id, sha256(data))
        record.file, record.finalized.promised = file, now()
        found = FileRecord(file, name, len(data), record.finalized.promised)
        self._history.note("finalize", record.finalized.promised, found)

    def _send(self, record: SessionRecord, data: bytes, index: int) -> None:
        start = 0
        byte_count = min(CHUNK_SIZE, len(data) - index * CHUNK_SIZE)
        if byte_count > 1 and self._random.random() < 0.1:
            try:
                self.client.put_part(record.id, data, index, self._random.randint(1, byte_count - 1))
            except OSError:
                return self._send(record, data, index)
            start = self.client.wait_for_partial(record.id, index)
            if start:
                record.partials.append((self._history.note("partial", now()), index, start))
        self.client.put(record.id, data, index, start)
        record.chunks[index] = self._history.note("chunk", now())


class Crowd:
    """Several uploaders at the same time."""

    def __init__(self, name: str, port: int, count: int) -> None:
        self.history = History()
        self._is_over = threading.Event()
        self._errors: list[BaseException] = []
        self.uploaders = [
            PatientUploader(f"{name}-{number}", port, self.history) for number in range(count)]
        self._threads = [
            threading.Thread(target=self._work, args=(uploader,), daemon=True)
            for uploader in self.uploaders]

    def _work(self, uploader: PatientUploader) -> None:
        try:
            uploader.run(self._is_over.is_set)
        except BaseException as error:  # the thread that waits raises it
            self._errors.append(error)

    def start(self) -> None:
        """All begin."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """All end, after the request under way; the first error of any is an error."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    @property
    def lost(self) -> list[str]:
        """Broken promises that were met on the way."""
        return [text for uploader in self.uploaders for text in uploader.lost]

    def longest_silence(self, since: int) -> float:
        """The longest time, in seconds, without an acknowledgement to any uploader after a moment."""
        moments = sorted(moment for _, moment in self.history.moments if moment >= since)
        return max((b - a for a, b in zip([since, *moments], moments)), default=0) / 1e9


def problem_code(answer: bytes) -> str:
    """The code in an answer that refuses."""
    try:
        return str(json.loads(answer).get("code", ""))
    except (ValueError, AttributeError):
        return ""
