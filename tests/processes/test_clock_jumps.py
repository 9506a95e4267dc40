"""The system's clock jumps by an hour while the server runs: the answers go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

THREADS = 4
# A clock that goes back by an hour makes every stored time an hour later, seen from it. What
# processes remember, they remember by a clock that never jumps. Audit events can't be changed, and
# the dashboard's days are counted again.
MOVE = """
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT table_name, string_agg(
            concat(quote_ident(column_name), ' = ', quote_ident(column_name), ' + ', by.moved), ', '
        ) AS changes
        FROM information_schema.columns,
            (SELECT concat('make_interval(secs => ', {seconds}, ')') AS moved) AS by
        WHERE table_schema = 'public' AND data_type = 'timestamp with time zone'
            AND NOT starts_with(table_name, 'audit') AND NOT starts_with(table_name, 'dashboard')
        GROUP BY table_name
    LOOP
        EXECUTE concat('UPDATE ', quote_ident(found.table_name), ' SET ', found.changes);
    END LOOP;
END
$$
"""


def jump(live: Stage, seconds: int) -> None:
    live.database.rows(MOVE.format(seconds=-seconds))


@pytest.fixture(scope="module")
def scheduled() -> Iterator[Stage]:
    """A stage of its own, with schedules: no other test's times are to move."""
    with stage(run=everything, ANSWER_THREADS=str(THREADS)) as started:
        started.installation.manage("install_schedules")
        yield started


@pytest.mark.parametrize("seconds", [3_600, -3_600], ids=["forward", "back"])
def test_answers_go_on_and_none_is_sent_twice(scheduled: Stage, seconds: int) -> None:
    live = scheduled
    known, queued, new = (new_phone() for _ in range(3))
    live.post.say(known, "before it")
    live.wait_for_answers(known, 1)
    hold = live.openai.hold_chat("during it")
    busy = [new_phone() for _ in range(THREADS)]
    for phone in busy:
        live.post.say(phone, "during it")
    wait_until(lambda: hold.reached >= THREADS, "every thread waits for the model")
    live.post.say(queued, "queued before it")
    live.post.say(known, "queued behind others")

    jump(live, seconds)
    live.post.say(new, "after it")
    hold.release()
    for phone in busy:
        assert live.wait_for_answers(phone, 1) == ["answer to: during it"]
    assert live.wait_for_answers(queued, 1) == ["answer to: queued before it"]
    assert live.wait_for_answers(new, 1) == ["answer to: after it"]
    assert live.wait_for_answers(known, 2)[1] == "answer to: queued behind others"
    late = "SELECT name FROM django_q_schedule WHERE next_run > now() + interval '2 minutes'"
    wait_until(lambda: not live.database.rows(f"{late} AND minutes = 1"), "the schedules run again")
    # Nothing was answered again by those that were taken for dead.
    for phone in [*busy, queued, new]:
        assert len(live.graph.texts_to(phone)) == 1
