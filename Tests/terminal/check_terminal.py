#!/usr/bin/env python3
"""Runs kedge in a pseudo-terminal of several widths and looks at the screen that a user would see.

    check_terminal.py PATH_TO_KEDGE

A link of limited rate between the command and the service keeps the bars on the screen long enough.
"""

import os
import pathlib
import re
import sys
import tempfile
import termios

from pseudo_terminal import SlowLink, Terminal, service

WIDTHS = (40, 80, 200)
MEBIBYTE = 1 << 20
NAMES = [
    "夏休みの家族旅行の動画、とても長い名前のファイル.mp4",
    "e\u0301te\u0301 a\u0300 la plage, nume\u0301ro un, version longue de tous les jours.mov",
    "👨‍👩‍👧‍👦 family 🇯🇵 ❤️ holiday of the century, part one.mp4",
    "plain.bin",
]
failures = []


def expect(is_right, subject):
    if not is_right:
        failures.append(subject)
        print(f"WRONG {subject}", file=sys.stderr)


class Trial:
    def __init__(self, kedge, directory, port):
        self.kedge = kedge
        self.directory = directory
        self.port = port
        self.count = 0

    def files(self, names, byte_count):
        self.count += 1
        folder = pathlib.Path(self.directory, f"files-{self.count}")
        folder.mkdir()
        paths = []
        for name in names:
            path = folder / name
            path.write_bytes(os.urandom(byte_count))
            paths.append(str(path))
        return paths

    def start(self, paths, columns, port=None, options=(), **variables):
        environment = {
            "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C",
            "XDG_STATE_HOME": f"{self.directory}/state-{self.count}", **variables,
        }
        server = f"http://127.0.0.1:{port or self.port}"
        command = [self.kedge, "upload", "--server", server, "--chunk-size", "262144", *options]
        return Terminal([*command, "--", *paths], columns, environment)


def check_one_file(trial, columns):
    """A bar stays on one line whatever the name, and the result stands alone afterwards."""
    link = SlowLink(trial.port, 2 * MEBIBYTE)
    # Long enough for the remaining time at one width, and for the rate at the others.
    byte_count = (6 if columns == 40 else 3) * MEBIBYTE
    for name in NAMES:
        subject = f"{columns} columns, {name}"
        terminal = trial.start(trial.files([name], byte_count), columns, link.port)
        expect(terminal.end() == 0, f"{subject}: uploaded")
        bars = [[line for line in frame if "%" in line] for frame in terminal.frames]
        expect(all(len(lines) <= 1 for lines in bars), f"{subject}: one line at a time")
        # The bar and the id.
        expect(len(terminal.lines) == 2, f"{subject}: two lines are left: {terminal.lines}")
        expect("100%" in terminal.lines[0] and "done" in terminal.lines[0], f"{subject}: done")
        moving = [line for lines in bars for line in lines if "/s" in line]
        expect(moving != [], f"{subject}: a rate is shown")
        expect(any("ETA" in line for line in moving) or columns > 40, f"{subject}: the rest is shown")


def check_stall_and_resume(trial):
    """A transfer without bytes says so; an interrupted one names the command, and resumes aloud."""
    link = SlowLink(trial.port, 2 * MEBIBYTE)
    paths = trial.files([NAMES[0]], 8 * MEBIBYTE)
    terminal = trial.start(paths, 80, link.port)
    terminal.watch(2)
    link.is_stopped = True
    expect(terminal.shows("stalled", within=40), "a stall is shown")
    link.is_stopped = False
    terminal.watch(1)
    terminal.interrupt()
    expect(terminal.end() == 130, "Ctrl-C ends with 130")
    expect(any("To resume" in line for line in terminal.lines), "the command that resumes is shown")
    again = trial.start(paths, 80, link.port)
    expect(again.end() == 0, "the same command resumes")
    resumed = any("resumed at" in line for frame in again.frames for line in frame)
    expect(resumed, "a resumed transfer says so")
    third = trial.start(paths, 80, link.port)
    expect(third.end() == 0, "a finished upload is found")
    expect("already there" in "\n".join(third.lines), "a finished upload says so")


def check_many_files(trial, columns):
    """Many files have one line for their sum, bars for those that move, and a sum at the end."""
    link = SlowLink(trial.port, 4 * MEBIBYTE)
    paths = trial.files([f"ファイル-{number}.bin" for number in range(30)], MEBIBYTE // 2)
    terminal = trial.start(paths, columns, link.port, ["--parallel", "4"])
    expect(terminal.end() == 0, f"{columns} columns: many files")
    sums = [line for frame in terminal.frames for line in frame if "/30 files" in line]
    expect(sums != [], f"{columns} columns: the sum is shown")
    shown = [sum("/30 files" in line for line in frame) for frame in terminal.frames]
    expect(max(shown) == 1, f"{columns} columns: the sum is shown once")
    expect("30 files: 30 done; 15.0 MiB in" in terminal.lines[-1], f"{columns}: {terminal.lines[-1]}")
    # A bar and an id for each file, and the sum.
    expect(len(terminal.lines) == 61, f"{columns} columns: {len(terminal.lines)} lines are left")


def check_interrupted_many(trial):
    """After Ctrl-C a command with hundreds of names is not repeated."""
    link = SlowLink(trial.port, MEBIBYTE)
    paths = trial.files([f"a rather long name of a file, number {number}" for number in range(100)], 100_000)
    terminal = trial.start(paths, 80, link.port)
    terminal.watch(2)
    terminal.interrupt()
    expect(terminal.end() == 130, "Ctrl-C ends many files with 130")
    expect("run the same command again" in terminal.lines[-1], terminal.lines[-1])


def check_resizing(trial):
    """Bars follow the width of the terminal while it changes."""
    link = SlowLink(trial.port, 2 * MEBIBYTE)
    terminal = trial.start(trial.files(NAMES[:1], 8 * MEBIBYTE), 200, link.port)
    for columns in (60, 120, 40, 80):
        terminal.watch(0.8)
        terminal.resize(columns)
    expect(terminal.end() == 0, "a resized terminal")
    expect("done" in terminal.lines[-2], f"resized: {terminal.lines[-2:]}")


def check_colour(trial):
    for options, variables, has_colour in [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ]:
        terminal = trial.start(trial.files(["a"], 1000), 80, None, options, **variables)
        expect(terminal.end() == 0, f"colour {options} {variables}")
        found = re.search(rb"\x1b\[3\dm", terminal.raw) is not None
        expect(found == has_colour, f"colour {options} {variables}: {found}")


def shows_input(terminal):
    return termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO != 0


def check_token_prompt(trial):
    """The prompt for a token does not show it, and leaves a terminal that shows input."""
    for keys, status in [("secret\x03", 130), ("secret\n", 0)]:
        subject = f"the prompt for a token that ends with {status}"
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": trial.directory}
        command = [trial.kedge, "login", "work", f"http://127.0.0.1:{trial.port}"]
        terminal = Terminal(command, 80, environment)
        expect(shows_input(terminal), f"{subject}: the terminal shows input before")
        expect(terminal.shows("Token (empty for none):", within=20), f"{subject}: shown")
        expect(not shows_input(terminal), f"{subject}: the terminal hides input")
        terminal.type(keys)
        expect(terminal.end() == status, f"{subject}: {terminal.lines}")
        expect(shows_input(terminal), f"{subject}: the terminal shows input after")
        expect("secret" not in "\n".join(terminal.lines), f"{subject}: no token")


def main():
    kedge = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory, service(kedge, directory) as port:
        trial = Trial(kedge, directory, port)
        for columns in WIDTHS:
            check_one_file(trial, columns)
            check_many_files(trial, columns)
        check_stall_and_resume(trial)
        check_interrupted_many(trial)
        check_resizing(trial)
        check_colour(trial)
        check_token_prompt(trial)
    if failures:
        sys.exit(f"terminal: {len(failures)} wrong")
    print("terminal: bars are right at 40, 80 and 200 columns")


main()
