"""Reads a log of block writes and makes the images that a power cut could have left behind.

The format is that of the kernel's dm-log-writes, as the storage daemon writes it. What a disk promises is
less than what was written to it: everything before the last flush is there, and of what came later any
part, in any order, in pieces of one block.
"""

import bisect
import dataclasses
import mmap
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
# A file system of 4 KiB blocks needs a disk that does not tear blocks; larger writes may tear.
BLOCK = 4096

WAYS = ("all", "none", "subset", "subset", "prefix", "all-but-one", "reversed")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One request that reached the disk."""

    offset: int
    byte_count: int
    flags: int
    data: int
    """Where its bytes are in the log."""
    end: int
    """Where the next entry begins in the log."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of a write that the disk takes whole or not at all."""

    offset: int
    content: memoryview | None
    """None for a discard, which reads as zeros."""
    byte_count: int


class BlockLog:
    """All requests in the order in which they reached the disk."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = memoryview(self._map)
        self.entries = list(self._parse())
        self._ends = [entry.end for entry in self.entries]
        self._flushes = [i for i, entry in enumerate(self.entries) if entry.flags & FLUSH]

    def _parse(self) -> Iterator[Entry]:
        magic, version, _, sector_size = struct.unpack_from("<QQQI", self._bytes, 0)
        if magic != MAGIC or version != 1:
            raise ValueError("this is no log of block writes")
        position = sector_size
        while position + sector_size <= len(self._bytes):
            sector, sectors, flags, _ = struct.unpack_from("<QQQQ", self._bytes, position)
            if flags & ~(FLUSH | FUA | DISCARD | MARK) or (sectors == 0 and flags == 0):
                raise ValueError(f"no entry at byte {position} of the log")
            data = position + sector_size
            byte_count = sectors * sector_size
            end = data if flags & DISCARD else data + byte_count
            if end > len(self._bytes):
                return
            yield Entry(sector * sector_size, byte_count, flags, data, end)
            position = end

    def count_at(self, log_size: int) -> int:
        """How many requests were complete when the log had this size."""
        return bisect.bisect_right(self._ends, log_size)

    def _durable_count(self, count: int) -> int:
        """How many of the first `count` requests came before their last flush."""
        index = bisect.bisect_left(self._flushes, count)
        return self._flushes[index - 1] + 1 if index else 0

    def write_image(
        self, base: Path, target: Path, log_size: int, way: str, chooser: random.Random
    ) -> int:
        """Makes the image of a cut at this moment; returns how many pieces were at risk."""
        count = self.count_at(log_size)
        durable = self._durable_count(count)
        at_risk: list[Piece] = []
        copy_sparse(base, target)
        with open(target, "r+b", buffering=0) as image:
            for entry in self.entries[:durable]:
                self._apply(image.fileno(), list(self._pieces(entry, whole=True)))
            for entry in self.entries[durable:count]:
                if entry.flags & FUA:
                    self._apply(image.fileno(), list(self._pieces(entry, whole=True)))
                else:
                    at_risk += self._pieces(entry, whole=False)
            self._apply(image.fileno(), surviving(at_risk, way, chooser))
        return len(at_risk)

    def _pieces(self, entry: Entry, whole: bool) -> Iterator[Piece]:
        if entry.flags & DISCARD:
            yield Piece(entry.offset, None, entry.byte_count)
            return
        position = entry.offset
        limit = entry.offset + entry.byte_count
        while position < limit:
            end = limit if whole else min(limit, (position // BLOCK + 1) * BLOCK)
            start = entry.data + position - entry.offset
            content = self._bytes[start : start + end - position]
            yield Piece(position, content, end - position)
            position = end

    @staticmethod
    def _apply(descriptor: int, pieces: list[Piece]) -> None:
        for piece in pieces:
            content = piece.content if piece.content is not None else bytes(piece.byte_count)
            if os.pwrite(descriptor, content, piece.offset) != piece.byte_count:
                raise OSError("the image could not be written")


def surviving(at_risk: list[Piece], way: str, chooser: random.Random) -> list[Piece]:
    """Returns the unflushed writes that the disk keeps, in the order in which it took them."""
    if way == "all":
        return at_risk
    if way == "none":
        return []
    if way == "prefix":
        return at_risk[: chooser.randint(0, len(at_risk))]
    if way == "all-but-one":
        lost = chooser.randrange(len(at_risk)) if at_risk else 0
        return at_risk[:lost] + at_risk[lost + 1 :]
    if way == "reversed":
        return at_risk[chooser.randint(0, len(at_risk)) :]
    share = chooser.random()
    return [piece for piece in at_risk if chooser.random() < share]


def copy_sparse(source: Path, target: Path) -> None:
    """Copies a file without its holes, so that an image costs what is in it."""
    with open(source, "rb", buffering=0) as old, open(target, "wb", buffering=0) as new:
        size = os.fstat(old.fileno()).st_size
        new.truncate(size)
        position = 0
        while position < size:
            try:
                position = os.lseek(old.fileno(), position, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(old.fileno(), position, os.SEEK_HOLE)
            while position < end:
                position += os.copy_file_range(
                    old.fileno(), new.fileno(), end - position, position, position
                )
