#!/usr/bin/env python3
"""Types the quick start of README.md into a shell in a terminal, and compares the screen with what the page shows.

    check_readme.py PATH_TO_KEDGE

Ids, times and percentages may differ; an id that the page has twice must be the same twice. A link of limited rate
leaves time for Ctrl-C. Links to files and their headings are checked, too, and the length of the page.
"""

import pathlib
import os
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "terminal"))

from pseudo_terminal import SlowLink, Terminal, service  # noqa: E402

# The width that the lines of the page have.
COLUMNS = 100
BYTES_PER_SECOND = 200 << 20
LINE_LIMIT = 130
ADDRESS = "http://127.0.0.1:8080"
PLACE = "/tmp/quick-start"
PROMPT = "$ "


def section(page, title):
    return page.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def quick_start(page):
    """The indented lines that belong to a terminal."""
    lines = [line[4:] for line in section(page, "Quick start").split("\n") if line.startswith("    ")]
    if not lines or not lines[0].startswith(PROMPT):
        sys.exit("README.md: the quick start has no commands")
    return lines


def shape(lines):
    """The lines without what differs between two runs; ids are numbered in the order of their appearance."""
    text = "\n".join(line.rstrip() for line in lines)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text)
    text = re.sub(r"[ \d]{2}\d% \[[= ]*\](?=  Paused)", "100% [BAR]", text)
    ids = {}
    return re.sub(r"\b[0-9a-f]{32}\b", lambda match: ids.setdefault(match[0], f"ID-{len(ids)}"), text).split("\n")


def typed(lines, kedge, directory, port):
    """The screen after all commands of the lines were typed."""
    binaries = pathlib.Path(directory, "bin")
    binaries.mkdir()
    (binaries / "kedge").symlink_to(kedge)
    environment = {
        "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": directory, "PS1": PROMPT, "TERM": "xterm-256color",
        "LANG": "C.UTF-8", "BASH_SILENCE_DEPRECATION_WARNING": "1",
    }
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], COLUMNS, environment)
    link = SlowLink(port, BYTES_PER_SECOND)
    commands = [line[len(PROMPT):] for line in lines if line.startswith(PROMPT)]
    for number, command in enumerate(commands, 1):
        if not terminal.has_prompts(number, PROMPT, 120):
            sys.exit("README.md: no prompt before: " + command + "\n" + "\n".join(terminal.lines))
        command = command.replace(ADDRESS, f"http://127.0.0.1:{link.port}").replace(PLACE, f"{directory}/quick-start")
        terminal.type(command + "\n")
        if "press Ctrl-C" in command:
            # The bar has a remaining time once bytes have moved for a while.
            if not terminal.shows("ETA", 60):
                sys.exit("README.md: there is no bar: " + "\n".join(terminal.lines))
            terminal.type("\x03")
    if not terminal.has_prompts(len(commands) + 1, PROMPT, 120):
        sys.exit("README.md: no prompt at the end\n" + "\n".join(terminal.lines))
    terminal.close()
    back = {f"http://127.0.0.1:{link.port}": ADDRESS, f"{directory}/quick-start": PLACE}
    text = "\n".join(terminal.lines)
    for new, old in back.items():
        text = text.replace(new, old)
    return text.split("\n")[:-1]


def anchors(path):
    """The anchors that a forge makes of the headings of a page."""
    for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def wrong_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = ROOT / name
        if not path.exists():
            yield f"{target}: there is no such file"
        elif anchor and anchor not in anchors(path):
            yield f"{target}: there is no such heading"


def main():
    kedge = os.path.realpath(sys.argv[1])
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    if page.count("\n") >= LINE_LIMIT:
        sys.exit(f"README.md has {LINE_LIMIT} lines or more")
    if wrong := list(wrong_links(page)):
        sys.exit("README.md: " + "\n".join(wrong))
    lines = quick_start(page)
    # The path of the directory is on the screen; a short one leaves the lines whole.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="k-") as directory, service(kedge, directory) as port:
        found = shape(typed(lines, kedge, directory, port))
    shown = shape(lines)
    if found != shown:
        different = [pair for pair in zip([*shown, ""], [*found, ""]) if pair[0] != pair[1]]
        sys.exit(
            "README.md: the terminal shows something else:\n" + "\n".join(found)
            + "\nThe first difference, on the page and in the terminal:\n" + "\n".join(different[0]))
    print(f"README.md: the {len(lines)} lines of the quick start are as a terminal shows them")


main()
