"""Defines checks, their reasons for a failure, and the run of a list of checks.

A check is a function that takes a server and returns when the requirement holds. It raises `Failed` when it
does not, `Inapplicable` when the server does not do the optional thing that the requirement is about, and
`Skipped` when the server should be asked and cannot. `@check` puts it on the list with its requirement in words,
its place in the specification and its weight.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from wire import Answer, WireError, wait_for_answer

MUST = "MUST"
SHOULD = "SHOULD"
# The specification permits it or does not mention it, but clients need it or rely on it.
BEYOND = "beyond"

PASS, FAIL, WARN, SKIP, NONE = "pass", "fail", "warn", "skip", "n/a"


class Failed(Exception):
    """The server does not do what the requirement says."""


class Skipped(Exception):
    """The requirement applies and cannot be checked; the text says why."""


class Inapplicable(Exception):
    """The requirement is about something that this server does not do; the text says what."""


@dataclass(frozen=True)
class Check:
    """One requirement."""

    name: str
    section: str
    level: str
    requirement: str
    run: Callable[[Any], None]
    # Extensions of tus that must be advertised for the check to make sense.
    needs: tuple[str, ...] = ()
    # An extension that must not be advertised: the check shows that it is then really absent.
    without: str | None = None
    # The first and the last interop version of the IETF draft that has the requirement.
    first: int = 0
    last: int = 99


@dataclass(frozen=True)
class Result:
    """The outcome of one check in one dialect."""

    dialect: str
    check: Check
    outcome: str
    reason: str
    seconds: float


def registrar(into: list[Check]) -> Callable[..., Callable[[Callable[[Any], None]], Callable[[Any], None]]]:
    """A decorator that puts checks on the list `into`."""

    def check(name: str, section: str, level: str, requirement: str, **limits: Any) -> Any:
        def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
            into.append(Check(name, section, level, requirement, function, **limits))
            return function

        return register

    return check


def run(dialect: str, check: Check, server: Any, excuse: str | None = None) -> Result:
    """Runs one check; `excuse` is the reason for which it does not apply, if there is one."""
    started = time.monotonic()
    outcome, reason = (PASS, "") if excuse is None else (NONE, excuse)
    if excuse is None:
        try:
            check.run(server)
        except Inapplicable as inapplicable:
            outcome, reason = NONE, str(inapplicable)
        except Skipped as skipped:
            outcome, reason = SKIP, str(skipped)
        except (Failed, WireError) as failed:
            outcome, reason = verdict(check), str(failed)
            if isinstance(failed, WireError):
                # The next check is not to blame for what this one made of the server.
                wait_for_answer(server.url, server.settings)
        except ValueError as unreadable:
            outcome, reason = verdict(check), f"what the server sent cannot be read: {unreadable}"
    return Result(dialect, check, outcome, reason, time.monotonic() - started)


def verdict(check: Check) -> str:
    return FAIL if check.level == MUST else WARN


# Reasons

def describe(answer: Answer) -> str:
    """An answer in a few words, for a reason."""
    text = answer.body[:120].decode("utf-8", "replace").strip().replace("\n", " ")
    return f"{answer.status}" + (f" {text}" if text else "")


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Failed(reason)


def expect_status(answer: Answer, statuses: int | Iterable[int], doing: str) -> None:
    wanted = [statuses] if isinstance(statuses, int) else list(statuses)
    if answer.status not in wanted:
        names = " or ".join(str(status) for status in wanted)
        raise Failed(f"{doing}: {describe(answer)}, expected {names}")


def expect_success(answer: Answer, doing: str) -> None:
    expect(200 <= answer.status < 300, f"{doing}: {describe(answer)}, expected success")


def expect_refusal(answer: Answer, doing: str) -> None:
    """A refusal is the client's fault, not a crash of the server."""
    expect(400 <= answer.status < 500, f"{doing}: {describe(answer)}, expected a refusal (4xx)")


def expect_field(answer: Answer, name: str, value: str, doing: str) -> None:
    found = answer.get(name)
    expect(found == value, f"{doing}: {name} is {found!r}, expected {value!r}")


def expect_number(answer: Answer, name: str, value: int, doing: str) -> None:
    found = answer.get(name)
    expect(found is not None and found.isdigit() and int(found) == value,
           f"{doing}: {name} is {found!r}, expected {value}")


def expect_absent(answer: Answer, name: str, doing: str) -> None:
    expect(name not in answer, f"{doing}: {name} is {answer.get(name)!r}, expected none")
