"""A search for tokens and links in what the service wrote and answered."""

import re
import urllib.request
from collections.abc import Iterable, Iterator

from world import Violation, World, expect


# Every secret consists of such characters and is longer. Ids are shorter.
LONG_WORD = re.compile(rb"[A-Za-z0-9._-]{40,}")


def search(world: World) -> int:
    """Searches logs, answers and metrics for each secret; returns the number of searched bytes."""
    secrets = {text.encode(): name for text, name in world.transcript.secrets.items()}
    # A search that cannot find anything would prove nothing.
    blind = [name for text, name in secrets.items() if not _hits(b"a=" + text + b"&b", [text])]
    expect(not blind, f"the search does not find {set(blind)}")
    count = 0
    for place, content in _places(world):
        count += len(content)
        for hit in _hits(content, secrets):
            at = content.find(hit)
            raise Violation(f"{place} has {secrets[hit]}: {content[max(0, at - 200): at + 12]!r}")
    return count


def _hits(content: bytes, secrets: Iterable[bytes]) -> list[bytes]:
    words = b"\n".join(set(LONG_WORD.findall(content)))
    return [text for text in secrets if text in words]


def _places(world: World) -> Iterator[tuple[str, bytes]]:
    log = world.node.log.read_bytes()
    expect(b'"trace"' in log and b"link.id" in log, "the log has no lines that could have a secret")
    yield "the log", log
    audit = world.audit_log.read_bytes()
    expect(b"linkId" in audit and b"tokenId" in audit, "the audit log has no lines that could have a secret")
    yield "the audit log", audit
    with urllib.request.urlopen(f"http://127.0.0.1:{world.metrics_port}/metrics", timeout=30) as answer:
        metrics = answer.read()
    expect(re.search(rb'kedge_auth_total\{.*kind="link"', metrics) is not None, "the metrics have no links")
    yield "the metrics", metrics
    yield "an answer", b"\n".join(name.encode() + b"\n" + text for name, text in world.transcript.answers)
    for path in (world.directory / f"node-{world.node.port}").rglob("*"):
        if path.is_file():
            yield f"{path.name} in the data directory", path.read_bytes()
