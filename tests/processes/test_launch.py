"""`make run` in a fresh clone: up, stopped, up again with the data, and clear refusals."""

from __future__ import annotations

import re
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memoryproject.foundation.commands import MEMORY_OFF
from tests.processes import plain_http
from tests.processes.clone import PASSWORD, Clone, cloned, press_ctrl_c
from tests.processes.database import Database
from tests.processes.installation import kill
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    with tempfile.TemporaryDirectory(prefix="run-") as folder, cloned(Path(folder)) as made:
        yield made


def memories(clone: Clone) -> list[str]:
    rows = Database(clone.folder / "data").rows("SELECT content FROM memories_app_memory")
    return [row["content"] for row in rows]


def test_up_and_down_and_up_again_with_the_data(clone: Clone) -> None:
    """EDGE-010: what a run before has made is used as it is, tables and all, though it was killed.

    Ctrl-C is pressed in test_quickstart.py.
    """
    started = clone.run()
    assert_welcoming(clone)
    assert_launcher_is_small(clone)
    assert_staff_can_log_in(clone)
    said = clone.manage("chat", "--message", "/remember TestCorp pays in 30 days")
    assert "TestCorp pays in 30 days" in said
    kill(clone.processes())
    clone.wait_until_stopped(started)

    (clone.folder / ".env").write_text("GODFATHER_PHONE=15550199999@c.us\n")
    started = clone.run()
    assert MEMORY_OFF in clone.output(), "a file of one's own doesn't switch it on"
    assert memories(clone) == ["TestCorp pays in 30 days"]
    assert_staff_can_log_in(clone)
    Database(clone.folder / "data").rows("ALTER TABLE sessions_app_label RENAME colour TO tint")
    started.send_signal(signal.SIGTERM)
    clone.wait_until_stopped(started)
    assert "Traceback" not in clone.output()

    # As if the code's first migration had been made anew since.
    refused = clone.run_in_vain()
    assert refused.returncode == 1
    assert "Cannot start: The database was made by another state of the code" in refused.stderr
    assert "Traceback" not in refused.stderr


def assert_welcoming(clone: Clone) -> None:
    page = plain_http.get(f"{clone.url}/")
    assert page.status_code == 200
    for wanted in ("manage.py chat --message", "make demo", "/admin/", "OPENAI_API_KEY"):
        assert wanted in page.text


def assert_launcher_is_small(clone: Clone) -> None:
    """It has loaded no compiled module of any package, and neither TLS nor a database driver."""
    (launcher,) = [
        process for process in clone.processes() if "memoryproject.supervise" in process.cmdline()
    ]
    maps = Path(f"/proc/{launcher.pid}/maps")
    if maps.exists():
        loaded = maps.read_text()
        assert "python" in loaded
        for unwanted in ("site-packages", "libssl", "libpq"):
            assert unwanted not in loaded, unwanted


def assert_staff_can_log_in(clone: Clone) -> None:
    with httpx.Client(
        base_url=clone.url, trust_env=False, follow_redirects=True, timeout=60
    ) as browser:
        form = browser.get("/admin/").text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert found, "a login form"
        login = {"username": "admin", "csrfmiddlewaretoken": found[1], "next": "/admin/"}
        refused = browser.post("/admin/login/", data={**login, "password": "a wrong one"})
        assert 'name="password"' in refused.text
        let_in = browser.post("/admin/login/", data={**login, "password": PASSWORD})
        assert let_in.status_code == 200
        assert "Knowledge" in let_in.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_stopped_leaves_nothing(clone: Clone, number: signal.Signals) -> None:
    """Ctrl-C reaches the whole group, `kill` only the launcher."""
    data = clone.folder / f"data-of-{number.name}"
    started = clone.launch(DATA_DIR=str(data))
    wait_until((data / "postgres" / "postmaster.pid").exists, "PostgreSQL is being started")

    if number == signal.SIGINT:
        press_ctrl_c(started)
    else:
        started.send_signal(number)

    clone.wait_until_stopped(started)
    assert started.returncode == 128 + number
    assert "Traceback" not in clone.output()


@pytest.mark.parametrize("module", ["json", "subprocess", "typing"])
def test_ctrl_c_while_it_is_loaded_is_quiet(clone: Clone, tmp_path: Path, module: str) -> None:
    """Nothing is started yet. The module stands for the first, a middle and the last import."""
    presses = (
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit('goes on')\n"
    )
    (tmp_path / f"{module}.py").write_text(presses)
    stopped = clone.run_in_vain(PYTHONPATH=str(tmp_path))

    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (130, "", "")
    assert clone.processes() == []


def test_a_taken_port_is_a_clear_error(clone: Clone) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = clone.run_in_vain(PORT=str(port))

    assert refused.returncode == 1
    assert f"Port {port} is in use" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert clone.processes() == []


def test_wrong_settings_are_named_all_at_once(clone: Clone) -> None:
    wrong = {
        "RECALL_TOP_K": "many",
        "GODFATHER_PHONE": "+1 555",
        "CHAT_MODEL": "oracle",
        "DATABASE_URL": "sqlite:///memory.db",
    }
    refused = clone.run_in_vain(**wrong)

    assert refused.returncode == 1
    for name, value in wrong.items():
        assert re.search(rf"{name} must .*'{re.escape(value)}'", refused.stderr), name
    assert "Traceback" not in refused.stderr
    assert clone.processes() == []


def test_a_database_that_is_not_there_is_named_without_its_password(clone: Clone) -> None:
    """And what is misspelt in a file of one's own."""
    (clone.folder / ".env").write_text("OPENAI_KEY=sk-1\n")
    refused = clone.run_in_vain(
        DATABASE_URL="postgres://me:s3cr3t@127.0.0.1:1/cafe?application_name=x"
    )
    (clone.folder / ".env").unlink()

    assert refused.returncode == 1
    assert "DATABASE_URL, 127.0.0.1/cafe. Check that it runs" in refused.stderr
    assert "OPENAI_KEY is no setting of this server" in refused.stderr
    assert "s3cr3t" not in refused.stderr
    assert "Traceback" not in refused.stderr
    assert clone.processes() == []


def test_a_provider_without_its_keys_is_named(clone: Clone) -> None:
    """.env, written by the first run, has them; the environment wins with an empty value."""
    refused = clone.run_in_vain(WHATSAPP_PROVIDER="cloud", WHATSAPP_CLOUD_ACCESS_TOKEN=" ")

    assert refused.returncode == 1
    assert "WHATSAPP_CLOUD_ACCESS_TOKEN" in refused.stderr
