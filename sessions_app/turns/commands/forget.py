"""/forget <number, id or words>: forget a memory. "Forget my shoe size" does the same."""

import re
from collections.abc import Callable
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memories_app.facts.facts import fact_key
from memories_app.models import Memory, Visibility
from memories_app.visibility import memories_in_order
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.query import is_informative, query_terms, with_words
from sessions_app.conversations.chat_language import is_common
from sessions_app.conversations.phrases import text_for
from sessions_app.forgetting.facade import ForgetDependencies, NothingToForgetError, object_forget
from sessions_app.models import ForgottenKind, Turn
from sessions_app.models.chats import reading_role
from sessions_app.recall.facade import MEMORIES, NEAREST_SIMILARITY, Viewer, recall
from sessions_app.turns.commands import replies
from sessions_app.turns.questions import Question
from sessions_app.turns.reply_store import Draft
from sessions_app.turns.turn_dependencies import Dependencies

MAX_COUNT = 10
MAX_NEAR = 3
# A memory of which plain words name less is asked about before it is forgotten.
ENOUGH = 0.5
ID = re.compile(r"[0-9a-f]{8,32}")
# The name of its questions, and the key of the choice to forget nothing.
FORGET = "forget"
NOTHING = "no"


def forget_reply(
    turn: Turn,
    which: str,
    dependencies: Dependencies,
    *,
    is_plain: bool = False,
    listed: dict[int, UUID | None] | None = None,
) -> Draft:
    """Forget the memory with this number or id, or the only one with these words.

    Where several match, or one of another chat, the answer asks first. The answer doesn't repeat
    the forgotten text. ``is_plain``: it is asked in plain words, and a memory that says much
    besides, or fits only by its meaning, is asked about first, too. ``listed``: the list that a
    number refers to, if it isn't the last one that was shown.
    """
    language = turn.chat.language
    numbers = replies.numbers_in(which)
    if replies.FORGOTTEN in turn.context:
        # A crash after the deletion kept the answer from being stored.
        return _done(turn.context[replies.FORGOTTEN], numbers, language)
    if not which:
        return replies.say("forget_usage", language)
    if numbers is None:
        found = _matching(turn, which, dependencies.embedder if is_plain else None)
    elif len(numbers) > 1:
        return replies.say("forget_one_number", language, number=numbers[0])
    else:
        found = _numbered(turn, numbers[0], replies.list_shown(turn) if listed is None else listed)
    if isinstance(found, Draft):
        return found
    memory, shown = found, replies.short_ids([found.pk])[found.pk]

    def check_permission() -> None:
        if not may_forget(turn).filter(pk=memory.pk).exists():
            raise NothingToForgetError("Staff took it away from this chat meanwhile.")

    try:
        _forget(memory, shown, turn, dependencies, check_permission)
    except NothingToForgetError:
        return replies.say("forget_none", language)
    return _done(shown, numbers, language)


def _forget(
    memory: Memory, shown: str, turn: Turn, dependencies: Dependencies, check: Callable[[], None]
) -> None:
    """Forget the memory and record that it was done, in one transaction."""
    with transaction.atomic():
        object_forget(
            kind=str(ForgottenKind.MEMORY),
            object_id=memory.pk,
            dependencies=ForgetDependencies(dependencies.chat_memory, dependencies.transcripts),
            actor=replies.person(turn),
            keep_turn=turn.pk,
            check=check,
        )
        turn.refresh_from_db(fields=["context"])
        Turn.objects.filter(pk=turn.pk).update(context={**turn.context, replies.FORGOTTEN: shown})


def _done(shown: str, numbers: list[int] | None, language: str) -> Draft:
    draft = replies.say("forgotten", language, id=shown)
    if numbers is not None:
        draft = replies.say("forgotten_number", language, id=shown, number=numbers[0])
    draft.uses_memory = False
    return draft


def may_forget(turn: Turn) -> QuerySet[Memory]:
    """Return the memories that the person may forget.

    The godfather may forget any memory; a client may forget those that this chat asked to remember.
    """
    visible = replies.visible_to(turn)
    if replies.is_owners(turn):
        return visible
    return visible.filter(visibility=Visibility.CHAT, chat_id=turn.chat_id)


def _numbered(turn: Turn, number: int, listed: dict[int, UUID | None] | None) -> Memory | Draft:
    """Return the memory with this number in the list that the person has just seen.

    A number is never a word to search for. Where it names nothing, return the answer that says so.
    """
    language = turn.chat.language
    if listed is None:
        return replies.say("forget_no_list", language, number=number)
    if number not in listed:
        first, last = min(listed), max(listed)
        return replies.say("forget_not_listed", language, number=number, first=first, last=last)
    key = listed[number]
    if key is None:
        return replies.say("forget_said", language, number=number)
    memory = may_forget(turn).filter(pk=key).first()
    if memory is None:
        is_public = replies.visible_to(turn).filter(pk=key, visibility=Visibility.PUBLIC).exists()
        name = "forget_public" if is_public else "forget_gone"
        return replies.say(name, language, number=number)
    return memory


def _matching(turn: Turn, which: str, embedder: Embedder | None) -> Memory | Draft:
    """Return the memory with this id or the only one with these words, or a question about it.

    ``embedder``: where the words are plain ones.
    """
    language = turn.chat.language
    found = _with_id(may_forget(turn), which)
    if len(found) == 1:
        return found[0]
    found = found or _with_words(may_forget(turn), which)
    is_weak = embedder is not None and not (len(found) == 1 and _is_meant(found[0], which))
    if embedder is not None and not found:
        found = _near(turn, which, embedder)
    if not found:
        seen = _with_id(replies.visible_to(turn), which) or _with_words(
            replies.visible_to(turn), which
        )
        public = any(memory.visibility == str(Visibility.PUBLIC) for memory in seen)
        return replies.say("forget_public" if public else "forget_none", language)
    is_others = any(
        memory.visibility == str(Visibility.CHAT) and memory.chat_id != turn.chat_id
        for memory in found
    )
    if len(found) == 1 and not is_others and not is_weak:
        return found[0]
    return _ask_which(found, turn, "forget_others" if is_others else "forget_sure")


def _is_meant(memory: Memory, which: str) -> bool:
    """Return whether at least half of what the memory says is in the words."""
    terms = query_terms(memory.content)
    informative = [term for term in terms if is_informative(term) and not is_common(term.word)]
    wanted = {form for term in query_terms(which) for form in term.forms}
    meant = [term for term in informative if wanted.intersection(term.forms)]
    return bool(informative) and len(meant) >= ENOUGH * len(informative)


def _near(turn: Turn, which: str, embedder: Embedder) -> list[Memory]:
    """Return the memories that are nearest to the words in meaning, of those it may forget."""
    found = recall(
        query=which,
        viewer=Viewer(reading_role(turn.user_role, turn.context), turn.chat_id),
        embedder=embedder,
        top_k=MAX_NEAR,
        min_similarity=NEAREST_SIMILARITY,
        sources=(MEMORIES,),
    )
    memories = may_forget(turn).defer("terms").in_bulk([hit.id for hit in found.hits])
    return [memories[hit.id] for hit in found.hits if hit.id in memories]


def _with_words(memories: QuerySet[Memory], which: str) -> list[Memory]:
    """Return the matching memories, at most one more than are listed.

    They match by exactly this text; else by all of the words.
    """
    same = list(memories.filter(fact_key=fact_key(which))[: MAX_COUNT + 1])
    if same:
        return same
    found = memories_in_order(with_words(memories, which)).defer("terms")
    return list(found[: MAX_COUNT + 1])


def _with_id(memories: QuerySet[Memory], which: str) -> list[Memory]:
    digits = which.strip("[]()#. ").replace("-", "").lower()
    if not ID.fullmatch(digits):
        return []
    lowest, highest = digits.ljust(32, "0"), digits.ljust(32, "f")
    of_range = Q(memory_id__gte=lowest, memory_id__lte=highest)
    return list(memories_in_order(memories.filter(of_range))[: MAX_COUNT + 1])


def _ask_which(memories: list[Memory], turn: Turn, about_one: str) -> Draft:
    language = turn.chat.language
    listed = memories[:MAX_COUNT]
    lines = replies.lines_of(listed, turn)
    if len(memories) > MAX_COUNT:
        lines += "\n…"
    example = replies.short_ids([memory.pk for memory in listed])[listed[0].pk]
    name = "forget_which" if len(listed) > 1 else about_one
    text = text_for(name, language, lines=lines, example=example)
    numbers = replies.list_of(listed)
    options = {str(number): str(number) for number in numbers}
    if len(listed) == 1:
        options = {"1": text_for("yes", language), NOTHING: text_for("no", language)}
    return replies.system_text(
        text, listed=numbers, question=Question(FORGET, options, is_listed=True)
    )
