"""Reads the load balancer's log: which chunks were sent, and which were acknowledged."""

import dataclasses
import re
from pathlib import Path

CHUNK = re.compile(r"/uploads/sessions/([0-9a-f]+)/chunks/(\d+)")
SESSION = re.compile(r"/uploads/sessions/([0-9a-f]+)(/.*)?")
# Times in the log are in milliseconds.
RESOLUTION_SECONDS = 0.002


@dataclasses.dataclass
class Sending:
    """One request that brought bytes of a chunk."""

    begin: float
    end: float
    status: int


class AccessLog:
    """Reads the log of nginx while it grows."""

    # The fields of each line.
    FORMAT = "$msec $request_time $request_method $uri $status"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.sendings: dict[tuple[str, int], list[Sending]] = {}
        self.statuses: dict[int, int] = {}
        self.lost_sessions: dict[str, str] = {}
        """Sessions that a response to a client called gone, with the line of that response."""

    def read(self) -> None:
        """Takes in what was added; a line that is not whole yet waits."""
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[:text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self.take(line)

    def take(self, line: str) -> None:
        """Takes in one line."""
        end, seconds, method, path, status = line.split(" ")
        self.statuses[int(status)] = self.statuses.get(int(status), 0) + 1
        session = SESSION.fullmatch(path)
        if session is not None and status in ("404", "410"):
            self.lost_sessions.setdefault(session[1], line)
        match = CHUNK.fullmatch(path)
        if method == "PUT" and match is not None:
            sending = Sending(float(end) - float(seconds), float(end), int(status))
            self.sendings.setdefault((match[1], int(match[2])), []).append(sending)

    @property
    def acknowledged_count(self) -> int:
        """Chunks that the server said it has."""
        return sum(1 for sendings in self.sendings.values() if acknowledgement(sendings) is not None)

    @property
    def failed_count(self) -> int:
        """Requests with bytes that were not acknowledged."""
        return sum(
            1 for sendings in self.sendings.values() for sending in sendings
            if sending.status not in (200, 201))

    def sent_again(self) -> list[str]:
        """Chunks that were sent once more after their acknowledgement, or taken twice."""
        found = []
        for (session, index), sendings in sorted(self.sendings.items()):
            first = acknowledgement(sendings)
            if first is None:
                continue
            late = [one for one in sendings if one.begin > first + RESOLUTION_SECONDS]
            created = [one for one in sendings if one.status == 201]
            if late or len(created) > 1:
                found.append(f"chunk {index} of session {session}: {sendings}")
        return found


def acknowledgement(sendings: list[Sending]) -> float | None:
    """When the sender first learned that the chunk is safe."""
    return min((sending.end for sending in sendings if sending.status in (200, 201)), default=None)


def check_itself() -> None:
    """Fails unless the log shows what it is for: what is harmless, and what is not."""
    def log(*lines: str) -> AccessLog:
        log = AccessLog(Path())
        for line in lines:
            log.take(line.replace("CHUNK", "PUT /uploads/sessions/ab/chunks/1"))
        return log

    def found(*lines: str) -> int:
        return len(log(*lines).sent_again())

    created = "100.000 2.000 CHUNK 201"
    assert found("90.000 1.000 CHUNK 502", created) == 0
    # Two at the same time: the second sender did not know of the first one's answer.
    assert found(created, "100.500 1.000 CHUNK 200") == 0
    assert found(created, "100.500 1.000 CHUNK 201") == 1
    assert found(created, "103.000 1.000 CHUNK 200") == 1
    assert found(created, "103.000 1.000 CHUNK 502") == 1
    assert found(created, "103.000 1.000 PUT /uploads/sessions/ab/chunks/2 201") == 0
    assert len(log(created, "103.000 1.000 POST /uploads/sessions/ab/finalize 410").lost_sessions) == 1
    assert not log(created, "103.000 1.000 POST /uploads/sessions/ab/finalize 202").lost_sessions
