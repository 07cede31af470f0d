"""Write docs/memory.schema.json anew from the table of fields: `python scripts/write_schema.py`."""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write the file; nothing is printed, `git diff` shows what changed."""
    sys.path.insert(0, str(CHECKOUT))
    from openmemex.memory.json_schema import text

    (CHECKOUT / "docs" / "memory.schema.json").write_text(text(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
