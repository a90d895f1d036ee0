"""scripts/setup with stand-ins for dpkg-query, id, sudo and apt-get: nothing is installed."""

import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def listed(level):
    return subprocess.check_output([SCRIPTS / "setup", level, "--list"], text=True).split()


@pytest.fixture
def machine(tmp_path):
    """A PATH on which programs of the test's choice stand before the real ones."""

    def run(arguments, **programs):
        for name, body in {"apt-get": f"echo called >> {tmp_path}/apt", **programs}.items():
            program = tmp_path / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)
        result = subprocess.run(
            [SCRIPTS / "setup", *arguments],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        result.apt_was_called = (tmp_path / "apt").exists()
        return result

    return run


def test_nothing_is_done_when_all_is_there(machine):
    result = machine(["all"], dpkg_query="echo installed")
    assert result.returncode == 0
    assert not result.apt_was_called
    assert result.stdout == ""


def test_without_the_right_to_install_it_names_packages_and_command(machine):
    result = machine(
        ["run"],
        dpkg_query='case "$*" in *libdnnl-dev*) exit 1;; *) echo installed;; esac',
        id="echo 1000",
        sudo="exit 1",
    )
    assert result.returncode == 2
    assert not result.apt_was_called
    assert "packages: libdnnl-dev\n" in result.stderr
    assert "install --yes --no-install-recommends libdnnl-dev" in result.stderr


def test_a_removed_package_whose_settings_remain_is_missing(machine):
    result = machine(["run"], dpkg_query="echo config-files", id="echo 1000", sudo="exit 1")
    assert result.returncode == 2


@pytest.mark.parametrize("level, wider", [("run", "test"), ("test", "all"), ("docs", "all"), ("run", "peer")])
def test_a_wider_level_holds_the_narrower_one(level, wider):
    assert set(listed(level)) < set(listed(wider))


@pytest.mark.parametrize("script", ["setup", "test"])
def test_an_unknown_argument_is_refused_with_the_usage(script):
    result = subprocess.run([SCRIPTS / script, "--frobnicate"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "'--frobnicate'" in result.stderr
    assert "usage:" in result.stderr


def test_an_environment_nobody_knows_is_refused(machine):
    result = machine(["run", "--with", "tensorflo"], dpkg_query="echo installed")
    assert result.returncode == 2
    assert "knows tensorflow, pytorch, pytorch-2.6, libraries and jax, not 'tensorflo'" in result.stderr


def test_an_environment_that_cannot_be_made_says_that_all_else_works(machine):
    result = machine(
        ["run", "--with", "tensorflow"], dpkg_query="echo installed", python3="exit 1"
    )
    assert result.returncode == 2
    assert "Everything else works without" in result.stderr
    assert not result.apt_was_called


def test_half_an_environment_is_none(machine, tmp_path):
    # A venv whose pip fails.
    make = 'mkdir -p "$3/bin"; printf "#!/bin/sh\\nexit 1\\n" > "$3/bin/python"; chmod +x "$3/bin/python"'
    result = machine(["run", "--with", "tensorflow"], dpkg_query="echo installed", python3=make)
    assert result.returncode == 2
    assert not list(tmp_path.rglob("environments/tensorflow*"))


def test_an_environment_gets_what_its_list_has_gained(machine, tmp_path):
    # A venv whose pip notes that it was called.
    calls = tmp_path / "calls"
    make = f'mkdir -p "$3/bin"; printf "#!/bin/sh\\necho >> {calls}\\n" > "$3/bin/python"; chmod +x "$3/bin/python"'

    def calls_of_pip():
        assert machine(["run", "--with", "jax"], dpkg_query="echo installed", python3=make).returncode == 0
        return len(calls.read_text())

    first = calls_of_pip()
    assert first >= 1
    assert calls_of_pip() == first
    (kept,) = tmp_path.rglob("environments/jax/packages.txt")
    kept.write_text("jax==0.1\n")
    assert calls_of_pip() == 2 * first


def test_the_newest_versions_are_asked_for_without_the_named_ones(machine, tmp_path):
    """With a venv whose pip keeps the lists that it is given."""
    lists = tmp_path / "lists"
    python = f'#!/bin/sh\nfor list; do [ -p "$list" ] && cat "$list" >> {lists}; done; true\n'
    (tmp_path / "python").write_text(python)
    make = f'mkdir -p "$3/bin"; cp {tmp_path}/python "$3/bin/python"; chmod +x "$3/bin/python"'
    # The last call brings the named versions back.
    for option, names_versions in (([], True), (["--newest"], False), ([], True)):
        lists.write_text("")
        result = machine(["run", "--with", "jax", *option], dpkg_query="echo installed", python3=make)
        assert result.returncode == 0, result.stderr
        assert "flax" in lists.read_text()
        assert ("==" in lists.read_text()) == names_versions
