"""Sends requests without the right to what they ask for, in every way, to a real service.

    matrix.py KEDGE [--postgres]

Every operation of openapi/kedge.yaml with every kind of credential; foreign ids beside unknown ones; ways round a
scope; forged and raced links; and a search for secrets in all that the service wrote. With `--postgres`, rows are in
PostgreSQL and bytes in a stand-in for S3; otherwise both are in the data directory.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from access import Matrix
from bypasses import Bypasses
from contract import operations
from equality import Equality
from forgery import Forgery, Races
from processes import ROOT, Scratch, Unavailable
from traces import search
from world import Violation, World


def check(world: World, forgery_step: int) -> None:
    contract = operations(ROOT / "openapi" / "kedge.yaml")
    parts: dict[str, Callable[[], int]] = {
        "requests of the matrix": lambda: Matrix(world, contract).run(),
        "pairs of foreign and unknown ids": lambda: Equality(world, contract).run(),
        "ways round a scope": lambda: Bypasses(world).run(),
        "forged links": lambda: Forgery(world, forgery_step).run(),
        "racing requests": lambda: Races(world).run(),
        "bytes without a secret": lambda: search(world),
    }
    for name, part in parts.items():
        begun = time.monotonic()
        count = part()
        print(f"{count} {name} ({time.monotonic() - begun:.1f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--postgres", action="store_true", help="use PostgreSQL and S3 instead of the data directory")
    options = parser.parse_args()
    scratch = Scratch("security")
    try:
        with contextlib.ExitStack() as cleanup:
            world = World(options.binary.resolve(), scratch.path, cleanup, options.postgres)
            # No store takes part in the check of a link, so all changes of one are sent on one kind of stores.
            check(world, 8 if options.postgres else 1)
    except (Violation, Unavailable) as error:
        sys.exit(f"security: {error}")
    finally:
        scratch.remove()


if __name__ == "__main__":
    main()
