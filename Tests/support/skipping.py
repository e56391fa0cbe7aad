"""Skips a check that cannot run here; skip.sh does it for shells."""

import os
import sys

SKIPPED_STATUS = 77


def is_skip_allowed(name: str) -> bool:
    """Whether ALLOW_SKIP names this check."""
    return name in os.environ.get("ALLOW_SKIP", "").split()


def skipped(name: str, reason: object) -> int:
    """Says that a check did not run; the exit status: 77, which is a failure, or 0 when it was allowed."""
    print(f"SKIPPED {name}: {reason}", file=sys.stderr, flush=True)
    if is_skip_allowed(name):
        return 0
    print(f'ALLOW_SKIP="{name}" allows this to be skipped', file=sys.stderr, flush=True)
    return SKIPPED_STATUS
