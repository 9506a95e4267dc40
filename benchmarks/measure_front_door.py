"""One web server for everything, and the same behind the front door: rate and slow clients.

.venv/bin/python benchmarks/measure_front_door.py
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx

from memoryproject.foundation.integrations.loopback.providers import body_bytes, signed_headers
from tests.loopback.openai_behaviours import slow
from tests.processes.front_door import FrontDoor
from tests.processes.installation import Installation
from tests.processes.posting import APP_SECRET, cloud_text, new_phone
from tests.processes.sockets import HALF_A_HEADER, begun_body, held_sockets
from tests.processes.stage import Stage, stage

CLOUD = "/webhooks/whatsapp/cloud/"
SIGNED = "X-Hub-Signature-256: sha256=" + "0" * 64
CLIENTS, POSTS = 8, 400
TRIES, PATIENCE_SECONDS = 5, 2.0
ASKING, MODEL_SECONDS = 40, 6.0


def main() -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}\n")
    for name, start in (("one web server", alone), ("behind the front door", behind)):
        with stage(
            run=start, EMBEDDER="wordllama", TRUSTED_PROXIES="1", HTTPS_ONLY="false"
        ) as started:
            print(f"{name}:")
            measure(started)


def alone(installation: Installation) -> None:
    installation.migrate()
    installation.start_program("web")
    while installation.answer("/healthz") != httpx.codes.OK:
        time.sleep(0.1)


def behind(installation: Installation) -> None:
    installation.migrate()
    FrontDoor(installation).start()


def measure(started: Stage) -> None:
    url = started.installation.url
    print(f"- {CLIENTS} clients post {POSTS} webhooks: {rate(url)}")
    for what, begun in (
        ("half a header", HALF_A_HEADER),
        ("a begun signed body", begun_body(CLOUD, SIGNED)),
    ):
        for count in (48, 200):
            with held_sockets(url, begun, count):
                print(f"- {count} sockets with {what}: {answered(url)}")
    print(f"- {ASKING} calls of chat/, a model of {MODEL_SECONDS:g} s: {while_asking(started)}\n")


def post(client: httpx.Client, *_: object) -> float:
    body = body_bytes(cloud_text(new_phone(), "hello"))
    began = time.perf_counter()
    answer = client.post(CLOUD, content=body, headers=signed_headers(APP_SECRET, body))
    answer.raise_for_status()
    return (time.perf_counter() - began) * 1000


def rate(url: str) -> str:
    with client_of(url, 60) as client, ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: post(client), range(50)))
        began = time.perf_counter()
        took = sorted(pool.map(lambda _: post(client), range(POSTS)))
        seconds = time.perf_counter() - began
    p95 = took[int(POSTS * 0.95)]
    return f"{POSTS / seconds:.0f} a second, median {statistics.median(took):.0f} ms, p95 {p95:.0f}"


def client_of(url: str, timeout: float) -> httpx.Client:
    return httpx.Client(base_url=url, trust_env=False, verify=False, timeout=timeout)


def answered(url: str) -> str:
    tries = [succeeds(lambda: webhook_alone(url)) for _ in range(TRIES)]
    return f"{sum(tries)} of {TRIES} webhooks answered within {PATIENCE_SECONDS:g} s"


def webhook_alone(url: str) -> None:
    with client_of(url, PATIENCE_SECONDS) as client:
        post(client)


def succeeds(work: Callable[[], None]) -> bool:
    try:
        work()
    except httpx.HTTPError:
        return False
    return True


def while_asking(started: Stage) -> str:
    """Measure how long a webhook takes while calls wait for the model."""
    secret = started.installation.manage("create_api_token", "bench").strip()
    started.openai.next_behaviour = lambda path: slow(MODEL_SECONDS)
    with client_of(started.installation.url, 120) as client, ThreadPoolExecutor(ASKING) as pool:

        def ask(_: int) -> int:
            return client.post(
                "/api/v1/chat/",
                json={"whatsapp_chat": f"{new_phone()}@c.us", "content": "hello"},
                headers={"Authorization": f"Token {secret}"},
            ).status_code

        calls = [pool.submit(ask, number) for number in range(ASKING)]
        time.sleep(2)
        with client_of(started.installation.url, 120) as other:
            took = post(other)
        statuses = [call.result() for call in calls]
    return (
        f"a webhook took {took / 1000:.2f} s; {statuses.count(200)} calls answered, "
        f"{statuses.count(503)} refused with 503"
    )


if __name__ == "__main__":
    main()
