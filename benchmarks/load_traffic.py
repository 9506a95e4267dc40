"""Traffic of webhooks as a business has it, for benchmarks/load.py."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from memoryproject.foundation.integrations.loopback.providers import (
    body_bytes,
    signed_headers,
    token_headers,
)
from tests.processes.posting import APP_SECRET, WEBHOOK_TOKEN, cloud_text, cloud_value, green_text

FIRST_PHONE = 15552000000
STATUSES = 0.25
GREEN = 0.25
QUESTIONS = (
    "When do you open on Sunday?",
    "Is the blue one still there? I would come by this afternoon and take it with me.",
    "thanks!",
    "מתי אתם פתוחים ביום שישי?",
    "The invoice 4711 is not what we agreed: it says 1,250, and we said 1,150 with delivery.",
)


@dataclass
class Post:
    """One webhook: where it goes, and the id of its message, if it holds one."""

    path: str
    body: bytes
    headers: dict[str, str]
    message_id: str | None


@dataclass
class Outcome:
    """The outcome of the posts of one run. Times are in milliseconds.

    ``accepted`` has the moment at which each accepted message was due, in seconds since 1970.
    """

    rate: float
    seconds: float
    took: list[float] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, float] = field(default_factory=dict)

    def percentile(self, share: float) -> float:
        return percentile(self.took, share)

    def row(self) -> str:
        refused = ", ".join(f"{count} × {what}" for what, count in self.refused.items()) or "0"
        median = statistics.median(self.took)
        return (
            f"| {self.rate:g} | {len(self.took) / self.seconds:.0f} | {median:.0f} "
            f"| {self.percentile(0.95):.0f} | {self.percentile(0.99):.0f} "
            f"| {max(self.took):.0f} | {refused} |"
        )


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def posts(chats: int, seed: int = 1) -> Iterator[Post]:
    """Texts of many chats by both providers, and statuses of answers; some chats write more."""
    choose = random.Random(seed)
    while True:
        # A tenth of the chats writes half of the messages.
        busy = choose.random() < 0.5
        phone = str(FIRST_PHONE + choose.randrange(max(1, chats // 10) if busy else chats))
        kind = choose.random()
        if kind < STATUSES:
            yield _cloud(_status(phone, choose), None)
        elif kind < STATUSES + GREEN:
            body = green_text(phone, choose.choice(QUESTIONS))
            raw = body_bytes(body)
            headers = token_headers(WEBHOOK_TOKEN)
            yield Post("/webhooks/whatsapp/green/", raw, _plain(headers), body["idMessage"])
        else:
            body = cloud_text(phone, choose.choice(QUESTIONS))
            message = body["entry"][0]["changes"][0]["value"]["messages"][0]
            yield _cloud(body, message["id"])


def first_posts(chats: int) -> Iterator[Post]:
    """The first text of each chat."""
    for number in range(chats):
        body = cloud_text(str(FIRST_PHONE + number), QUESTIONS[0])
        yield _cloud(body, body["entry"][0]["changes"][0]["value"]["messages"][0]["id"])


def _cloud(body: dict[str, Any], message_id: str | None) -> Post:
    raw = body_bytes(body)
    headers = signed_headers(APP_SECRET, raw)
    return Post("/webhooks/whatsapp/cloud/", raw, _plain(headers), message_id)


def _status(phone: str, choose: random.Random) -> dict[str, Any]:
    """The status of a message that this server never sent: looked up, and stored for a moment."""
    status = {
        "id": f"wamid.status{choose.getrandbits(64):x}",
        "status": choose.choice(["sent", "delivered", "read"]),
        "timestamp": str(int(time.time())),
        "recipient_id": phone,
    }
    return cloud_value(statuses=[status])


def _plain(headers: Any) -> dict[str, str]:
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in headers.items()
    }


async def send_at(url: str, rate: float, seconds: float, traffic: Iterator[Post]) -> Outcome:
    """Post at random moments, so many a second on average, whatever the server does.

    A post's time begins at its moment, also if all connections are in use then. Ends early with
    the traffic.
    """
    outcome = Outcome(rate, seconds)
    choose = random.Random(2)
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(
        base_url=url, trust_env=False, verify=False, timeout=60, limits=limits
    ) as client:
        tasks = []
        began = moment = time.perf_counter()
        while moment - began < seconds and (post := next(traffic, None)) is not None:
            await asyncio.sleep(moment - time.perf_counter())
            tasks.append(asyncio.create_task(_send(client, post, moment, outcome)))
            moment += choose.expovariate(rate)
        await asyncio.gather(*tasks)
    return outcome


async def _send(client: httpx.AsyncClient, post: Post, moment: float, outcome: Outcome) -> None:
    due = time.time() - (time.perf_counter() - moment)
    try:
        answer = await client.post(post.path, content=post.body, headers=post.headers)
        if answer.status_code == httpx.codes.OK:
            if post.message_id:
                outcome.accepted[post.message_id] = due
        else:
            what = str(answer.status_code)
            outcome.refused[what] = outcome.refused.get(what, 0) + 1
    except httpx.HTTPError as error:
        what = type(error).__name__
        outcome.refused[what] = outcome.refused.get(what, 0) + 1
    outcome.took.append((time.perf_counter() - moment) * 1000)
