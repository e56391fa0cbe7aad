#!/usr/bin/env python3
"""Renders the manual pages of kedge from the help of the command.

    render_man_pages.py HELP DIRECTORY --version VERSION --seconds SECONDS

HELP is the output of `kedge --experimental-dump-help`. One page for the command and one for each of its
subcommands go to DIRECTORY: kedge.1, kedge-upload.1 and so on. Nested subcommands are sections of a page.
The exit statuses are the comments of ExitStatus in the sources. SECONDS since 1970 is the date of the pages.
Variables and files are in pages_text.py: the help has none of them.
"""

import argparse
import datetime
import json
import pathlib
import re
import textwrap

import pages_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXIT_STATUSES = ROOT / "Sources/KedgeModel/Errors/ErrorCode.swift"
# Options of every command are described once, in kedge(1).
EVERYWHERE = ("--help", "--version")
# Columns of a line of the source, which mandoc -T lint checks.
COLUMNS = 78
# Characters that troff would change into typographic ones, or that begin an escape.
SPECIAL = {"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}


def escape(text):
    """Text that appears as it is, wherever it stands in a line."""
    text = "".join(SPECIAL.get(c, c if ord(c) < 128 else f"\\[u{ord(c):04X}]") for c in text)
    # A dot or quote at the start of a line would begin a request.
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def bold(text):
    return rf"\fB{escape(text)}\fP"


def italic(text):
    return rf"\fI{escape(text)}\fP"


def quoted(text):
    """An argument of a request, such as the title of a section."""
    return '"' + escape(text).replace('"', r"\(dq") + '"'


def line(text):
    """Prose in lines of the source, of which each sentence begins one; backticks make bold."""
    rows = []
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", " ".join(text.split())):
        parts = re.split(r"`([^`]+)`", sentence)
        troff = "".join(bold(part) if index % 2 else escape(part) for index, part in enumerate(parts))
        rows += textwrap.wrap(troff, COLUMNS, break_long_words=False, break_on_hyphens=False)
    # A word that was inside the sentence may begin a line now.
    return "\n".join(re.sub(r"^(?=[.'])", r"\\&", row) for row in rows)


def paragraphs(text):
    """Prose of several paragraphs. One with columns stays as it is laid out."""
    for index, block in enumerate(re.split(r"\n\s*\n", text.strip("\n"))):
        if index:
            yield ".PP"
        if re.search(r"\S {3,}\S", block):
            yield ".nf"
            yield from (escape(row) for row in block.split("\n"))
            yield ".fi"
        else:
            yield line(block)


def names(argument):
    """The option as it is typed, the short form first."""
    order = sorted(argument.get("names", []), key=lambda name: name["kind"] != "short")
    return [("-" if name["kind"] == "short" else "--") + name["name"] for name in order]


def shown(command):
    return [a for a in command.get("arguments", []) if a.get("shouldDisplay", True)]


def own(command):
    return [a for a in shown(command) if not set(names(a)) & set(EVERYWHERE)]


def children(command):
    listed = command.get("subcommands", [])
    return [c for c in listed if c["commandName"] != "help" and c.get("shouldDisplay", True)]


def entry(argument):
    """One option or operand, with its description."""
    yield ".TP"
    if argument["kind"] == "positional":
        yield italic(argument["valueName"].upper())
    else:
        value = f" {italic(argument['valueName'].upper())}" if argument["kind"] == "option" else ""
        yield ", ".join(bold(name) for name in names(argument)) + value
    sentences = [argument.get("abstract", "")]
    if "allValues" in argument:
        sentences.append(f"One of {', '.join(argument['allValues'])}.")
    if "defaultValue" in argument:
        sentences.append(f"Default: {argument['defaultValue']}.")
    # An empty default, in the abstract itself, says nothing.
    text = " ".join(sentence for sentence in sentences if sentence).replace(" (default: )", "")
    yield line(text)
    if argument.get("discussion"):
        yield line(argument["discussion"])


def synopsis(path, command):
    words = [bold(" ".join(path))]
    if own(command):
        words.append(f"[{italic('OPTION')} ...]")
    for argument in shown(command):
        if argument["kind"] == "positional":
            word = italic(argument["valueName"].upper()) + (" ..." if argument["isRepeating"] else "")
            words.append(f"[{word}]" if argument["isOptional"] else word)
    return " ".join(words)


def section(title, lines):
    lines = list(lines)
    return [f".SH {quoted(title)}", *lines] if lines else []


def options(arguments):
    for positional in (True, False):
        for argument in arguments:
            if (argument["kind"] == "positional") == positional:
                yield from entry(argument)


def common_arguments(commands):
    """The arguments that all of these commands have, with the same help."""
    first, *others = [own(command) for command in commands]
    return [a for a in first if all(a in other for other in others)] if others else []


def table(entries):
    for term, text in entries:
        yield ".TP"
        yield bold(str(term))
        yield line(text)


def exit_statuses(source=EXIT_STATUSES):
    """Status → sentences, from the comments of the enum; several names may have one status."""
    body = re.search(r"^public enum ExitStatus \{\n(.*?)^\}", source.read_text("utf-8"), re.M | re.S)
    found, numbers, comment = {}, {}, []
    for row in body.group(1).split("\n"):
        row = row.strip()
        if row.startswith("///"):
            comment.append(row[3:].strip())
        elif match := re.match(r"public static let (\w+)(?:: Int32)? = (\w+)$", row):
            name, value = match.groups()
            numbers[name] = numbers[value] if value in numbers else int(value)
            found.setdefault(numbers[name], []).append(" ".join(comment))
            comment = []
        elif row:
            raise SystemExit(f"{source}: not understood: {row}")
    return [(status, " ".join(texts)) for status, texts in found.items()]


def kinds(command):
    """The sides that a command, or one below it, belongs to: those whose options it has."""
    found = set()
    for argument in shown(command):
        found |= {"client"} if {"--server", "--ca-file"} & set(names(argument)) else set()
        found |= {"service"} if {"--bytes", "--data"} & set(names(argument)) else set()
    return found.union(*(kinds(child) for child in children(command)))


def leaves(path, command):
    """The subcommands that do something, at any depth, each with its whole name."""
    for child in children(command):
        place = (*path, child["commandName"])
        if children(child):
            yield from leaves(place, child)
        else:
            yield place, child


def nested(path, command):
    """The subcommands of a page's command: a section for each, then their common options."""
    below = list(leaves(path, command))
    common = common_arguments([child for _, child in below])
    rows = []
    for place, child in below:
        rows += [f".SS {quoted(' '.join(place))}"]
        rows += [synopsis(place, child), ".PP", line(child["abstract"])]
        if child.get("discussion"):
            rows += [".PP", *paragraphs(child["discussion"])]
        rows += options([a for a in own(child) if a not in common])
    return section("SUBCOMMANDS", rows) + section("OPTIONS", options(common))


def page(path, command, top, header):
    title = "-".join(path)
    abstract = command["abstract"]
    summary = re.split(r"(?<=[.!?]) ", abstract)[0].rstrip(".")
    sides = kinds(command)
    rows = ['.\\" Made by render_man_pages.py from the help of the command.', f".TH {title.upper()} {header}"]
    rows += section("NAME", [line(f"{title} - {summary}")])
    commands = children(command)
    if commands:
        usage = [f"{bold(' '.join(path))} {italic('SUBCOMMAND')} ..."]
    else:
        usage = [synopsis(path, command)]
    rows += section("SYNOPSIS", usage)
    description = [line(abstract)]
    if command.get("discussion"):
        description += [".PP", *paragraphs(command["discussion"])]
    rows += section("DESCRIPTION", description)
    if command is top:
        pages = [(f"{title}-{c['commandName']}(1)", c["abstract"]) for c in commands]
        rows += section("COMMANDS", table(pages))
        rows += section("OPTIONS", options(shown(command)))
    elif commands:
        rows += nested(path, command)
    else:
        rows += section("OPTIONS", options(own(command)))
    rows += section("EXIT STATUS", table(exit_statuses()))
    for name, entries in (("ENVIRONMENT", pages_text.ENVIRONMENT), ("FILES", pages_text.FILES)):
        rows += section(name, table((term, text) for term, side, text in entries if side in (*sides, "both")))
    others = [] if command is top else [top["commandName"]]
    others += [f"{top['commandName']}-{c['commandName']}" for c in children(top) if c is not command]
    see = [f"{name}(1)" for name in sorted(others)]
    rows += section("SEE ALSO", [",\n".join(rf"\fB{escape(name[:-3])}\fP(1)" for name in see)])
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("help", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--seconds", required=True, type=int)
    arguments = parser.parse_args()
    top = json.loads(arguments.help.read_text("utf-8"))["command"]
    day = datetime.datetime.fromtimestamp(arguments.seconds, datetime.timezone.utc).date().isoformat()
    name = top["commandName"]
    header = f'1 "{day}" {quoted(f"{name} {arguments.version}")} "User Commands"'
    arguments.directory.mkdir(parents=True, exist_ok=True)
    for command in [top, *children(top)]:
        path = (name,) if command is top else (name, command["commandName"])
        text = page(path, command, top, header)
        (arguments.directory / f"{'-'.join(path)}.1").write_text(text, "utf-8")


main()
