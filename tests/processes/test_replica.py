"""Staff's pages on a real streaming replica, whose own log tells what was read there."""

from __future__ import annotations

import html
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import psycopg
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.cluster import (
    make_server_folder,
    server_account,
    server_environment,
)
from memoryproject.foundation.embedded_postgres.places import postgres_program
from tests.processes import plain_http
from tests.processes.installation import Installation, family, free_port, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

PASSWORD = "a-password-of-tests-only"
INBOX = "/admin/sessions_app/chat/"
# With what a page reads there, and nothing else does.
PAGES = {
    "/admin/": "sessions_app_",
    "/admin/dashboard/figures/": "sessions_app_",
    "/admin/costs/": "sessions_app_",
    "/admin/costs/?table=days": "sessions_app_",
    INBOX: "sessions_app_chat",
    f"{INBOX}?q=hello": "sessions_app_message",
    f"{INBOX}?csv=1": "sessions_app_chat",
    "/admin/search/?words=hello": "sessions_app_message",
    "/admin/memories_app/memory/": "memories_app_memory",
    "/admin/audit/auditevent/": "audit_auditevent",
    "/admin/sessions_app/turn/": "sessions_app_turn",
}
# Who may do what is never read there, nor what an answer needs.
ELSEWHERE = ("/readyz", "/admin/operations/queue/")


class Replica:
    """A standby of an embedded server, which logs each statement."""

    def __init__(self, primary: EmbeddedPostgres, folder: Path, port: int) -> None:
        self.port, self._primary = port, primary
        self._account, self._data, self.log = server_account(), folder / "replica", folder / "log"
        self._password = primary.password

    @property
    def url(self) -> str:
        return f"postgresql://memory:{quote(self._password)}@127.0.0.1:{self.port}/memory"

    def copy(self) -> None:
        primary = self._primary
        make_server_folder(self._data, self._account)
        address = ("-h", primary.host, "-p", str(primary.port), "-U", primary.user)
        command = self._account.command(
            postgres_program("pg_basebackup"), *address, "-D", str(self._data), "-R", "-c", "fast"
        )
        environment = {**server_environment(), "PGPASSWORD": self._password}
        subprocess.run(command, env=environment, cwd="/", check=True, capture_output=True)

    def start(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "log_statement": "all",
            "log_min_messages": "log",
        }
        words = [word for item in options.items() for word in ("-c", "=".join(item))]
        program = postgres_program("postgres")
        with self.log.open("ab") as log:
            self._server = psutil.Popen(
                self._account.command(program, "-D", str(self._data), *words),
                stdout=log,
                stderr=log,
                cwd="/",
                env=server_environment(),
            )
        wait_until(self._answers, "the replica answers")

    def ask(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchone()

    @contextmanager
    def without_file_of(self, table: str) -> Iterator[None]:
        """No statement can read the table there."""
        (name,) = self.ask(f"SELECT pg_relation_filepath('{table}')")
        file = self._data / name
        file.rename(file.with_suffix(".gone"))
        # Whoever has opened it can still read it.
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        yield
        file.with_suffix(".gone").rename(file)

    def hang(self, *, hangs: bool) -> None:
        for process in family(self._server):
            # Who asked may have gone meanwhile, and its process with it.
            with suppress(psutil.NoSuchProcess):
                process.suspend() if hangs else process.resume()

    def stop(self) -> None:
        kill(family(self._server))
        self._server.wait()

    def _answers(self) -> bool:
        try:
            return bool(self.ask("SELECT pg_is_in_recovery()"))
        except psycopg.OperationalError:
            return False


class Staff:
    """An administrator with a browser."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(
            base_url=url, trust_env=False, timeout=60, follow_redirects=True
        )
        self._client.get("/admin/login/")
        self.post("/admin/login/?next=/admin/", username="admin", password=PASSWORD)

    def close(self) -> None:
        self._client.close()

    def page(self, path: str) -> str:
        answer = self._client.get(path)
        assert answer.status_code == httpx.codes.OK, (path, answer.status_code)
        return answer.text

    def post(self, path: str, **form: str) -> str:
        token = self._client.cookies["csrftoken"]
        answer = self._client.post(path, data={"csrfmiddlewaretoken": token, **form})
        assert answer.status_code == httpx.codes.OK, (path, answer.status_code)
        return answer.text


class World:
    def __init__(self, on: Stage, replica: Replica) -> None:
        self.on, self.replica = on, replica
        self.staff = Staff(on.installation.url)

    def read_there(self, path: str, *, form: dict[str, str] | None = None) -> str:
        """The statements that the replica was sent while the page was made."""
        before = self.replica.log.stat().st_size
        self.staff.page(path) if form is None else self.staff.post(path, **form)
        with self.replica.log.open(encoding="utf-8") as log:
            log.seek(before)
            return log.read()

    def says(self, text: str) -> str:
        phone = new_phone()
        self.on.post.say(phone, text)
        return phone

    def wait_until_read(self) -> None:
        """A replica that failed is left alone for some seconds."""
        wait_until(lambda: "sessions_app_chat" in self.read_there(INBOX), "it is read again")

    def state(self) -> str:
        found = re.search(r"replica of the database</strong>(.*?)</li>", self.operations(), re.S)
        assert found is not None
        return html.unescape(re.sub(r"<[^>]+>", "", found[1])).strip()

    def operations(self) -> str:
        return self.staff.page("/admin/operations/")


@contextmanager
def replicated() -> Iterator[World]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="replica-") as folder:
        # The server's account may look for its files in there.
        Path(folder).chmod(0o755)
        made: list[Replica] = []

        def run(installation: Installation) -> None:
            installation.prepare()
            server = EmbeddedPostgres(installation.data_dir)
            server.ensure_running()
            replica = Replica(server, Path(folder), port)
            made.append(replica)
            installation.environment["DATABASE_REPLICA_URL"] = replica.url
            installation.environment["ADMIN_PASSWORD"] = PASSWORD
            installation.manage("ensure_admin")
            replica.copy()
            replica.start()
            installation.start()
            server.release()

        try:
            with stage(run=run) as on:
                yield World(on, made[0])
        finally:
            for replica in made:
                replica.stop()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with replicated() as made:
        made.on.wait_for_answers(made.says("hello from the replica's test"), 1)
        made.wait_until_read()
        yield made
        made.staff.close()


def test_lists_searches_figures_and_exports_are_read_there(world: World) -> None:
    # While it is behind by a moment, the primary is read.
    for path, table in PAGES.items():
        wait_until(lambda: table in world.read_there(path), path)  # noqa: B023
    export = "/admin/audit/auditevent/export/"
    wait_until(
        lambda: '"audit_auditevent"."action"' in world.read_there(export, form={"format": "csv"}),
        "the export",
    )
    for path in ELSEWHERE:
        assert "sessions_app_" not in world.read_there(path), path
    everything = world.replica.log.read_text(encoding="utf-8")
    for words in ('FROM "auth_', "django_session", "INSERT INTO", "FOR UPDATE"):
        assert words not in everything, words
    wait_until(lambda: world.state() == "Up to date.", "it has caught up")


@pytest.mark.parametrize("commits", ["off", "on"])
def test_a_page_shows_what_was_stored_just_before(world: World, commits: str) -> None:
    """Also where a server's owner lets commits not wait for its disk."""
    with world.on.database.connect(autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_commit = {commits}")
        connection.execute("SELECT pg_reload_conf()")
    for number in range(10):
        phone = world.says(f"number {number}")
        assert phone in re.sub(r"\D", "", world.staff.page(INBOX))


def test_a_replica_that_is_late_shows_nothing_old_or_erased(world: World) -> None:
    phone = world.says("words that are to be erased")
    world.on.wait_for_answers(phone, 1)
    assert "to be erased" in world.staff.page(INBOX)
    world.wait_until_read()
    world.replica.ask("SELECT pg_wal_replay_pause()")
    try:
        world.on.installation.manage("forget", "chat", f"{phone}@c.us", "--yes")
        assert "to be erased" not in world.staff.page(INBOX)
        assert world.says("later") in re.sub(r"\D", "", world.staff.page(INBOX))
        assert re.fullmatch(r"It is \d+ s behind: the primary is read\.", world.state())
        assert "memory_replica_usable 0.0" in world.staff.page("/metrics")
    finally:
        world.replica.ask("SELECT pg_wal_replay_resume()")
    world.wait_until_read()
    assert "memory_replica_usable 1.0" in world.staff.page("/metrics")


@pytest.mark.parametrize("fault", ["hangs", "stopped"])
def test_pages_go_on_without_it(world: World, fault: str) -> None:
    world.replica.hang(hangs=True) if fault == "hangs" else world.replica.stop()
    try:
        for path in PAGES:
            world.staff.page(path)
        assert world.state() == "It doesn't answer: the primary is read."
    finally:
        world.replica.hang(hangs=False) if fault == "hangs" else world.replica.start()
    world.wait_until_read()


def test_a_statement_that_fails_there_is_made_by_the_primary(world: World) -> None:
    with world.replica.without_file_of("sessions_app_chat"):
        for path in PAGES:
            assert "hello from" in world.staff.page(path) or path != INBOX
    world.wait_until_read()


def test_one_that_was_promoted_is_not_read(world: World) -> None:
    """Last: it is none any more."""
    world.replica.ask("SELECT pg_promote()")
    assert world.state().startswith("It is no replica of this database")
    assert "sessions_app_" not in world.read_there(INBOX)


def test_without_the_setting_there_is_nothing_of_it(live: Stage) -> None:
    metrics = plain_http.get(f"{live.installation.url}/metrics").text
    assert "memory_open_turns" in metrics
    assert "replica" not in metrics
