"""No page of the admin asks the database more, because there is more in it.

Every address of tests/staff/expected.py, with the searches, filters and orders that its page
offers, is opened in a small world and in one several times as large: more rows in every list, and
more in each of the rows that pages are about (see tests/staff/crowd.py).

One page asks more for more, within the bounds of tests/forgetting/test_preview.py: what would be
forgotten is found out by forgetting it, in a transaction that is taken back. That costs what goes
and what is changed, not what stays, which is what it is held to here.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from html import unescape
from operator import and_
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import Client
from django.urls import reverse

from memories_app.models import Memory
from memoryproject.staff_site.accounts.second_factor import SEEN
from sessions_app.forgetting.runs import MAX_OBJECTS, run_draft
from tests.database import statements
from tests.staff.crowd import Crowd
from tests.staff.crowd_around import WORD
from tests.staff.expected import PAGES
from tests.staff.roles import role_client, tries
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# After three layers there are documents in each state.
SMALL, MORE = 3, 3
# What differs between two queries of one kind.
VALUES = re.compile(r"'(?:[^']|'')*'|\b\d[\d.]*\b")
MANY_VALUES = re.compile(r"\?(?:::[\w\[\]]+)?(?:, \?(?:::[\w\[\]]+)?)+")
PASSING = re.compile(r'"(?:s\d+_x\d+|_django_curs_\w+)"')
COLUMNS = re.compile(r"SELECT .{60,}? FROM")
LINK = re.compile(r'href="(\?[^"#]+)')


@dataclass(frozen=True)
class Look:
    """What is asked for; where ``posted`` isn't empty, by POST."""

    address: str
    posted: Mapping[str, Any] = field(default_factory=dict, hash=False)
    live: bool = False


@dataclass(frozen=True)
class Asked:
    """What a page asked. ``rows``: those of its list, if it is one, and ``is_full`` where there is
    a next page of them."""

    status: int
    queries: list[str]
    body: str
    is_list: bool
    rows: int
    is_full: bool

    @property
    def count(self) -> int:
        return len(self.queries)

    @property
    def kinds(self) -> Counter[str]:
        """The queries with their values taken out."""
        return Counter(kind_of(sql) for sql in self.queries)


def kind_of(sql: str) -> str:
    without = VALUES.sub("?", PASSING.sub("it", sql)).replace("%s", "?")
    return MANY_VALUES.sub("?, …", " ".join(without.split()))


def login(user: User) -> str:
    """The session of a login, which no page writes to for as long as the test takes."""
    client = Client()
    client.force_login(user)
    session = client.session
    session[SEEN] += 24 * 60 * 60
    session.save()
    return str(session.session_key)


def opened(session: str, look: Look) -> Asked:
    """Just logged in, by a look that leaves nothing behind: no page is the second one."""
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session
    headers = {"X-Live": "1"} if look.live else {}
    with transaction.atomic(), statements() as queries:
        if look.posted:
            answer: Any = client.post(look.address, look.posted)
        else:
            answer = client.get(look.address, headers=headers)
        body = b"".join(answer) if answer.streaming else answer.content
        transaction.set_rollback(True)
    listed = answer.context and answer.context.get("cl")
    return Asked(
        answer.status_code,
        queries,
        body.decode(errors="replace"),
        is_list=bool(listed),
        rows=len(listed.result_list) if listed else 0,
        is_full=bool(listed) and listed.multi_page,
    )


def links(address: str, page: str, *, is_list: bool) -> Iterator[Look]:
    """Where the page leads to itself, asked otherwise: of each parameter the first value.

    A list is searched by itself, and asked once with all its filters and an order: what is asked
    for each of its rows, the list without them shows.
    """
    if 'name="q"' in page:
        yield Look(f"{address}?q={WORD}")
    together: dict[str, str] = {}
    seen: set[str] = set()
    for link in map(unescape, LINK.findall(page)):
        asked = dict(parse_qsl(link[1:], keep_blank_values=True))
        if not is_list and asked.keys() - seen:
            yield Look(address + link)
        seen |= asked.keys()
        together = {**asked, **together}
    if is_list and together:
        yield Look(f"{address}?{urlencode(together)}")


def looks(crowd: Crowd, letter: str) -> list[Look]:
    """At every address that may be opened by who has this letter. Where a row was changed, and what
    goes with it, one page tells of all lists: that is looked at by the superuser, of one row."""
    found: dict[Look, None] = {}
    for keys in (crowd.keys, crowd.others):
        for one in tries(keys):
            is_once = one.name.endswith(("_history", "_delete")) and one.name not in PAGES
            if is_once and (letter != "S" or keys is crowd.others):
                continue
            if one.method == "GET" and one.may is not None and letter in one.may:
                found[Look(one.address)] = None
    chat = reverse("admin:sessions_app_chat_conversation", args=[crowd.keys["sessions_app.chat"]])
    said = crowd.keys["sessions_app.message"]
    found |= dict.fromkeys(
        [
            Look(chat, live=True),
            Look(reverse("admin:sessions_app_chat_changelist"), live=True),
            Look(f"{reverse('admin:global_search')}?words={WORD}"),
            Look("/metrics"),
            Look(f"{chat}?before={said}"),
            Look(f"{chat}?after={said}"),
            Look(f"{chat}?q={WORD}&at={said}"),
        ]
    )
    return list(found)


def of_forgetting(world: World, crowd: Crowd, user: User) -> list[Look]:
    """What was found to be forgotten, and what would go: with a memory and a person, around whom
    the world grows; and of so much that it isn't tried out."""
    search = reverse("admin:sessions_app_forgetrun_search")
    asked = {"words": WORD, "kinds": ["memory", "message"], "how": "words"}
    found = [Look(search, asked), Look(search, {**asked, "how": "meaning", "chat": CLIENT})]
    world.remember(OTHER_CLIENT, "The lighthouse is white")
    memory, chat = Memory.objects.latest("created_at"), world.chat(OTHER_CLIENT)
    many = [("memory", uuid.uuid4()) for _ in range(MAX_OBJECTS)]
    for chosen in (
        [("memory", memory.pk)],
        [("chat", chat.pk)],
        [("chat", crowd.keys["sessions_app.chat"]), *many],
    ):
        run = run_draft(chosen=chosen, asked_by=user.username)
        found.append(Look(reverse("admin:sessions_app_forgetrun_change", args=[run.pk])))
    return found


def told(look: Look, small: Asked, large: Asked) -> str:
    """The page, both counts, and which queries are asked more often."""
    before, after = small.kinds, large.kinds
    more = after - before
    lines = [f"{look.address}: {small.count} queries, then {large.count}"]
    lines += [
        f"  {before[sql]} → {after[sql]} times: {COLUMNS.sub('SELECT … FROM', sql)[:400]}"
        for sql, _ in more.most_common(5)
    ]
    return "\n".join(lines)


def test_every_page_asks_as_much_in_a_large_world_as_in_a_small_one(world: World) -> None:
    """A superuser opens everything, a viewer the pages on which nothing can be changed."""
    everything, viewer = (role_client(letter)[1] for letter in "SV")
    assert everything is not None
    assert viewer is not None
    crowd = Crowd(world, [everything, viewer])
    crowd.grow(SMALL)
    # These are asked for once in a process.
    ContentType.objects.get_for_models(*apps.get_models())
    pages = looks(crowd, "S") + of_forgetting(world, crowd, everything)
    sessions = {who: login(who) for who in (everything, viewer)}
    small = {(everything, look): opened(sessions[everything], look) for look in pages}
    for (_, page), before in list(small.items()):
        small |= {
            (everything, look): opened(sessions[everything], look)
            for look in links(page.address, before.body, is_list=before.is_list)
            if (everything, look) not in small
        }
    viewed = {look: opened(sessions[viewer], look) for look in looks(crowd, "V")}
    # The viewer's rights. Where nothing else was asked that the superuser's page didn't ask, too,
    # that one tells of both.
    always = reduce(and_, (asked.kinds for asked in viewed.values()))
    small |= {
        (viewer, look): asked
        for look, asked in viewed.items()
        if not asked.kinds - always <= small[everything, look].kinds
    }
    crowd.grow(MORE)
    wrong = []
    for (who, look), before in small.items():
        after = opened(sessions[who], look)
        assert before.status == after.status, look.address
        if before.count != after.count:
            wrong.append(f"{who.username} at {told(look, before, after)}")
        if not grew(look, before, after):
            wrong.append(f"{look.address}: let tests/staff/crowd.py add rows to this list")
    assert not wrong, "\n" + "\n".join(wrong)


def grew(look: Look, before: Asked, after: Asked) -> bool:
    """Whether a whole list has more rows than it had, or had a page full of them."""
    is_list = before.rows and "?" not in look.address
    return not is_list or before.is_full or after.rows > before.rows
