"""Convert bodies to memories, and errors of the services to HTTP errors."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError

from memories_app import errors as memory_errors
from memories_app.facts.validation import FACT_TIMES, NewMemory, problems_of
from memories_app.models import Memory, Visibility
from memories_app.store.change import memories_patch
from memories_app.store.deduplicate import CREATED, DUPLICATE, Remembered
from memories_app.store.remember import memories_remember
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit import errors as api_errors
from memoryproject.foundation.rest_kit.authentication import Caller
from sessions_app.conversations.chat_addresses import addresses_lock, chat_at_or_new
from sessions_app.conversations.epochs import ChatGoneError, chats_keep
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import FORGETTING
from sessions_app.models import Chat
from sessions_app.presentation import access

SOURCE = "api"
MAX_PROBLEMS = 100
# Fields of a body that a memory has under the same name.
AS_GIVEN = ("type", "category", "metadata", "pinned", "expires_at", *FACT_TIMES)
# Those of keyed memories, whose namespace and key are in the address.
KEYED = ("namespace", "key", "value")


class DuplicateFact(api_errors.Conflict):
    default_code = "duplicate"


def invalid_memory(error: Exception, within: str = "") -> APIException:
    """List every problem by its field. ``within``: what stands before it, {} for its place."""
    errors: dict[str, list[ErrorDetail]] = {}
    for each in instance(error, memory_errors.MemoryValidationError).problems[:MAX_PROBLEMS]:
        attr = f"{within.format(each.place)}{each.field}"
        errors.setdefault(attr, []).append(ErrorDetail(f"It {each.detail}.", "invalid"))
    return ValidationError(errors)


def invalid_batch(error: Exception) -> APIException:
    """List every problem by its place and field, such as memories.3.content."""
    return invalid_memory(error, "memories.{}.")


def invalid_patch(error: memory_errors.MemoryOperationError) -> APIException:
    """Return the error of a batch of changes with its place, such as memories.3.content."""
    place = f"memories.{error.place}"
    if isinstance(error, memory_errors.MemoryValidationError):
        return invalid_memory(error, f"{place}.")
    if isinstance(error, memory_errors.MemoryNotFoundError):
        return api_errors.refuse(str(error), code=error.code, attr=f"{place}.memory_id")
    if isinstance(error, memory_errors.DuplicateFactError):
        return DuplicateFact({f"{place}.content": [ErrorDetail(str(error), error.code)]})
    return api_errors.Conflict({place: [ErrorDetail(str(error), api_errors.Conflict.default_code)]})


def no_vector(error: Exception) -> APIException:
    return api_errors.Unavailable(
        f"No vector can be made just now: {error} Nothing was stored; try again."
    )


RAISES: dict[type[Exception], Callable[[Exception], APIException]] = {
    memory_errors.MemoryNotFoundError: api_errors.not_found,
    **FORGETTING,
    memory_errors.MemoryValidationError: invalid_memory,
    memory_errors.DuplicateFactError: lambda error: DuplicateFact(str(error)),
    memory_errors.MemoryStateError: api_errors.conflict,
    ChatGoneError: api_errors.conflict,
    EmbedderError: no_vector,
}


def memories_to_store(bodies: Sequence[dict[str, Any]], caller: Caller) -> list[NewMemory]:
    """Return the memories of the bodies, and create new chats after all other checks.

    Raises MemoryDisabled, NotFound, PermissionDenied, MemoryValidationError.
    """
    access.require_longterm()
    if caller.is_bound and not all(each.get("whatsapp_chat") for each in bodies):
        own = access.own_chat(caller)
        bodies = [{**each, "whatsapp_chat": each.get("whatsapp_chat") or own} for each in bodies]
    names = list(dict.fromkeys(each.get("whatsapp_chat") for each in bodies))
    known = {name: access.chat_in_reach(caller, name) for name in names if name}
    for name in names:
        access.require_memory(known[name] if name else None)
    news = [_new_memory(each, known) for each in bodies]
    for new in news:
        access.refuse_beyond_chats(caller, new.visibility)
    problems = [problem for place, new in enumerate(news) for problem in problems_of(new, place)]
    if problems:
        raise memory_errors.MemoryValidationError(problems, many=len(news) > 1)
    made = _chats_made([name for name, chat in known.items() if chat is None])
    pairs = zip(news, bodies, strict=True)
    return [
        replace(new, chat_id=made.get(body.get("whatsapp_chat") or "", new.chat_id))
        for new, body in pairs
    ]


def memories_change(bodies: Sequence[dict[str, Any]], caller: Caller) -> list[UUID]:
    """Change the memories that the bodies name, all or none; return their ids.

    Raises ValidationError and Conflict, with the place; MemoryDisabled, PermissionDenied.
    """
    access.require_longterm()
    reach = Memory.objects.filter(access.memories_in_reach(caller))
    known = reach.in_bulk([body["memory_id"] for body in bodies])
    chats = Chat.objects.in_bulk({each.chat_id for each in known.values()})
    patches: dict[UUID, dict[str, Any]] = {}
    for place, body in enumerate(bodies):
        key = body["memory_id"]
        attr = f"memories.{place}.memory_id"
        if key in patches:
            raise api_errors.refuse("It is given twice.", code="repeated", attr=attr)
        if key not in known:
            raise api_errors.refuse(f"There is no memory {key}.", code="not_found", attr=attr)
        changes = {name: value for name, value in body.items() if name != "memory_id"}
        access.require_memory(chats.get(known[key].chat_id))
        access.refuse_beyond_chats(caller, changes.get("visibility", known[key].visibility))
        patches[key] = changes

    def check(locked: Memory) -> None:
        if not caller.may_see(locked.chat_id):
            raise memory_errors.MemoryNotFoundError(f"There is no memory {locked.pk}.")
        access.refuse_beyond_chats(caller, locked.visibility)

    try:
        memories_patch(patches=patches, actor=caller.actor, embedder=embedder(), check=check)
    except memory_errors.MemoryOperationError as error:
        raise invalid_patch(error) from error
    return list(patches)


def memories_add(new: Sequence[NewMemory], caller: Caller) -> list[Remembered]:
    """Store memories of the bodies, all or none. Raises ChatGoneError; see memories_remember."""
    chats = {each.chat_id for each in new if each.chat_id}
    return memories_remember(
        memories=new,
        embedder=embedder(),
        actor=caller.actor,
        before_storing=partial(chats_keep, chats),
    )


def _new_memory(body: dict[str, Any], known: dict[str, Chat | None]) -> NewMemory:
    name = body.get("whatsapp_chat")
    chat = known[name] if name else None
    default = Visibility.CHAT if name else Visibility.OWNER
    return NewMemory(
        content=body["content"],
        visibility=body.get("visibility", str(default)),
        # A new chat gets its id later.
        chat_id=chat.pk if chat else uuid.uuid4() if name else None,
        tags=tuple(body.get("tags", ())),
        source=SOURCE,
        **{name: body[name] for name in (*AS_GIVEN, *KEYED) if name in body},
        supersedes=body.get("supersede", True),
        dedupe=body.get("dedupe", True),
        merges=True,
    )


def done_by(remembered: Remembered, body: dict[str, Any]) -> dict[str, Any]:
    """Return what storing a memory did, by the names of DoneSerializer."""
    known = remembered.memory if remembered.status == DUPLICATE else None
    differing = [
        name
        for name in ("type", "category", "pinned", "expires_at", *FACT_TIMES)
        if known is not None and name in body and getattr(known, name) != body[name]
    ]
    return {
        "superseded": [str(memory_id) for memory_id in remembered.superseded],
        "merged": sorted(remembered.merged),
        "not_applied": differing,
    }


def outcome_of(remembered: Remembered) -> str:
    return DUPLICATE if remembered.status == DUPLICATE else CREATED


def _chats_made(names: Sequence[str]) -> dict[str, UUID]:
    if not names:
        return {}
    with transaction.atomic():
        addresses_lock(names)
        return {name: chat_at_or_new(name).pk for name in sorted(names)}
