"""Shared code of the proofs in this folder: where the other tests are, how one ends, and small helpers.

Imported before anything else of Tests, whose folders it puts on the path.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("support", "servers", "fleet", "powercut")]

from nodes import Node  # noqa: E402
from processes import Scratch, Unavailable  # noqa: E402
from skipping import skipped  # noqa: E402
from transfers import Violation  # noqa: E402

# Small chunks give many promises for few bytes.
SMALL_CHUNKS = (
    "--limits-min-chunk-size", "4096", "--limits-default-chunk-size", "16384",
    "--storage-reserve-bytes", "1048576",
)

__all__ = [
    "SMALL_CHUNKS", "Node", "Scratch", "Skipped", "Stage", "Unavailable", "Violation", "arguments",
    "expect", "percentile", "run_proof", "started", "use_memory",
]


class Skipped(Exception):
    """This system does not permit what the proof needs; `name` is what must be allowed to skip it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


class Stage:
    """Where one proof runs."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack
    ) -> None:
        self.options = options
        self.binary: Path = options.binary
        self.directory = directory
        self.cleanup = cleanup

    def node(self, *options: str, environment: dict[str, str] | None = None) -> Node:
        """A node with a data directory of its own, not yet started."""
        node = Node(self.binary, self.directory, options, environment or {})
        self.cleanup.callback(node.kill)
        return node


def started(node: Node) -> Node:
    """The node, serving."""
    node.start()
    node.wait_until_ready()
    return node


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A command line that has the binary and a choice of length."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--binary", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--long", action="store_true", help="take minutes instead of seconds")
    return parser


def run_proof(name: str, options: argparse.Namespace, play: Callable[[Stage], str]) -> int:
    """Runs a proof; its exit status: 0 when the bar is met, 1 when not, 77 when it was skipped.

    What was started ends, however it goes; logs stay when the bar was missed.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    scratch, begun, is_kept = Scratch(name), time.monotonic(), False
    try:
        with contextlib.ExitStack() as cleanup:
            result = play(Stage(options, scratch.path, cleanup))
    except Skipped as reason:
        return skipped(reason.name, reason)
    except (Violation, Unavailable) as error:
        is_kept = True
        print(f"{name}: {error}\nlogs are in {scratch.path}", file=sys.stderr)
        return 1
    except Exception:
        is_kept = True
        traceback.print_exc()
        print(f"{name}: the proof itself failed; logs are in {scratch.path}", file=sys.stderr)
        return 2
    finally:
        if not is_kept:
            scratch.remove()
    print(f"{name}: {result} ({time.monotonic() - begun:.0f} s)", flush=True)
    return 0


def expect(kept: bool, text: str) -> None:
    """Ends the proof when a promise was not kept."""
    if not kept:
        raise Violation(text)


def use_memory(mebibytes: int) -> None:
    """Puts what is made from now on into memory, where there is room: making clusters is most of the work.

    For proofs about processes that die, not about disks.
    """
    place = "/dev/shm"
    with contextlib.suppress(OSError):
        if os.access(place, os.W_OK) and shutil.disk_usage(place).free > mebibytes << 20:
            tempfile.tempdir = place


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies; 0 when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
