"""Programs that others wrote, which send a file through a proxy."""

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import curl
import uploaders
from proxy_programs import ProxyKind
from service import Source, Violation, expect

# Time in which a program sends a file that passes, and one that a proxy refuses.
SECONDS, FEW_SECONDS = 60, 10


@dataclass(frozen=True)
class Program:
    """A client, the path at which it begins, and the proxies that its bodies cannot pass."""

    path: str
    send: Callable[[str, Source, Path], None]
    # Larger than what the link carries at a time: a proxy that gathers bodies never gets one whole.
    has_large_bodies: bool = False
    # It takes no address without scheme and host, which tus allows.
    needs_absolute: bool = False

    def limit(self, kind: ProxyKind, is_before: bool) -> str:
        """Why it cannot send anything this way; empty when it can."""
        if self.needs_absolute and kind.hides_scheme:
            return "no use for addresses without a host"
        if self.has_large_bodies and kind.name == "nginx-1m":
            return "bodies above 1 MiB"
        if self.has_large_bodies and kind.gathers and is_before:
            return "bodies above what the link carries"
        return ""


def _tuspy(url: str, source: Source, _: Path) -> None:
    uploaders.tuspy(url, source.path)


def _aiotus(url: str, source: Source, _: Path) -> None:
    uploaders.aiotus_upload(url, source.path)


PROGRAMS = {
    "tuspy": Program("/tus/", _tuspy, has_large_bodies=True),
    "aiotus": Program("/tus/", _aiotus, has_large_bodies=True, needs_absolute=True),
    "curl, one body": Program("/files", curl.send, has_large_bodies=True),
}


def send(name: str, server: str, source: Source, scratch: Path, is_hopeless: bool) -> None:
    """Runs a program in a process of its own; raises `Violation` when it gives up or does not end."""
    program = PROGRAMS[name]
    seconds = FEW_SECONDS if is_hopeless else SECONDS
    process = multiprocessing.get_context("fork").Process(
        target=_send, args=(program, server, source, scratch), daemon=True)
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise Violation(f"{name} did not end within {seconds} s")
    expect(process.exitcode == 0, f"{name} gave up")


def _send(program: Program, server: str, source: Source, scratch: Path) -> None:
    # The programs print every try, and there are many.
    os.dup2(os.open(scratch / "programs.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    program.send(server + program.path, source, scratch)
