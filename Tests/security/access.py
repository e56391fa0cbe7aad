"""Every operation with every kind of credential."""

import base64
import dataclasses
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract import Operation
from operations import ROWS, Row, Target
from world import SCOPES, USER, Fields, Upload, World, bearer, expect

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Makes the fields and the query of a credential for the object of a request.
Presentation = Callable[[Target], tuple[Fields, str]]
Maker = Callable[[World], Target]
EVERY_SCOPE = frozenset(SCOPES) | {"admin"}
CHALLENGE = 'Bearer realm="kedge"'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """An expected answer. An empty code is not compared."""

    status: int
    code: str = ""


UNAUTHENTICATED = Outcome(401, "UNAUTHENTICATED")
FORBIDDEN = Outcome(403, "FORBIDDEN")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A request of the matrix: a row with a credential."""

    operation: Operation
    row: Row
    credential: str
    expected: Outcome
    present: Presentation

    @property
    def name(self) -> str:
        return f"{self.operation.name} {self.row.note} with {self.credential}"

    @property
    def is_refused(self) -> bool:
        return self.expected.status >= 400


def in_field(text: str) -> Presentation:
    return lambda _: (bearer(text), "")


def in_query(text: str) -> Presentation:
    return lambda _: ([], text)


def made_in_query(make: Callable[[Target], str], beside: Fields) -> Presentation:
    return lambda target: (beside, make(target))


def made_in_field(make: Callable[[Target], str]) -> Presentation:
    return lambda target: (bearer(make(target)), "")


def with_other_secret(token: str) -> str:
    """Returns a token with the id of another one, and a right checksum."""
    secret = base64.urlsafe_b64encode(bytes(32)).decode().rstrip("=")
    body = f"{token[:17]}{secret}"
    rest, checksum = zlib.crc32(body.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, len(DIGITS))
        checksum = DIGITS[digit] + checksum
    return f"{body}_{checksum}"


class Matrix:
    """Compares the answer to each cell with the contract."""

    def __init__(self, world: World, operations: dict[str, Operation]) -> None:
        self.world = world
        self.operations = operations
        without = operations.keys() - ROWS.keys()
        expect(not without, f"no row for {sorted(without)}")
        expect(not ROWS.keys() - operations.keys(), f"not in the contract: {sorted(ROWS.keys() - operations.keys())}")
        self._kept: dict[Maker, Target] = {}
        # Links for the objects of refused requests, by the way in which they became invalid.
        self._spoiled: dict[Maker | None, list[tuple[str, str, Outcome]]] = {}
        self._tokens: dict[tuple[str, frozenset[str]], str] = {}
        self._prepare()

    def _prepare(self) -> None:
        world = self.world
        spare = world.complete_upload()
        self.spare = Upload(world.open_upload().session, spare.file)
        gone_id, gone = world.token_with_id(world.OWNER, EVERY_SCOPE)
        expiring = world.token(world.OWNER, EVERY_SCOPE, 1)
        blocked = world.token("blocked", USER)
        # With the scope admin, too: an owner that is blocked must not end its own block.
        blocked_admin = world.token("blocked", EVERY_SCOPE)
        self.refused_tokens = [
            ("a revoked token", gone, UNAUTHENTICATED), ("an expired token", expiring, UNAUTHENTICATED),
            ("the id of a token with another secret", with_other_secret(world.user), UNAUTHENTICATED),
            ("a misspelled token", world.user[:-1] + "!", UNAUTHENTICATED),
            ("a JSON Web Token without an issuer", "eyJhbGciOiJub25lIn0.e30.", UNAUTHENTICATED),
            ("a token of a blocked owner", blocked, FORBIDDEN),
            ("an administrator's token of a blocked owner", blocked_admin, FORBIDDEN),
        ]
        for row in (row for rows in ROWS.values() for row in rows):
            if row.make not in self._spoiled:
                self._spoiled[row.make] = list(self._spoil(self._target(row), gone, blocked))
        world.block("blocked")
        world.operator.ask("PUT", "/owners/kept-owner", [("Content-Type", "application/json")],
                           b'{"isBlocked": false}')
        expect(world.operator.ask("DELETE", f"/tokens/{gone_id}").status == 204, "preparation: no revocation")
        self._expiry = time.monotonic() + 2.2

    def _spoil(self, target: Target, gone: str, blocked: str) -> Iterator[tuple[str, str, Outcome]]:
        """Yields links of each kind for an object, which are invalid once the preparation has ended."""
        world = self.world
        permissions: list[tuple[str, dict[str, Any]]] = [
            ("put", {}), ("session", {"sessionId": target.upload.session if target.upload else ""}),
            ("get", {"fileId": target.upload.file if target.upload else ""}),
        ]
        for op, members in permissions:
            if "" in members.values():
                continue
            revoked_id, revoked = world.link_with_id(world.user, op, **members)
            world.made(204, "DELETE", f"/links/{revoked_id}", [])
            expired = world.link_with_id(world.user, op, 1, **members)[1]
            of_gone = world.link_with_id(gone, op, **members)[1]
            yield f"a revoked {op} link", revoked, Outcome(403, "LINK_INVALID")
            yield f"an expired {op} link", expired, Outcome(403, "LINK_EXPIRED")
            yield f"a {op} link that a revoked token made", of_gone, Outcome(403, "LINK_INVALID")
        yield "a link of a blocked owner", world.link_with_id(blocked, "put")[1], FORBIDDEN

    def run(self) -> int:
        """Sends every request; returns their number."""
        time.sleep(max(0, self._expiry - time.monotonic()))
        cells = list(self.cells())
        before = self.world.snapshot(self.spare)
        failures = [failure for cell in cells if cell.is_refused for failure in self._failures(cell)]
        expect(before == self.world.snapshot(self.spare) or bool(failures), "a refused request changed something")
        failures += [failure for cell in cells if not cell.is_refused for failure in self._failures(cell)]
        if self.world.local_socket is not None:
            failures += self._local_failures(self.world.local_socket)
        expect(not failures, f"{len(failures)} wrong answers:\n  " + "\n  ".join(failures))
        return len(cells)

    def _target(self, row: Row) -> Target:
        """Returns the object that refused requests name."""
        if row.make is None:
            return Target()
        if row.make not in self._kept:
            self._kept[row.make] = row.make(self.world)
        return self._kept[row.make]

    def _failures(self, cell: Cell) -> Iterator[str]:
        """Sends a request; yields the difference from the expected answer."""
        row = cell.row
        # A request that succeeds may use its object up.
        target = row.make(self.world) if row.make and not cell.is_refused else self._target(row)
        fields, link = cell.present(target)
        path = row.path(cell.operation.path, target)
        if link:
            path += ("&" if "?" in path else "?") + f"link={link}"
        answer = self.world.ask(cell.operation.method, path, row.fields + fields, row.content(target))
        if answer.status != cell.expected.status:
            yield f"{cell.name}: {answer} instead of {cell.expected.status}"
        elif cell.is_refused and cell.operation.method != "HEAD" and cell.expected.code not in ("", answer.code):
            yield f"{cell.name}: {answer} instead of {cell.expected.code}"
        elif answer.status == 401 and not answer.field("WWW-Authenticate").startswith(CHALLENGE):
            yield f"{cell.name}: no challenge"

    # The cells

    def cells(self) -> Iterator[Cell]:
        for name, operation in self.operations.items():
            for row in ROWS[name]:
                yield from self._of_tokens(operation, row)
                yield from self._of_links(operation, row)

    def _of_tokens(self, operation: Operation, row: Row) -> Iterator[Cell]:
        success = Outcome(row.success)
        yield Cell(operation, row, "no credential", success if operation.is_public else UNAUTHENTICATED,
                   lambda _: ([], ""))
        yield Cell(operation, row, "a password", success if operation.is_public else UNAUTHENTICATED,
                   lambda _: ([("Authorization", "Basic YWxpY2U6c2VjcmV0")], ""))
        for name, text, refusal in self.refused_tokens:
            yield Cell(operation, row, name, success if operation.is_public else refusal, in_field(text))
        sets = {f"the scope {scope} alone": frozenset([scope]) for scope in SCOPES}
        sets["every scope"] = EVERY_SCOPE
        # A token that makes tokens can have any scope, so admin is left out, too.
        sets["every scope but the needed ones"] = frozenset(SCOPES) - operation.scopes
        for scope in row.further_scopes:
            sets[f"every scope but {scope}"] = frozenset(SCOPES) - {scope}
        for scope in operation.scopes - {"admin"}:
            sets[f"the scope {scope} and those of the row"] = frozenset([scope]) | row.further_scopes
        for name, scopes in sets.items():
            passes = operation.accepts(scopes) and row.further_scopes <= scopes
            yield Cell(operation, row, name, success if passes or operation.is_public else FORBIDDEN,
                       in_field(self._token(self.world.OWNER, scopes)))
        foreign = frozenset(SCOPES) - {"act-as"}
        passes = operation.accepts(foreign) and row.further_scopes <= foreign
        outcome = success if passes else FORBIDDEN
        if passes and row.unknown and not operation.is_public:
            outcome = Outcome(404, row.unknown)
        yield Cell(operation, row, "a token of another owner", outcome, in_field(self._token("mallory", foreign)))

    def _token(self, owner: str, scopes: frozenset[str]) -> str:
        key = (owner, scopes)
        if key not in self._tokens:
            self._tokens[key] = self.world.token(owner, scopes)
        return self._tokens[key]

    def _of_links(self, operation: Operation, row: Row) -> Iterator[Cell]:
        success = Outcome(row.success)
        for name, text, refusal in self._spoiled[row.make]:
            outcome = success if operation.is_public else refusal
            yield Cell(operation, row, name, outcome, in_query(text))
            yield Cell(operation, row, f"{name}, as a bearer token", outcome, in_field(text))
        accepted = operation.link_kinds
        for kind, is_own in (("put", True), ("session", True), ("session", False), ("get", True), ("get", False)):
            outcome = FORBIDDEN
            if operation.is_public or kind in accepted and is_own and row.accepts_links:
                outcome = success
            elif kind in accepted and not is_own:
                outcome = Outcome(404, row.unknown)
            name = f"a {kind} link" + ("" if kind == "put" else " of its own" if is_own else " of another")
            make = self._link(kind, is_own)
            beside = bearer(self._token(self.world.OWNER, EVERY_SCOPE))
            yield Cell(operation, row, name, outcome, made_in_query(make, []))
            # The link decides, and a token beside it gives no right.
            yield Cell(operation, row, f"{name} beside a token of every scope", outcome, made_in_query(make, beside))
            yield Cell(operation, row, f"{name}, as a bearer token", outcome, made_in_field(make))

    def _link(self, kind: str, is_own: bool) -> Callable[[Target], str]:
        """Returns a function that makes a link of a kind, for the object of a request or for another one."""
        def text(target: Target) -> str:
            if kind == "put":
                return self.world.link("put")
            upload = target.upload if is_own and target.upload else self.spare
            if kind == "session":
                return self.world.link("session", sessionId=upload.session)
            return self.world.link("get", fileId=upload.file or self.spare.file)
        return text

    # The socket for operators

    def _local_failures(self, socket: Path) -> Iterator[str]:
        """Sends each request to the socket; only operations that manage the service answer there."""
        link = self.world.link("put")
        for name, operation in self.operations.items():
            is_there = operation.accepts_tokens and (
                not operation.scopes or bool(operation.scopes & {"admin", "metrics:read"}))
            for row in ROWS[name]:
                # No credential changes anything there, also a wrong one.
                for fields in ([], bearer(self.refused_tokens[0][1]), bearer(link)):
                    target = row.make(self.world) if row.make else Target()
                    answer = self.world.operator.ask(
                        operation.method, row.path(operation.path, target), row.fields + fields,
                        row.content(target))
                    wanted = (row.success,) if is_there else (404, 405)
                    if answer.status not in wanted:
                        yield f"{operation.name} at the socket for operators: {answer} instead of {wanted}"
        if socket.stat().st_mode & 0o777 != 0o600:
            yield "others may connect to the socket for operators"

