"""Files, and the commands that move them."""

import hashlib
import http.client
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

from processes import Child

MEBIBYTE = 1 << 20


class Violation(Exception):
    """A promise that was not kept."""


class Source:
    """A file that no other is like, and whose every stretch is unlike the others."""

    def __init__(self, path: Path, seed: str, mebibytes: int) -> None:
        self.path = path
        # A few bytes more than whole chunks.
        self.byte_count = mebibytes * MEBIBYTE + 1
        digest = hashlib.sha256()
        block = random.Random(seed).randbytes(MEBIBYTE)
        with open(path, "wb") as file:
            for number in range(mebibytes):
                piece = f"{path.name} {number:08}".encode().ljust(32) + block[32:]
                file.write(piece)
                digest.update(piece)
            file.write(b"!")
            digest.update(b"!")
        self.sha256 = digest.hexdigest()


class Client:
    """Runs `kedge` against one address; nothing of the caller's settings counts."""

    def __init__(self, binary: Path, directory: Path, url: str) -> None:
        self._binary = binary
        self._directory = directory
        self._url = url

    def _command(self, state: str, *arguments: str | Path) -> list[str]:
        own = ["--server", self._url, "--state-directory", self._directory / f"state-{state}"]
        return [str(word) for word in (self._binary, *arguments, *own)]

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self._directory)}

    def upload(self, source: Source) -> "Upload":
        """Starts to upload."""
        name = source.path.name
        output = self._directory / f"{name}.upload"
        command = self._command(name, "upload", source.path, "--json")
        return Upload(source, Child(command, output, environment=self._environment()))

    def check_download(self, upload: "Upload", path: Path) -> None:
        """Downloads a file and compares its hash; raises `Violation`."""
        command = self._command(
            f"{upload.source.path.name}-download", "download", upload.file_id, "-o", path, "--quiet")
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, timeout=300)
        name = upload.source.path.name
        if done.returncode != 0:
            raise Violation(f"download of {name} ended with {done.returncode}: {done.stderr}")
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        path.unlink()
        if found != upload.source.sha256:
            raise Violation(f"{name} came back as {found} instead of {upload.source.sha256}")

    def session(self, session_id: str) -> dict[str, Any]:
        """Returns the status of a session."""
        status: dict[str, Any] = json.loads(self._ask("GET", f"/uploads/sessions/{session_id}", 200))
        return status

    def delete(self, upload: "Upload") -> None:
        """Deletes a file on the server."""
        self._ask("DELETE", f"/files/{upload.file_id}", 204)

    def _ask(self, method: str, path: str, status: int) -> bytes:
        connection = http.client.HTTPConnection(self._url.removeprefix("http://"), timeout=30)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != status:
                raise Violation(f"{method} {path} is answered {answer.status} {text!r}")
            return text
        finally:
            connection.close()


class Upload:
    """One command that uploads a file."""

    def __init__(self, source: Source, child: Child) -> None:
        self.source = source
        self.child = child
        self.file_id = ""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.child.is_running

    def check(self) -> None:
        """It ended well and says that the server has the same bytes; raises `Violation`."""
        name, status = self.source.path.name, self.child.process.returncode
        if status != 0:
            raise Violation(f"upload of {name} ended with {status}: {self.child.complaint()}")
        result = self._result()
        said = (result.get("state"), result.get("fileHashSha256"), result.get("size"))
        if said != ("completed", self.source.sha256, self.source.byte_count):
            raise Violation(f"upload of {name} says {result}")
        self.file_id = str(result["remoteFileId"])

    def _result(self) -> dict[str, Any]:
        """The last object that it printed."""
        lines = [line for line in self.child.log.read_text().splitlines() if line.startswith("{")]
        result: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return result
