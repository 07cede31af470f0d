"""An index made by other rules than today's is made anew: so the numbers that say so must be raised."""

from __future__ import annotations

import zlib

from openmemex.index import schema
from openmemex.trust.rules import RULES

# The rules for secrets that SECRETS_VERSION stands for.
RULES_OF_VERSION = {1: 1504744199}


def test_changed_rules_for_secrets_raise_the_version_of_the_index() -> None:
    table = [[part for part in rule if not callable(part)] for rule in RULES]
    checksum = zlib.crc32(repr(table).encode())
    assert RULES_OF_VERSION.get(schema.SECRETS_VERSION) == checksum, (
        "trust/rules.py has changed: raise SECRETS_VERSION in openmemex/index/schema.py by one, and add"
        f" {schema.SECRETS_VERSION + 1}: {checksum} to RULES_OF_VERSION here"
    )


def test_every_released_version_is_kept() -> None:
    assert list(RULES_OF_VERSION) == list(range(1, schema.SECRETS_VERSION + 1))
