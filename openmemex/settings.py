"""The settings as values: one attribute a key, with its default. Part of every command's start-up."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    """One attribute a key; the keys, their meaning and what is allowed stand in `setting_keys.KEYS`."""

    memory_dir: str = ".ai/open-memex"
    identity: str = ""
    cjk_tokenizer: str = "bigram"
    capture_aliases: bool = True
    keyword_capture_enabled: bool = True
    keyword_patterns_extra: tuple[str, ...] = ()
    keyword_personal_patterns_extra: tuple[str, ...] = ()
    narration_triggers: bool = False
    inject_on_first_turn: bool = True
    context_tokens: int = 800
    max_project_memories: int = 12
    max_profile_items: int = 8
    log_level: str = "warning"
    org_repo: str = ""
    review_publish_bases: tuple[str, ...] = ("*",)
    review_allow_bots: tuple[str, ...] = ()
    trust_signers: str = ""
    secrets_allow: tuple[str, ...] = ()


class SettingsProblem(NamedTuple):
    """Something in the settings file that a person should know; `text` is one whole sentence.

    `kind` is "file" (not readable: every default is used), "value" (that key's default is used), "unknown" or
    "retired" (both ignored). `key` is "" for "file"; `line` is 0 when there is none.
    """

    kind: str
    key: str
    line: int
    text: str
