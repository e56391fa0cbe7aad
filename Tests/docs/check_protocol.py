#!/usr/bin/env python3
"""Sends the requests in docs/PROTOCOL.md to a new service and compares its answers with those shown there.

    check_protocol.py SERVER_URL [PAGE]

Statuses, headers and members must be the same. Values, too, except ids, times and the version, which must look alike.
An id in a request stands for the id that the service gave where the page has that one; a session that the page did
not create is created for it. Every operation of the native protocol in openapi/kedge.yaml needs an example. The loop
in Python runs with these requests, over connections that break.
"""

import http.client
import json
import pathlib
import random
import re
import socket
import sys
import time
from hashlib import sha256
from urllib.parse import urlsplit

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
# A request and what follows it; a response and what follows it.
EXCHANGE = re.compile(
    r"^(?P<method>[A-Z]+) (?P<path>/\S*) HTTP/1\.1\n(?P<request>.*?)"
    r"^HTTP/1\.1 (?P<status>\d{3}) [^\n]+\n(?P<response>.*?)(?=^[A-Z]+ /\S* HTTP/1\.1\n|\Z)",
    re.M | re.S)
BYTES = re.compile(r"\(these (\d+) bytes\)")
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
VARYING = {"expiresAt", "createdAt", "next", "requestId", "version"}
# The output of `seq 60000`.
FILE = "".join(f"{number}\n" for number in range(1, 60_001)).encode()


class Mismatch(Exception):
    """The page and the service differ."""


class TryAgain(Exception):
    """The loop of the page repeats the request."""


def shape(text):
    """The text with its digits and letters replaced by one of each; a run of them counts as one."""
    return re.sub(r"[0-9a-f]+", "0", str(text))


def split(text):
    """The headers and the body of a message as the page shows it."""
    head, _, body = text.partition("\n\n") if not text.startswith("\n") else ("", "", text[1:])
    headers = [line.split(": ", 1) for line in head.split("\n") if line]
    return headers, body.strip("\n")


class Page:
    """The exchanges of the page, and what its ids stand for."""

    def __init__(self, text, server):
        self.text = text
        self.port = urlsplit(server).port
        self.ids = {}
        self.seen = set()
        self.count = 0

    def send(self, method, path, headers, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def create(self):
        request = json.dumps({"fileName": "numbers.txt", "fileSize": len(FILE), "chunkSize": 262_144})
        status, _, answer = self.send(
            "POST", "/uploads/sessions", {"Content-Type": "application/json"}, request)
        if status != 201:
            raise Mismatch(f"a session is refused with {status}")
        return json.loads(answer)["sessionId"]

    def real(self, path):
        """The path with the ids of this service."""
        def replaced(match):
            if match[0] not in self.ids and set(match[0]) != {"0"}:
                self.ids[match[0]] = self.create()
            return self.ids.get(match[0], match[0])
        return ID.sub(replaced, path)

    def check(self, exchange):
        name = f"{exchange['method']} {exchange['path']}"
        headers, body = split(exchange["request"])
        headers = dict(headers)
        if BYTES.fullmatch(body):
            body = self.bytes(headers["Content-Range"], BYTES.fullmatch(body))
        status, found, answer = self.send(
            exchange["method"], self.real(exchange["path"]), headers, body or None)
        if status != int(exchange["status"]):
            raise Mismatch(f"{name}: {status} instead of {exchange['status']}: {answer[:400]!r}")
        shown, body = split(exchange["response"])
        for header, value in shown:
            self.compare(value, found[header], f"{name}: {header}")
        if BYTES.fullmatch(body):
            if answer != self.bytes(dict(shown)["Content-Range"], BYTES.fullmatch(body)):
                raise Mismatch(f"{name}: other bytes")
        elif body:
            self.compare(json.loads(body), json.loads(answer), name)
        elif answer:
            raise Mismatch(f"{name}: the page has no body, the service sends {answer[:400]!r}")
        self.seen.add((exchange["method"].lower(), urlsplit(exchange["path"]).path))
        self.count += 1

    def bytes(self, content_range, count):
        first, last = map(int, re.match(r"bytes (\d+)-(\d+)/", content_range).groups())
        if int(count[1]) != last - first + 1:
            raise Mismatch(f"{content_range}: these are not {count[1]} bytes")
        return FILE[first : last + 1]

    def compare(self, shown, found, place, name=""):
        """Compares a value, or every member and element of it."""
        if type(shown) is not type(found):
            raise Mismatch(f"{place}: {found!r} instead of {shown!r}")
        if isinstance(shown, dict):
            if shown.keys() != found.keys():
                raise Mismatch(f"{place}: members {sorted(found)} instead of {sorted(shown)}")
            for key, value in shown.items():
                self.compare(value, found[key], f"{place}: {key}", key)
        elif isinstance(shown, list):
            if len(shown) != len(found):
                raise Mismatch(f"{place}: {found} instead of {shown}")
            for index, (left, right) in enumerate(zip(shown, found)):
                self.compare(left, right, f"{place}[{index}]", name)
        elif name in VARYING:
            if shape(shown) != shape(found):
                raise Mismatch(f"{place}: {found!r} does not look like {shown!r}")
        elif isinstance(shown, str):
            for left, right in zip(ID.findall(shown), ID.findall(found)):
                self.ids.setdefault(left, right)
            real = ID.sub(lambda match: self.ids.get(match[0], match[0]), shown)
            if real != found:
                raise Mismatch(f"{place}: {found!r} instead of {shown!r}")
        elif shown != found:
            raise Mismatch(f"{place}: {found!r} instead of {shown!r}")

    def check_examples(self):
        for kind, block in BLOCK.findall(self.text):
            if kind != "http":
                continue
            rest = EXCHANGE.sub("", block).strip()
            if rest:
                raise Mismatch(f"this is no exchange: {rest[:200]}")
            for exchange in EXCHANGE.finditer(block):
                self.check(exchange)

    def check_operations(self, contract):
        """Every operation of the native protocol has an example."""
        for template, item in contract["paths"].items():
            pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", template))
            for method, operation in item.items():
                native = {"sessions", "files", "health"} & set(
                    operation.get("tags", ()) if isinstance(operation, dict) else ())
                if native and not any(
                    seen == method and pattern.fullmatch(path) for seen, path in self.seen
                ):
                    raise Mismatch(f"the page has no example of {method.upper()} {template}")

    def check_loop(self, seed):
        """Runs the loop while every other connection breaks after some bytes."""
        loops = [block for kind, block in BLOCK.findall(self.text) if kind == "python"]
        if len(loops) != 1:
            raise Mismatch(f"the page has {len(loops)} loops in Python")
        chooser = random.Random(seed)
        state = {"broken": 0, "begun": 0}

        def request(method, path, body=None, headers=None):
            if body is not None:
                first = int(re.match(r"bytes (\d+)-", headers["Content-Range"])[1])
                state["begun"] += first % 262_144 > 0
                if chooser.random() < 0.5:
                    self.break_off(path, body, headers, chooser)
                    state["broken"] += 1
                    raise TryAgain
            status, _, answer = self.send(method, path, headers or {}, body)
            if status >= 300:
                problem = json.loads(answer)
                if f"| `{problem['code']}` | {status} |" not in self.text:
                    raise Mismatch(f"the page does not have {problem['code']} with {status}")
                if not re.search(rf"^\| `{problem['code']}` \| \d+ \| \d+ \| yes \|", self.text, re.M):
                    raise Mismatch(f"the loop gets {problem}")
                time.sleep(0.1)
                raise TryAgain
            return json.loads(answer)

        names = {"request": request, "address": f"/uploads/sessions/{self.create()}", "data": FILE,
                 "sha256": sha256, "sleep": time.sleep, "TryAgain": TryAgain}
        exec(compile(loops[0], "docs/PROTOCOL.md", "exec"), names)  # noqa: S102
        status, _, answer = self.send("GET", f"/files/{names['result']['remoteFileId']}", {})
        if status != 200 or answer != FILE:
            raise Mismatch("the loop uploads other bytes")
        return state

    def break_off(self, path, body, headers, chooser):
        """Sends a part of a body, then closes the connection and waits until the service has noticed."""
        head = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items())
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(head.encode() + b"\r\n" + body[: chooser.randrange(1, len(body))])
        time.sleep(0.3)


def main():
    page = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "PROTOCOL.md"
    page = Page(page.read_text(encoding="utf-8"), sys.argv[1])
    try:
        page.check_examples()
        page.check_operations(yaml.safe_load((ROOT / "openapi" / "kedge.yaml").read_text()))
        broken = begun = 0
        for seed in range(100):
            state = page.check_loop(seed)
            broken, begun = broken + state["broken"], begun + state["begun"]
            if broken >= 5 and begun >= 3:
                break
        else:
            raise Mismatch("the loop never resumed inside a chunk")
    except Mismatch as mismatch:
        sys.exit(f"docs/PROTOCOL.md: {mismatch}")
    print(f"docs/PROTOCOL.md: {page.count} examples are true; "
          f"its loop went on after {broken} broken connections, {begun} times inside a chunk")


main()
