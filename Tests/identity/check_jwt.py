"""Lets a real OpenID provider, and forgers, send JSON Web Tokens to a service.

    check_jwt.py PATH_TO_KEDGE

`python3` must have the packages of requirements.txt. Real tokens come from oidc-provider-mock; joserfc and authlib sign
those of a second issuer, whose keys and documents the test changes.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet")]

from forger import AUDIENCE, Issuer, base64url, make_keys, make_useless_keys, segment
from nodes import Node
from processes import Child, Scratch, find_program, free_port

ALGORITHMS = {
    "rsa": ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
    "p256": ["ES256"], "p384": ["ES384"], "p521": ["ES512"], "ed": ["EdDSA"],
}
# Differences of clocks count in seconds, and this machine may be busy for some of them.
ATTEMPTS = 5


class Violation(Exception):
    """The service broke a promise."""


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Violation(reason)


class Service:
    """One `kedge serve` that accepts the tokens of some issuers."""

    def __init__(self, binary: Path, directory: Path, issuers: list[str]) -> None:
        self.node = Node(
            binary, directory, [
                "--identity-mode", "tokens", "--oidc-issuers", ",".join(issuers), "--oidc-audience", AUDIENCE,
                "--oidc-default-scopes", "reader", "--oidc-admin-claim", "groups=kedge-admins",
                "--log-level", "trace",
            ], {})

    def start(self) -> None:
        self.node.start()
        self.node.wait_until_ready()

    def ask(self, token: str, method: str = "GET", path: str = "/files") -> tuple[int, dict[str, Any]]:
        """Sends a request with a token; returns status and JSON of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
        return answer.status, json.loads(body) if body else {}

    def expect_accepted(self, name: str, token: str) -> None:
        status, body = self.ask(token)
        expect(status == 200, f"{name}: {status} {body.get('detail')}")

    def expect_refused(self, name: str, token: str) -> None:
        status, body = self.ask(token)
        expect((status, body.get("code")) == (401, "UNAUTHENTICATED"), f"{name}: {status} {body}")
        expect(bool(body.get("detail")), f"{name}: no reason")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def log_in(provider: str, user: str) -> str:
    """Goes through the authorization code flow as a browser does; returns the ID token."""
    with urllib.request.urlopen(f"{provider}/.well-known/openid-configuration", timeout=10) as answer:
        addresses = json.load(answer)
    redirect = "http://localhost:1/callback"
    query = urllib.parse.urlencode({
        "client_id": AUDIENCE, "redirect_uri": redirect, "response_type": "code", "scope": "openid", "state": "s"})
    request = urllib.request.Request(
        f"{addresses['authorization_endpoint']}?{query}", data=f"sub={user}".encode())
    location = ""
    try:
        urllib.request.build_opener(NoRedirect).open(request, timeout=10)
    except urllib.error.HTTPError as error:
        location = error.headers["Location"] or ""
    expect("code=" in location, "the provider sends no code")
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(location).query)["code"][0]
    form = urllib.parse.urlencode({
        "grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "client_id": AUDIENCE,
        "client_secret": "any"})
    with urllib.request.urlopen(addresses["token_endpoint"], data=form.encode(), timeout=10) as answer:
        return str(json.load(answer)["id_token"])


class Trial:
    """The scenarios, in an order: the first unknown key of 30 seconds causes a fetch."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self.binary = binary
        self.directory = directory
        self.issuer = Issuer(free_port())
        self.issuer.keys = make_keys()
        self.issuer.extra_keys = make_useless_keys()
        self.provider = f"http://127.0.0.1:{free_port()}"
        self.service = Service(binary, directory, [self.provider, self.issuer.url])

    def scenarios(self) -> list[Callable[[], None]]:
        return [
            self.refuse_unsafe_settings, self.accept_tokens_of_a_provider, self.accept_every_algorithm,
            self.give_scopes, self.upload_with_the_command, self.rotate_during_an_upload,
            self.refuse_forged_headers, self.refuse_forged_signatures, self.refuse_wrong_claims,
            self.tolerate_a_minute, self.bound_fetches_of_unknown_keys, self.serve_while_issuer_is_down, self.answer_503_without_keys,
            self.keep_tokens_out_of_the_log,
        ]

    def run(self) -> None:
        self.issuer.start()
        port = self.provider.rpartition(":")[2]
        # Beside the interpreter, which may be a link out of its environment.
        program = find_program("oidc-provider-mock", Path(sys.executable).parent)
        provider = Child(
            [program, "--port", port, "--user-claims", '{"sub": "alice"}',
             "--user-claims", '{"sub": "root", "groups": ["kedge-admins"]}'],
            self.directory / "provider.log",
            environment={"PATH": os.environ["PATH"], "HOME": str(self.directory), "PYTHONWARNINGS": "ignore"})
        provider.wait_until("the provider answers", self._provider_answers, 60)
        self.service.start()
        for scenario in self.scenarios():
            scenario()
            print(f"ok: {scenario.__name__.replace('_', ' ')}", flush=True)
        provider.end()

    def _provider_answers(self) -> bool:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{self.provider}/jwks", timeout=5) as answer:
                return bool(answer.status == 200)
        return False

    def refuse_unsafe_settings(self) -> None:
        good = {"--identity-mode": "tokens", "--oidc-issuers": "https://login.example", "--oidc-audience": "kedge"}
        for changes, status in [
            ({}, 0), ({"--oidc-audience": ""}, 2), ({"--identity-mode": "none"}, 2),
            ({"--oidc-issuers": "http://login.example"}, 2), ({"--oidc-default-scopes": "everything"}, 2),
            ({"--oidc-issuers": "https://a.example/x,https://a.example/y"}, 2),
        ]:
            options = [word for option in (good | changes).items() for word in option]
            run = subprocess.run([self.binary, "serve", "--check-config", *options], cwd=self.directory,
                                 env={"PATH": os.environ["PATH"], "HOME": str(self.directory)},
                                 capture_output=True, text=True, timeout=60, check=False)
            expect(run.returncode == status, f"{changes}: status {run.returncode}, {run.stderr}")

    def accept_tokens_of_a_provider(self) -> None:
        token = log_in(self.provider, "alice")
        self.service.expect_accepted("a real token", token)
        status, _ = self.service.ask(token, path="/metrics")
        expect(status == 403, f"a real token without admin: {status}")
        root = http.client.HTTPConnection("127.0.0.1", self.service.node.port, timeout=60)
        with contextlib.closing(root):
            root.request("GET", "/metrics", headers={"Authorization": f"Bearer {log_in(self.provider, 'root')}"})
            expect(root.getresponse().status == 200, "the admin claim gives no right")
        head, claims, signature = token.split(".")
        self.service.expect_refused("a real token, signature flipped", f"{head}.{claims}.{flip(signature)}")
        self.service.expect_refused("a real token, claims changed", f"{head}.{flip(claims)}.{signature}")

    def accept_every_algorithm(self) -> None:
        for kid, algorithms in ALGORITHMS.items():
            for algorithm in algorithms:
                self.service.expect_accepted(f"joserfc {algorithm}", self.issuer.token(kid, algorithm))
                self.service.expect_accepted(f"authlib {algorithm}", self.issuer.authlib_token(kid, algorithm))
                self.service.expect_accepted(f"typ at+jwt {algorithm}",
                                             self.issuer.token(kid, algorithm, typ="at+jwt"))

    def give_scopes(self) -> None:
        for scope, status in [
            ("files:list", 200), (["openid", "reader"], 200), (None, 200), ("openid", 200), ("files:read", 403),
            ("uploader", 403), ("admin", 200),
        ]:
            got, _ = self.service.ask(self.issuer.token("p256", "ES256", self.issuer.claims(scope=scope)))
            expect(got == status, f"scope {scope}: {got}")

    def upload_with_the_command(self) -> None:
        file = self.directory / "source.bin"
        file.write_bytes(os.urandom(3_000_000))
        token = self.issuer.token("rsa", "RS256")
        run = subprocess.run(
            [self.binary, "upload", file, "--quiet", "--server", f"http://127.0.0.1:{self.service.node.port}",
             "--state-directory", self.directory / "state"],
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory), "KEDGE_TOKEN": token},
            capture_output=True, text=True, timeout=120, check=False)
        expect(run.returncode == 0, f"kedge upload: {run.returncode}, {run.stderr}")
        identifier = run.stdout.strip()
        mine, _ = self.service.ask(token, path=f"/files/{identifier}/meta")
        other = self.issuer.token("rsa", "RS256", self.issuer.claims(sub="bob"))
        foreign, _ = self.service.ask(other, path=f"/files/{identifier}/meta")
        # A subject of another issuer is another owner.
        provider, _ = self.service.ask(log_in(self.provider, "alice"), path=f"/files/{identifier}/meta")
        expect((mine, foreign, provider) == (200, 404, 404), f"owners: {mine}, {foreign}, {provider}")

    def refuse_forged_headers(self) -> None:
        issuer = self.issuer
        for algorithm in ["none", "None", "nOnE", "NONE", ""]:
            unsigned = f"{segment({'alg': algorithm, 'kid': 'rsa'})}.{segment(issuer.claims())}."
            self.service.expect_refused(f"alg {algorithm!r}", unsigned)
            self.service.expect_refused(f"alg {algorithm!r}, signed",
                                        issuer.raw_token("rsa", {"alg": algorithm, "kid": "rsa"}))
        for name, value in {
            "jku": f"{issuer.url}/keys", "x5u": f"{issuer.url}/keys", "x5c": ["AAAA"], "crit": ["exp"],
            "jwk": issuer.keys["rsa"].as_dict(private=False), "typ": "logout+jwt", "kid": 1,
        }.items():
            header = {"alg": "RS256", "kid": "rsa", name: value}
            self.service.expect_refused(f"header {name}", issuer.raw_token("rsa", header))
        for kid in ["oct", "short", "new", "RSA", "", "../rsa", "rsa\u0000", "p256"]:
            header = {"alg": "RS256", "kid": kid}
            self.service.expect_refused(f"kid {kid!r}", issuer.raw_token("rsa", header))
        self.service.expect_refused("no kid, several keys", issuer.raw_token("rsa", {"alg": "RS256"}))

    def refuse_forged_signatures(self) -> None:
        issuer = self.issuer
        public = issuer.keys["rsa"].as_dict(private=False)
        secrets = [
            issuer.keys["rsa"].as_pem(private=False), issuer.keys["rsa"].as_der(private=False),
            json.dumps(public).encode(), str(public["n"]).encode(), b"secret of a test that is long enough", b"",
        ]
        for secret in secrets:
            for algorithm, kid in [("HS256", "rsa"), ("HS256", "oct"), ("RS256", "rsa")]:
                token = issuer.secret_token(secret, {"alg": algorithm, "kid": kid})
                self.service.expect_refused(f"HMAC as {algorithm} of {kid}", token)
        for kid, algorithms in ALGORITHMS.items():
            token = issuer.token(kid, algorithms[0])
            head, claims, signature = token.split(".")
            for bad in [flip(signature), "", "AAAA", signature[:-4], signature + "AAAA", signature + "=",
                        base64url(bytes(64)), base64url(bytes(256))]:
                self.service.expect_refused(f"{kid}, signature {bad[:8]}", f"{head}.{claims}.{bad}")
            richer = segment(issuer.claims(scope="admin"))
            self.service.expect_refused(f"{kid}, other claims", f"{head}.{richer}.{signature}")
        stranger = Issuer(1)
        stranger.url, stranger.keys = issuer.url, make_keys()
        self.service.expect_refused("a key of a stranger", stranger.token("rsa", "RS256"))
        token = issuer.token("rsa", "RS256")
        for name, text in {
            "two parts": token.rpartition(".")[0], "four parts": f"{token}.AAAA", "five parts": f"{token}.A.A",
            "padding": f"{token}==", "long": issuer.token("rsa", "RS256", issuer.claims(x="x" * 8192)),
            "nested": f"{token.split('.')[0]}.{base64url(b'[' * 3000)}.AAAA",
        }.items():
            self.service.expect_refused(name, text)

    def refuse_wrong_claims(self) -> None:
        issuer = self.issuer
        for name, changes in {
            "wrong issuer": {"iss": "https://evil.example"}, "issuer with slash": {"iss": f"{issuer.url}/"},
            "issuer of another": {"iss": self.provider}, "no issuer": {"iss": None},
            "wrong audience": {"aud": "other"}, "two audiences, none ours": {"aud": ["other", "third"]},
            "no audience": {"aud": None}, "audience in another case": {"aud": "Kedge"},
            "no expiry": {"exp": None}, "expiry as text": {"exp": "9999999999"},
            "expiry in milliseconds": {"exp": int(time.time() * 1000)}, "no subject": {"sub": None},
            "empty subject": {"sub": ""}, "subject with a line": {"sub": "a\nb"}, "long subject": {"sub": "x" * 300},
        }.items():
            self.service.expect_refused(name, issuer.token("rsa", "RS256", issuer.claims(**changes)))
        self.service.expect_accepted(
            "two audiences, one ours", issuer.token("rsa", "RS256", issuer.claims(aud=["other", AUDIENCE])))

    def tolerate_a_minute(self) -> None:
        for name, seconds, expected in [
            ("exp", -59, 200), ("exp", -61, 401), ("nbf", 59, 200), ("nbf", 61, 401), ("iat", 59, 200),
            ("iat", 61, 401),
        ]:
            statuses = []
            for _ in range(ATTEMPTS):
                claims = self.issuer.claims(**{name: time.time() + seconds})
                statuses.append(self.service.ask(self.issuer.token("p256", "ES256", claims))[0])
                if statuses[-1] == expected:
                    break
            expect(statuses[-1] == expected, f"{name} {seconds:+}: {statuses}")

    def rotate_during_an_upload(self) -> None:
        """A token of some seconds begins an upload; its key is replaced before the end."""
        body = os.urandom(1 << 20)
        claims = self.issuer.claims(exp=time.time() - 55)
        old = Issuer(1)
        old.url, old.keys = self.issuer.url, {"spare": self.issuer.keys["spare"]}
        connection = http.client.HTTPConnection("127.0.0.1", self.service.node.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest("POST", "/files")
            connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Authorization", f"Bearer {self.issuer.token('spare', 'RS256', claims)}")
            connection.endheaders()
            connection.send(body[:1 << 19])
            time.sleep(6)
            del self.issuer.keys["spare"]
            self.issuer.keys["next"] = make_keys()["rsa"]
            self.service.expect_accepted("a new key", self.issuer.token("next", "RS256"))
            connection.send(body[1 << 19:])
            status = connection.getresponse().status
            expect(status == 201, f"an upload whose token has expired: {status}")
        self.service.expect_refused("an old key", old.token("spare", "RS256"))

    def bound_fetches_of_unknown_keys(self) -> None:
        before = self.issuer.key_requests
        header = {"alg": "RS256"}
        tokens = [self.issuer.raw_token("rsa", header | {"kid": f"x{number}"}) for number in range(100)]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda token: self.service.expect_refused("an unknown key", token), tokens))
        fetched = self.issuer.key_requests - before
        expect(fetched <= 1, f"100 unknown keys caused {fetched} fetches")

    def serve_while_issuer_is_down(self) -> None:
        self.issuer.stop()
        for _ in range(3):
            self.service.expect_accepted("issuer down", self.issuer.token("p256", "ES256"))
        self.issuer.start()

    def answer_503_without_keys(self) -> None:
        directory = self.directory / "second"
        directory.mkdir()
        lonely = Issuer(free_port())
        lonely.keys = make_keys()
        second = Service(self.binary, directory, [lonely.url])
        second.start()
        status, body = second.ask(lonely.token("rsa", "RS256"))
        expect((status, body.get("code")) == (503, "UNAVAILABLE"), f"without keys: {status} {body}")
        status, _ = second.ask(self.issuer.token("rsa", "RS256"))
        expect(status == 401, f"another issuer: {status}")
        second.node.kill()

    def keep_tokens_out_of_the_log(self) -> None:
        log = self.service.node.log.read_text(encoding="utf-8", errors="replace")
        expect("/files" in log, "the log has no requests")
        expect("eyJ" not in log, "the log has a token")


def flip(text: str) -> str:
    """Changes a character in the middle."""
    place = len(text) // 2
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=Path)
    binary = parser.parse_args().binary.resolve()
    scratch = Scratch("jwt")
    try:
        Trial(binary, scratch.path).run()
    except Violation as violation:
        sys.exit(f"check_jwt: {violation}")
    finally:
        scratch.remove()


if __name__ == "__main__":
    main()
