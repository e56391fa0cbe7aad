"""An OpenID provider on loopback that signs its tokens before it listens.

    issuer.py PORT COUNT DIRECTORY

Writes COUNT different tokens of one user, signed with RS256, a line each to DIRECTORY/tokens. Then
it serves its keys until SIGTERM.
"""

import base64
import concurrent.futures
import http.server
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

AUDIENCE = "kedge"
KEY_ID = "bench"
LIFETIME_SECONDS = 6 * 3600


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def segment(members: dict[str, Any]) -> str:
    return base64url(json.dumps(members, separators=(",", ":")).encode())


def openssl(*words: str, data: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=data, check=True, capture_output=True).stdout


class Issuer:
    def __init__(self, port: int, directory: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.key = str(directory / "key.pem")
        openssl("genrsa", "-out", self.key, "2048")

    def token(self, number: int) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": AUDIENCE, "sub": "bench", "iat": now, "exp": now + LIFETIME_SECONDS,
            "scope": "user", "jti": str(number),
        }
        signed = f"{segment({'alg': 'RS256', 'typ': 'JWT', 'kid': KEY_ID})}.{segment(claims)}"
        return f"{signed}.{base64url(openssl('dgst', '-sha256', '-sign', self.key, data=signed.encode()))}"

    def documents(self) -> dict[str, dict[str, Any]]:
        modulus = openssl("rsa", "-in", self.key, "-noout", "-modulus").decode().strip().partition("=")[2]
        key = {
            "kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256", "e": "AQAB",
            "n": base64url(bytes.fromhex(modulus)),
        }
        return {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [key]},
        }


def serve(port: int, documents: dict[str, dict[str, Any]]) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = documents.get(self.path)
            body = json.dumps(document).encode() if document else b""
            self.send_response(200 if document else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main() -> None:
    port, count, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    issuer = Issuer(port, directory)
    # Each signature is a process of its own.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tokens = list(pool.map(issuer.token, range(count)))
    (directory / "tokens").write_text("".join(f"{token}\n" for token in tokens))
    serve(port, issuer.documents())


if __name__ == "__main__":
    main()
