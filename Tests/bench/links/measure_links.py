"""Measures transfers over the links that Kedge is made for: far, lossy and dying ones.

    measure_links.py --binary KEDGE [--mib M] [--bound SECONDS] [--cells NAME,...]
                     [--programs NAME,...] [--smoke]

Each cell of the table is a link between two network namespaces; see network.py and link.c. Over
each, `kedge upload` and `kedge download` are measured beside a single long TCP stream, curl, rclone
and tuspy. A transfer that has not ended within the bound is reported as such; its goodput is that
of the bytes that arrived.

The status is 1 when wrong bytes arrived; a bar that is not met is only reported. With --smoke also
a transfer of Kedge that did not end fails.
"""

import argparse
import contextlib
import json
import random
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / name) for name in ("servers", "support")]

from network import CONGESTION_CONTROL, Network, Shape, reason_to_skip  # noqa: E402
from packets import PacketLog  # noqa: E402
from processes import ROOT, Scratch, Unavailable, find_program  # noqa: E402
from programs import (  # noqa: E402
    DIRECTIONS,
    Curl,
    Kedge,
    Program,
    Rclone,
    Run,
    Stream,
    Tuspy,
    Wrong,
)
from servers import Source  # noqa: E402
from skipping import skipped  # noqa: E402

MEBIBYTE = 1 << 20
ROUND_TRIPS_MS = (20, 100, 300)
LOSSES = (0, 0.005, 0.02)
DEATH_BYTES = 300 << 10
DEATH_MS = 10_000
SHAPES = [
    *(Shape(round_trip, loss) for round_trip in ROUND_TRIPS_MS for loss in LOSSES),
    Shape(20, death_bytes=DEATH_BYTES),
    Shape(20, death_ms=DEATH_MS),
]
SMOKE_SHAPES = [Shape(20), Shape(20, 0.005), Shape(20, death_bytes=DEATH_BYTES)]
# A stream is judged from here on: slow start is over.
SETTLED_ROUND_TRIPS = 12

LEAST_OF_STREAM = 0.95
LEAST_OF_CURL_WITH_LOSS = 2.0
MOST_DELIVERED = 1.1


@dataclass
class Result:
    """One transfer of one program."""

    program: str
    direction: str
    link: str
    is_finished: bool
    seconds: float
    mib_per_second: float
    # From the 12th round trip until the last bytes arrive: slow start and the end do not count.
    settled_mib_per_second: float
    # Payload that arrived on the file's way, with heads and repeated bytes, and by the file's size.
    delivered_bytes: int
    delivered_ratio: float
    connections: int
    resets: int
    # Round trips from the first packet to the first bytes of the file, and from the last bytes to
    # the command's end.
    round_trips_before: float | None
    round_trips_after: float | None
    # Requests without a body in the same times.
    requests_before: int | None
    requests_after: int | None


def result(
    program: Program, direction: str, shape: Shape, source: Source, run: Run, packets: PacketLog
) -> Result:
    """Returns the figures of a transfer that its packets give."""
    way = DIRECTIONS[direction]
    first_ns, begin_ns, last_ns = (
        packets.first_ns(),
        packets.first_body_ns(way),
        packets.last_body_ns(way),
    )
    arrived = source.byte_count if run.is_finished else packets.new_bytes(way)
    settled_ns = (first_ns or 0) + SETTLED_ROUND_TRIPS * shape.round_trip_ms * 1_000_000
    settled_seconds = max(((last_ns or settled_ns) - settled_ns) / 1e9, 0.001)
    settled = packets.new_bytes(way, since_ns=settled_ns) / MEBIBYTE / settled_seconds
    before = after = requests_before = requests_after = None
    if first_ns is not None and begin_ns is not None:
        before = (begin_ns - first_ns) / (shape.round_trip_ms * 1e6)
        requests_before = packets.request_count(0, begin_ns)
    if last_ns is not None and run.is_finished:
        after = (run.end_ns - last_ns) / (shape.round_trip_ms * 1e6)
        requests_after = packets.request_count(last_ns, run.end_ns)
    return Result(
        program=program.name,
        direction=direction,
        link=shape.name,
        is_finished=run.is_finished,
        seconds=run.seconds,
        settled_mib_per_second=settled,
        # A stream has no size; it is measured only where it has settled.
        mib_per_second=settled if isinstance(program, Stream) else arrived / MEBIBYTE / run.seconds,
        delivered_bytes=packets.payload_bytes(way),
        delivered_ratio=packets.payload_bytes(way) / source.byte_count,
        connections=packets.connection_count(),
        resets=packets.reset_count,
        round_trips_before=before,
        round_trips_after=after,
        requests_before=requests_before,
        requests_after=requests_after,
    )


class Bar:
    """The rate that a transfer of Kedge must reach on a link, if there is one."""

    def __init__(self, shape: Shape, kedge: Result, peers: dict[str, Result]) -> None:
        self.text = ""
        self.is_met: bool | None = None
        if shape.is_dying:
            self.text = f"ends, <= {MOST_DELIVERED} x file"
            self.is_met = kedge.is_finished and kedge.delivered_ratio <= MOST_DELIVERED
        elif shape.loss == 0 and "stream" in peers:
            self.text = f"12th+ >= {LEAST_OF_STREAM} x stream"
            least = LEAST_OF_STREAM * peers["stream"].settled_mib_per_second
            self.is_met = kedge.settled_mib_per_second >= least
        elif shape.loss == 0.02 and "curl" in peers:
            self.text = f">= {LEAST_OF_CURL_WITH_LOSS} x curl"
            least = LEAST_OF_CURL_WITH_LOSS * peers["curl"].mib_per_second
            self.is_met = kedge.mib_per_second >= least

    @property
    def verdict(self) -> str:
        """The bar with its verdict, for the table."""
        return f"{self.text}: {'met' if self.is_met else 'not met'}" if self.text else ""


class Cell:
    """All results over one link in one direction."""

    def __init__(self, shape: Shape, direction: str) -> None:
        self.shape = shape
        self.direction = direction
        self.results: dict[str, Result] = {}

    def lines(self) -> list[str]:
        """A line for each program."""
        return [self._line(each) for each in self.results.values()]

    def _line(self, each: Result) -> str:
        ended = f"{each.seconds:.1f}" if each.is_finished else f"> {each.seconds:.0f}"
        texts = [
            each.link, each.direction, each.program, ended, f"{each.mib_per_second:.2f}",
            f"{each.settled_mib_per_second:.2f}", self._ratio(each, "stream"),
            self._ratio(each, "curl"), f"{each.delivered_ratio:.3f}", str(each.connections),
            self._number(each.round_trips_before), self._number(each.round_trips_after),
            Bar(self.shape, each, self.results).verdict if each.program == "kedge" else "",
        ]
        return line(texts)

    def _ratio(self, each: Result, peer: str) -> str:
        other = self.results.get(peer)
        if other is None or other is each or other.mib_per_second == 0:
            return ""
        return f"{each.mib_per_second / other.mib_per_second:.2f}"

    @staticmethod
    def _number(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}"


COLUMNS = {
    "link": -18, "way": -5, "program": -8, "s": 7, "MiB/s": 8, "12th+": 8, "/stream": 8, "/curl": 8,
    "/file": 8, "conn.": 7, "before": 8, "after": 7,
}


def line(texts: Iterable[str]) -> str:
    """The texts in their columns, the bar behind them; a negative width is that of words."""
    *texts, bar = texts
    cells = zip(texts, COLUMNS.values(), strict=True)
    row = "".join(text.ljust(-width) if width < 0 else text.rjust(width) for text, width in cells)
    return f"{row}  {bar}".rstrip()


LEGEND = """\
MiB/s: the file by the time from the start of the command to its end. A time with > is that of a
transfer that had not ended; its rate is that of the bytes that had arrived.
12th+: the rate from the 12th round trip (of the idle link) after the first packet until the last
bytes arrive.
stream: one long TCP connection, from the 12th round trip on.
/file: payload that arrived, with repeated bytes and heads, by the size of the file.
conn.: connections opened.
before: round trips from the first packet until the first bytes of the file leave, with the
handshake. after: from the arrival of the last bytes of the file until the command ends."""


class Measurement:
    """All cells, one after the other."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack
    ) -> None:
        self._options = options
        self._directory = directory
        self._network = Network(directory, options.congestion_control)
        cleanup.callback(self._network.stop)
        self._random = random.Random(options.seed)
        self._programs = self._make_programs(cleanup)
        self.cells: list[Cell] = []

    def _make_programs(self, cleanup: contextlib.ExitStack) -> list[Program]:
        options, network = self._options, self._network
        makers: dict[str, Callable[[Path], Program]] = {
            "stream": lambda place: Stream(network, place, options.stream_seconds),
            "curl": lambda place: Curl(network, place),
        }
        if options.rclone:
            makers["rclone"] = lambda place: Rclone(network, place, options.rclone)
        if options.tuspy_python:
            makers["tuspy"] = lambda place: Tuspy(
                network, place, options.binary, options.tuspy_python
            )
        # The last one, for it is compared with the others.
        makers["kedge"] = lambda place: Kedge(
            network, place, options.binary, options.kedge_options.split()
        )
        programs = []
        for name, make in makers.items():
            if name in options.programs:
                place = self._directory / name
                place.mkdir()
                programs.append(make(place))
                cleanup.callback(programs[-1].stop)
        return programs

    def run(self, shapes: list[Shape]) -> None:
        """Measures each cell and prints it at once."""
        print(line([*COLUMNS, "bar"]), flush=True)
        for shape in shapes:
            # A download reads the same file each time; an upload sends a new one each time.
            for direction in DIRECTIONS:
                cell = Cell(shape, direction)
                self.cells.append(cell)
                for program in self._programs:
                    if direction in program.directions and not (
                        shape.is_dying and program.name == "stream"
                    ):
                        cell.results[program.name] = self._measure(program, direction, shape)
                        print(cell.lines()[-1], flush=True)

    def _measure(self, program: Program, direction: str, shape: Shape) -> Result:
        source = self._source(direction)
        program.prepare(direction, source)
        bound = self._options.bound
        with self._network.link(shape, self._options.seed) as packets:
            run, check = program.run(direction, source, bound, shape.is_dying)
        check()
        return result(program, direction, shape, source, run, packets)

    def _source(self, direction: str) -> Source:
        path = self._directory / f"source-{direction}"
        if direction == "down":
            if not hasattr(self, "_stored"):
                self._stored = Source(path, self._options.mib * MEBIBYTE, self._random.randbytes)
            return self._stored
        return Source(path, self._options.mib * MEBIBYTE, self._random.randbytes)

    def rows(self) -> list[dict[str, object]]:
        """The rows for kedge-bench."""
        rows: list[dict[str, object]] = []
        for cell in self.cells:
            kedge = cell.results.get("kedge")
            if kedge is None:
                continue
            name = f"links.{kedge.link}.{kedge.direction}"
            title = f"kedge over {kedge.link}, {kedge.direction}"
            has_stream = cell.shape.loss == 0 and not cell.shape.is_dying
            peer = cell.results.get("stream" if has_stream else "curl")
            row = {
                "id": f"{name}.speed",
                "title": title,
                "unit": "MiB/s",
                "values": [kedge.mib_per_second],
            }
            if peer is not None:
                row |= {"peer": peer.program, "peerValues": [peer.mib_per_second]}
            rows.append(row)
            if has_stream and peer is not None:
                rows.append(
                    row
                    | {
                        "id": f"{name}.settled",
                        "title": f"{title}: settled",
                        "values": [kedge.settled_mib_per_second],
                    }
                )
            if cell.shape.is_dying and kedge.is_finished:
                rows.append(
                    {
                        "id": f"{name}.delivered",
                        "title": f"{title}: delivered",
                        "unit": "x file",
                        "values": [kedge.delivered_ratio],
                    }
                )
        return rows

    def notes(self) -> list[str]:
        """Remarks for kedge-bench."""
        bound, known = self._options.bound, {each.name for each in self._programs}
        missing = [name for name in self._options.programs if name not in known]
        return [
            *(f"kedge over {name} did not end within {bound:g} s" for name in self.unfinished),
            *(f"links are measured without {name}, which is not installed" for name in missing),
        ]

    @property
    def unfinished(self) -> list[str]:
        """Transfers of Kedge that did not end."""
        return [
            f"{cell.shape.name}, {cell.direction}"
            for cell in self.cells
            if "kedge" in cell.results and not cell.results["kedge"].is_finished
        ]


def tuspy_python() -> Path | None:
    """The Python of the environment that has tuspy."""
    path = ROOT / ".build-clients-venv" / "bin" / "python"
    return path if path.exists() else None


def parse() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--mib", type=int, default=64, help="size of the file")
    parser.add_argument("--bound", type=float, default=60, help="most seconds of one transfer")
    parser.add_argument(
        "--stream-seconds", type=float, default=20, help="seconds of the plain stream"
    )
    names = ", ".join(each.name for each in SHAPES).replace("%", "%%")
    parser.add_argument("--cells", help=f"links by comma: {names}")
    parser.add_argument("--programs", default="stream,curl,rclone,tuspy,kedge")
    parser.add_argument(
        "--kedge-options", default="", help="further words for kedge, such as --connections 8"
    )
    parser.add_argument(
        "--rclone",
        type=lambda path: Path(path).resolve(),
        help="rclone; the one on the path without it",
    )
    parser.add_argument(
        "--tuspy-python", type=Path, default=tuspy_python(), help="a Python that has tuspy"
    )
    parser.add_argument("--congestion-control", default=CONGESTION_CONTROL)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="place for everything that is written")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument(
        "--smoke", action="store_true", help="small and without peers, in half a minute"
    )
    options = parser.parse_args()
    options.programs = options.programs.split(",")
    if options.smoke:
        options.mib, options.bound, options.stream_seconds = 2, 15, 1
        options.programs = ["stream", "kedge"]
    if options.rclone is None or not options.rclone.exists():
        with contextlib.suppress(Unavailable):
            options.rclone = find_program("rclone")
    return options


def shapes(options: argparse.Namespace) -> list[Shape]:
    """The links to measure."""
    if options.smoke and not options.cells:
        return SMOKE_SHAPES
    wanted = options.cells.split(",") if options.cells else [each.name for each in SHAPES]
    unknown = set(wanted) - {each.name for each in SHAPES}
    if unknown:
        raise SystemExit(f"no such cells: {', '.join(sorted(unknown))}")
    return [each for each in SHAPES if each.name in wanted]


def main() -> int:
    """Measures; what was started ends, however it goes."""
    options = parse()
    wanted = shapes(options)
    reason = reason_to_skip()
    if reason is not None:
        return skipped("links", reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    scratch = Scratch("links", parent=options.directory)
    try:
        with contextlib.ExitStack() as cleanup:
            measurement = Measurement(options, scratch.path, cleanup)
            measurement.run(wanted)
    except KeyboardInterrupt:
        print("links: interrupted", file=sys.stderr)
        return 130
    except (Wrong, Unavailable) as error:
        print(f"links: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    print(f"\n{LEGEND}")
    for note in measurement.notes():
        print(f"Note: {note}")
    if options.output:
        results = [asdict(each) for cell in measurement.cells for each in cell.results.values()]
        options.output.write_text(
            json.dumps(
                {"rows": measurement.rows(), "notes": measurement.notes(), "results": results},
                indent=1,
            )
        )
    if options.smoke and measurement.unfinished:
        print(f"links: not ended: {', '.join(measurement.unfinished)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
