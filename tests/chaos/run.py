"""One run: traffic and kills, then calm, then the verdict."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import psycopg

from tests.chaos.kills import Killer
from tests.chaos.stand_ins import RandomGraphServer, RandomOpenAIServer, answer_with_key
from tests.chaos.verdict import OPEN, Verdict, judge, turn_states
from tests.loopback.graph import GraphServer
from tests.loopback.openai_server import OpenAIServer
from tests.processes.command_server import REPOSITORY
from tests.processes.database import Database
from tests.processes.installation import Installation
from tests.processes.posting import APP_SECRET, NUMBER_ID, Poster, cloud_text
from tests.processes.waiting import wait_until

ACCESS_TOKEN = "access-token-of-tests"
FIRST_PHONE = 15_551_000_000
START_SECONDS = 240
# A provider repeats a delivery for days.
GIVE_UP_SECONDS = 900


@dataclass(frozen=True)
class Plan:
    """What a run does.

    messages: how many different messages; one in ten is delivered three times at once.
    kill_every: seconds between two kills, on average. faults: the share of requests to the
    provider and the model that fail. seed: of all chances.
    """

    messages: int = 10_000
    chats: int = 200
    senders: int = 16
    kill_every: float = 3.0
    faults: float = 0.03
    settle_seconds: int = 1_800
    seed: int = 7


def run(plan: Plan, say: Callable[[str], None]) -> Verdict:
    """Run the plan on an installation of its own and return what became of the messages."""
    chance = random.Random(plan.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        graph = stack.enter_context(
            RandomGraphServer(
                faults=plan.faults,
                chance=random.Random(plan.seed + 1),
                access_token=ACCESS_TOKEN,
                phone_number_id=NUMBER_ID,
                app_secret=APP_SECRET,
                statuses=(),
            )
        )
        model = stack.enter_context(
            RandomOpenAIServer(
                faults=plan.faults, chance=random.Random(plan.seed + 2), answer=answer_with_key
            )
        )
        installation = Installation(folder, **_settings(graph, model))
        root = stack.enter_context(_running(installation))
        database = Database(installation.data_dir)
        say("The server is ready.")
        killer = Killer(installation, root, every=plan.kill_every, chance=chance)
        killer.start()
        started = time.monotonic()
        keys, deliveries = _send_all(plan, Poster(installation.url))
        sent = time.monotonic()
        say(f"{len(keys)} messages were taken in {sent - started:.0f} s; {dict(killer.kills)}")
        _settle(plan, database, killer, say)
        verdict = judge(database, keys, graph.accepted)
        verdict.deliveries = deliveries
        verdict.kills = dict(killer.kills)
        verdict.sent_seconds = round(sent - started)
        verdict.settled_seconds = round(time.monotonic() - sent)
        return verdict


def _settings(graph: GraphServer, model: OpenAIServer) -> dict[str, str]:
    return {
        "ENABLE_MEMORY_SYSTEM": "true",
        "TURN_DEBOUNCE_SECONDS": "0",
        "GODFATHER_PHONE": "15550199999@c.us",
        "CHAT_MODEL": "openai",
        "OPENAI_API_KEY": "sample-key",
        "OPENAI_BASE_URL": model.base_url,
        "WHATSAPP_PROVIDER": "cloud",
        "WHATSAPP_CLOUD_API_URL": f"{graph.url}/v24.0",
        "WHATSAPP_CLOUD_PHONE_NUMBER_ID": NUMBER_ID,
        "WHATSAPP_CLOUD_APP_SECRET": APP_SECRET,
        "WHATSAPP_CLOUD_ACCESS_TOKEN": ACCESS_TOKEN,
        "WHATSAPP_CLOUD_VERIFY_TOKEN": "verify-token-of-tests",
        "UNCONFIRMED_AFTER_MINUTES": "2",
        "CLIENT_MESSAGES_PER_HOUR": "0",
        "CLIENT_TOKENS_PER_DAY": "0",
    }


@contextmanager
def _running(installation: Installation) -> Iterator[psutil.Process]:
    """The whole server, as `make run` starts it; its processes are started again when killed."""
    installation.folder.mkdir(exist_ok=True)
    with (installation.folder / "output.log").open("ab") as output:
        process = psutil.Popen(
            [sys.executable, "-m", "memoryproject.launch"],
            cwd=REPOSITORY,
            env=installation.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(
            lambda: installation.answer("/readyz") == httpx.codes.OK,
            "the server is ready",
            seconds=START_SECONDS,
        )
        yield process
    finally:
        process.terminate()
        with suppress(psutil.TimeoutExpired):
            process.wait(60)
        installation.stop()


def _send_all(plan: Plan, poster: Poster) -> tuple[dict[str, str], int]:
    """Send every message until it is taken.

    Returns the messages' keys by the provider's id, and the number of deliveries.
    """
    keys: dict[str, str] = {}
    deliveries: list[int] = []
    adding = threading.Lock()

    def send(number: int) -> None:
        key = f"m{number:06d}"
        phone = str(FIRST_PHONE + number % plan.chats)
        payload = cloud_text(phone, f"{key} what about this one?")
        message = payload["entry"][0]["changes"][0]["value"]["messages"][0]
        message["id"] = f"wamid.{uuid.uuid4().hex}"
        posted = sum(_deliver(poster, payload) for _ in range(3 if number % 10 == 0 else 1))
        with adding:
            keys[message["id"]] = key
            deliveries.append(posted)

    with ThreadPoolExecutor(plan.senders) as pool:
        list(pool.map(send, range(plan.messages)))
    return keys, sum(deliveries)


def _deliver(poster: Poster, payload: dict[str, object]) -> int:
    """Post until the answer is 200; return how often it was posted."""
    ends_at = time.monotonic() + GIVE_UP_SECONDS
    for posted in range(1, 10_000):
        with suppress(httpx.HTTPError):
            if poster.cloud(payload).status_code == httpx.codes.OK:
                return posted
        if time.monotonic() > ends_at:
            raise TimeoutError("a delivery was not taken")
        time.sleep(0.5)
    raise TimeoutError("a delivery was not taken")


def _settle(plan: Plan, database: Database, killer: Killer, say: Callable[[str], None]) -> None:
    """Kill until a tenth is left to answer, then wait until all is over."""
    ends_at = time.monotonic() + plan.settle_seconds
    told = 0.0
    while time.monotonic() < ends_at:
        time.sleep(2)
        try:
            states = turn_states(database)
        except psycopg.Error:
            continue
        open_ = sum(states[state] for state in OPEN)
        if time.monotonic() - told > 30:
            told = time.monotonic()
            say(f"open {open_}, {dict(states)}, {dict(killer.kills)}")
        if killer.is_alive() and open_ < plan.messages * 0.1:
            killer.end()
        if not open_ and not killer.is_alive():
            return
    if killer.is_alive():
        killer.end()
