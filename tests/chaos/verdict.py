"""What became of each message: stored once, answered once, or a reason on record."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.processes.database import Database

OPEN = ("pending", "running", "deferred", "replied", "sending")


@dataclass
class Verdict:
    """Counts of one run. The lists hold keys of messages, for the first few of each kind."""

    messages: int = 0
    deliveries: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    sent_seconds: int = 0
    settled_seconds: int = 0
    states: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    stored_twice: list[str] = field(default_factory=list)
    answered_twice: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    unconfirmed_and_arrived: int = 0
    unconfirmed_and_not_sent: int = 0
    unprocessed: int = 0
    still_open: int = 0

    @property
    def held(self) -> bool:
        """Whether each promise was kept."""
        broken = self.lost or self.stored_twice or self.answered_twice or self.silent
        return not broken and not self.unprocessed and not self.still_open

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "held": self.held}


def turn_states(database: Database) -> Counter[str]:
    rows = database.rows("SELECT state, count(*) AS number FROM sessions_app_turn GROUP BY state")
    return Counter({row["state"]: row["number"] for row in rows})


def judge(database: Database, keys: dict[str, str], accepted: Counter[str]) -> Verdict:
    """Compare what was sent with what is stored and with what the provider accepted.

    keys: the key of each message by its provider's id. accepted: how many answers to each key the
    provider took.
    """
    stored = Counter(
        row["provider_message_id"]
        for row in database.rows(
            "SELECT provider_message_id FROM sessions_app_message WHERE role = 'user'"
        )
    )
    turns = {
        row["provider_message_id"]: row
        for row in database.rows("SELECT provider_message_id, state, error FROM sessions_app_turn")
    }
    verdict = Verdict(messages=len(keys), states=dict(turn_states(database)))
    verdict.still_open = sum(verdict.states.get(state, 0) for state in OPEN)
    for message_id, key in keys.items():
        if not stored[message_id]:
            verdict.lost.append(key)
        elif stored[message_id] > 1:
            verdict.stored_twice.append(key)
        turn = turns.get(message_id)
        state = turn["state"] if turn else "none"
        if accepted[key] > 1:
            verdict.answered_twice.append(key)
        if state == "unconfirmed":
            verdict.unconfirmed_and_arrived += accepted[key] > 0
            verdict.unconfirmed_and_not_sent += not accepted[key]
        elif not accepted[key] and not (turn and (turn["error"] or state == "missed")):
            verdict.silent.append(key)
    verdict.unprocessed = database.rows(
        "SELECT count(*) AS number FROM sessions_app_inbounddelivery"
        " WHERE outcome LIKE 'not processed%%'"
    )[0]["number"]
    return verdict
