"""Measures the processor time and the statements of one answer: run from the project's root.

    python benchmarks/measure_answers.py [--rounds 8] [--chats 20] [--profile]

In each round every chat, all of which have written before, writes once. Then the workers' own code
takes the jobs from the queue and answers, in one thread of this process, with a model that answers
at once. Database, providers and model are on loopback. The time is that of this thread and of its
server process in PostgreSQL, so it hardly depends on what else the machine does. ``--profile``
prints the functions of the project with their share of the time instead.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from own_database import machine, own_database

# isort: split

import psutil
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import override_settings

from benchmarks.load_traffic import FIRST_PHONE, QUESTIONS
from memoryproject.foundation.integrations.loopback.providers import body_bytes, signed_headers
from sessions_app.models import Turn
from sessions_app.turns.dependencies import build_answerer
from tests.loopback.graph import GraphServer
from tests.loopback.openai_server import OpenAIServer
from tests.processes.posting import NUMBER_ID, cloud_text

ROOT = Path(__file__).resolve().parent.parent
SECRET = "secret-of-the-benchmark"
# The history of a chat in a prompt is full after so many rounds.
WARM_UP_ROUNDS = 10
PACKAGES = ("cards_app/", "memories_app/", "memoryproject/", "sessions_app/")
# Statements count for what called these.
CARRIERS = ("benchmarks", ".venv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--profile", action="store_true", help="print functions instead")
    arguments = parser.parse_args()
    with own_database(), services():
        call_command("createcachetable")
        for number in range(WARM_UP_ROUNDS):
            write(arguments.chats, number)
            answer_all()
        print(f"{machine()}\n")
        if arguments.profile:
            print_profile(arguments)
        else:
            print_times(arguments)
            print_statements(arguments)
        unsent = Turn.objects.exclude(state="sent").count()
        print(f"\n{Turn.objects.count()} answers, {unsent} of them not sent")


@contextmanager
def services() -> Iterator[None]:
    """The providers and the model on loopback, and settings that lead to them."""
    graph = GraphServer(access_token=SECRET, phone_number_id=NUMBER_ID, statuses=())
    with (
        graph,
        OpenAIServer() as openai,
        override_settings(
            ALLOWED_HOSTS=["*"],
            CHAT_MODEL="openai",
            EMBEDDER="wordllama",
            OPENAI_BASE_URL=openai.base_url,
            WHATSAPP_CLOUD_API_URL=f"{graph.url}/v24.0",
            WHATSAPP_CLOUD_PHONE_NUMBER_ID=NUMBER_ID,
            WHATSAPP_CLOUD_APP_SECRET=SECRET,
            WHATSAPP_CLOUD_ACCESS_TOKEN=SECRET,
        ),
    ):
        yield


def write(chats: int, number: int) -> None:
    """Let each chat write a text."""
    client = Client()
    text = QUESTIONS[number % len(QUESTIONS)]
    for chat in range(chats):
        body = body_bytes(cloud_text(str(FIRST_PHONE + chat), text))
        headers = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in signed_headers(SECRET, body).items()
        }
        path = "/webhooks/whatsapp/cloud/"
        answer = client.post(path, body, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content


def answer_all() -> None:
    """Do what a thread of `manage.py answer` does, until no turn is left."""
    answerer = build_answerer(threads=1, tend=lambda: None)
    while answerer.answer_next():
        pass


def print_times(arguments: argparse.Namespace) -> None:
    """Print the processor time of an answer."""
    server = psutil.Process(connection.connection.info.backend_pid)
    workers = database = 0.0
    for number in range(arguments.rounds):
        write(arguments.chats, number)
        started, before = time.thread_time(), sum(server.cpu_times()[:2])
        answer_all()
        workers += time.thread_time() - started
        database += sum(server.cpu_times()[:2]) - before
    answers = arguments.rounds * arguments.chats
    print(f"Of one answer (mean of {answers}), ms of processor time: program ", end="")
    print(f"{workers / answers * 1000:.1f}, database {database / answers * 1000:.1f}\n")


def print_statements(arguments: argparse.Namespace) -> None:
    """Print the statements of an answer, by the place in the code that makes them."""
    places: Counter[str] = Counter()

    def count(execute: Callable[..., Any], sql: Any, *rest: Any) -> Any:
        what = " ".join(str(sql).split())[:40].replace("|", "")
        places[f"{place(sys._getframe(1))} | {what}"] += 1
        return execute(sql, *rest)

    write(arguments.chats, 0)
    with connection.execute_wrapper(count):
        answer_all()
    print(f"{places.total() / arguments.chats:.1f} statements\n")
    print("| place | statement | of one answer |\n| --- | --- | --- |")
    for what, times in places.items():
        print(f"| {what} | {times / arguments.chats:.2f} |")


def place(frame: FrameType | None) -> str:
    """Return the place in the project's code that is nearest to a frame."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and not str(path.relative_to(ROOT)).startswith(CARRIERS):
            return f"`{path.relative_to(ROOT)}:{frame.f_lineno}`"
        frame = frame.f_back
    return "others"


def print_profile(arguments: argparse.Namespace) -> None:
    """Print the functions of the project, and of what it calls, by their time."""
    profile = cProfile.Profile(time.thread_time)
    for number in range(arguments.rounds):
        write(arguments.chats, number)
        profile.enable()
        answer_all()
        profile.disable()
    stats = pstats.Stats(profile)
    stats.sort_stats("cumulative").print_stats("|".join(PACKAGES), 100)
    stats.sort_stats("tottime").print_stats(60)


if __name__ == "__main__":
    main()
