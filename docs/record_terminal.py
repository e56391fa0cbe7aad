#!/usr/bin/env python3
"""Records an upload that is stopped with Ctrl-C and resumed, in a terminal, and draws docs/terminal.svg.

    record_terminal.py PATH_TO_KEDGE        python3 must have pyte: .build-venv/bin/python, after `make test-deps`

A link of limited rate between the command and a service keeps the bar on the screen. The picture is a loop of the
screens at some moments; a viewer that does not animate shows the last one.
"""

import html
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests" / "terminal"))

from pseudo_terminal import SlowLink, Terminal, service  # noqa: E402

OUTPUT = ROOT / "docs" / "terminal.svg"
MEBIBYTE = 1 << 20
# In 80 columns the sentence about a stopped transfer is cut off.
COLUMNS = 90
ROWS = 8
PROMPT = "$ "
BYTES_PER_SECOND = 24 * MEBIBYTE
# Screens that the picture shows at most, and the seconds of each; the last one stays longer.
FRAME_LIMIT = 12
SECONDS = 0.9
LAST_SECONDS = 4.0

# The geometry of the picture, in pixels.
CHARACTER = 8.4
LINE = 20
MARGIN = 16
# Viewers collapse other spaces.
SPACE = "\u00a0"
BACKGROUND, FOREGROUND, DOT = "#16191f", "#d5dae1", "#3a404b"
COLOURS = {
    "green": "#7ec98f", "red": "#e5818a", "brown": "#dcc078", "blue": "#7fb0e8", "magenta": "#c79be0",
    "cyan": "#74c7c9",
}


def runs(line, columns):
    """The pieces of a line that have one colour each: the column at which a piece begins, its text, its colour."""
    pieces, last = [], None
    for column in range(columns):
        cell = line[column]
        colour = COLOURS.get(cell.fg, FOREGROUND)
        if colour == last:
            pieces[-1][1] += cell.data
        else:
            pieces.append([column, cell.data, colour])
            last = colour
    return [(column, text.rstrip(), colour) for column, text, colour in pieces if text.strip()]


class Recorder:
    """Types commands into a shell and keeps the screens that differ."""

    def __init__(self, kedge, directory, link):
        binaries = pathlib.Path(directory, "bin")
        binaries.mkdir()
        (binaries / "kedge").symlink_to(kedge)
        self.environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": directory, "PS1": PROMPT, "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "KEDGE_SERVER": f"http://127.0.0.1:{link.port}",
        }
        self.frames = []
        shell = ["bash", "--norc", "--noprofile", "-i"]
        os.chdir(directory)
        self.terminal = Terminal(shell, COLUMNS, self.environment)

    def keep(self):
        """Keeps the screen as it is now."""
        screen = self.terminal.screen
        frame = [runs(screen.buffer[row], COLUMNS) for row in range(ROWS)]
        if not self.frames or frame != self.frames[-1]:
            self.frames.append(frame)

    def prompt(self, count):
        if not self.terminal.has_prompts(count, PROMPT, 60):
            sys.exit("there is no prompt: " + "\n".join(self.terminal.lines))
        self.keep()

    def run(self):
        terminal = self.terminal
        self.prompt(1)
        self.frames.clear()
        terminal.type("kedge upload video.bin\n")
        for _ in range(3):
            terminal.shows("ETA", 20)
            terminal.watch(0.9)
            self.keep()
        terminal.type("\x03")
        self.prompt(2)
        terminal.type("kedge upload video.bin\n")
        if not terminal.shows("resumed at", 20):
            sys.exit("the transfer did not resume: " + "\n".join(terminal.lines))
        for _ in range(3):
            terminal.watch(1)
            self.keep()
        self.prompt(3)
        terminal.close()
        return self.frames


def drawn(frame):
    """The lines of a screen as text elements. Each piece has its place, whatever font the viewer has."""
    for row, pieces in enumerate(frame):
        for column, text, colour in pieces:
            x, y = MARGIN + column * CHARACTER, 2 * MARGIN + 14 + row * LINE
            fill = "" if colour == FOREGROUND else f' fill="{colour}"'
            yield (
                f'<text x="{x:.1f}" y="{y}" textLength="{len(text) * CHARACTER:.1f}"'
                f' lengthAdjust="spacingAndGlyphs"{fill}>{html.escape(text).replace(" ", SPACE)}</text>')


def picture(frames):
    width = 2 * MARGIN + COLUMNS * CHARACTER
    height = 3 * MARGIN + ROWS * LINE
    total = SECONDS * (len(frames) - 1) + LAST_SECONDS
    title = "An upload is stopped with Ctrl-C, and the same command resumes it where it stopped"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}"'
        f' height="{height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        *(f'<circle cx="{MARGIN + 4 + 18 * dot}" cy="{MARGIN}" r="5" fill="{DOT}"/>' for dot in range(3)),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace"'
        f' font-size="14" fill="{FOREGROUND}">',
    ]
    for number, frame in enumerate(frames):
        begin, end = number * SECONDS / total, (number + 1) * SECONDS / total
        is_last = number == len(frames) - 1
        # Shown from its begin to its end; the viewer without animations shows the last one alone.
        values, times = ("none;inline", f"0;{begin:.4f}") if is_last else (
            ("inline;none", f"0;{end:.4f}") if number == 0
            else ("none;inline;none", f"0;{begin:.4f};{end:.4f}"))
        parts += [
            f'<g display="{"inline" if is_last else "none"}">',
            f'<animate attributeName="display" values="{values}" keyTimes="{times}" calcMode="discrete"'
            f' dur="{total:.1f}s" repeatCount="indefinite"/>',
            *drawn(frame),
            "</g>",
        ]
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def main():
    kedge = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory, service(kedge, directory) as port:
        pathlib.Path(directory, "video.bin").write_bytes(os.urandom(240 * MEBIBYTE))
        frames = Recorder(kedge, directory, SlowLink(port, BYTES_PER_SECOND)).run()
    frames = frames[-FRAME_LIMIT:]
    OUTPUT.write_text(picture(frames), encoding="utf-8")
    print(f"{OUTPUT.relative_to(ROOT)}: {len(frames)} screens, {OUTPUT.stat().st_size} bytes")


main()
