"""The access of each operation, as openapi/kedge.yaml states it."""

import dataclasses
from pathlib import Path
from typing import Any

import yaml

METHODS = ("get", "head", "options", "put", "post", "patch", "delete")


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation, and the credentials that it accepts."""

    method: str
    path: str
    # Without a scheme, every request passes, also one without a credential.
    is_public: bool
    # One of them is enough. Without any, every token passes.
    scopes: frozenset[str]
    accepts_tokens: bool
    link_kinds: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def accepts(self, scopes: frozenset[str]) -> bool:
        """Whether a token with these scopes has the access."""
        return self.is_public or self.accepts_tokens and (not self.scopes or bool(self.scopes & scopes))


def operations(file: Path) -> dict[str, Operation]:
    """Reads the operations by name, such as `GET /files`."""
    contract = yaml.safe_load(file.read_text(encoding="utf-8"))
    found = {}
    for path, item in contract["paths"].items():
        for method in METHODS:
            if method in item:
                operation = _operation(method.upper(), path, item[method]["security"])
                found[operation.name] = operation
    return found


def _operation(method: str, path: str, security: list[dict[str, list[str]]]) -> Operation:
    named: dict[str, list[list[str]]] = {"bearer": [], "link": []}
    for requirement in security:
        [(scheme, words)] = requirement.items()
        named[scheme].append(words)
    return Operation(
        method, path, not security, _union(named["bearer"]), bool(named["bearer"]), _union(named["link"]))


def _union(lists: Any) -> frozenset[str]:
    return frozenset(word for words in lists for word in words)
