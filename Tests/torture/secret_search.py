#!/usr/bin/env python3
"""Searches everything that a service said and wrote in a run at the most talkative log level for its secrets.

    secret_search.py --binary KEDGE [--long]

The secrets: the password of the database, the secret key of the object store, what clients send in Authorization
and cookies, and the signatures of addresses that were made for readers. The places: logs, answers, what every
command prints, the printed configuration, the data directory, rows and objects. The run has uploads in every
protocol, malformed requests, outages, wrong passwords and addresses that cannot be read.
"""

import base64
import contextlib
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from proof import SMALL_CHUNKS, Stage, arguments, expect, run_proof, started, use_memory
from bucket import Bucket
from native_client import CHUNK_SIZE, NativeClient, content, sha256
from nodes import Node, wait_for
from postgres import PostgresServer, programs
from processes import Child

# In front of each a sign that addresses have to escape, so that both forms hold the core.
PASSWORD = "p@" + secrets.token_hex(12)
TOKEN, BASIC, COOKIE = (secrets.token_hex(12) for _ in range(3))
AUTHORIZATIONS = (
    {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Basic {BASIC}"},
    {"Cookie": f"session={COOKIE}"}, {"Proxy-Authorization": f"Bearer {TOKEN}"},
)


def forms(secret: str) -> list[bytes]:
    """How a secret may look: as it is, in hexadecimal, and in base64 at each of its three places."""
    plain = secret.encode()
    found = [plain, plain.hex().encode()]
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + plain)
        # Characters that depend on neighbours are left out.
        found.append(text[4 if offset else 0 : len(text) - 4])
    return found


class Search:
    """The needles, and what was looked at."""

    def __init__(self) -> None:
        self._needles: list[tuple[str, bytes]] = []
        self.hits: list[str] = []
        self.byte_count = 0

    def add(self, name: str, secret: str) -> None:
        """One more to look for."""
        self._needles += [(name, form) for form in forms(secret)]

    def look(self, place: str, text: bytes) -> None:
        """Looks at something that was said or written."""
        self.byte_count += len(text)
        for name, form in self._needles:
            at = text.find(form)
            if at >= 0:
                around = text[max(0, at - 120) : at + 20]
                self.hits.append(f"{name} in {place}: {around!r}")

    def look_below(self, place: str, directory: Path) -> None:
        """Looks at every file, and at its name."""
        for path in directory.rglob("*"):
            self.look(f"{place}: names", str(path.relative_to(directory)).encode())
            with contextlib.suppress(OSError):
                if path.is_file():
                    self.look(f"{place}: {path.relative_to(directory)}", path.read_bytes())

    def check_itself(self) -> None:
        """Finds each secret in a text that has it, in every form; raises when it is blind."""
        for name, form in list(self._needles):
            other = Search()
            other._needles = [(name, form)]
            other.look("itself", b"some text " + form + b" and more")
            expect(len(other.hits) == 1, f"the search does not see {name}")


class Run:
    """The service, its stores, and all it is asked."""

    def __init__(self, stage: Stage, search: Search) -> None:
        self._stage = stage
        self._search = search
        self.database = self._guarded_database()
        self.bucket = Bucket("stub", stage.directory / "bucket", stage.cleanup)
        self.environment = self.bucket.environment | {"KEDGE_METADATA": self.address(PASSWORD)}
        places = ["--bytes", self.bucket.url + "&redirect=on", "--log-level", "trace"]
        self.options = [*SMALL_CHUNKS, *places, "--sweep-interval-seconds", "1"]
        self.node = stage.node(*self.options, environment=self.environment)

    def _guarded_database(self) -> PostgresServer:
        database = PostgresServer({"fsync": "off"})
        self._stage.cleanup.callback(database.stop)
        # From here on for psql as well.
        os.environ["PGPASSWORD"] = PASSWORD
        database.query(f"ALTER USER kedge PASSWORD '{PASSWORD}'")
        access = Path(database.query("SHOW hba_file"))
        access.write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        database.query("SELECT pg_reload_conf()")
        return database

    def address(self, password: str) -> str:
        """The database's, with its password; it accepts what a crash of it may lose."""
        escaped = password.replace("@", "%40")
        return self.database.url.replace("kedge@", f"kedge:{escaped}@") + "?allow_unsafe=on"

    def ask(
        self, method: str, path: str, fields: dict[str, str], body: bytes = b"", sees_address: bool = False
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request; its whole answer is searched, but for an address that is made for the reader."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=90)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=fields)
            answer = connection.getresponse()
            text = answer.read()
        heads = {name.lower(): value for name, value in answer.getheaders()}
        for name, value in heads.items():
            if not (sees_address and name == "location"):
                self._search.look(f"the answer to {method} {path}", f"{name}: {value}".encode())
        self._search.look(f"the answer to {method} {path}", text)
        return answer.status, text, heads

    def uploads(self) -> str:
        """One in each protocol, with every kind of credential; the id of a file."""
        file = ""
        client = NativeClient(self.node.port)
        for number, fields in enumerate(AUTHORIZATIONS):
            data = content(f"secret-{number}", CHUNK_SIZE * 2)
            kind = {"Content-Type": "application/octet-stream"}
            self.ask("POST", "/files", kind | fields, data)
            tus = {"Tus-Resumable": "1.0.0"} | fields
            _, _, answer = self.ask("POST", "/tus/", tus | {"Upload-Length": str(len(data))})
            place = "/tus/" + answer["location"].rpartition("/")[2]
            patch = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
            self.ask("PATCH", place, tus | patch, data)
            data = data[: CHUNK_SIZE - 1]
            session = client.create(f"secret-{number}", len(data))
            client.put(session, data, 0)
            file = client.finalize(session, sha256(data))
            self.ask("GET", f"/uploads/sessions/{session}", fields)
            self.ask("GET", f"/files/{file}/meta", fields)
        client.close()
        return file

    def readers(self, file: str) -> None:
        """Gets the address of an object; its signature is one more secret."""
        status, _, answer = self.ask("GET", f"/files/{file}", AUTHORIZATIONS[0], sees_address=True)
        expect(status in (302, 303, 307), f"a reader is not sent to the bucket, but answered {status}")
        signature = answer["location"].partition("X-Amz-Signature=")[2].partition("&")[0]
        expect(len(signature) == 64, f"no signature in {answer['location']}")
        self._search.add("the signature of an address", signature)

    def malformed(self) -> None:
        """Requests that are no requests, each with a secret."""
        lines = (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization : Bearer %s\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nAuthorization: Bearer %s\r\n\r\n",
            b"PUT /files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\nCookie: a=%s\r\n\r\n",
            b"GET /files HTTP/9.9\r\nAuthorization: Bearer %s\r\n\r\n",
            b"POST /tus/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nUpload-Length: -1\r\n\r\n",
            b"GET http://user:%s@127.0.0.1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        )
        for line in lines:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.node.port), timeout=5) as connection,
            ):
                connection.sendall(line % TOKEN.encode())
                connection.shutdown(socket.SHUT_WR)
                while text := connection.recv(65536):
                    self._search.look(f"the answer to {line[:20]!r}", text)

    def outages(self, file: str) -> None:
        """The database is killed, and the bucket refuses, while requests come."""
        self.database.kill()
        for path in (f"/files/{file}/meta", "/files", "/readyz"):
            self.ask("GET", path, AUTHORIZATIONS[0])
        self.database.restart()
        time.sleep(1)
        self.bucket.shut()
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.ask("GET", "/readyz", AUTHORIZATIONS[0])
        self.bucket.open()

    def commands(self) -> Iterator[tuple[str, list[str], dict[str, str]]]:
        """Yields other commands that print something: name, options and environment."""
        yield "print-config", ["serve", "--print-config", *self.options], {}
        flags = ["serve", "--print-config", *self.options, "--metadata", self.address(PASSWORD)]
        yield "print-config with flags", flags, {}
        for command in ("migrate", "fsck", "scrub"):
            yield command, [command, *self.options[len(SMALL_CHUNKS) :]], {}
        wrong = self._search
        bad_password, bad_key = secrets.token_hex(12), secrets.token_hex(20)
        wrong.add("a wrong password", bad_password)
        wrong.add("a wrong key", bad_key)
        serve = ["serve", "--port", "0", *self.options]
        yield "a wrong password", serve, {"KEDGE_METADATA": self.address(bad_password)}
        yield "a wrong key", serve, {"AWS_SECRET_ACCESS_KEY": bad_key}
        host = f"127.0.0.1:{self.database.port}"
        escaped = PASSWORD.replace("@", "%40")
        for url in (
            f"postgresql://kedge:{escaped}@127.0.0.1:port/kedge", f"postgres//kedge:{escaped}@{host}/kedge",
            f"postgresql://kedge:{escaped}@{host}/kedge?pool_size={PASSWORD}",
            f"postgresql://kedge:{escaped}@{host}/kedge?nothing=1",
            f"postgresql://kedge:{escaped}@{host}/not_there", f"postgresql://kedge:{PASSWORD}%zz@{host}/kedge",
        ):
            yield url.replace(escaped, "…").replace(PASSWORD, "…"), serve, {"KEDGE_METADATA": url}
        key = self.bucket.store.secret_key
        for url in (f"s3://user:{key}@bucket", f"s3://bucket?endpoint=http://user:{key}@127.0.0.1:1"):
            yield url.replace(key, "…"), [*serve, "--bytes", url], {}

    def print_everything(self) -> int:
        """Runs all commands at the same time and searches what they print; how many."""
        running = []
        for number, (name, words, more) in enumerate(self.commands()):
            environment = {"PATH": os.environ["PATH"], "HOME": str(self._stage.directory)}
            environment |= self.environment | more
            log = self._stage.directory / f"command-{number}.log"
            data = ["--data", str(self._stage.directory / f"command-{number}")]
            child = Child([self._stage.binary, *words, *data], log, environment=environment)
            running.append((f"`{words[0]}` ({name})", child))
        # Those that do not end have said what they have to say when each has tried for a while.
        wait_for(lambda: all(child.log.stat().st_size for _, child in running), 30)
        wait_for(lambda: not any(child.is_running for _, child in running), 5)
        for name, child in running:
            child.end(signal.SIGKILL)
            text = child.log.read_bytes()
            expect(bool(text), f"{name} prints nothing")
            self._search.look(f"what {name} prints", text)
        return len(running)

    def look_everywhere(self) -> None:
        """Logs, files, rows, objects."""
        node: Node = self.node
        self._search.look("the log", node.log.read_bytes())
        data = self._stage.directory
        self._search.look_below("the data directory", data / f"node-{node.port}")
        self._search.look_below("the bucket", self.bucket.store.scratch.path / "objects")
        dump = subprocess.run(
            [programs() / "pg_dump", "--data-only", self.database.url], capture_output=True, check=True)
        self._search.look("the rows", dump.stdout)


def play(stage: Stage) -> str:
    """The whole run; what was searched."""
    search = Search()
    (stage.directory / "bucket").mkdir()
    run = Run(stage, search)
    search.add("the database's password", PASSWORD.removeprefix("p@"))
    search.add("the bucket's key", run.bucket.store.secret_key)
    for name, secret in (("a token", TOKEN), ("a password", BASIC), ("a cookie", COOKIE)):
        search.add(name, secret)
    search.check_itself()
    started(run.node)
    for _ in range(10 if stage.options.long else 1):
        file = run.uploads()
        run.readers(file)
        run.malformed()
        run.outages(file)
    count = run.print_everything()
    run.node.kill()
    run.look_everywhere()
    log = run.node.log.read_text(errors="replace")
    expect('"trace"' in log, "the log has nothing of the most talkative level; so little is proven")
    expect(not search.hits, "secrets were found:\n  " + "\n  ".join(sorted(set(search.hits))[:20]))
    return f"{search.byte_count >> 10} KiB of logs, answers, files and rows, {count} commands: no secret in any"


if __name__ == "__main__":
    use_memory(1024)
    sys.exit(run_proof("secret-search", arguments(__doc__).parse_args(), play))
