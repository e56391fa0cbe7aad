"""Fault rules of the stand-in for S3.

A rule is JSON: `operation` ("UploadPart", or "*" for all), `action` and its parameters, and when it applies:
after `after` matching requests, to the next `times` of them (all without), for `seconds` from now, to keys
that contain `key`. The first rule that applies wins. Actions:

    status          `status` and `code`, such as 503 SlowDown; the body is read and nothing is done
    hang            waits `seconds_each`, then goes on as if nothing were
    dropUnread      closes the connection before the body is read
    dropUndone      reads the body and closes the connection without doing anything
    dropDone        does it and closes the connection: the answer is lost
    errorInOK       status 200 with an error document of `code`; nothing is done
    wrongChecksum   does it, and answers with the checksum of something else
    skewedClock     the server's clock is `seconds_each` ahead, and its Date header, too
    cut             does it, and closes the connection after `byte_count` bytes of the answer's body
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ACTIONS = {
    "status", "hang", "dropUnread", "dropUndone", "dropDone", "errorInOK", "wrongChecksum",
    "skewedClock", "cut",
}


@dataclasses.dataclass
class Rule:
    """One thing to do wrong."""

    operation: str
    action: str
    times: int | None = None
    after: int = 0
    seconds: float | None = None
    key: str = ""
    status: int = 503
    code: str = "SlowDown"
    seconds_each: float = 0
    byte_count: int = 0

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"no action {self.action}")
        self._ends = None if self.seconds is None else time.monotonic() + self.seconds

    def strikes(self, operation: str, key: str) -> bool:
        """Whether this request is one of those that the rule means; counts it if so."""
        if self.operation not in ("*", operation) or self.key not in key or self.times == 0:
            return False
        if self._ends is not None and time.monotonic() > self._ends:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []

    def add(self, rules: dict[str, Any] | list[dict[str, Any]]) -> None:
        """Adds rules behind those that are there; raises `TypeError` or `ValueError` for what is none."""
        added = [Rule(**rule) for rule in (rules if isinstance(rules, list) else [rules])]
        with self._lock:
            self._rules += added

    def clear(self) -> None:
        """From now on everything is right."""
        with self._lock:
            self._rules = []

    def take(self, operation: str, key: str) -> Rule | None:
        """Returns the rule for this request, if one applies."""
        with self._lock:
            return next((rule for rule in self._rules if rule.strikes(operation, key)), None)


class Counts:
    """Counts of requests, refusals and faults."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: collections.Counter[str] = collections.Counter()
        self._errors: collections.Counter[str] = collections.Counter()
        self._faults: collections.Counter[str] = collections.Counter()
        self._running = 0
        self._most = 0

    @contextmanager
    def request(self, operation: str) -> Iterator[None]:
        """Counts a request, and how many there are at the same time."""
        with self._lock:
            self._requests[operation] += 1
            self._running += 1
            self._most = max(self._most, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def note_error(self, code: str) -> None:
        """Counts a refusal that no fault rule caused."""
        with self._lock:
            self._errors[code] += 1

    def note_fault(self, action: str) -> None:
        """Counts a fault that a rule caused."""
        with self._lock:
            self._faults[action] += 1

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        with self._lock:
            return {
                "requests": dict(self._requests), "errors": dict(self._errors),
                "faults": dict(self._faults), "mostAtOnce": self._most,
            }
