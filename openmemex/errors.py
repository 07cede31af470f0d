"""Errors for people: what happened, to which file or ref, and what to do next."""


class OpenMemexError(Exception):
    """Something that a person can read and act upon.

    `message` is one line that names the file or ref; `hint` is one line that says what to do next ("" when
    there is nothing to do). `exit_code` follows the command line's table (docs/protocol.md): 1 failed or
    refused, 2 wrong usage, 3 a person must decide, 4 done in part. `words`: what another program (a hook, a
    server) said about it, line by line as it said it; shown below the message. `document`: keys that stand
    beside the error with --json.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "", words: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.words = words
        self.document: dict[str, object] = {}

    def __str__(self) -> str:
        return "\n".join([self.message, *self.words, *([self.hint] if self.hint else [])])


class UsageError(OpenMemexError):
    """The call's own words are wrong: an unknown value, a missing argument."""

    exit_code = 2


class DecisionNeeded(OpenMemexError):
    """Only a person can choose: two memories share a prefix, two texts share an id."""

    exit_code = 3


class PartlyDone(OpenMemexError):
    """Some of it was done; the message names what was not. `done`: the operation's result so far, where it
    has one to show.
    """

    exit_code = 4

    def __init__(
        self, message: str, hint: str = "", words: tuple[str, ...] = (), *, done: object = None
    ) -> None:
        super().__init__(message, hint, words)
        self.done = done


class Interrupted(PartlyDone):
    """A person stopped it (Ctrl-C) when some of it was done already; the message says what."""

    exit_code = 130


class NotFound(OpenMemexError):
    """No memory, file or ref of that name is here."""


class Refused(OpenMemexError):
    """Nothing was changed, on purpose; the message says why."""


class IndexBusy(OpenMemexError):
    """Another process holds the memory index for longer than the limit."""
