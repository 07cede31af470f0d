"""The person's `config.jsonc`: read at every start, so it costs nothing where there is none.

The file is JSON with comments and trailing commas. It belongs to the person: reading never fails because of
its content and never changes it.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from openmemex.errors import OpenMemexError
from openmemex.settings import Settings, SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES = 1 << 20


def load(config_file: str, environ: Mapping[str, str]) -> tuple[Settings, list[SettingsProblem]]:
    """The settings that hold, and what is wrong with the file. Never raises because of the file.

    A key with a dot may stand in its group (`"org": {"repo": …}`) or flat (`"org.repo": …`). A value that is
    not allowed, or a key that stands there twice, leaves the default. `OPEN_MEMEX_DEBUG=1` sets `logLevel` to
    debug, over the file.
    """
    problems: list[SettingsProblem] = []
    values: dict[str, Any] = {}
    try:
        text = _read(config_file)
    except OpenMemexError as error:
        text = None
        problems.append(SettingsProblem("file", "", 0, f"{error.message}; the defaults are used"))
    if text is not None:
        from openmemex import setting_keys  # only where a settings file exists

        values = setting_keys.values(text, config_file, problems)
    if environ.get("OPEN_MEMEX_DEBUG") == "1":
        values["log_level"] = "debug"
    return Settings(**values), problems


def read_text(config_file: str) -> str:
    """The settings file as text, a byte order mark included; "" when there is none (or it is /dev/null).

    Raises OpenMemexError, naming the file and the reason, when it cannot be read as UTF-8 text.
    """
    return _read(config_file) or ""


def _read(config_file: str) -> str | None:
    try:
        # Non-blocking, because a named pipe of that name would wait for a writer for ever.
        handle = os.open(config_file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OpenMemexError(f"cannot read {config_file}: {error.strerror}") from None
    try:
        if config_file == os.devnull:
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OpenMemexError(
                f"{config_file} is no regular file", "move it away, or set OPEN_MEMEX_CONFIG"
            )
        raw = b""
        while len(raw) <= MAX_FILE_BYTES and (piece := os.read(handle, MAX_FILE_BYTES)):
            raw += piece
    except OSError as error:
        raise OpenMemexError(f"cannot read {config_file}: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(raw) > MAX_FILE_BYTES:
        raise OpenMemexError(
            f"{config_file} is larger than 1 MiB", "settings are a few lines: is it the right file?"
        )
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw:
        raise OpenMemexError(f"{config_file} is not UTF-8 text (UTF-16?)", "save it as UTF-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise OpenMemexError(f"{config_file}, line {line}: not UTF-8 text", "save it as UTF-8") from None
