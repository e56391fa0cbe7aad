"""Flips bits of stored bytes under a running service, on every mix of stores.

    rot.py --binary KEDGE [--mib M] [--mix NAME...] [--long]

The short form takes one mix. Of each mix: a good upload over a damaged blob is served as it was sent; an earlier copy comes back when the
later one is damaged; damage is found, refused on every route, listed, and healed by the same content in every
protocol; damage between a chunk and the finalize is found. No download ever gets other bytes after detection.
"""

import argparse
import base64
import contextlib
import hashlib
import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests" / "fleet"), str(ROOT / "Tests" / "servers")]

from nodes import Node, wait_for  # noqa: E402
from processes import Scratch, Unavailable  # noqa: E402
from stores import StoreMix, Stores  # noqa: E402
from transfers import Client, Source, Violation  # noqa: E402

CHUNK = 5 << 20
# Everything is due again at once.
EAGER = ["--scrub-period", "1", "--scrub-bytes-per-second", str(1 << 30), "--log-level", "warning"]
# Nothing is read a second time.
LAZY = ["--scrub-period", "0", "--scrub-bytes-per-second", str(1 << 30), "--log-level", "warning"]


class Trial:
    """One node on one mix."""

    def __init__(self, binary: Path, directory: Path, mix: StoreMix, stores: Stores) -> None:
        directory.mkdir()
        self._binary, self._directory, self._mix, self._stores = binary, directory, mix, stores
        self.node = Node(binary, directory, [*mix.options, *EAGER], mix.environment)
        self.data = directory / f"node-{self.node.port}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, **fields: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; redirects are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=60)
        try:
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def say(self, what: str) -> None:
        print(f"  {what}", flush=True)

    # Uploads, one for each protocol.

    def upload_natively(self, source: Source) -> str:
        upload = Client(self._binary, self._directory, f"http://127.0.0.1:{self.node.port}").upload(source)
        if not wait_for(lambda: not upload.is_running, 60):
            raise Violation("the upload does not end")
        upload.check()
        return upload.file_id

    def upload_whole(self, source: Source) -> str:
        status, _, text = self.ask("POST", "/files", source.path.read_bytes())
        if status != 201:
            raise Violation(f"POST /files is answered {status} {text!r}")
        return str(json.loads(text)["remoteFileId"])

    def upload_by_tus(self, source: Source) -> str:
        name = base64.b64encode(b"rot.bin").decode()
        status, fields, text = self.ask(
            "POST", "/tus/", source.path.read_bytes(), Tus_Resumable="1.0.0",
            Upload_Length=str(source.byte_count), Upload_Metadata=f"filename {name}",
            Content_Type="application/offset+octet-stream")
        if status != 201 or fields.get("upload-offset") != str(source.byte_count):
            raise Violation(f"a tus upload is answered {status} {text!r}")
        return fields["content-location"].rsplit("/", 1)[-1]

    def upload_by_ietf(self, source: Source) -> str:
        # http.client takes a 104 for the answer.
        done = subprocess.run(
            ["curl", "-s", "--fail-with-body", "-H", "Upload-Complete: ?1",
             "-H", "Upload-Draft-Interop-Version: 6", "--data-binary", f"@{source.path}",
             f"http://127.0.0.1:{self.node.port}/files"], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise Violation(f"an IETF upload is answered {done.stdout}")
        return str(json.loads(done.stdout)["remoteFileId"])

    # Damage.

    def damage(self, source: Source, offset: int, newest: bool = True) -> None:
        """Flips a bit of the blob, or of an earlier copy of it."""
        if self._mix.bytes == "disk":
            hexes = source.sha256
            blob = self.data / "blobs" / hexes[:2] / hexes[2:4] / hexes
            flip(blob, offset)
            return
        prefix = f"{self._mix.prefix}/"
        state = self._stores.bucket.stub.state()
        keys = [entry["key"] for entry in state["objects"]
                if entry["key"].startswith(prefix) and entry["byteCount"] == source.byte_count]
        for key in keys if not newest else [self.location(source)]:
            self._stores.bucket.stub.damage(key, offset)

    def location(self, source: Source) -> str:
        """The key of the blob's object, as the rows say."""
        sql = f"SELECT location FROM blob WHERE hex(sha256) = '{source.sha256.upper()}'"
        if self._mix.rows == "sqlite":
            return subprocess.run(
                ["sqlite3", "-readonly", self.data / "kedge.sqlite", sql], check=True,
                capture_output=True, text=True).stdout.strip()
        sql = f"SELECT location FROM blob WHERE encode(sha256, 'hex') = '{source.sha256}'"
        return self._stores._database.query(sql, self._mix.rows.rsplit("/", 1)[-1].partition("?")[0]).strip()

    # What must hold.

    def content(self, file_id: str) -> tuple[int, str]:
        """Status of a GET and the SHA-256 of what came, after redirects."""
        done = subprocess.run(
            ["curl", "-s", "-L", "-o", self._directory / "got", "-w", "%{http_code}",
             f"http://127.0.0.1:{self.node.port}/files/{file_id}"],
            check=True, capture_output=True, text=True, timeout=120)
        with open(self._directory / "got", "rb") as file:
            return int(done.stdout), hashlib.file_digest(file, "sha256").hexdigest()

    def expect_whole(self, file_id: str, source: Source, when: str) -> None:
        status, digest = self.content(file_id)
        if status != 200 or digest != source.sha256:
            raise Violation(f"{when}: GET is answered {status} with {digest} instead of {source.sha256}")

    def expect_damaged(self, file_id: str, when: str) -> None:
        if not wait_for(lambda: self.content(file_id)[0] == 500, 60):
            raise Violation(f"{when}: the damage was not found")
        for method, path in (("GET", ""), ("GET", "/meta"), ("GET", "/chunks"), ("HEAD", "")):
            status, fields, text = self.ask(method, f"/files/{file_id}{path}")
            if status != 500 or "repr-digest" in fields:
                raise Violation(f"{when}: {method} {path} is answered {status} {fields}")
            if method == "GET" and json.loads(text)["code"] != "FILE_DAMAGED":
                raise Violation(f"{when}: {method} {path} is answered {text!r}")
        listed = self.damaged()
        if file_id not in listed:
            raise Violation(f"{when}: kedge files list --damaged tells {listed}")
        if f'"{file_id}"' not in self.node.log.read_text():
            raise Violation(f"{when}: the log does not name the file")

    def damaged(self) -> list[str]:
        """What the command lists."""
        done = subprocess.run(
            [self._binary, "files", "list", "--damaged", "--json", "--server",
             f"http://127.0.0.1:{self.node.port}", "--state-directory", self._directory / "state-list"],
            check=True, capture_output=True, text=True, timeout=60,
            env={"PATH": os.environ["PATH"], "HOME": str(self._directory)})
        return [json.loads(line)["remoteFileId"] for line in done.stdout.splitlines()]

    def run(self, mebibytes: int) -> None:
        """Raises `Violation`."""
        self.node.start()
        self.node.wait_until_ready()
        for name, upload in (
            ("native", self.upload_natively), ("POST /files", self.upload_whole),
            ("tus", self.upload_by_tus), ("IETF", self.upload_by_ietf),
        ):
            source = Source(self._directory / f"{name.split()[0]}.bin", f"rot {name}", mebibytes)
            self._detect_and_heal(name, source, upload)
        self._swallow(Source(self._directory / "swallow.bin", "swallow", mebibytes))
        self._restore(Source(self._directory / "restore.bin", "restore", mebibytes))
        if self._mix.bytes == "disk":
            self._staging(Source(self._directory / "staging.bin", "staging", mebibytes))
        self.node.kill()

    def _detect_and_heal(self, name: str, source: Source, upload: Any) -> None:
        file_id = upload(source)
        self.expect_whole(file_id, source, "before damage")
        time.sleep(2)
        self.damage(source, source.byte_count // 2)
        self.expect_damaged(file_id, f"{name}, damaged")
        again = upload(source)
        self.expect_whole(file_id, source, f"{name}, healed")
        self.expect_whole(again, source, f"{name}, uploaded again")
        if self.damaged():
            raise Violation(f"{name}: damaged files are listed after healing")
        self.say(f"{name}: damage found, refused, listed and healed")

    def _swallow(self, source: Source) -> None:
        """A good upload right after the damage, before any scrub."""
        first = self.upload_natively(source)
        self._restart(LAZY)
        time.sleep(7)
        self.damage(source, source.byte_count // 3)
        second = self.upload_whole(source)
        for file_id in (first, second):
            self.expect_whole(file_id, source, "after a good upload over a damaged blob")
        time.sleep(7)
        for file_id in (first, second):
            self.expect_whole(file_id, source, "after the scrub of a good upload")
        self.say("a good upload takes the place of a damaged blob")

    def _restore(self, source: Source) -> None:
        """The later copy is damaged before the scrub has read it: it is at work for five seconds at most."""
        first = self.upload_whole(source)
        time.sleep(7)
        second = self.upload_whole(source)
        self.damage(source, source.byte_count // 4)
        if not wait_for(lambda: all(
            self.content(file_id) == (200, source.sha256) for file_id in (first, second)), 30):
            raise Violation(f"the earlier copy did not come back: {self.content(first)}")
        self.say("an earlier copy comes back, or had not been left")

    def _staging(self, source: Source) -> None:
        """A committed chunk is damaged before its file is finished."""
        created = json.dumps({
            "fileName": "rot.bin", "fileSize": source.byte_count, "chunkSize": CHUNK}).encode()
        _, _, text = self.ask("POST", "/uploads/sessions", created, Content_Type="application/json")
        session = json.loads(text)["sessionId"]
        content = source.path.read_bytes()
        for start in range(0, source.byte_count, CHUNK):
            chunk = content[start:start + CHUNK]
            status, _, text = self.ask(
                "PUT", f"/uploads/sessions/{session}/chunks/{start // CHUNK}", chunk,
                Content_Range=f"bytes {start}-{start + len(chunk) - 1}/{source.byte_count}",
                X_Chunk_Hash=f"sha256={hashlib.sha256(chunk).hexdigest()}")
            if status != 201:
                raise Violation(f"a chunk is answered {status} {text!r}")
        flip(self.data / "staging" / session[:2] / session, CHUNK // 2)
        status, _, text = self.ask("POST", f"/uploads/sessions/{session}/finalize", b"")
        if status != 200:
            raise Violation(f"the finalize is answered {status} {text!r}")
        self.expect_damaged(json.loads(text)["remoteFileId"], "damaged before the finalize")
        self.say("damage between a chunk and the finalize is found")

    def _restart(self, options: list[str]) -> None:
        self.node.kill()
        port = self.node.port
        self.node = Node(self._binary, self._directory, [*self._mix.options, *options], self._mix.environment)
        # The same data directory under another port.
        if self.data.exists():
            self.data.rename(self._directory / f"node-{self.node.port}")
        self.data = self._directory / f"node-{self.node.port}"
        assert port != self.node.port
        self.node.start()
        self.node.wait_until_ready()


def flip(path: Path, offset: int) -> None:
    """Changes one bit; size and name stay."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
        os.fsync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=12)
    parser.add_argument("--mix", nargs="*", default=[])
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    mixes = options.mix or ([] if options.long else ["SQLite and disk"])
    binary = options.binary.resolve()
    try:
        with contextlib.ExitStack() as cleanup:
            scratch = Scratch("rot")
            cleanup.callback(scratch.remove)
            stores = Stores(scratch.path, cleanup)
            for number, mix in enumerate(stores.mixes("rot")):
                if mix.redirects or (mixes and mix.name not in mixes):
                    continue
                print(mix.name, flush=True)
                trial = Trial(binary, scratch.path / f"rot-{number}", mix, stores)
                cleanup.callback(trial.node.kill)
                trial.run(options.mib)
    except (Violation, Unavailable) as error:
        sys.exit(f"rot: {error}")
    print("rot: every damage was found, none was served after that")


if __name__ == "__main__":
    main()
