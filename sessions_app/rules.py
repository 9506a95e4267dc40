"""Rules of staff: find what happened in chats, and act on it once.

What happened is read from the stored messages, turns and labels. So an act that was interrupted is
made up for, and a dry run finds what the rule itself would have found.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.integrations.whatsapp.base import Template, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import EventType
from memoryproject.foundation.staff_notices import Kind, notify
from sessions_app.conversations import history_queries, phrases, plain_words
from sessions_app.hours import Hours, hours_of
from sessions_app.inbox import needs, notes
from sessions_app.inbox.labels import chats_assign, chats_label
from sessions_app.models import (
    Assignment,
    Chat,
    ChatAccess,
    ChatAddress,
    ChatLabel,
    ChatMark,
    ChatSession,
    Message,
    ReviewedMark,
    Rule,
    RuleRun,
    Turn,
)
from sessions_app.models.chats import Provider
from sessions_app.models.limits import Standing
from sessions_app.models.messages import APOLOGY, IMPORTED, SURVEY, DeliveryStatus, Role
from sessions_app.models.review import Happening
from sessions_app.models.turns import BY_RULE, HANDOVER, RULES_MET, Outcome, TurnState
from sessions_app.takeover import facade as takeover
from sessions_app.turns.facade import chat_locked, pause_in_force

# What is older when a worker comes to it is left alone: a text would come too late.
LOOKBACK = timedelta(hours=2)
# History that is moved in is stored now, and was written before.
WRITTEN_WITHIN = timedelta(days=1)
KEPT = timedelta(days=90)
_KEYS = uuid.UUID("6f1d2f7c-0b5e-4d0e-9d55-0a4e5a5d7c11")


@dataclass(frozen=True)
class Happened:
    """Something that happened in a chat. ``key``: the same for what counts as one event."""

    chat_id: UUID
    at: datetime
    key: str


@dataclass(frozen=True)
class Span:
    """The time that is looked at, in one chat or in all; ``is_live``: it ends now."""

    start: datetime
    end: datetime
    chat_id: UUID | None = None
    is_live: bool = False

    def within(self, rows: QuerySet[Any], field: str) -> QuerySet[Any]:
        """Return the rows whose time is in the span."""
        found = rows.filter(**{f"{field}__gte": self.start, f"{field}__lt": self.end})
        return found if self.chat_id is None else found.filter(chat=self.chat_id)


# A chat, a time and a text.
Found = tuple[UUID, datetime, str]


def _heard(span: Span, rule: Rule, *, only_first: bool = False) -> Iterator[Found]:
    """Yield what people wrote; where memory is off, the rule's words if the text held them."""
    messages = span.within(Message.objects, "received_at").filter(
        role=Role.USER, revoked_at=None, timestamp__gte=span.start - WRITTEN_WITHIN
    )
    messages = messages.exclude(kind="call").exclude(metadata__has_any_keys=[IMPORTED, SURVEY])
    unstored = span.within(Turn.objects, "created_at").filter(session=None, by_hand=False)
    # The person has deleted it; what a person answered has an error that says so.
    unstored = unstored.exclude(state=TurnState.CANCELLED, error="")
    if only_first:
        sessions = ChatSession.objects.filter(chat=OuterRef("chat"))
        earlier = sessions.filter(created_at__lt=OuterRef("session__created_at"))
        turns = Turn.objects.filter(chat=OuterRef("chat"), id__lt=OuterRef("pk"))
        messages = messages.filter(~Exists(earlier), order_num=1)
        unstored = unstored.filter(~Exists(sessions), ~Exists(turns))
    yield from messages.values_list("chat_id", "received_at", "content")
    for turn in unstored.only("chat_id", "created_at", "unstored_text", "context"):
        met = rule.words if rule.pk in turn.context.get(RULES_MET, ()) else ""
        yield turn.chat_id, turn.created_at, turn.unstored_text or met


def _unanswered_since(span: Span, minutes: int) -> Iterator[Found]:
    """Yield for how long nobody has answered the first message after our last answer.

    Apologies, texts of rules and the words that hand a conversation over are no answers.
    """
    wait = timedelta(minutes=minutes)
    handed_over = Turn.objects.filter(reply=OuterRef("pk"), context__has_key=HANDOVER)
    answers = (
        Message.objects.filter(~Exists(handed_over), chat=OuterRef("chat"), role=Role.ASSISTANT)
        .exclude(metadata__has_any_keys=[APOLOGY, BY_RULE])
        .exclude(delivery_status=DeliveryStatus.FAILED)
    )
    until = span.end if span.is_live else OuterRef("received_at") + wait
    # What one call of the API stores has one time.
    same = Q(received_at=OuterRef("received_at"), session=OuterRef("session"))
    is_after = Q(received_at__gt=OuterRef("received_at"), received_at__lte=until)
    after = answers.filter(is_after | same & Q(order_num__gt=OuterRef("order_num")))
    is_before = Q(received_at__lt=OuterRef("received_at"))
    before = answers.filter(is_before | same & Q(order_num__lt=OuterRef("order_num")))
    written = Message.objects.filter(
        Q(received_at__gt=OuterRef("answered_at")) | Q(IsNull(OuterRef("answered_at"), True)),
        chat=OuterRef("chat"),
        role=Role.USER,
        received_at__lt=OuterRef("received_at"),
    )
    reviewed = ReviewedMark.objects.filter(
        chat=OuterRef("chat"), reviewed_at__gte=OuterRef("received_at")
    )
    earlier = Span(span.start - wait, span.end - wait, span.chat_id)
    waiting = (
        earlier.within(Message.objects, "received_at")
        .filter(~Exists(after), role=Role.USER, revoked_at=None)
        .filter(timestamp__gte=earlier.start - WRITTEN_WITHIN)
        .exclude(metadata__has_any_keys=[IMPORTED, SURVEY])
        .annotate(answered_at=Subquery(before.order_by("-received_at").values("received_at")[:1]))
        .filter(~Exists(written))
    )
    if span.is_live:
        waiting = waiting.filter(~Exists(reviewed))
    for chat_id, at, text in waiting.values_list("chat_id", "received_at", "content"):
        yield chat_id, at + wait, text


def _turns(span: Span, which: Q) -> Iterator[Found]:
    found = span.within(Turn.objects, "created_at").filter(which, by_hand=False)
    for chat_id, at, text in found.values_list("chat_id", "created_at", "message__content"):
        yield chat_id, at, text or ""


def _labelled(span: Span, label_id: int | None) -> Iterator[Found]:
    found = span.within(ChatLabel.objects.filter(label=label_id), "created_at")
    return ((chat_id, at, "") for chat_id, at in found.values_list("chat_id", "created_at"))


SOURCES: Mapping[str, Callable[[Span, Rule], Iterable[Found]]] = {
    Happening.MESSAGE: lambda span, rule: _heard(span, rule),
    Happening.NEW_CHAT: lambda span, rule: _heard(span, rule, only_first=True),
    Happening.LABEL: lambda span, rule: _labelled(span, rule.label_id),
    Happening.SILENCE: lambda span, rule: _unanswered_since(span, rule.minutes or 1),
    Happening.HANDOVER: lambda span, _rule: _turns(span, Q(context__has_key=HANDOVER)),
    Happening.UNANSWERED: lambda span, _rule: _turns(
        span, Q(outcome=Outcome.FAILED) | Q(state=TurnState.FAILED) | needs.is_unknown()
    ),
}


def happened(rule: Rule, span: Span, hours: Hours | None) -> list[Happened]:
    """Return on what the rule acts, the oldest first, each event once.

    The owner's chats, and those of people who said stop or are blocked, aren't in it.
    """
    found: dict[tuple[UUID, str], Happened] = {}
    for chat_id, at, text in sorted(SOURCES[rule.when](span, rule), key=lambda each: each[1]):
        if rule.words and not phrases.holds_words(text, rule.words):
            continue
        if rule.out_of_hours and (hours is None or hours.is_open(at)):
            continue
        of_period = rule.out_of_hours and rule.when == Happening.MESSAGE and not rule.words
        begun = hours.closed_since(at) if hours and of_period else at
        key = f"{'closed' if of_period else rule.when} {begun.isoformat() if begun else ''}"
        if rule.when == Happening.NEW_CHAT:
            key = rule.when
        found.setdefault((chat_id, key), Happened(chat_id, at, key))
    out = left_out({event.chat_id for event in found.values()}) if found else set()
    return [event for event in found.values() if event.chat_id not in out]


def left_out(chat_ids: set[UUID]) -> set[UUID]:
    """Return the chats of the owner, and of who said stop or is blocked."""
    forms = {form for address in settings.GODFATHER_PHONE for form in address_forms(address)}
    owners = ChatAddress.objects.filter(
        chat__in=chat_ids, chat__is_group=False, left_at=None, address__in=forms
    )
    stopped = ChatAccess.objects.filter(
        Q(opted_out_at__isnull=False) | Q(standing=Standing.BLOCKED), chat__in=chat_ids
    )
    return {*owners.values_list("chat", flat=True), *stopped.values_list("chat", flat=True)}


def rules_on() -> list[Rule]:
    """Return the rules that act, in their order; the away text is one that nobody has to write."""
    profile = history_queries.profile_current()
    rules = list(Rule.objects.filter(is_on=True))
    if away := str(profile.hours.get("away_text", "")):
        since = profile.updated_at
        rules.append(Rule(when=Happening.MESSAGE, out_of_hours=True, text=away, since=since))
    return rules


def _due(now: datetime, chat_id: UUID | None = None) -> Iterator[tuple[Rule, Happened]]:
    """Yield what the rules haven't acted on yet."""
    hours = hours_of(history_queries.profile_current())
    for rule in rules_on():
        span = Span(max(rule.since, now - LOOKBACK), now, chat_id, is_live=True)
        events = happened(rule, span, hours)
        runs = RuleRun.objects.filter(rule=rule.pk, chat__in={each.chat_id for each in events})
        done = set(runs.values_list("chat", "event")) if events else set()
        for each in events:
            # Who hears from when a person answers needs no away text, too.
            is_told = rule.pk is None and hours and _is_handed_over(each, hours)
            if (each.chat_id, each.key) not in done and not is_told:
                yield rule, each


def _is_handed_over(event: Happened, hours: Hours) -> bool:
    """Return whether a chat was handed over since closing, or is as soon as it is answered."""
    since = hours.closed_since(event.at) or event.at
    turns = Turn.objects.filter(chat=event.chat_id, created_at__gte=since)
    begun = turns.filter(state__in=[TurnState.PENDING, TurnState.RUNNING])
    texts = begun.values_list("message__content", flat=True)
    return turns.filter(context__has_key=HANDOVER).exists() or any(
        plain_words.wants_person(text or "") for text in texts
    )


def chats_due(now: datetime) -> list[UUID]:
    """Return the chats in which rules have to act."""
    return list(dict.fromkeys(event.chat_id for _rule, event in _due(now)))


def old_runs_drop(now: datetime) -> None:
    RuleRun.objects.filter(at__lt=now - KEPT).delete()


# Act.


@dataclass(frozen=True)
class Outlet:
    """How texts go out. ``writer`` has no author."""

    writer: takeover.Writer
    providers: Mapping[str, WhatsAppProvider]
    otherwise: takeover.OwnNumber


def rules_run(*, chat_id: UUID, outlet: Outlet) -> int:
    """Let the rules act on what happened in a chat; return how often they did."""
    return sum(_act(rule, event, outlet) for rule, event in _due(outlet.writer.now, chat_id))


def _act(rule: Rule, event: Happened, outlet: Outlet) -> bool:
    """Act once: of two workers at the same moment, the later one finds that it is done."""
    found = Chat.objects.filter(pk=event.chat_id).first()
    provider = outlet.providers.get(found.provider) if found and rule.template else None
    # Meta is asked before the transaction.
    approved = takeover.template_found(provider, *template_of(rule.template)) if provider else None
    with transaction.atomic():
        try:
            chat = chat_locked(event.chat_id)
        except Chat.DoesNotExist:
            return False
        run, is_new = RuleRun.objects.get_or_create(chat=chat, rule_id=rule.pk, event=event.key)
        if not is_new:
            return False
        key = uuid.uuid5(_KEYS, f"{rule.pk} {chat.pk} {event.key}")
        done = [*_done(rule, event, key), *_sent(rule, chat, key, approved, outlet)]
        RuleRun.objects.filter(pk=run.pk).update(did=" ".join(done))
        audit_record("rule.act", SYSTEM, "chat", chat.pk, rule=rule.pk or 0, did=done)
    return True


def template_of(text: str) -> tuple[str, str]:
    """Return the name and the language of a template such as "we_are_back en"."""
    name, _blank, language = text.partition(" ")
    return name, language.strip()


def _done(rule: Rule, event: Happened, key: UUID) -> Iterator[str]:
    """Do what stays inside; yield the names of what was done."""
    chat_id = event.chat_id
    if rule.add_label and chats_label(chat_ids=[chat_id], label=rule.add_label, actor=SYSTEM):
        yield "label"
    if rule.pk and _assign(rule, chat_id):
        yield "assign"
    if rule.tells:
        tell(rule=rule, chat_id=chat_id, event_id=key)
        yield "tell"
    if rule.due_minutes:
        due_at = event.at + timedelta(minutes=rule.due_minutes)
        mark, _made = ChatMark.objects.get_or_create(chat_id=chat_id)
        mark.due_at = min(mark.due_at or due_at, due_at)
        mark.save(update_fields=["due_at"])
        yield "due"


def _assign(rule: Rule, chat_id: UUID) -> bool:
    """Assign the chat to the rule's only person, or else to the next one by turn."""
    people = list(rule.assignees.filter(is_active=True, is_staff=True).order_by("pk"))
    if not people:
        return False
    turn = 0
    if len(people) > 1:
        if Assignment.objects.filter(chat=chat_id, assignee__is_active=True).exists():
            return False
        turn = Rule.objects.select_for_update().get(pk=rule.pk).given
        Rule.objects.filter(pk=rule.pk).update(given=F("given") + 1)
    assignee = people[turn % len(people)]
    return bool(chats_assign(chat_ids=[chat_id], assignee=assignee, actor=SYSTEM).changed)


def tell(*, rule: Rule, chat_id: UUID, event_id: UUID) -> None:
    """Tell staff of a chat: a mark in the inbox, a note, notifications; and integrators."""
    ChatMark.objects.update_or_create(chat_id=chat_id, defaults={"rule_name": rule.name})
    text = _("Rule “%(name)s”: %(when)s") % {"name": rule.name, "when": rule.get_when_display()}
    notes.note_write(user=None, chat_id=chat_id, text=text, actor=Actor("system", rule.name))
    data = {"rule_id": rule.pk, "rule": rule.name, "when": str(rule.when)}
    hooks_raise([HookEvent(EventType.RULE_MATCHED, event_id, data, chat_id)])
    notify(Kind.DUE, [(event_id, chat_id)])


def _sent(
    rule: Rule, chat: Chat, key: UUID, approved: ApprovedTemplate | None, outlet: Outlet
) -> Iterator[str]:
    """Send the rule's texts where somebody may get them; yield the names of what was sent."""
    is_person = not chat.is_group and chat.provider != str(Provider.CONSOLE)
    if not is_person or pause_in_force(chat.pk, outlet.writer.now) is not None:
        return
    way: Any = {"chat_id": chat.pk, "writer": outlet.writer, "otherwise": outlet.otherwise}
    # WhatsApp's window may be closed, or the number sends no templates.
    if rule.text:
        with suppress(takeover.ReplyRefusedError):
            text = takeover.fill(rule.text, takeover.placeholder_values(chat))
            takeover.chat_reply(
                reply=takeover.StaffReply(text, key), providers=outlet.providers, **way
            )
            yield "text"
    # It may be marketing where nobody knows what it is.
    if rule.template and not (approved is None and takeover.marketing_stopped(chat)):
        way |= {"key": uuid.uuid5(key, "template"), "approved": approved}
        with suppress(takeover.ReplyRefusedError):
            takeover.chat_template(template=Template(*template_of(rule.template), ()), **way)
            yield "template"
