"""scripts/package: its wheel and its Debian package hold all that the program needs, wherever they are put."""

import email
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "scripts" / "package"
BUILD = Path(os.environ.get("HEADROOM_BUILD", PACKAGE.parents[1] / "build"))
TOOLS = ["meson", "objdump", "dpkg-deb", "dpkg-shlibdeps"]
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(not (BUILD / "headroom").exists(), reason=f"there is no {BUILD}/headroom"),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    pytest.importorskip("wheel", reason="python3-wheel is not installed")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([PACKAGE, "--build", BUILD, "--out", out], check=True)
    return out


def output_of(*command):
    # Nothing of this machine's build may help: neither its libraries nor its sources.
    return subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def from_wheel(packages, tmp_path_factory):
    """The command of a virtual environment into which the wheel was installed."""
    pytest.importorskip("ensurepip", reason="python3-venv is not installed")
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", place], check=True)
    (wheel,) = packages.glob("*.whl")
    subprocess.run(
        [place / "bin/pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True
    )
    return place / "bin/headroom"


@pytest.fixture(scope="module")
def from_debian_package(packages, tmp_path_factory):
    """The program of the unpacked Debian package."""
    place = tmp_path_factory.mktemp("root")
    (package,) = packages.glob("*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
    return place / "usr/bin/headroom"


@pytest.fixture(params=["from_wheel", "from_debian_package"])
def program(request):
    return request.getfixturevalue(request.param)


def test_the_program_finds_its_suites_beside_itself(program):
    found = output_of(program, "doctor", "--json")
    assert str(program.parents[1]) in found


def test_a_run_ends_with_its_report(program, tmp_path):
    output_of(program, "run", "smoke", "--filter", "device=meta*", "--out", tmp_path)
    assert list(tmp_path.glob("*/report.html"))


def test_the_virtual_gpu_finds_its_stand_ins(program, tmp_path):
    answered = subprocess.run(
        [program, "gpu", "a100-80gb", "--", "true"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "stand-ins" not in answered.stderr


def test_the_wheel_says_what_the_report_takes(packages):
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (about,) = [name for name in files.namelist() if name.endswith("/METADATA")]
        needs = email.message_from_bytes(files.read(about)).get_all("Requires-Dist")
    assert set(needs) >= {"jinja2", "jsonschema", "matplotlib", "zstandard"}
