"""A video that any browser plays and seeks, of any size: RFC 8794 (EBML), RFC 9559 (Matroska) and RFC 6386 (VP8)."""

import base64
import random
import struct
from pathlib import Path

# Key frames of 64 × 64 pixels, one blue and one amber.
FRAMES = [base64.b64decode(text) for text in (
    "8AMAnQEqQABAAD7RaK9SKCYkIqIIAQAaCWkA1PaAABA3U1AFnIQpgAD+4Ll//wQXFPxT1pf/G7LOG7UUgNFcJfMYAAAAAA==",
    "EAQAnQEqQABAAD7RaK9SqCWkIqIIAQAaCWkA08qAABGfcdy8KZOYpgAA/t1Ef/wHRhytUv/xbFIaoR4RsfhPpZfGAAA=")]
PIXELS = 64
FRAME_MILLISECONDS = 100
EBML, SEGMENT, INFO, TRACKS, CUES, CLUSTER = (
    0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0x1C53BB6B, 0x1F43B675)
VOID = 0xEC


def element(identifier: int, content: bytes) -> bytes:
    name = identifier.to_bytes((identifier.bit_length() + 7) // 8, "big")
    return name + (1 << 56 | len(content)).to_bytes(8, "big") + content


def number(identifier: int, value: int) -> bytes:
    return element(identifier, value.to_bytes(8, "big"))


def text(identifier: int, value: str) -> bytes:
    return element(identifier, value.encode())


def cluster(index: int, filler: bytes) -> bytes:
    """A frame, and bytes that a player skips."""
    block = bytes([0x81, 0, 0, 0x80]) + FRAMES[index * FRAME_MILLISECONDS // 1000 % 2]
    frame = number(0xE7, index * FRAME_MILLISECONDS) + element(0xA3, block)
    return element(CLUSTER, frame + element(VOID, filler))


def cues(positions: list[int]) -> bytes:
    """Where the frame of each time is; its length does not depend on the positions."""
    points = []
    for index, position in enumerate(positions):
        place = element(0xB7, number(0xF7, 1) + number(0xF1, position))
        points.append(element(0xBB, number(0xB3, index * FRAME_MILLISECONDS) + place))
    return element(CUES, b"".join(points))


def write_video(path: Path, seed: int, seconds: int, byte_count: int) -> None:
    """Writes a video of about that size whose every byte matters to a comparison."""
    count = seconds * 1000 // FRAME_MILLISECONDS
    chooser = random.Random(seed)
    clusters = [cluster(index, chooser.randbytes(byte_count // count)) for index in range(count)]
    duration = element(0x4489, struct.pack(">d", 1000 * seconds))
    head = element(INFO, number(0x2AD7B1, 1_000_000) + duration + text(0x4D80, "test") + text(0x5741, "test"))
    video = element(0xE0, number(0xB0, PIXELS) + number(0xBA, PIXELS))
    head += element(TRACKS, element(
        0xAE, number(0xD7, 1) + number(0x73C5, 1) + number(0x83, 1) + text(0x86, "V_VP8") + video))
    positions = []
    position = len(head) + len(cues([0] * count))
    for piece in clusters:
        positions.append(position)
        position += len(piece)
    declared = b"".join([
        number(0x4286, 1), number(0x42F7, 1), number(0x42F2, 4), number(0x42F3, 8), text(0x4282, "webm"),
        number(0x4287, 2), number(0x4285, 2)])
    path.write_bytes(element(EBML, declared) + element(SEGMENT, head + cues(positions) + b"".join(clusters)))
