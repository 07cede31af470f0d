"""A commit's message is the same text whoever makes the commit, and whatever the person's settings cut."""

from __future__ import annotations

import subprocess

import pytest

from tests.git.commits import FIRST, M1, hook, provider, write

MESSAGE = "Größe: 部署 in two lines\n\n# not a comment\n- an item  \n\n\n\n#1 and `code`\nCo-operation: yes\n"
KEPT = "Größe: 部署 in two lines\n\n# not a comment\n- an item\n\n#1 and `code`\nCo-operation: yes\n"
SETTINGS = {
    "commit.cleanup": "strip",
    "commit.verbose": "true",
    "commit.status": "true",
    "core.commentChar": "-",
    "trailer.sign.key": "Signed-off-by",
    "format.signOff": "true",
}


@pytest.mark.parametrize("way", ["here", "branch", "hooks", "branch with hooks", "signed"])
@pytest.mark.parametrize("set_by_person", [False, True], ids=["plain", "settings"])
def test_the_message_arrives_as_it_was_given(git, make_repo, home, way, set_by_person):
    repo = make_repo()
    if set_by_person:
        (home / "template").write_text("Say why.\n")
        git("config", "commit.template", str(home / "template"), cwd=repo)
        for key, value in SETTINGS.items():
            git("config", key, value, cwd=repo)
    if "hooks" in way:
        hook(repo, "pre-commit", "exit 0")
    if way == "signed":
        key = home / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        values = {"gpg.format": "ssh", "user.signingKey": str(key), "commit.gpgsign": "true"}
        for name, value in values.items():
            git("config", name, value, cwd=repo)
    branch = "memex/out" if way.startswith("branch") else None
    if branch is None:
        write(repo, M1, FIRST)
    made = provider(repo).commit({M1: FIRST}, message=MESSAGE, branch=branch)
    raw = git("cat-file", "commit", made.commit, cwd=repo)
    assert raw.partition("\n\n")[2] + "\n" == KEPT
    assert ("gpgsig" in raw) == (way == "signed")
