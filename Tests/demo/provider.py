"""An OpenID provider that is a directory: any web server on loopback can serve it."""

import base64
import json
import time
from pathlib import Path

from cut_link import run


class Provider:
    """A key, and the two documents with which a service verifies tokens."""

    def __init__(self, directory: Path, issuer: str) -> None:
        self.issuer = issuer
        self._key = directory / "provider.key"
        self.documents = directory / "provider"
        (self.documents / ".well-known").mkdir(parents=True)
        run("openssl", "genrsa", "-out", self._key, "2048")
        modulus = run("openssl", "rsa", "-in", self._key, "-noout", "-modulus").decode().strip().partition("=")[2]
        keys = {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "e": "AQAB",
                          "n": self._base64url(bytes.fromhex(modulus))}]}
        discovery = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        (self.documents / "keys").write_text(json.dumps(keys), encoding="utf-8")
        (self.documents / ".well-known/openid-configuration").write_text(json.dumps(discovery), encoding="utf-8")

    def token(self, subject: str, expires_in_seconds: int) -> str:
        """A token with a life of 60 seconds, some of which may be over."""
        expiry = int(time.time()) + expires_in_seconds
        claims = {
            "iss": self.issuer, "aud": "kedge", "sub": subject, "iat": expiry - 60, "exp": expiry, "scope": "user"}
        signed = ".".join(self._base64url(json.dumps(part).encode()) for part in (
            {"alg": "RS256", "typ": "JWT", "kid": "1"}, claims))
        signature = run("openssl", "dgst", "-sha256", "-sign", self._key, data=signed.encode())
        return f"{signed}.{self._base64url(signature)}"

    @staticmethod
    def _base64url(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
