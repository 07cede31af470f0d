"""The settings' keys, what each may be, and edits of the file that change the bytes of one value only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from openmemex.errors import OpenMemexError, UsageError
from openmemex.settings import Settings, SettingsProblem

if TYPE_CHECKING:
    from openmemex.jsonc import Member, Node


class Key(NamedTuple):
    """One setting: its name in the file, its attribute in `Settings`, what it may be, and what it is for."""

    name: str
    attribute: str
    kind: str  # "folder", "text", "choice", "switch", "number", "list", "patterns"
    allowed: str
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0


_FOLDER = "a folder inside the repository: relative, with /, without .. and outside of .git"
_SWITCH = "true or false"


def _table(*rows: tuple[str, str, str, str]) -> dict[str, Key]:
    table: dict[str, Key] = {}
    limits = {
        "contextTokens": (100, 100_000),
        "maxProjectMemories": (0, 500),
        "maxProfileItems": (0, 500),
    }
    for name, kind, allowed, doc in rows:
        attribute = "".join("_" + c.lower() if c.isupper() or c == "." else c for c in name).replace(
            "_.", "_"
        )
        choices = tuple(allowed.split(", ")) if kind == "choice" else ()
        least, most = limits.get(name, (0, 0))
        if kind == "number":
            allowed = f"a whole number from {least} to {most}"
        default = Settings._field_defaults[attribute]
        table[name] = Key(name, attribute, kind, allowed, default, doc, choices, least, most)
    return table


KEYS: dict[str, Key] = _table(
    ("memoryDir", "folder", _FOLDER, "where a repository keeps its memories"),
    ("identity", "text", "a name", "who you are in reviews; empty: git's user.name"),
    ("cjkTokenizer", "choice", "bigram, trigram", "how Chinese, Japanese and Korean text is cut for search"),
    ("captureAliases", "switch", _SWITCH, "whether aliases (other words for the same thing) are stored"),
    (
        "keywordCaptureEnabled",
        "switch",
        _SWITCH,
        "whether words like “remember” in your own text save a memory",
    ),
    (
        "keywordPatternsExtra",
        "patterns",
        "a list of regular expressions",
        "more patterns that save for the project",
    ),
    (
        "keywordPersonalPatternsExtra",
        "patterns",
        "a list of regular expressions",
        "more patterns that save for you",
    ),
    ("narrationTriggers", "switch", _SWITCH, "whether telling forms (“we decided …”) save a memory as well"),
    ("injectOnFirstTurn", "switch", _SWITCH, "whether an agent's session starts with the context block"),
    ("contextTokens", "number", "", "how long the context block may be"),
    ("maxProjectMemories", "number", "", "how many of the project's memories the context block holds"),
    ("maxProfileItems", "number", "", "how many personal memories the context block holds"),
    ("logLevel", "choice", "error, warning, info, debug", "how much is logged"),
    ("org.repo", "text", "a repository's address", "where the organisation's memories live"),
    (
        "review.publishBases",
        "list",
        "a list of branch name patterns",
        "merging into which branches publishes",
    ),
    ("review.allowBots", "list", "a list of account names", "bots whose approval counts"),
    ("trust.signers", "text", "a file's path", "the file of allowed signers"),
    ("secrets.allow", "list", "a list of keyed hashes", "values that look like secrets and are none"),
)

RETIRED: dict[str, str] = {
    "sync.autoPull": "nothing is pulled by itself: run `open-memex pull`, or git pull, when you want to",
}
_GROUPS = frozenset(name.partition(".")[0] for name in (*KEYS, *RETIRED) if "." in name)


def check(key: Key, value: Any) -> Any:
    """`value` as `Settings` holds it (lists as tuples, folders without a `/` at the end).

    Raises UsageError, saying what is allowed, when `key` may not be that.
    """
    good = _checked(key, value)
    if good is None:
        raise UsageError(f"{key.name} cannot be {_shown(key, value)}: it must be {_allowed(key)}")
    return good


def value_from_text(key_name: str, text: str) -> Any:
    """What a person typed after `config set KEY`, as a value of that key.

    Switches read true/false, on/off, yes/no; lists read a JSON list, else items with commas between; of
    patterns the text is the one item ("" is the empty list). Raises UsageError when the key is unknown or the
    value not allowed.
    """
    key = known(key_name)
    value: Any = text
    if key.kind == "switch":
        value = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}.get(
            text.strip().lower(), text
        )
    elif key.kind == "number" and re.fullmatch(r"\s*[0-9]{1,9}\s*", text, re.ASCII):
        value = int(text)
    elif key.kind in ("list", "patterns"):
        value = _list_from_text(text, commas=key.kind == "list")
    return check(key, value)


def known(key_name: str) -> Key:
    """The key of that name. Raises UsageError, with the nearest name, when there is none."""
    if key_name in KEYS:
        return KEYS[key_name]
    if key_name in RETIRED:
        raise UsageError(f"{key_name} is retired", RETIRED[key_name])
    near = _nearest(key_name)
    raise UsageError(
        f"there is no setting {_shown_name(key_name)}",
        f"did you mean {near}?" if near else "`open-memex config list` shows them all",
    )


def set_value(text: str, key: str, value: Any) -> str:
    """The settings file `text` with `key` set to `value`; every other character stays as it is.

    A key that is there is changed where it is, flat or in its group; a new one is put at the end of its
    group, which is made when it is missing. Indentation, line ends, and whether the last line has a comma
    follow the file. Empty text (or comments alone) becomes an object. Raises UsageError for an unknown key or
    a value that is not allowed, OpenMemexError when the text is no JSON object with comments, when the key
    stands there twice, or when a comment stands inside the old value and would be lost.
    """
    from openmemex import jsonc  # only an edit, or a file that is there, needs it

    checked = check(known(key), value)
    plain = list(checked) if isinstance(checked, tuple) else checked
    root = _editable(text)
    found = _find(text, root, key)
    if found is not None:
        try:
            return jsonc.replace(text, found[1].value, plain)
        except jsonc.Unfit as unfit:
            hint = "change that value by hand"
            raise OpenMemexError(f"line {unfit.line} of the settings: {unfit.reason}", hint) from None
    path = tuple(key.split("."))
    if root is not None and len(path) > 1:
        for _, member in jsonc.members_at(root, path[:1]):
            if member.value.kind == "object":
                return jsonc.insert(text, root, member.value, path[1:], plain)
    return jsonc.insert(text, root, root, path, plain)


def unset_value(text: str, key: str) -> str:
    """The settings file `text` without `key`, so that its default holds; comments stay.

    Text without the key comes back as it is. Works for retired and unknown keys as well. Raises
    OpenMemexError as `set_value` does for text that cannot be edited.
    """
    from openmemex import jsonc  # only an edit, or a file that is there, needs it

    found = _find(text, _editable(text), key)
    return text if found is None else jsonc.remove(text, *found)


def _editable(text: str) -> Node | None:
    from openmemex import jsonc

    try:
        root = jsonc.parse(text)
    except jsonc.Unfit as unfit:
        raise OpenMemexError(
            f"the settings file cannot be edited: line {unfit.line}: {unfit.reason}",
            "mend that line by hand; the file was left as it is",
        ) from None
    if root is not None and root.kind != "object":
        raise OpenMemexError(
            "the settings file cannot be edited: it holds no object { … }",
            "mend it by hand, or move it away; the file was left as it is",
        )
    return root


def _find(text: str, root: Node | None, key: str) -> tuple[Node, Member] | None:
    from openmemex import jsonc

    if root is None:
        return None
    found = jsonc.members_at(root, (key,))
    if "." in key:
        found += jsonc.members_at(root, tuple(key.split(".", 1)))
    if len(found) > 1:
        lines = " and ".join(str(line) for line in sorted(jsonc.line_of(text, m.start) for _, m in found))
        raise OpenMemexError(
            f"{key} stands in the settings file twice: lines {lines}", "remove one of them by hand"
        )
    return found[0] if found else None


# --- values ---


def _checked(key: Key, value: Any) -> Any:
    """`value` in its stored form, or None when it is not allowed."""
    if key.kind == "switch":
        return value if isinstance(value, bool) else None
    if key.kind == "number":
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and key.least <= value <= key.most else None
    if key.kind == "choice":
        return value if isinstance(value, str) and value in key.choices else None
    if key.kind in ("list", "patterns"):
        return _checked_list(key, value)
    if not isinstance(value, str) or not _is_line(value):
        return None
    return _checked_folder(value) if key.kind == "folder" else value.strip()


def _checked_list(key: Key, value: Any) -> tuple[str, ...] | None:
    items = [value] if isinstance(value, str) and key.name == "review.publishBases" else value
    if not isinstance(items, list | tuple) or len(items) > 200:
        return None
    for item in items:
        if not isinstance(item, str) or not item.strip() or not _is_line(item):
            return None
        if key.kind == "patterns":
            try:
                re.compile(item)
            except (re.error, RecursionError, OverflowError):
                return None
    return tuple(items)


def _is_line(text: str) -> bool:
    return len(text) <= 1000 and not any(ord(char) < 32 or ord(char) == 127 for char in text)


def _checked_folder(text: str) -> str | None:
    folder = text.strip().removeprefix("./").rstrip("/")
    parts = folder.split("/")
    if text.startswith(("/", "~")) or "\\" in text or ":" in text:
        return None
    # macOS and Windows ignore case, Windows trailing dots and blanks: `.GIT.` there is git's own folder.
    if any(part.rstrip(". ").lower() in ("", ".git", "git~1") or part != part.strip() for part in parts):
        return None
    return folder


def _allowed(key: Key) -> str:
    return f"one of {', '.join(key.choices)}" if key.choices else key.allowed


def _shown(key: Key, value: Any) -> str:
    """`value` for an error; never when it might be a secret that ended up under the wrong key."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return str(value) if len(str(value)) <= 20 else "such a number"
    if not isinstance(value, str):
        return "an object" if isinstance(value, dict) else "such a list"
    shown = f'"{value}"' if _harmless(value) else f"a text of {len(value)} characters"
    return "such a value" if key.name.startswith("secrets.") else shown


def _shown_name(name: str) -> str:
    return name if _harmless(name) else f"of that name ({len(name)} characters)"


def _harmless(text: str) -> bool:
    """Whether `text` can be repeated to a person: short, printable, no long run of letters with digits."""
    if len(text) > 40 or not text.isprintable() or "@" in text:
        return False
    runs = re.findall(r"[A-Za-z0-9+/_=-]{12,}", text)
    return not any(re.search(r"[0-9]", run) and re.search(r"[A-Za-z]", run) for run in runs)


def _nearest(name: str) -> str:
    import difflib  # only a person who mistyped a key waits for it

    lowered = {key.lower(): key for key in KEYS}
    found = difflib.get_close_matches(name.lower(), lowered, 1, 0.6)
    return lowered[found[0]] if found else ""


def _list_from_text(text: str, *, commas: bool) -> list[Any]:
    if not text.strip():
        return []
    if text.lstrip().startswith("["):
        from openmemex import jsonc

        try:
            node = jsonc.parse(text)
        except jsonc.Unfit:
            node = None
        if node is not None and node.kind == "array":
            return list(node.value)
    return [item for part in text.split(",") if (item := part.strip())] if commas else [text]


def values(text: str, config_file: str, problems: list[SettingsProblem]) -> dict[str, Any]:
    """The allowed values of the file, by attribute; what is wrong with the others goes to `problems`."""
    from openmemex import jsonc  # only where a settings file exists

    def tell(kind: str, name: str, line: int, what: str) -> None:
        problems.append(SettingsProblem(kind, name, line, f"{config_file}, line {line}: {what}"))

    try:
        root = jsonc.parse(text)
    except jsonc.Unfit as unfit:
        tell("file", "", unfit.line, f"{unfit.reason}; the defaults are used")
        return {}
    if root is None or root.kind != "object":
        what = "it is empty" if root is None else "it holds no object { … }"
        tell("file", "", 1, f"{what}; the defaults are used")
        return {}
    found: dict[str, list[Member]] = {}
    for member in root.members:
        if member.name in _GROUPS:
            if member.value.kind == "object":
                for inner in member.value.members:
                    found.setdefault(f"{member.name}.{inner.name}", []).append(inner)
            elif member.value.kind != "null":
                tell(
                    "value",
                    member.name,
                    jsonc.line_of(text, member.start),
                    f"{member.name} must be an object {{ … }}; it is ignored",
                )
        else:
            found.setdefault(member.name, []).append(member)
    allowed: dict[str, Any] = {}
    for name, members in found.items():
        first = members[0]
        line = jsonc.line_of(text, first.start)
        key = KEYS.get(name)
        if key is None:
            if name in RETIRED:
                tell("retired", name, line, f"{name} is retired and ignored; {RETIRED[name]}")
            elif not name.startswith("$"):  # "$schema" is an editor's business
                near = _nearest(name)
                asked = f"; did you mean {near}?" if near else ""
                shown = f"setting {name}" if _harmless(name) else "such a setting"
                tell("unknown", name if _harmless(name) else "", line, f"there is no {shown}{asked}")
        elif len(members) > 1:
            others = ", ".join(str(jsonc.line_of(text, m.start)) for m in members[1:])
            what = (
                f"{name} stands there again in line {others}; the default is used until one of them is gone"
            )
            tell("value", name, line, what)
        else:
            good = _checked(key, first.value.value)
            if good is None:
                bad = _shown(key, first.value.value)
                what = f"{name} cannot be {bad}: it must be {_allowed(key)}; the default is used"
                tell("value", name, line, what)
            else:
                allowed[key.attribute] = good
    return allowed
