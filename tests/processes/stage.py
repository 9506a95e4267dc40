"""A whole stage: one installation and the providers and models that it talks to."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.loopback.green import GreenServer
from tests.processes.database import Database
from tests.processes.installation import Installation
from tests.processes.posting import APP_SECRET, INSTANCE, NUMBER_ID, WEBHOOK_TOKEN, Poster
from tests.processes.stand_ins import ChoosyGraphServer, HoldingOpenAIServer
from tests.processes.waiting import wait_until

ACCESS_TOKEN = "access-token-of-tests"
GREEN_TOKEN = "green-token-of-tests"
GODFATHER = "15550199999"
SHOWN_OF_OUTPUT = 20_000
OPEN_TURNS = """
SELECT id, state, error, attempts, not_before, lease_owner, lease_until, now() AS now
FROM sessions_app_turn WHERE state NOT IN ('sent', 'refused', 'merged')
"""
# Each sweep is a command, which takes longer than what it is about.
SWEEP_SECONDS = 2.0
SWEEP = """
from sessions_app.tasks import summarize_sessions, sweep_work
sweep_work()
summarize_sessions()
"""


@dataclass(frozen=True)
class Stage:
    """Everything that a test looks at or speaks to."""

    installation: Installation
    post: Poster
    database: Database
    graph: ChoosyGraphServer
    green: GreenServer
    openai: HoldingOpenAIServer

    def wait_for_answers(self, phone: str, count: int) -> list[str]:
        """The texts sent to a phone, once there are so many and no turn of its chat is open.

        Meanwhile a program that was killed is started again, as a process manager would.
        """

        def are_there() -> bool:
            self.installation.restart_dead()
            return len(self.graph.texts_to(phone)) >= count

        wait_until(are_there, f"{count} answers")
        self.wait_until_over(phone)
        return self.graph.texts_to(phone)

    def wait_until_over(self, phone: str) -> None:
        wait_until(lambda: self.database.is_over(f"{phone}@c.us"), "all its turns are over")

    def wait_with_sweeps(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for what a killed worker was about to do: jobs that were lost are found by the sweep
        of each minute, which comes sooner here. Killed programs are started again."""
        next_sweep = 0.0

        def is_so() -> bool:
            nonlocal next_sweep
            self.installation.restart_dead()
            if not condition() and time.monotonic() >= next_sweep:
                self.installation.manage("shell", "-v", "0", "-c", SWEEP)
                next_sweep = time.monotonic() + SWEEP_SECONDS
            return bool(condition())

        wait_until(is_so, what, longest_pause=0.5)

    def sweep(self, *, unconfirmed_after_seconds: float) -> None:
        """What a program that answers does every ten seconds, with another patience."""
        self.installation.manage(
            "shell",
            "-c",
            "from datetime import timedelta\n"
            "from sessions_app.turns.turn_claims import turns_sweep\n"
            f"patience = timedelta(seconds={unconfirmed_after_seconds})\n"
            "turns_sweep(unconfirmed_after=patience)",
        )


def outcome(installation: Installation, database: Database) -> str:
    """What the servers printed, and the turns that aren't over: shown with a test that fails."""
    printed = installation.output()[-SHOWN_OF_OUTPUT:]
    with suppress(psycopg.Error):
        return "\n".join([printed, *map(str, database.rows(OPEN_TURNS))])
    return printed


@contextmanager
def stage(
    *, run: Callable[[Installation], Any], parent: Path | None = None, **environment: str
) -> Iterator[Stage]:
    """A stage on which ``run`` has started what it wants; everything ends with it. Its data
    are in a folder of their own, in ``parent`` where that is given."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=parent)))
        graph = ChoosyGraphServer(
            access_token=ACCESS_TOKEN, phone_number_id=NUMBER_ID, app_secret=APP_SECRET, statuses=()
        )
        green = GreenServer(
            token=GREEN_TOKEN, id_instance=INSTANCE, webhook_token=WEBHOOK_TOKEN, statuses=()
        )
        openai = HoldingOpenAIServer()
        for server in (graph, green, openai):
            stack.enter_context(server)
        settings = {
            "ENABLE_MEMORY_SYSTEM": "true",
            # Tests count an answer for each message.
            "TURN_DEBOUNCE_SECONDS": "0",
            "OWNER_PAUSE_MINUTES": "0",
            "GODFATHER_PHONE": f"{GODFATHER}@c.us",
            "CHAT_MODEL": "openai",
            "EMBEDDER": "openai",
            "TRANSCRIPTION_MODEL": "whisper-1",
            "OPENAI_BASE_URL": openai.base_url,
            # Tests hold requests back for as long as they need.
            "MODEL_TIMEOUT_SECONDS": "120",
            "ANSWER_DEADLINE_SECONDS": "300",
            # The model repeats the message, however long it is.
            "MAX_REPLY_TOKENS": "0",
            "WHATSAPP_CLOUD_API_URL": f"{graph.url}/v24.0",
            "WHATSAPP_CLOUD_PHONE_NUMBER_ID": NUMBER_ID,
            "WHATSAPP_CLOUD_APP_SECRET": APP_SECRET,
            "WHATSAPP_CLOUD_ACCESS_TOKEN": ACCESS_TOKEN,
            "WHATSAPP_CLOUD_VERIFY_TOKEN": "verify-token-of-tests",
            "GREEN_API_URL": green.url,
            "GREEN_API_ID_INSTANCE": INSTANCE,
            "GREEN_API_TOKEN": GREEN_TOKEN,
            "GREEN_API_WEBHOOK_TOKEN": WEBHOOK_TOKEN,
            **environment,
        }
        installation = Installation(folder, **settings)
        stack.callback(installation.stop)
        run(installation)
        graph.webhook_url = f"{installation.url}/webhooks/whatsapp/cloud/"
        database = Database(installation.data_dir)
        try:
            yield Stage(installation, Poster(installation.url), database, graph, green, openai)
        except BaseException:
            # Shown with the test that fails. The folder goes.
            sys.stdout.write(outcome(installation, database))
            raise
