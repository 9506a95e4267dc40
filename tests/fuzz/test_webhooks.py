"""Whatever a provider posts: an answer below 500, and nothing that could not be processed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import example, given

from sessions_app.models import InboundDelivery
from sessions_app.models.deliveries import UNPROCESSED
from tests.fuzz.damage import FACTOR, budget, damaged, places
from tests.unit.whatsapp.payloads import OWN, load, names
from tests.webhooks.conftest import configured
from tests.webhooks.posting import post_cloud, post_green

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# A fixture of these tests that stands elsewhere.
__all__ = ["configured"]


# The names of fields that hold ids and addresses.
IDS = re.compile(r"(?i)id$|^id|^from$|^to$|^sender$|participant|phone|chat$|^wid$|instance")


def recorded(provider: str) -> list[Any]:
    return [load(OWN / provider / f"{name}.json") for name in names(OWN / provider)]


def check(post: Callable[..., Any], client: Client, raw: bytes) -> None:
    answer = post(client, raw)
    assert answer.status_code in (200, 400), (answer.status_code, answer.content[:500])
    unprocessed = InboundDelivery.objects.filter(outcome__startswith=UNPROCESSED)
    assert not unprocessed.exists(), list(unprocessed.values("event", "outcome", "raw"))


@budget(80)
@given(raw=damaged(recorded("cloud")))
@example(raw=b"[]")
@example(raw=b"")
@example(raw=b'{"object": "whatsapp_business_account", "entry": ' + b"[" * 100_000)
def test_any_damage_to_a_body_of_the_cloud_api_gets_an_answer(client: Client, raw: bytes) -> None:
    check(post_cloud, client, raw)


@budget(80)
@given(raw=damaged(recorded("green")))
@example(raw=b"null")
@example(raw=b'{"typeWebhook": "incomingMessageReceived", "timestamp": 1e400}')
def test_any_damage_to_a_body_of_green_api_gets_an_answer(client: Client, raw: bytes) -> None:
    check(post_green, client, raw)


def with_long_ids(provider: str) -> Iterator[tuple[str, bytes]]:
    """Yield each recorded body with each of its ids too long for any column.

    An id with the same path and the same fields beside it is read by the same code: the tests take
    the first of these, `make fuzz` takes all.
    """
    seen = set()
    for document in recorded(provider):
        for path in places(document):
            *above, last = path
            changed = copy.deepcopy(document)
            holder = changed
            for key in above:
                holder = holder[key]
            if isinstance(holder[last], str) and IDS.search(str(last)):
                kind = (path, tuple(sorted(holder)) if isinstance(holder, dict) else ())
                if kind in seen and FACTOR == 1:
                    continue
                seen.add(kind)
                for long in ("9" * 300, f"x{'9' * 300}{holder[last]}"):
                    holder[last] = long
                    yield ".".join(map(str, path)), json.dumps(changed).encode()


@pytest.mark.parametrize("provider", ["cloud", "green"])
def test_an_id_that_is_too_long_is_refused(provider: str, client: Client) -> None:
    post = {"cloud": post_cloud, "green": post_green}[provider]
    wrong = []
    for where, raw in with_long_ids(provider):
        with transaction.atomic():
            assert post(client, raw).status_code == 200, where
            unprocessed = InboundDelivery.objects.filter(outcome__startswith=UNPROCESSED)
            wrong += [(where, *found) for found in unprocessed.values_list("event", "outcome")]
            # Other bodies have the same ids.
            transaction.set_rollback(True)
    assert not wrong, "\n".join(map(str, wrong))
