"""An issuer that signs everything it is asked to, and texts that look like tokens."""

import base64
import hashlib
import hmac
import http.server
import json
import threading
import time
import warnings
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

with warnings.catch_warnings():
    # Its successor is joserfc, which is used here, too.
    warnings.simplefilter("ignore")
    from authlib.jose import JsonWebKey
    from authlib.jose import jwt as authlib_jwt

Key = RSAKey | ECKey | OKPKey
AUDIENCE = "kedge"


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def segment(members: Mapping[str, Any]) -> str:
    return base64url(json.dumps(members, separators=(",", ":")).encode())


class Issuer:
    """A discovery document and a key set on loopback, which a test may change and stop."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://localhost:{port}"
        self.keys: dict[str, Key] = {}
        self.extra_keys: list[dict[str, Any]] = []
        self.key_requests = 0
        self._server: http.server.ThreadingHTTPServer | None = None

    def start(self) -> None:
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                documents = {"/.well-known/openid-configuration": issuer.discovery, "/keys": issuer.key_set}
                document = documents.get(self.path)
                body = json.dumps(document()).encode() if document else b""
                self.send_response(200 if document else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def discovery(self) -> dict[str, Any]:
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def key_set(self) -> dict[str, Any]:
        self.key_requests += 1
        published = [key.as_dict(private=False) | {"kid": name} for name, key in self.keys.items()]
        return {"keys": self.extra_keys + published}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Claims that are accepted for an hour; None removes a claim."""
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 3600,
            "scope": "openid user",
        }
        claims.update(changes)
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, kid: str, algorithm: str, claims: Mapping[str, Any] | None = None, **header: Any) -> str:
        """A token that joserfc signs."""
        return str(jwt.encode({"alg": algorithm, "kid": kid} | header, dict(claims or self.claims()),
                              self.keys[kid], algorithms=[algorithm]))

    def authlib_token(self, kid: str, algorithm: str, claims: Mapping[str, Any] | None = None) -> str:
        """A token that authlib signs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            key = JsonWebKey.import_key(self.keys[kid].as_dict(private=True))
            text = authlib_jwt.encode({"alg": algorithm, "kid": kid}, dict(claims or self.claims()), key)
        return bytes(text).decode()

    def raw_token(self, kid: str, header: Mapping[str, Any], claims: Mapping[str, Any] | None = None) -> str:
        """A token with any header, signed with RS256 and the RSA key."""
        signed = f"{segment(header)}.{segment(claims or self.claims())}"
        private = self.keys[kid].private_key
        if not isinstance(private, rsa.RSAPrivateKey):
            raise TypeError(f"{kid} is no RSA key")
        signature = private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64url(signature)}"

    def secret_token(self, secret: bytes, header: Mapping[str, Any]) -> str:
        """A token signed with HMAC-SHA256, whatever its header says."""
        signed = f"{segment(header)}.{segment(self.claims())}"
        return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def make_keys() -> dict[str, Key]:
    """A key of each type, and one to remove; the names are their ids."""
    return {
        "rsa": RSAKey.generate_key(2048),
        "spare": RSAKey.generate_key(2048),
        "p256": ECKey.generate_key("P-256"),
        "p384": ECKey.generate_key("P-384"),
        "p521": ECKey.generate_key("P-521"),
        "ed": OKPKey.generate_key("Ed25519"),
    }


def make_useless_keys() -> list[dict[str, Any]]:
    """Keys that must not be used, before those that may."""
    short = rsa.generate_private_key(65537, 1024).public_key().public_numbers()
    length = (short.n.bit_length() + 7) // 8
    secret = OctKey.import_key(b"secret of a test that is long enough").as_dict(private=True)
    return [
        secret | {"kid": "oct", "alg": "HS256"},
        {"kty": "RSA", "kid": "short", "n": base64url(short.n.to_bytes(length, "big")), "e": "AQAB"},
        {"kty": "new", "kid": "new"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    ]
