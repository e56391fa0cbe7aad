"""The log of the link: which packets passed, and what follows from them."""

import struct
from dataclasses import dataclass
from pathlib import Path

# struct record of link.c.
RECORD = struct.Struct("=QQIIHHHHBBBB")
DELIVERED = 0
RESET_BY_LINK = 4
SYN = 2
UP, DOWN = 0, 1
# A packet with so much payload can be part of a file: heads and short messages have less.
LEAST_BODY_BYTES = 1200
# A message of so many bytes is a part of the file: status and digests of chunks are shorter.
LEAST_BODY_RUN_BYTES = 100 << 10


@dataclass(frozen=True)
class Packet:
    """One packet that a program sent."""

    sent_ns: int
    arrived_ns: int
    sequence: int
    acknowledged: int
    left_port: int
    right_port: int
    payload_bytes: int
    packet_bytes: int
    direction: int
    fate: int
    flags: int

    @property
    def has_arrived(self) -> bool:
        """Whether it reached the other end."""
        return self.fate == DELIVERED

    @property
    def is_body(self) -> bool:
        """Whether it may bring bytes of the file."""
        return self.payload_bytes >= LEAST_BODY_BYTES


class PacketLog:
    """All packets of one transfer, in the order in which their fate was decided."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.reset_count = 0

    def read(self, path: Path) -> None:
        """Reads what the link has written, without the last packets of an earlier transfer."""
        ports: set[int] = set()
        for *fields, _ in RECORD.iter_unpack(path.read_bytes()):
            packet = Packet(*fields)
            if packet.direction == UP and packet.flags & SYN:
                ports.add(packet.left_port)
            if packet.left_port not in ports:
                continue
            if packet.fate == RESET_BY_LINK:
                self.reset_count += 1
            else:
                self.packets.append(packet)

    def payload_bytes(self, direction: int) -> int:
        """Payload that arrived, with what arrived twice."""
        return sum(each.payload_bytes for each in self._arrived(direction))

    def new_bytes(self, direction: int, since_ns: int = 0) -> int:
        """Payload that arrived for the first time on its connection."""
        known: set[tuple[int, int, int]] = set()
        count = 0
        for each in self._arrived(direction):
            key = (each.left_port, each.right_port, each.sequence)
            if each.payload_bytes and key not in known:
                known.add(key)
                count += each.payload_bytes if each.arrived_ns >= since_ns else 0
        return count

    def connection_count(self) -> int:
        """Connections that the left side tried to open."""
        return len(
            {
                (each.left_port, each.sequence)
                for each in self.packets
                if each.direction == UP and each.flags & SYN
            }
        )

    def first_ns(self) -> int | None:
        """When the first packet left."""
        return min((each.sent_ns for each in self.packets), default=None)

    def first_body_ns(self, direction: int) -> int | None:
        """When the first message with a part of the file began to leave."""
        first: int | None = None
        # By connection, the message under way: when it began, and its bytes so far.
        messages: dict[int, tuple[int, int]] = {}
        for each in sorted(self.packets, key=lambda packet: packet.sent_ns):
            if not each.payload_bytes:
                continue
            if each.direction != direction:
                messages.pop(each.left_port, None)
                continue
            begin, byte_count = messages.get(each.left_port, (each.sent_ns, 0))
            messages[each.left_port] = (begin, byte_count + each.payload_bytes)
            if byte_count + each.payload_bytes >= LEAST_BODY_RUN_BYTES:
                first = begin if first is None else min(first, begin)
        return first

    def last_body_ns(self, direction: int) -> int | None:
        """When the last packet of the file arrived."""
        return max(
            (each.arrived_ns for each in self._arrived(direction) if each.is_body), default=None
        )

    def request_count(self, after_ns: int, before_ns: int) -> int:
        """Short messages that left clients between two moments: requests without a long body."""
        return sum(
            1
            for each in self.packets
            if each.direction == UP
            and each.payload_bytes
            and not each.is_body
            and after_ns < each.sent_ns < before_ns
        )

    def _arrived(self, direction: int) -> list[Packet]:
        return [each for each in self.packets if each.direction == direction and each.has_arrived]
