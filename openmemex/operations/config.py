"""Config: read and change the settings file, keeping every byte that is not the value."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from openmemex import paths, setting_keys, settings_file
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Entry:
    """One setting: its value now, the default, whether the file sets it, and what it is for."""

    key: str
    value: Any
    default: Any
    is_set: bool
    doc: str


def list_settings(ws: Workspace) -> list[Entry]:
    """Every setting, in the order of the documentation."""
    return [_entry(ws, key) for key in setting_keys.KEYS.values()]


def get_setting(ws: Workspace, name: str) -> Entry:
    """The setting `name`. Raises UsageError for a name that is none."""
    return _entry(ws, setting_keys.known(name))


def set_setting(ws: Workspace, name: str, text: str) -> Entry:
    """Set `name` to the value that `text` spells, and write the file.

    Raises UsageError for an unknown name or a value that is not allowed, OpenMemexError when the file can't
    be read or is broken: a file that is not understood is never replaced.
    """
    key = setting_keys.known(name)
    value = setting_keys.value_from_text(key.name, text)
    _write(ws, setting_keys.set_value(settings_file.read_text(ws.config_file), key.name, value))
    ws.settings, ws.settings_problems = settings_file.load(ws.config_file, ws.environ)
    return _entry(ws, key)


def unset_setting(ws: Workspace, name: str) -> bool:
    """Take `name` (any name, retired and unknown ones too) out of the file, so that its default holds.

    Whether it stood there. Errors as `set_setting`, but for the name.
    """
    before = settings_file.read_text(ws.config_file)
    after = setting_keys.unset_value(before, name)
    if after != before:
        _write(ws, after)
        ws.settings, ws.settings_problems = settings_file.load(ws.config_file, ws.environ)
    return after != before


def _entry(ws: Workspace, key: setting_keys.Key) -> Entry:
    value = getattr(ws.settings, key.attribute)
    return Entry(key.name, value, key.default, value != key.default, key.doc)


def _write(ws: Workspace, text: str) -> None:
    # Through a link, so that a settings file kept with one's dotfiles stays one.
    file = os.path.realpath(ws.config_file)
    paths.make_folder(os.path.dirname(file))
    paths.atomic_write(file, text.encode("utf-8"))
