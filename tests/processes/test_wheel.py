"""The wheel, installed where there is no clone: its commands, and all that `run` starts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryproject import __version__
from tests.processes import plain_http
from tests.processes.clone import SETTING
from tests.processes.command_server import REPOSITORY
from tests.processes.installation import free_port
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

NOBODY = 65534
# Root's Python may lie where others can't read: then the system's, if it is the same one.
PYTHONS = (Path(sys.executable).resolve(), Path(f"/usr/bin/python3.{sys.version_info.minor}"))
# What people hold, and what only developers need.
UNWANTED = re.compile(r"(^|/)(tests|benchmarks|docs|data|logs|chats|\.env|__pycache__)(/|$)")


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
        Path(folder).chmod(0o755)
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
        subprocess.run([*build, "--directory", folder], cwd=REPOSITORY, check=True)
        (built,) = Path(folder).glob("*.whl")
        yield built


@pytest.fixture(scope="module")
def program(wheel: Path) -> Path:
    """The command of a virtual environment with the wheel, and with this one's packages."""
    environment = wheel.parent / "environment"
    made = [str(next(filter(is_for_all, PYTHONS), sys.executable)), "-m", "venv", "--without-pip"]
    # For every user.
    subprocess.run([*made, str(environment)], check=True, umask=0o022)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([str(environment / "bin" / "python"), *install], check=True, umask=0o022)
    return environment / "bin" / "whatsapp-memory"


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder of the user who installs: where root tests, of somebody else, if all others
    can run this Python, too. Root runs a clone in test_launch.py."""
    with tempfile.TemporaryDirectory(prefix="empty-") as made:
        if os.geteuid() == 0 and any(map(is_for_all, PYTHONS)):
            os.chown(made, NOBODY, NOBODY)
        yield Path(made)


def is_for_all(path: Path) -> bool:
    """Whether every user can run this program."""
    return path.exists() and all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def start(program: Path, folder: Path, *words: str, **settings: str) -> subprocess.Popen[str]:
    """A command as the folder's owner types it there, with nothing set but what is given."""
    known = SETTING.findall((REPOSITORY / ".env.example").read_text(encoding="utf-8"))
    outside = {name: value for name, value in os.environ.items() if name not in known}
    for name in ("DJANGO_SETTINGS_MODULE", "PYTHONPATH"):
        outside.pop(name, None)
    owner = folder.stat().st_uid
    other: dict[str, Any] = (
        {"user": owner, "group": owner, "extra_groups": []} if owner != os.geteuid() else {}
    )
    return subprocess.Popen(
        [program, *words],
        cwd=folder,
        env={**outside, "HOME": str(folder), **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **other,
    )


def run(program: Path, folder: Path, *words: str, **settings: str) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    started = start(program, folder, *words, **settings)
    printed, _ = started.communicate(timeout=180)
    return started.returncode, printed


def test_it_holds_what_the_server_needs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    assert [name for name in names if UNWANTED.search(name)] == []
    tracked = ("memoryproject", "sessions_app", "memories_app", "cards_app")
    for package in tracked:
        here = (REPOSITORY / package).rglob("*")
        wanted = {str(each.relative_to(REPOSITORY)) for each in here if each.is_file()}
        assert {name for name in wanted if "__pycache__" not in name} <= set(names)
    for each in ("templates/admin/base.html", "deploy/gunicorn.conf.py", ".env.example"):
        assert f"memoryproject/files/{each}" in names


def test_it_runs_and_answers_in_an_empty_folder(program: Path, folder: Path) -> None:
    assert run(program, folder, "version") == (0, f"{__version__}\n")
    # Modules of the same names in the folder are somebody else's.
    if sys.version_info >= (3, 11):
        (folder / "gunicorn.py").write_text("raise SystemExit('not ours')")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # The password is set by a command that is run beside the server, too.
    settings = {"PORT": str(port), "ADMIN_PASSWORD": "a-password-of-tests"}
    started = start(program, folder, "run", **settings)
    try:
        wait_until(lambda: started.poll() is not None or is_ready(url), "it runs", seconds=180)
        assert started.poll() is None, started.communicate()[0]
        page = plain_http.get(f"{url}/").text
        assert "whatsapp-memory chat --message" in page
        assert "<code>whatsapp-memory demo</code>" in page
        styles = plain_http.get(f"{url}/static/dashboard/admin.css")
        assert styles.status_code == httpx.codes.OK
        code, token = run(program, folder, "create_api_token", "of-the-test")
        assert code == 0, token
        with httpx.Client(
            base_url=f"{url}/api/v1/",
            headers={"Authorization": f"Bearer {token.split()[-1]}"},
            trust_env=False,
            timeout=60,
        ) as api:
            assert api.get("").json()["version"] == __version__
            said = {"whatsapp_chat": "15550001111@c.us", "content": "/remember We open at 7"}
            assert "We open at 7" in api.post("chat/", json=said).text
        assert run(program, folder, "check")[0] == 0
    finally:
        started.send_signal(signal.SIGINT)
        printed, _ = started.communicate(timeout=120)
    assert f"Ready: {url}/" in printed
    assert "Traceback" not in printed
    assert {each.name for each in folder.iterdir()} - {"gunicorn.py"} == {".env", "data", "logs"}


def is_ready(url: str) -> bool:
    try:
        return plain_http.get(f"{url}/readyz").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def test_what_hinders_it_is_named(program: Path, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, printed = run(program, folder, "run", PORT=port)
    assert (code, f"Port {port} is in use" in printed) == (1, True)
    if folder.stat().st_uid != 0:
        shutil.rmtree(folder / "data")
        (folder / ".env").unlink()
        folder.chmod(0o500)
        code, printed = run(program, folder, "run")
        assert (code, f"{folder}/.env can't be written" in printed) == (1, True)
        folder.chmod(0o700)
    assert "Traceback" not in printed
