"""Defines mutants: a reference server that does one thing wrong, and the checks that must notice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reference import Application, Refusal, Reply, Request, Upload


@dataclass(frozen=True)
class Mutant:
    """One fault. `catches` are the checks that must not pass; `version` is the dialect they run in."""

    name: str
    application: type[Application]
    catches: tuple[str, ...]
    version: str = "9"


def maker(base: type[Application], into: list[Mutant]) -> Callable[..., None]:
    """A function that makes mutants of `base` by replacing its steps."""

    def make(name: str, *catches: str, version: str = "9", **steps: Any) -> None:
        into.append(Mutant(name, type(base.__name__, (base,), steps), catches, version))

    return make


def mending(base: type[Application], change: Callable[[Request, Reply], None]) -> Callable[..., Reply]:
    """A last step that changes answers after they are right."""

    def mend(self: Application, request: Request, reply: Reply) -> Reply:
        reply = base.mend(self, request, reply)
        change(request, reply)
        return reply

    return mend


def without(base: type[Application], method: str, *fields: str) -> Callable[..., Reply]:
    """Answers to this method lack these fields."""

    def change(request: Request, reply: Reply) -> None:
        if request.method == method:
            for name in fields:
                reply.fields.pop(name, None)

    return mending(base, change)


def restatus(base: type[Application], method: str, status: int, other: int) -> Callable[..., Reply]:
    """Answers to this method have another status."""

    def change(request: Request, reply: Reply) -> None:
        if request.method == method and reply.status == status:
            reply.status = other

    return mending(base, change)


def nothing(*_: Any) -> None:
    """A step that is not done."""


def refused(status: int) -> Callable[..., Any]:
    """A step at which every request ends."""

    def refuse(*_: Any) -> None:
        raise Refusal(status)

    return refuse


@contextmanager
def held(upload: Upload) -> Iterator[None]:
    """The upload's lock, as servers take it that make others wait."""
    if not upload.lock.acquire(timeout=2):
        raise Refusal(423)
    try:
        yield
    finally:
        upload.lock.release()
