"""Which project a repository is: one name for all spellings of its origin, and two more for when it has none.

The normal form holds no user, no password and no port, so that it can be hashed, stored and shown.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Final, NamedTuple

from openmemex.git import light
from openmemex.git.light import Site
from openmemex.git.process import Git, GitMissing

# Hosts that serve the same repositories under a second name, for networks that let only port 443 through
# (docs.github.com "Using SSH over the HTTPS port", and the like at GitLab and Bitbucket).
_SECOND_NAMES: Final = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)\Z", re.IGNORECASE | re.DOTALL)
_HELPER: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)::(.*)\Z", re.DOTALL)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


class RepositoryIdentity(NamedTuple):
    """What a repository is known by.

    `name`: for people. `origin_url_normal`: normal_origin of the remote `origin`, None without one.
    `root_commit`: the oldest commit without a parent that HEAD reaches, None without commits or in a shallow
    clone. `folder`: the main work tree (the git folder of a bare repository), the same from every linked work
    tree. `keys`: the scope keys of these three, best first. `whole`: git itself said all this; without git
    the root commit is missing, and what is saved meanwhile goes by the other two.
    """

    name: str
    origin_url_normal: str | None
    root_commit: str | None
    folder: str
    keys: tuple[str, ...]
    whole: bool = True

    @property
    def owner_repo(self) -> str | None:
        """`owner/repo`, as a forge names it; None when the origin is no address on a network."""
        return None if self.origin_url_normal is None else owner_repo(self.origin_url_normal)


def of_repository(git: Git) -> RepositoryIdentity:
    """Work out the identity: three short git commands and a walk to the root commits.

    Where there is no git, or it does not take this repository, from git's configuration files alone.
    """
    try:
        if git.run("rev-parse", "--git-dir", check=False).code == 0:
            return _identity(git.site, origin_url(git), root_commit(git))
    except GitMissing:
        pass
    return _identity(git.site, _origin_without_git(git.site), None)._replace(whole=False)


def _origin_without_git(site: Site) -> str | None:
    """origin_url as libgit2 reads git's configuration files, without opening the repository."""
    import pygit2

    values: list[tuple[str, str]] = []
    read = pygit2.Config
    for source in (
        read.get_system_config,
        read.get_xdg_config,
        read.get_global_config,
        lambda: read(os.path.join(site.common_dir, "config")),
    ):
        with contextlib.suppress(OSError, pygit2.GitError, ValueError):
            values += [(entry.name, entry.value or "") for entry in source()]
    urls = [value for name, value in values if name == "remote.origin.url"]
    if not urls:
        return None
    begins = [(value, name) for name, value in values if re.fullmatch(r"url\..*\.insteadof", name)]
    fitting = [(value, name) for value, name in begins if value and urls[0].startswith(value)]
    if not fitting:
        return urls[0]
    begin, name = max(fitting, key=lambda pair: len(pair[0]))  # the longest counts, as git-config(1) has it
    return name[len("url.") : -len(".insteadof")] + urls[0][len(begin) :]


def _identity(site: Site, url: str | None, root: str | None) -> RepositoryIdentity:
    folder = light.main_folder(site)
    base = os.path.basename(folder).removesuffix(".git") or os.path.basename(folder) or "repo"
    normal = None if url is None else normal_origin(url, folder)
    keys = []
    name = base
    if url is not None and normal is not None:
        name = _last_part(_without_suffixes(_path_part(url))) or base
        keys.append(light.scope_key(_last_part(normal), normal))
    # These two keep the folder's name when an origin comes: what was saved under them must still be found.
    if root is not None:
        keys.append(light.scope_key(base, root))
    keys.append(light.scope_key(base, folder))
    return RepositoryIdentity(name, normal, root, folder, tuple(dict.fromkeys(keys)))


def origin_url(git: Git) -> str | None:
    """The address that `git fetch origin` goes to: the first one, after `insteadOf`. May hold a password."""
    return remote_url(git, "origin")


def remote_url(git: Git, remote: str, *, push: bool = False) -> str | None:
    """The first address of `remote` after `insteadOf`, or of its `push` ones. It may hold a password."""
    done = git.run("remote", "get-url", *(["--push"] if push else []), "--", remote, check=False)
    url = done.text.split("\n", 1)[0].strip()
    # Without an address of its own git takes a remote's name for one.
    return url if done.code == 0 and url and url != remote else None


def root_commit(git: Git) -> str | None:
    """The oldest commit without parents that HEAD reaches; None without commits and in shallow clones."""
    if os.path.exists(os.path.join(git.site.common_dir, "shallow")):
        return None
    if light.head(git.site)[1] is None:
        return None
    # A replaced commit or a graft is one clone's own matter; the project's identity is not.
    done = git.run("--no-replace-objects", "log", "--max-parents=0", "--format=%ct %H", "HEAD", check=False)
    roots = [(int(line.split()[0]), line.split()[1]) for line in done.text.splitlines() if line.strip()]
    return min(roots)[1] if done.code == 0 and roots else None


def normal_origin(url: str, folder: str = os.curdir) -> str:
    """One text for all spellings of one remote: `host/path` in lower case, or an absolute real path.

    https, http, ssh, git and scp-like forms (gitglossary "GIT URLS" in git-clone(1)) of one address agree,
    with or without user, password, port, `.git` and trailing slashes. A local path, also as `file://`, keeps
    its case and is resolved from `folder`. Never fails; what it does not understand is a local path.
    """
    url = url.strip()
    helper = _HELPER.match(url)
    if helper:
        return f"{helper[1].lower()}::{normal_origin(helper[2], folder)}"
    host, path = _split(url)
    if host:
        return f"{_normal_host(host)}/{_without_suffixes(path).lower()}".rstrip("/")
    if sys.platform == "win32":
        path = path.replace("\\", "/")
    real = os.path.realpath(os.path.join(folder, os.path.expanduser(path)))
    return _without_suffixes(real) or os.sep


def _split(url: str) -> tuple[str, str]:
    """(host with what stands around it, or "" for a local path; path)."""
    scheme = _SCHEME.match(url)
    if scheme:
        authority, slash, path = scheme[2].partition("/")
        if scheme[1].lower() == "file":
            return ("", slash + path) if authority in ("", "localhost") else (authority, path)
        if "@" in path and re.search(r"@\Z|:[^/@]*[^/@0-9][^/@]*\Z", authority):
            # A slash in a password that was not percent-encoded: nothing of it may pass for a path.
            authority, slash, path = scheme[2].rpartition("@")[2].partition("/")
        path = re.split(r"[?#]", path, maxsplit=1)[0]
        return authority or "-", path.lstrip("/")
    # scp-like: a colon before the first slash, as git decides it; `C:\x` and `C:/x` are drives.
    bracketed = re.match(r"\[([^\]]*)\]:(.*)\Z|([^/\[]*\[[^\]]*\]):(.*)\Z", url, re.DOTALL)
    if bracketed:
        return bracketed[1] or bracketed[3] or "-", (bracketed[2] or bracketed[4] or "").lstrip("/")
    first, slash, rest = url.partition("/")
    _user, _, named = first.rpartition("@")
    before, colon, path = (named if ":" in named else first).partition(":")
    path += slash + rest
    if re.search(r"@[^/@:\s]+:", path) and "/" not in before:
        # A slash in the password: as above.
        before, _, path = path.rpartition("@")[2].partition(":")
    if colon and before and "/" not in before and not _DRIVE.match(url):
        return before, path.lstrip("/")
    return "", url


def _normal_host(host: str) -> str:
    """`host` without user, password, port and closing dot, in lower case; IPv6 keeps its brackets."""
    host = host.rpartition("@")[2].lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    if host.count(":") == 1:
        host = host.partition(":")[0]
    host = host.rstrip(".")
    return _SECOND_NAMES.get(host, host)


def _without_suffixes(path: str) -> str:
    """`path` without slashes and `.git` at its end."""
    while True:
        shorter = path.rstrip("/")
        if shorter.lower().endswith(".git"):
            shorter = shorter[:-4]
        if shorter == path:
            return path
        path = shorter


def _path_part(url: str) -> str:
    helper = _HELPER.match(url)
    return _split(helper[2] if helper else url)[1]


def _last_part(path: str) -> str:
    return re.split(r"[/\\:]", path)[-1]


def host_of(normal: str) -> str:
    """The host of a normal form; "" for a local path."""
    plain = normal.rpartition("::")[2] if not normal.startswith("/") else normal
    return "" if plain.startswith(("/", "\\")) or _DRIVE.match(plain) else plain.partition("/")[0]


def owner_repo(normal: str) -> str | None:
    """`owner/repo` (or `group/subgroup/repo`) of a normal form; None for a local path."""
    host = host_of(normal)
    path = normal.partition(host + "/")[2] if host else ""
    return path or None
