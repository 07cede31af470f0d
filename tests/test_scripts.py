"""The two README commands say what is missing before they fail on it, and the story fails when it must."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from types import ModuleType

import pytest
from conftest import CHECKOUT


@pytest.fixture
def load(monkeypatch):
    def by_name(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
        spec = importlib.util.spec_from_file_location(f"script_{name}", CHECKOUT / "scripts" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return by_name


def test_an_old_python_is_told_which_one_is_needed(load, monkeypatch):
    environment = load("environment")
    monkeypatch.setattr(environment.sys, "version_info", (3, 10, 4, "final", 0))
    monkeypatch.setattr(environment, "_runs", lambda name: name == "python3.12")
    with pytest.raises(
        environment.Failure, match=r"needs Python 3\.11 or newer(?s:.*)Run this with python3\.12"
    ):
        environment.check_python()


def test_a_name_that_starts_nothing_is_no_python(load, tmp_path, monkeypatch):
    environment = load("environment")
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert not environment._runs("python3.12")
    shim.write_text("#!/bin/sh\nexit 0\n")
    assert environment._runs("python3.12")
    assert not environment._runs("python3.77")


def test_a_python_without_its_venv_package_is_told_which_package_to_install(load, monkeypatch, tmp_path):
    environment = load("environment")
    monkeypatch.setattr(environment, "FOLDER", tmp_path / "env")
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(environment.Failure, match=rf"apt-get install python{version}-venv"):
        environment._make(environment.Environment(tmp_path / "env"))


def test_a_machine_without_git_is_told_so(load, monkeypatch):
    environment = load("environment")
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    with pytest.raises(environment.Failure, match="git is not installed"):
        environment.ensure()


def test_a_failing_step_shows_its_output_and_what_to_do(load):
    environment = load("environment")
    code = "print('no such package'); raise SystemExit(3)"
    with pytest.raises(
        environment.Failure, match=r"no such package(?s:.*)it failed \(exit 3\)(?s:.*)again is safe"
    ):
        environment._run([sys.executable, "-c", code], "it failed")


def test_the_package_digest_follows_every_byte_and_name(load, tmp_path, monkeypatch):
    environment = load("environment")
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("x = 1\n")
    digests = {environment._digest([first])}
    first.write_text("x = 2\n")
    digests.add(environment._digest([first]))
    first.rename(second)
    digests.add(environment._digest([second]))
    assert len(digests) == 3


def test_the_story_sees_a_text_in_any_object_of_a_repository(load, make_repo, git):
    story = load("story")
    repo = make_repo()

    class Nobody:
        environ = None

    assert not story._holds(repo, "heron mug", Nobody())
    (repo / "left.txt").write_text("the heron mug\n")
    git("add", "left.txt", cwd=repo)  # a loose object that no commit names
    git("rm", "-q", "--cached", "left.txt", cwd=repo)
    assert story._holds(repo, "heron mug", Nobody())


def test_the_story_says_that_something_is_not_as_told(load, capsys):
    story = load("story")
    with pytest.raises(story.NotAsTold, match="the teammate finds it"):
        story.expect(False, "the teammate finds it")
    story.expect(True, "the remote has it")
    assert "checked  the remote has it" in capsys.readouterr().out


def test_the_story_cuts_no_line_that_fits(load):
    story = load("story")
    assert story._fit("x" * 100, 100) == "x" * 100
    assert len(story._fit("x" * 101, 100)) == 100


def test_the_decision_records_have_titles_to_search_for(load):
    story = load("story")
    titles = [title for _, title in story._records(CHECKOUT)]
    assert len(titles) >= 8
    assert "One Markdown file per memory" in titles


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_ci_script_is_sound_bash_and_may_be_started():
    script = CHECKOUT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text("utf-8")


def test_every_package_of_the_checkout_is_installed():
    import tomllib

    told = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    made = CHECKOUT.glob("openmemex/**/__init__.py")
    folders = {".".join(path.parent.relative_to(CHECKOUT).parts) for path in made}
    renamed = told["package-dir"]
    assert set(told["packages"]) == folders | set(renamed)
    assert all((CHECKOUT / folder / "__init__.py").is_file() for folder in renamed.values())


def test_the_mirror_of_the_other_gits_is_the_machines_own(load, tmp_path):
    other_gits = load("other_gits")
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    with pytest.raises(other_gits.Failure, match="names no place"):
        other_gits.sources(str(tmp_path))
    (folder / "debian.sources").write_text(
        "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/key.gpg\n\n"
        "Types: deb-src\nURIs: http://source.test/debian\nComponents: main\n"
    )
    (folder / "other.list").write_text(
        "deb https://tools.test/apt stable main\n# deb http://off.test/debian x main\n"
    )
    (tmp_path / "sources.list").write_text("deb [arch=amd64] http://old.test/debian/ bookworm main contrib\n")
    assert other_gits.sources(str(tmp_path)) == [
        ("http://mirror.test/debian", "[signed-by=/usr/share/keyrings/key.gpg] "),
        ("http://old.test/debian/", "[arch=amd64] "),
    ]


def test_a_machine_without_debians_tools_is_told_so(load, tmp_path, monkeypatch):
    other_gits = load("other_gits")
    monkeypatch.setattr(other_gits, "FOLDER", tmp_path)
    monkeypatch.setattr(other_gits.shutil, "which", lambda name: None)
    with pytest.raises(other_gits.Failure, match="apt-get is not here"):
        other_gits.ensure("new", ("testing",), (2, 45), (99, 0))
    start = tmp_path / "new" / "bin" / "git"
    start.parent.mkdir(parents=True)
    start.write_text("#!/bin/sh\necho git version 2.50.1\n")
    start.chmod(0o755)
    assert other_gits.ensure("new", ("testing",), (2, 45), (99, 0)) == tmp_path / "new"
