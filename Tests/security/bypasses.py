"""Ways round a scope: other methods, other spellings, objects named in fields and bodies."""

import http.client
from collections.abc import Callable

from world import APPEND, CONTENT, JSON, TUS, Answer, Fields, Upload, World, bearer, encoded, expect, random_id


def override(method: str) -> Fields:
    return [("X-HTTP-Method-Override", method)]


class Bypasses:
    """Tries each way; `run` raises at the first that works."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = 0

    def run(self) -> int:
        """Tries all ways; returns the number of requests."""
        ways: list[Callable[[], None]] = [
            self.replaced_methods, self.deletion_of_a_finished_upload, self.concatenation, self.adoption,
            self.spelled_paths, self.repeated_credentials, self.spelled_links, self.links_beside_tokens,
            self.other_owners, self.wider_links, self.wider_tokens, self.stated_identities,
        ]
        for way in ways:
            way()
        return self.count

    def _token(self, *scopes: str, owner: str = World.OWNER) -> Fields:
        return bearer(self.world.token(owner, frozenset(scopes)))

    def _expect(
        self, name: str, wanted: str, method: str, path: str, fields: Fields, body: bytes = b""
    ) -> Answer:
        """Sends a request; `wanted` is the status, or status and code."""
        self.count += 1
        answer = self.world.ask(method, path, fields, body)
        expect(wanted in (str(answer.status), str(answer)), f"{name}: {answer} instead of {wanted}")
        return answer

    def _expect_kept(self, upload: Upload) -> None:
        answer = self.world.ask("GET", f"/files/{upload.file}", bearer(self.world.user))
        expect(answer.status == 200 and answer.body == CONTENT, f"a file has changed: {answer}")

    def _expect_open(self, upload: Upload) -> None:
        status = self.world.made(200, "GET", f"/uploads/sessions/{upload.session}", []).json()
        expect((status["state"], status["receivedBytes"]) == ("open", 0), f"an upload has changed: {status}")

    def replaced_methods(self) -> None:
        open_upload, whole = self.world.open_upload(), self.world.complete_upload()
        path = f"/tus/{open_upload.session}"
        reader = self._token("uploads:read", "files:read", "files:list") + TUS
        for sent in ("POST", "GET", "PATCH", "DELETE"):
            for meant in ("DELETE", "delete", "Delete"):
                self._expect(f"{sent} as {meant}", "403 FORBIDDEN", sent, path, reader + override(meant))
            self._expect(f"{sent} as PATCH", "403 FORBIDDEN", sent, path, reader + APPEND + override("PATCH"), CONTENT)
        # A body follows the head of HEAD in no case, so the field does not count there.
        self._expect("HEAD as DELETE", "200", "HEAD", path, reader + override("DELETE"))
        self._expect("GET as POST", "403 FORBIDDEN", "GET", "/tus/", reader + override("POST"))
        self._expect_open(open_upload)
        # Elsewhere than in tus, the field does not count at all.
        for method, wanted in (("GET", "200"), ("HEAD", "200"), ("POST", "405")):
            self._expect(f"{method} as DELETE of a file", wanted, method, f"/files/{whole.file}",
                         reader + override("DELETE"))
        self._expect("GET as DELETE of a session", "200", "GET", f"/uploads/sessions/{open_upload.session}",
                     reader + override("DELETE"))
        self._expect("two methods", "405", "GET", path, reader + override("DELETE") + override("HEAD"))
        link = self.world.link("get", fileId=whole.file)
        self._expect("GET as DELETE with a link", "403 FORBIDDEN", "GET", f"/tus/{whole.session}?link={link}",
                     TUS + override("DELETE"))
        self._expect_open(open_upload)
        self._expect_kept(whole)

    def deletion_of_a_finished_upload(self) -> None:
        whole = self.world.complete_upload()
        path = f"/tus/{whole.session}"
        writer = self._token("uploads:write", "uploads:read", "files:read", "files:list") + TUS
        self._expect("DELETE of a finished upload", "403 FORBIDDEN", "DELETE", path, writer)
        self._expect("POST as DELETE of it", "403 FORBIDDEN", "POST", path, writer + override("DELETE"))
        deleter = self._token("files:delete") + TUS
        self._expect("DELETE with files:delete alone", "403 FORBIDDEN", "DELETE", path, deleter)
        link = self.world.link("session", sessionId=whole.session)
        self._expect("DELETE with a link", "403 FORBIDDEN", "DELETE", f"{path}?link={link}", TUS)
        for other in ("/uploads/sessions/", "/uploads/resumable/"):
            self._expect("DELETE by another protocol", "409", "DELETE", other + whole.session, writer)
            self._expect("DELETE by another protocol with a link", "409", "DELETE",
                         f"{other}{whole.session}?link={link}", [])
        self._expect_kept(whole)

    def concatenation(self) -> None:
        part = self.world.partial_upload()
        stranger = self._token("uploads:write", "uploads:read", owner="mallory") + TUS
        places = [
            f"/tus/{part.session}", f"http://127.0.0.1:{self.world.node.port}/tus/{part.session}",
            f"/uploads/sessions/{part.session}", part.session,
        ]
        for place in places:
            self._expect("a foreign partial upload", "400 BAD_REQUEST", "POST", "/tus/",
                         stranger + [("Upload-Concat", f"final;{place}")])
        one = self.world.link("put")
        many = self.world.link("put", uses=9)
        for name, text, fields, wanted in [
            ("a one-use link", one, [("Upload-Concat", "partial"), ("Upload-Length", "9")], "403 FORBIDDEN"),
            ("a one-use link, final", one, [("Upload-Concat", f"final;{places[0]}")], "403 FORBIDDEN"),
            ("a link without that of the part", many, [("Upload-Concat", f"final;{places[0]}")], "400 BAD_REQUEST"),
            ("a link with itself for the part", many, [("Upload-Concat", f"final;{places[0]}?link={many}")],
             "400 BAD_REQUEST"),
        ]:
            self._expect(f"Upload-Concat with {name}", wanted, "POST", f"/tus/?link={text}", TUS + fields)
        other = self.world.partial_upload()
        link = self.world.link("session", sessionId=other.session)
        self._expect("a link of another part", "400 BAD_REQUEST", "POST", f"/tus/?link={many}",
                     [*TUS, ("Upload-Concat", f"final;{places[0]}?link={link}")])

    def adoption(self) -> None:
        upload = self.world.received_upload()
        message = {"fileName": "matrix", "fileSize": len(CONTENT), "adoptSessionId": upload.session}
        stranger = self._token("uploads:write", "uploads:read", owner="mallory")
        answer = self._expect("adoption of a foreign session", "201", "POST", "/uploads/sessions",
                              stranger + JSON, encoded(message)).json()
        expect(answer["sessionId"] != upload.session and answer["receivedBytes"] == 0,
               f"a foreign session was adopted: {answer}")
        self._expect("adoption by a link", "403 FORBIDDEN", "POST",
                     f"/uploads/sessions?link={self.world.link('put')}", JSON, encoded(message))

    def spelled_paths(self) -> None:
        """Other spellings of a path never reach what the path itself protects."""
        file, session = self.world.complete_upload(), self.world.open_upload()
        for path in ("/files", f"/files/{file.file}", f"/files/{file.file}/meta", "/tokens", "/owners", "/metrics",
                     "/me", f"/uploads/sessions/{session.session}"):
            spellings = [
                path, path + "/", "/" + path, path + "//", path + ";a=b", path + "%00", path + "%2F", path + "%3F",
                "/." + path, "/healthz/.." + path, "/healthz/%2e%2e" + path, path.replace("/", "%2F"),
                "/" + "".join(f"%{ord(letter):02x}" if letter != "/" else letter for letter in path[1:]),
                f"/%{ord(path[1]):02X}{path[2:]}", path.upper(), path + "?link", f"http://127.0.0.1{path}",
                f"http://127.0.0.1/healthz?{path}", f"/readyz%3f/..{path}",
            ]
            for spelling in spellings:
                self.count += 1
                answer = self.world.ask("GET", spelling)
                is_public = spelling.startswith("http://127.0.0.1/healthz")
                refused = (200,) if is_public else (400, 401, 403, 404, 405)
                expect(answer.status in refused, f"GET {spelling}: {answer}")
                self._expect_no_data(spelling, answer, file)
        narrow = self._token("uploads:read")
        for spelling in (f"/files/%{ord(file.file[0]):02x}{file.file[1:]}", f"/files//{file.file}",
                         f"/%66iles/{file.file}", f"/uploads/sessions/../../files/{file.file}"):
            self.count += 1
            answer = self.world.ask("DELETE", spelling, narrow)
            expect(answer.status in (400, 403, 404, 405), f"DELETE {spelling}: {answer}")
        # A link is for its object in one spelling only.
        link = self.world.link("get", fileId=file.file)
        other = self.world.complete_upload()
        for spelling in (other.file, other.file.upper(), f"%{ord(other.file[0]):02x}{other.file[1:]}",
                         f"{file.file}/../{other.file}", f"{file.file}%2F..%2F{other.file}"):
            self.count += 1
            answer = self.world.ask("GET", f"/files/{spelling}?link={link}")
            expect(answer.status in (400, 403, 404), f"a link at {spelling}: {answer}")
        self._expect_kept(file)

    @staticmethod
    def _expect_no_data(name: str, answer: Answer, upload: Upload) -> None:
        expect(CONTENT not in answer.body and upload.file.encode() not in answer.body, f"GET {name} has data")

    def repeated_credentials(self) -> None:
        good, bad = bearer(self.world.user), bearer(self.world.user[:-1] + "!")
        link = self.world.link("put")
        for name, fields in {
            "good and bad": good + bad, "bad and good": bad + good, "good twice": good + good,
            "a token and a link": good + bearer(link), "a link and a token": bearer(link) + good,
        }.items():
            self._expect(f"Authorization, {name}", "400 BAD_REQUEST", "GET", "/files", fields)
        for value in (f"Bearer {self.world.user}, Bearer {self.world.user}", f"Bearer {self.world.user} x",
                      f"Basic {self.world.user}", f"Bearer{self.world.user}", self.world.user, "Bearer", "Bearer ",
                      f"Bearer\t{self.world.user}", f'Bearer "{self.world.user}"', f"Bearer x {self.world.user}"):
            self._expect(f"Authorization: {value[:12]}", "401 UNAUTHENTICATED", "GET", "/files",
                         [("Authorization", value)])
        for name in ("Proxy-Authorization", "X-Authorization", "Cookie", "X-Api-Key"):
            self._expect(f"a token in {name}", "401 UNAUTHENTICATED", "GET", "/files",
                         [(name, f"Bearer {self.world.user}")])
        for query in ("access_token", "token", "authorization"):
            self._expect(f"a token in the query as {query}", "401 UNAUTHENTICATED", "GET",
                         f"/files?{query}={self.world.user}", [])
        self._expect("a token as a link", "403 LINK_INVALID", "GET", f"/files?link={self.world.user}", [])

    def spelled_links(self) -> None:
        file, other = self.world.complete_upload(), self.world.complete_upload()
        path = f"/files/{file.file}"
        link, second = (self.world.link("get", fileId=upload.file) for upload in (file, other))
        self._expect("one link", "200", "GET", f"{path}?link={link}", [])
        for query in (f"link={link}&link={second}", f"link={second}&link={link}", f"link={link}&link={link}",
                      f"link=&link={link}", f"link={link}&link="):
            self._expect(f"two links, {query[:8]}", "400 BAD_REQUEST", "GET", f"{path}?{query}", [])
        for name in ("LINK", "Link", "lInk", "link[]", "links", "%20link", "xlink"):
            self._expect(f"a link as {name}", "401 UNAUTHENTICATED", "GET", f"{path}?{name}={link}", [])
        for text in ("", "%00", "%20", link + "%00", link + "%20", "%20" + link, link + ".",
                     link.replace(".", "%2E%2E"), link.upper(), link + "," + link, link + "=",
                     link.replace("kl1", "kl2"), link.replace("kl1", "KL1")):
            self._expect(f"a link spelled {text[:8]}", "403 LINK_INVALID", "GET", f"{path}?link={text}", [])
        # The halves of two links.
        head, _, code = link.rpartition(".")
        other_head, _, other_code = second.rpartition(".")
        for text in (f"{head}.{other_code}", f"{other_head}.{code}"):
            self._expect("a link of two halves", "403 LINK_INVALID", "GET", f"{path}?link={text}", [])

    def links_beside_tokens(self) -> None:
        """A link that is refused is not replaced by a token beside it."""
        for text in ("", "kl1.", "kl1.a.b.c", self.world.link("put")[:-1]):
            self._expect("a bad link beside a token", "403 LINK_INVALID", "GET", f"/files?link={text}",
                         bearer(self.world.user))
        self._expect("a put link beside a token", "403 FORBIDDEN", "GET", f"/files?link={self.world.link('put')}",
                     bearer(self.world.user))

    def other_owners(self) -> None:
        named = [("Kedge-Owner", World.OWNER)]
        stranger = self._token("uploads:read", "uploads:write", "files:read", "files:list", owner="mallory")
        self._expect("Kedge-Owner without act-as", "403 FORBIDDEN", "GET", "/files", stranger + named)
        own = [("Kedge-Owner", "mallory")]
        self._expect("Kedge-Owner with the own name", "403 FORBIDDEN", "GET", "/files", stranger + own)
        self._expect("Kedge-Owner without a credential", "401 UNAUTHENTICATED", "GET", "/files", named)
        file = self.world.complete_upload()
        link = self.world.link("get", fileId=file.file)
        self._expect("Kedge-Owner with a link", "403 FORBIDDEN", "GET", f"/files/{file.file}?link={link}", own)
        actor = self._token("act-as", "files:list", owner="backend")
        self._expect("Kedge-Owner with act-as", "200", "GET", "/files", actor + named)
        for path in (f"/files/{file.file}", "/uploads/sessions", "/tokens", "/metrics"):
            self._expect("act-as adds no scope", "403 FORBIDDEN", "GET", path, actor + named)
        self._expect("two owners", "400 BAD_REQUEST", "GET", "/files", actor + named + own)
        self._expect("an empty owner", "400 BAD_REQUEST", "GET", "/files", [*actor, ("Kedge-Owner", "")])
        self.world.block("suspended")
        self._expect("acting for a blocked owner", "403 FORBIDDEN", "GET", "/files",
                     [*actor, ("Kedge-Owner", "suspended")])
        blocked = self._token("act-as", "files:list", owner="suspended")
        self._expect("a blocked owner that acts", "403 FORBIDDEN", "GET", "/files", blocked + named)

    def wider_links(self) -> None:
        """A link gives away no more than its maker has."""
        upload, whole = self.world.open_upload(), self.world.complete_upload()
        maker = self._token("links:create") + JSON
        kinds = {"put": {}, "session": {"sessionId": upload.session}, "get": {"fileId": whole.file}}
        for kind, members in kinds.items():
            self._expect(f"a {kind} link without its scope", "403 FORBIDDEN", "POST", "/links", maker,
                         encoded({"op": kind, "expiresInSeconds": 60} | members))
        rich = bearer(self.world.user) + JSON
        for member, value in {"owner": "root", "scopes": ["admin"], "fileId": whole.file, "op": "admin"}.items():
            self._expect(f"a link with {member}", "400 BAD_REQUEST", "POST", "/links", rich,
                         encoded({"op": "put", "expiresInSeconds": 60, member: value}))
        for kind, members in kinds.items():
            link = self.world.link(kind, **members)
            self._expect(f"a link made by a {kind} link", "403 FORBIDDEN", "POST", f"/links?link={link}", JSON,
                         encoded({"op": "put", "expiresInSeconds": 60}))
        # The link of a session that a link has created is for that session alone.
        answer = self.world.ask("POST", f"/uploads/sessions?link={self.world.link('put')}", JSON,
                                encoded({"fileName": "matrix", "fileSize": len(CONTENT)}))
        child = answer.json()["uploadLink"].partition("?link=")[2]
        self.world.add_link(child)
        self._expect("the link of an upload", "200", "GET",
                     f"/uploads/sessions/{answer.json()['sessionId']}?link={child}", [])
        self._expect("the link of an upload at another one", "404 SESSION_NOT_FOUND", "GET",
                     f"/uploads/sessions/{upload.session}?link={child}", [])
        for path in ("/uploads/sessions", "/files", "/me"):
            self._expect("the link of an upload", "403 FORBIDDEN", "GET", f"{path}?link={child}", [])
        stranger = self._token("links:create", owner="mallory")
        link_id, link = self.world.link_with_id(self.world.user, "put")
        self._expect("revocation by another owner", "404 NOT_FOUND", "DELETE", f"/links/{link_id}", stranger)
        self._expect("the link afterwards", "201", "POST", f"/files?link={link}", [], CONTENT)

    def wider_tokens(self) -> None:
        message = {"name": "wider", "owner": World.OWNER, "scopes": ["admin"]}
        token = self._token("act-as", "links:create", "metrics:read", "files:delete")
        for method, path, body in [
            ("POST", "/tokens", encoded(message)), ("GET", "/tokens", b""),
            ("DELETE", f"/tokens/{random_id()[:12]}", b""), ("GET", f"/owners/{World.OWNER}", b""),
            ("PUT", f"/owners/{World.OWNER}", encoded({"limits": {}})),
        ]:
            self._expect("administration without admin", "403 FORBIDDEN", method, path, token + JSON, body)

    def stated_identities(self) -> None:
        """Fields with which proxies name users count only where they are configured."""
        for name in ("X-Forwarded-User", "X-Remote-User", "Remote-User", "X-Kedge-Proxy-Secret", "X-Forwarded-For",
                     "Kedge-Principal"):
            self._expect(f"an identity in {name}", "401 UNAUTHENTICATED", "GET", "/files", [(name, World.OWNER)])
        connection = http.client.HTTPConnection("127.0.0.1", self.world.metrics_port, timeout=30)
        try:
            # The listener of the metrics has no other operation.
            for path in ("/files", "/me", "/tokens", "/owners", "/"):
                self.count += 1
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                expect(answer.status == 404, f"{path} at the listener of the metrics: {answer.status}")
        finally:
            connection.close()
