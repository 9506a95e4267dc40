"""Teach the assistant where staff see its mistake: on the page that explains an answer.

*Remember* stores a memory that was missing, *Edit* corrects one that was wrong. Both go through the
services of the pages of memories.
"""

from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from memories_app import errors
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store import change, deduplicate, memory_fields
from memories_app.store.remember import memories_remember
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required
from memoryproject.foundation.admin_kit.undo import UndoError, reverses, undo_offer
from memoryproject.foundation.audit.audit_events import Actor, audit_record, staff_actor
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.conversations.epochs import ChatGoneError, chats_keep
from sessions_app.embedding.facade import embedder
from sessions_app.limits.dependencies import is_owners
from sessions_app.models import Turn
from sessions_app.presentation import audited_view, links
from sessions_app.turns.admin.replay import question_of

ADD, CHANGE, SEE = (f"memories_app.{name}_memory" for name in ("add", "change", "view"))
CLIENT, EVERYONE = "client", "everyone"
_QUESTION_MARKS = ("?", "؟")
_STORED = {
    CLIENT: gettext_lazy("It is remembered for this client from now on."),
    EVERYONE: gettext_lazy("It is remembered for everyone from now on."),
}
_OWNERS = gettext_lazy("It is remembered for the owner from now on.")


@dataclass(frozen=True)
class Typed:
    """A text that wasn't stored, as it was typed, and the reason in words.

    ``memory_id``: the memory to correct; None where a new one was to be remembered. ``stored``:
    what the memory says now, where somebody else changed it meanwhile.
    """

    text: str
    error: str
    memory_id: UUID | None = None
    stored: str = ""


class TeachPages(audited_view.ConversationAdmin):
    """The two forms of the page of an answer; each is a POST of its own."""

    def why_page(self, request: HttpRequest, turn: Turn, typed: Typed | None) -> HttpResponse:
        """Show the page, with what was typed where it wasn't stored."""
        raise NotImplementedError

    def turn_of(self, request: HttpRequest, object_id: str) -> Turn:
        """Return the turn if there is one that this person may see."""
        raise NotImplementedError

    own_pages: ClassVar[Any] = {
        "teach": OwnPage("<int:turn_id>/teach/", "teach_view", "POST"),
        "correct": OwnPage("<int:turn_id>/memory/<uuid:memory_id>/", "correct_view", "POST"),
    }

    def teach_view(self, request: HttpRequest, turn_id: int) -> HttpResponse:
        """Remember a text for the answer's client, or for everyone."""
        turn = self.turn_of(request, str(turn_id))
        rights_required(request, ADD)
        audience, text = request.POST.get("for", ""), _posted_text(request)
        if audience not in _STORED:
            raise BadRequest("There is no such audience.")
        try:
            remembered = remember(turn, text, audience, staff_actor(request))
        except (errors.MemoryOperationError, EmbedderError) as error:
            return self.why_page(request, turn, Typed(text, reason(error)))
        if remembered.status == deduplicate.DUPLICATE:
            done = _("This was known already: it counts as one more mention.")
            self._report(request, messages.WARNING, done, remembered.memory)
        else:
            done = str(_OWNERS if _is_owners(turn, audience) else _STORED[audience])
            self._report(request, messages.SUCCESS, done, remembered.memory)
        return HttpResponseRedirect(why_address(turn))

    def correct_view(self, request: HttpRequest, turn_id: int, memory_id: UUID) -> HttpResponse:
        """Change what a recalled memory says."""
        turn = self.turn_of(request, str(turn_id))
        rights_required(request, CHANGE)
        text, seen = _posted_text(request), request.POST.get("seen", "")
        before = Memory.objects.filter(pk=memory_id).values_list("content", flat=True).first()
        try:
            memory = correct(memory_id, text, seen, staff_actor(request))
        except errors.MemoryNotFoundError as error:
            raise Http404("There is no such memory, or not any more.") from error
        except (errors.MemoryOperationError, EmbedderError) as error:
            stored = ""
            if isinstance(error, errors.ChangedMeanwhileError):
                found = Memory.objects.filter(pk=memory_id).values_list("content", flat=True)
                stored = found.first() or ""
            return self.why_page(request, turn, Typed(text, reason(error), memory_id, stored))
        done = _("The memory is corrected. The next answers use it as it is now.")
        data = [str(memory_id), before, memory.content_hash]
        undo_offer(request, _linked(request, done, memory), "memory.correct", data)
        return HttpResponseRedirect(why_address(turn))

    def _report(self, request: HttpRequest, level: int, text: str, memory: Memory) -> None:
        """Show a message that links to the memory, without its text."""
        self.message_user(request, _linked(request, text, memory), level)


def _linked(request: HttpRequest, text: str, memory: Memory) -> str:
    if not request.user.has_perm(SEE):
        return text
    address = reverse("admin:memories_app_memory_change", args=[memory.pk])
    link = format_html('<a href="{}">{}</a>', address, _("Open the memory"))
    return format_html("{} {}", text, link)


@reverses("memory.correct", CHANGE)
def _uncorrect(request: HttpRequest, data: Any) -> None:
    """Set the earlier text again, unless somebody changed it since."""
    memory_id, text, seen = data
    try:
        correct(UUID(memory_id), text, seen, staff_actor(request))
    except (errors.MemoryOperationError, EmbedderError) as error:
        raise UndoError(reason(error)) from error


def remember(turn: Turn, text: str, audience: str, actor: Actor) -> deduplicate.Remembered:
    """Store a memory that was missing for this answer.

    The audit log names the answer and its person, also where the memory is for everyone.
    """
    if _is_the_question(turn, text):
        raise errors.MemoryOperationError(
            _("This is the question as it was asked. Write what the assistant should know.")
        )
    if _is_owners(turn, audience):
        visibility = Visibility.OWNER
    else:
        visibility = Visibility.CHAT if audience == CLIENT else Visibility.PUBLIC

    # What everyone may know isn't the client's: it stays when the client is forgotten.
    chat_id = None if audience == EVERYONE else turn.chat_id

    def record() -> None:
        try:
            chats_keep([chat_id] if chat_id else [])
        except ChatGoneError:
            raise errors.MemoryOperationError(links.chat_gone_text()) from None
        audit_record(
            "memory.teach",
            actor,
            "turn",
            turn.turn_id,
            content_hash=memory_fields.content_hash(text),
            visibility=str(visibility),
            chat_id=turn.chat_id,
        )

    new = NewMemory(content=text, visibility=str(visibility), chat_id=chat_id, source="staff")
    (remembered,) = memories_remember(
        memories=[new], embedder=embedder(), actor=actor, before_storing=record
    )
    return remembered


def correct(memory_id: UUID, text: str, seen: str, actor: Actor) -> Memory:
    """Change the text of a memory. ``seen``: the hash of the text that staff had before them."""

    def check(memory: Memory) -> None:
        if memory.content_hash != seen and memory.content != text:
            raise errors.ChangedMeanwhileError(["content"])

    return change.memory_patch(
        memory_id=memory_id,
        changes={"content": text},
        actor=actor,
        embedder=embedder(),
        check=check,
    )


def reason(error: errors.MemoryOperationError | EmbedderError) -> str:
    """Return in words why nothing was stored."""
    if isinstance(error, EmbedderError):
        return errors.no_vector_words(error)
    if isinstance(error, errors.MemoryValidationError):
        # Nothing else is typed here.
        text = _("The text %(detail)s.")
        return " ".join(text % {"detail": each.detail} for each in error.problems)
    return str(error)


def teaching_of(
    request: HttpRequest, replay: dict[str, Any], typed: Typed | None
) -> dict[str, Any]:
    """Return what this person may teach on the page of the answer.

    ``text`` is where a new memory begins; ``other`` is the answer, which may take its place.
    ``lost``: whether the memory that ``typed`` is about isn't on the page, which then shows the
    text on its own.
    """
    question = replay["question"].text if replay["question"] else ""
    # Of a command, what it is about.
    question = question.partition(" ")[2] if question.startswith("/") else question
    answer = replay["answer"].text if replay["answer"] else ""
    about = typed.memory_id if typed else None
    shown = {row.memory.pk for row in replay["recalled"] if row.memory and row.can_be_corrected}
    return {
        "may_add": request.user.has_perm(ADD),
        "may_correct": request.user.has_perms([SEE, CHANGE]),
        "text": question or answer,
        "other": answer if question else "",
        "is_owners": _is_owners(replay["turn"], CLIENT),
        "typed": typed,
        "lost": about is not None and about not in shown,
    }


def why_address(turn: Turn) -> str:
    return reverse("admin:sessions_app_turn_change", args=[turn.pk])


def _is_owners(turn: Turn, audience: str) -> bool:
    return audience == CLIENT and is_owners(turn.chat)


def _is_the_question(turn: Turn, text: str) -> bool:
    """Say whether this is the client's question, unchanged: a question teaches nothing."""
    question = [] if turn.by_hand else question_of(turn).text.split()
    return question == text.split() and "".join(question).endswith(_QUESTION_MARKS)


def _posted_text(request: HttpRequest) -> str:
    return request.POST.get("content", "").replace("\r\n", "\n").strip()
