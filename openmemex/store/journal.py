"""A note about a step that takes two files, so that a kill between them is finished by the next run.

A step is begun by writing `<data root>/pending/<id>.json`, does its files in an order in which every half
of it can be told from the files, and is finished by removing the note. The note holds ids, folders and field
values; never a memory's text.
"""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from openmemex import paths
from openmemex.errors import OpenMemexError
from openmemex.memory import ids
from openmemex.memory.model import now_text

Value = str | int | bool | None | list[str]
_KIND = re.compile(r"[a-z][a-z-]{0,30}\Z")
_MAX_TEXT = 4096


class Intent(NamedTuple):
    """A step that was begun: its id, its kind ("supersede", "submit"), when, and what it needs to finish."""

    id: str
    kind: str
    at: str
    values: dict[str, Value]
    path: str


def begin(data_root: str, kind: str, **values: Value) -> Intent:
    """Write down, on disk before this returns, that the step `kind` starts. Raises OpenMemexError.

    `values` are ids, folders, hashes, states; a text with a line end or of more than 4096 characters is
    refused with ValueError, because it could only be a memory's.
    """
    if not _KIND.match(kind):
        raise ValueError(kind)
    for value in values.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and (len(text) > _MAX_TEXT or "\n" in text or "\r" in text):
                raise ValueError("a journal holds no texts")
    folder = _folder(data_root)
    paths.make_folder(folder)
    intent_id = ids.new_id()
    intent = Intent(intent_id, kind, now_text(), dict(values), os.path.join(folder, intent_id + ".json"))
    content = json.dumps({"kind": kind, "at": intent.at, "values": values}, indent=1) + "\n"
    paths.create_exclusively(intent.path, content.encode("ascii"))
    return intent


def finish(intent: Intent) -> None:
    """Remove the note of a step that is done. If it is gone already, another run has finished the step."""
    try:
        paths.remove_file(intent.path)
    except OpenMemexError:
        if os.path.lexists(intent.path):
            raise


def pending(data_root: str) -> list[Intent]:
    """The steps that were begun and not finished, oldest first.

    A note that cannot be read is renamed to `<name>.broken` and left out: the files then tell the state.
    """
    try:
        names = sorted(os.listdir(_folder(data_root)))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise paths.failure("read", _folder(data_root), error) from None
    found = []
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension == ".json" and ids.is_id(stem):
            intent = _read(os.path.join(_folder(data_root), name), stem)
            if intent is not None:
                found.append(intent)
    return found


def _folder(data_root: str) -> str:
    return os.path.join(data_root, "pending")


def _read(path: str, intent_id: str) -> Intent | None:
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read())
        kind, at, values = content["kind"], content["at"], content["values"]
        if isinstance(kind, str) and isinstance(at, str) and isinstance(values, dict):
            return Intent(intent_id, kind, at, values, path)
    except FileNotFoundError:
        return None  # another run has just finished it
    except OSError as error:
        raise paths.failure("read", path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    try:
        os.replace(path, path + ".broken")
    except OSError:
        pass
    return None
