"""The server's log: useful, small, and without what people wrote."""

from __future__ import annotations

import psycopg
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import log_tail, trim_log
from tests.postgres.support import connect

pytestmark = pytest.mark.slow


def test_failing_statements_leave_no_content_in_the_log(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    with connect(server) as connection:
        connection.execute("CREATE TABLE note (text text UNIQUE)")
        connection.execute("INSERT INTO note VALUES ('private words')")
        with pytest.raises(psycopg.errors.UniqueViolation, match="private words"):
            connection.execute("INSERT INTO note VALUES ('private words')")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT 'private words'::int")
    server.release()
    log = server.places.log.read_text()
    assert "ready to accept connections" in log
    assert "shut down" in log
    assert "private words" not in log


def test_a_large_log_is_cut_to_its_end_while_the_server_runs(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    with server.places.log.open("a") as log:
        log.writelines(f"line {number:020}\n" for number in range(250_000))
    other = EmbeddedPostgres(server.places.data_dir)
    other.ensure_running()
    other.release()
    assert server.places.log.stat().st_size <= 200_000
    assert server.places.log.read_text().splitlines()[-1] == f"line {249_999:020}"
    server.release()
    assert "shut down" in server.places.log.read_text().splitlines()[-1]


def test_the_quote_is_the_end_of_what_was_written_since(new_server: EmbeddedPostgres) -> None:
    path = new_server.places.log
    path.parent.mkdir()
    path.write_text("old\n" + "".join(f"line {number}\n" for number in range(20)))
    assert log_tail(path).splitlines() == [f"  line {number}" for number in range(10, 20)]
    assert log_tail(path, since=path.stat().st_size) == "  (it says nothing)"
    assert "No such file" in log_tail(path.with_name("missing"))
    trim_log(path.with_name("missing"))
    trim_log(path)
    assert path.read_text().startswith("old")
