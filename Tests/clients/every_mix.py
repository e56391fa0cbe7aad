"""Shows that the protocols keep their promises on every mix of stores.

    every_mix.py --binary PATH_TO_KEDGE [--mib 6] [--seed N] [--only MIX]

On each mix the conformance suite must pass, and whole: every extension that is advertised has checks that
passed, expiry and CORS are tried as well, and nothing is left out but what is listed here with its reason. Then
the service is killed in the middle of a PATCH in tus and in IETF uploads. The same content comes natively and by
tuspy, too, and must be stored once. At the end `kedge fsck` and `kedge scrub` must find everything whole.
"""

import argparse
import contextlib
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "conformance")]

import kedge_conformance as suite
from checks import NONE, PASS, Check, Failed, Result
from crash import IetfClient, TusClient, check_crash
from ietf import VERSIONS, Dialect, IetfServer
from processes import Scratch, Unavailable
from service import Service, Source, Violation, expect
from stores import StoreMix, Stores
from tus import TusServer
from uploaders import UPLOADERS
from wire import Settings, WireError

ORIGIN = "https://page.example"
# The nodes of a mix and their options. Uploads to `brief` expire while the checks run.
PURPOSES = {
    "checked": ["--cors-allowed-origins", ORIGIN],
    "brief": ["--session-lifetime-seconds", "2"],
    "killed": ["--sweep-interval-seconds", "1"],
    # Otherwise an upload whose size is not known has the largest chunks that there are.
    "parts": ["--limits-max-chunk-size", str(8 << 20)],
}
# The checks of the stores at the end. To hash all that the suite leaves would take long.
CHECKS_OF_STORES = {"checked": ["fsck"], "killed": ["fsck", "scrub"], "parts": ["fsck", "scrub"]}
# Most of a check is waiting.
JOBS = 8
LARGE_MIB = 40
# In a bucket the bytes of an unfinished chunk count every ten seconds, and progress is reported then.
EVENT_TIMEOUT_SECONDS = 14
SLOW = ("append-progress", "expired")
EXTENSIONS = {
    "creation", "creation-with-upload", "creation-defer-length", "expiration", "checksum",
    "checksum-trailer", "termination", "concatenation", "concatenation-unfinished"}
# Checks that need not have anything to check, and the versions in which that is so.
EXCUSED = {
    # The drafts forbid a 104 to those who name no version.
    "104-location": ("final",), "104-limits": ("final",), "104-resumes": ("final",),
    # These versions leave progress to the server, and Kedge reports none to their clients.
    "append-progress": ("5", "6"),
}


class Trial:
    """One mix, with a node for each purpose."""

    def __init__(self, stores: Stores, places: dict[str, StoreMix], directory: Path,
                 options: argparse.Namespace) -> None:
        directory.mkdir()
        self._stores, self._places, self._options = stores, places, options
        self._nodes = {purpose: Service(
            options.binary, directory, [*mix.options, *PURPOSES[purpose]], mix.environment)
            for purpose, mix in places.items()}

    def run(self, source: Source, large: Source, pool: ThreadPoolExecutor) -> None:
        """Raises `Violation`, or what the suite raises."""
        for node in self._nodes.values():
            node.begin()
        for node in self._nodes.values():
            node.wait()
        suite_run = pool.submit(timed, self._conform)
        kept = self._nodes["killed"]
        chooser = random.Random(self._options.seed)
        tags = set()
        for client in (TusClient(kept), IetfClient(kept)):
            (url, offset), seconds = timed(check_crash, kept, client, source, chooser, rounds=1)
            tags.add(kept.check_upload(url, source))
            print(f"  kill -9 in {client.name}: went on at {offset}, {seconds:.1f} s", flush=True)
        _, seconds = timed(self._check_one_blob, kept, source, tags)
        print(f"  one blob: {seconds:.1f} s", flush=True)
        count, seconds = timed(self._check_parts, self._nodes["parts"], large)
        print(f"  in parts: {count} requests to copy, {seconds:.1f} s", flush=True)
        count, seconds = suite_run.result()
        print(f"  conformance: {count} checks passed, {seconds:.1f} s", flush=True)
        self.end()
        _, seconds = timed(lambda: list(pool.map(self._check_whole, CHECKS_OF_STORES)))
        print(f"  fsck and scrub: whole, {seconds:.1f} s", flush=True)

    def _check_whole(self, purpose: str) -> None:
        self._places[purpose].check_whole(
            self._options.binary, self._nodes[purpose].data, CHECKS_OF_STORES[purpose])

    def end(self) -> None:
        for node in self._nodes.values():
            node.kill()

    def _conform(self) -> int:
        settings = Settings()
        url = self._nodes["checked"].url
        server = TusServer(url + "/tus/", settings, origin=ORIGIN)
        brief = TusServer(self._nodes["brief"].url + "/tus/", settings, EVENT_TIMEOUT_SECONDS)
        expect(set(server.extensions) == EXTENSIONS, f"the extensions {server.extensions} are advertised")
        # The slowest checks come first.
        tasks = list(suite.tus_tasks(brief, ["expire*"]))
        for version in reversed(VERSIONS):
            dialect = Dialect.of(version)
            tasks += suite.ietf_tasks(IetfServer(url + "/files", dialect, settings, EVENT_TIMEOUT_SECONDS), [])
        tasks += (task for task in suite.tus_tasks(server, []) if task.check.name != "expired")
        tasks.sort(key=lambda task: task.check.name not in SLOW)
        results = suite.run_all(tasks, JOBS)
        check_results(results, server.extensions)
        return sum(result.outcome == PASS for result in results)

    def _check_one_blob(self, node: Service, source: Source, tags: set[str]) -> None:
        """`tags` are the entity tags of the same content that came in other ways."""
        for url in (node.upload_natively(node.url, source),
                    UPLOADERS["tuspy"](node.url + "/tus/", source.path)):
            tags.add(node.check_upload(url, source))
        expect(len(tags) == 1, f"the same content has the entity tags {tags}")
        prefix = self._places["killed"].prefix
        if prefix is None:
            node.check_one_blob(source)
            return
        # Copies that later uploads have superseded stay for an hour, for readers that have their address.
        expect(len(self._objects_like(source, prefix)) >= 1, "the content is not in the bucket")

    def _check_parts(self, node: Service, large: Source) -> int:
        """A file that comes in parts; a bucket copies the chunks that lie within one by itself."""
        before = self._copy_count()
        node.check_upload(UPLOADERS["aiotus in parts"](node.url + "/tus/", large.path), large)
        count = self._copy_count() - before
        # The first one tries whether the store copies.
        expect((count > 1) == (self._places["parts"].prefix is not None), f"{count} requests to copy")
        return count

    def _copy_count(self) -> int:
        return self._stores.bucket.stub.state()["requests"].get("UploadPartCopy", 0)

    def _objects_like(self, source: Source, prefix: str) -> list[str]:
        """The SHA-256 in the key of everything that has the source's size."""
        return [entry["key"].rpartition("-")[2] for entry in self._stores.bucket.stub.state()["objects"]
                if entry["key"].startswith(prefix + "/") and entry["byteCount"] == source.byte_count]


def timed(step, *arguments, **options):
    """Returns the result of the step and the seconds that it took."""
    started = time.monotonic()
    outcome = step(*arguments, **options)
    return outcome, time.monotonic() - started


def check_results(results: list[Result], extensions: list[str]) -> None:
    """Raises `Violation` unless everything that applies was checked and passed."""
    faults = [f"{result.dialect}: {result.check.name}: {result.outcome} {result.reason}"
              for result in results if not is_right(result, extensions)]
    passed = {name for result in results if result.outcome == PASS for name in result.check.needs}
    faults += [f"{name} is advertised and no check of it passed" for name in extensions if name not in passed]
    expect(not faults, "\n    ".join([f"{len(faults)} faults", *faults]))


def is_right(result: Result, extensions: list[str]) -> bool:
    return result.outcome == PASS or (result.outcome == NONE and (
        result.check.without in extensions or is_excused(result.check, result.dialect)))


def is_excused(check: Check, dialect: str) -> bool:
    return dialect in [Dialect.of(version).title for version in EXCUSED.get(check.name, ())]


def run(options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack) -> None:
    stores = Stores(directory, cleanup)
    source = Source(directory / "source.bin", options.seed, options.mib)
    # Some of the service's chunks lie within a part of it.
    large = Source(directory / "large.bin", options.seed, LARGE_MIB)
    pool = cleanup.enter_context(ThreadPoolExecutor(2))
    for number, mixes in enumerate(zip(*(stores.mixes(purpose) for purpose in PURPOSES), strict=True)):
        name = mixes[0].name
        if options.only is not None and options.only not in name:
            continue
        print(name, flush=True)
        places = dict(zip(PURPOSES, mixes, strict=True))
        trial = Trial(stores, places, directory / f"mix-{number}", options)
        cleanup.callback(trial.end)
        trial.run(source, large, pool)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=6, help="size of the file, in MiB")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", help="only mixes whose name has this in it")
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    print(f"dialects on every mix, seed {options.seed}", flush=True)
    started = time.monotonic()
    try:
        with contextlib.ExitStack() as cleanup:
            scratch = Scratch("every-mix")
            cleanup.callback(scratch.remove)
            run(options, scratch.path, cleanup)
    except (Violation, Failed, WireError, Unavailable) as error:
        sys.exit(f"every mix: {error}\nrepeat with seed {options.seed}")
    print(f"every mix: the same, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
