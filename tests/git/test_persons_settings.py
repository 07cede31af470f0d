"""What a commit, a look back, a pull and a push do is the same whatever a person has set in git."""

from __future__ import annotations

import pytest
from kinds import FOLDER, NEW, OLD, Stage

from tests.git.commits import (
    FIRST,
    M1,
    M2,
    SECOND,
    busy_repo,
    changed_by,
    head,
    hook,
    own_work,
    provider,
    write,
)

SETTINGS = {
    "how things look": [
        "color.ui=always",
        "column.ui=always",
        "core.abbrev=4",
        "core.quotePath=true",
        "core.pager=false",
        "pager.log=true",
        "format.pretty=fuller",
        "log.abbrevCommit=true",
        "log.date=human",
        "log.decorate=full",
        "status.branch=true",
        "status.short=true",
        "grep.lineNumber=true",
    ],
    "how differences look": [
        "diff.context=0",
        "diff.algorithm=patience",
        "diff.noprefix=true",
        "diff.relative=true",
        "diff.submodule=log",
        "diff.renames=copies",
        "diff.wsErrorHighlight=all",
        "status.renames=copies",
        "log.diffMerges=first-parent",
        "log.follow=true",
    ],
    "the staging area": [
        "core.splitIndex=true",
        "core.untrackedCache=true",
        "core.preloadIndex=false",
        "core.checkStat=minimal",
        "core.trustctime=false",
        "index.skipHash=true",
        "feature.manyFiles=true",
    ],
    "objects and refs": [
        "core.logAllRefUpdates=false",
        "core.looseCompression=9",
        "core.bigFileThreshold=1",
        "core.fsync=none",
        "transfer.fsckObjects=true",
        "core.commitGraph=false",
        "core.warnAmbiguousRefs=false",
    ],
    "merges, pulls and pushes": [
        "merge.renameLimit=1",
        "merge.autoStash=true",
        "merge.suppressDest=*",
        "rebase.updateRefs=true",
        "pull.ff=only",
        "push.followTags=true",
        "push.useForceIfIncludes=true",
        "protocol.version=0",
        "branch.autoSetupMerge=always",
    ],
    "files that are not there": [
        "include.path=/nonexistent",
        "core.attributesFile=/nonexistent",
        "core.excludesFile=/nonexistent",
        "mailmap.file=/nonexistent",
        "notes.displayRef=*",
    ],
}


def put(git, name):
    for setting in SETTINGS[name]:
        key, _, value = setting.partition("=")
        git("config", "--global", key, value)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_commit_is_the_same(git, make_repo, name):
    plain = busy_repo(git, make_repo)

    def committed():
        before = [line for line in own_work(git, plain) if "branch.oid" not in line]
        tip = head(git, plain)
        (plain / ".git" / "hooks" / "pre-commit").unlink(missing_ok=True)
        made = [provider(plain).commit({M1: write(plain, M1, FIRST)}, message="x").commit]
        made += [provider(plain).commit({M2: SECOND}, message="y", branch="memex/out").commit]
        hook(plain, "pre-commit", "exit 0")
        made += [provider(plain).commit({M1: write(plain, M1, SECOND)}, message="z").commit]
        trees = [git("rev-parse", f"{one}^{{tree}}", cwd=plain) for one in made]
        assert [line for line in own_work(git, plain) if "branch.oid" not in line] == before
        assert provider(plain).folder_status(FOLDER) == []
        assert [v.status for v in provider(plain).versions(M1[-29:], [FOLDER])][:2] == ["M", "A"]
        assert changed_by(git, plain) == [M1]
        git("reset", "-q", "--soft", tip, cwd=plain)
        git("rm", "-q", "--cached", M1, cwd=plain)
        (plain / M1).unlink()
        git("branch", "-q", "-D", "memex/out", cwd=plain)
        return trees

    wanted = committed()
    put(git, name)
    assert committed() == wanted
    assert git("fsck", "--strict", "--no-dangling", cwd=plain) == ""


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_read_pulled_and_pushed_is_the_same(git, tmp_path, name):
    stage = Stage(git, tmp_path.resolve())
    here = stage.clone()
    stage.share(NEW, "The new decision: larch for every gate.")
    stage.share(OLD, "The old decision, again: cedar for every fence.")
    put(git, name)
    got = provider(here).pull(FOLDER)
    assert got.changes == (("M", f"{FOLDER}/{OLD}.md"), ("A", f"{FOLDER}/{NEW}.md"))
    assert got.authors == ("Ada Example",)
    found = provider(here).versions(f"{OLD}.md", [FOLDER])
    assert [(one.status, one.by) for one in found] == [("M", "Ada Example"), ("A", "Ada Example")]
    assert provider(here).revision("2039-01-01").commit == provider(here).revision("HEAD").commit == got.after
    assert set(provider(here).names_in_history("01K6AB", [FOLDER])) == {OLD, NEW}
    assert provider(here).identity().root_commit == git("rev-parse", "HEAD~2", cwd=here)
    path = here / FOLDER / f"{OLD}.md"
    for branch, tag in (("topic", "one"), ("main", "two")):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=here)
        path.write_text(path.read_text().replace("tags: []", f"tags: [{tag}]"))
        git("add", "-A", cwd=here)
        provider(here).commit({f"{FOLDER}/{OLD}.md": path.read_bytes()}, message=f"{tag} of both")
    assert git.run("cherry-pick", "topic", cwd=here).returncode == 1
    sides = provider(here).sides(provider(here).unmerged([FOLDER]))
    picked = git("rev-parse", "topic", cwd=here)
    assert (sides.ours, sides.theirs) == ("main", f'commit {picked[:10]} "one of both"')
    git("cherry-pick", "--abort", cwd=here)
    assert provider(here).push("main").after == head(git, here) == head(git, stage.remote, "main")
