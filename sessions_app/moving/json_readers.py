"""Read the exports of mem0, Zep, Honcho, LangGraph's stores and Chatwoot.

These products hand out their API's objects, each in lists of its own making. So every reader takes
the objects by their shape, wherever in the JSON they are, with the ids of the objects around them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from django.utils.translation import gettext as _

from memories_app.facts.validation import MAX_CONTENT
from memoryproject.foundation.integrations.lenient import Fields, compact, listed
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.moving import records
from sessions_app.moving.sources import Source

_PEER = ("peer_id", "peer_name")
_SESSION = ("session_id", "session_name")
_LEARNED = ("representation", "peer_card", "explicit", "deductive")
# Fields of a memory of mem0 that aren't of a schema.
_OWN = ("id", "created_at", "updated_at", "hash", "expiration_date")
OURS, THEIRS = ("assistant", "ai"), ("user", "human")


class _Object(Fields):
    """An object of an export: its fields, its ``place``, and the fields of those around it."""

    place: str
    outer: Fields

    def named(self, *keys: str) -> str:
        """Return the first of these ids: its own, or of what it is in."""
        return self.text(*keys) or self.outer.text(*keys)


def _has(one: Fields, *keys: str) -> bool:
    return not one.keys().isdisjoint(keys)


Objects: TypeAlias = Sequence[_Object]
ObjectReader: TypeAlias = Callable[[Objects, records.Options], Iterator[records.Found]]
# By its shape an object belongs to a product.
SHAPES: Mapping[str, Callable[[Fields], bool]] = {
    "mem0": lambda one: "memory" in one,
    "zep": lambda one: "fact" in one or "content" in one and _has(one, "role", "role_type"),
    "honcho": lambda one: "content" in one and bool(one.text(*_PEER, "observed_id", "observed")),
    "langgraph": lambda one: {"key", "value"} <= one.keys() and _has(one, "prefix", "namespace"),
    "chatwoot": lambda one: {"message_type", "content"} <= one.keys(),
}


def shapes_in(source: Source) -> set[str]:
    """Return the products whose objects the source holds. Raises MoveError."""
    objects, faults = _objects(source)
    if faults and not objects:
        # A file of which nothing can be read may be anybody's.
        return set(SHAPES)
    found = {kind for kind, has in SHAPES.items() if any(map(has, objects))}
    return found | {"honcho" for one in objects if _has(one, *_LEARNED)}


def read_objects(kind: str, source: Source, options: records.Options) -> Iterator[records.Found]:
    """Yield what can't be read, and what the reader makes of the objects. Raises MoveError.

    What stands in a list of objects of the kind, and is none, can't be read either.
    """
    objects, faults = _objects(source)
    yield from faults
    taken = set()
    for found in OBJECT_READERS[kind](objects, options):
        taken.add(found.place)
        yield found
    lists = {_list_of(one) for one in objects if SHAPES[kind](one)} - {""}
    for one in objects:
        if _list_of(one) in lists and one.place not in taken:
            why = _("it lacks what the others of its list have")
            yield records.Skipped(one.place, why, is_bad=not SHAPES[kind](one))


def _list_of(one: _Object) -> str:
    """Return the place of the list or the lines that the object is a member of, "" for none."""
    found = re.fullmatch(r"(.*(?:\[|line ))[0-9]+\]?", one.place)
    return found[1] if found else ""


def _objects(source: Source) -> tuple[list[_Object], list[records.Found]]:
    """Return every object of the source, and its lines that can't be read."""
    objects: list[_Object] = []
    faults: list[records.Found] = []
    for start, document in source.documents():
        if isinstance(document, records.Skipped):
            faults.append(document)
            continue
        for place, value, outer in records.walk(document, start, {}):
            one = _Object(value)
            one.place, one.outer = place or "the file", Fields(outer)
            objects.append(one)
    return objects, faults


def _known(one: _Object, content: Any, *, chat: str, key: str = "", **fields: Any) -> records.Found:
    """Return a memory, with the object's own times; those in ``fields`` are in any form."""
    if not isinstance(content, str) or not content.strip():
        return records.Skipped(one.place, _("it has no text"), is_bad=True)
    unread = []
    for name in ("created_at", "updated_at", "expires_at", "valid_from", "valid_until"):
        given = fields.pop(name, one.get(name))
        at = records.moment(given)
        fields |= {name: at.isoformat()} if at else {}
        unread += [str(given)[:64]] if given and not at else []
    record = {"content": content, "whatsapp_chat": chat, **fields}
    whole = {name: value for name, value in record.items() if value}
    return records.Known(whole, one.place, key, tuple(unread))


def read_mem0(objects: Objects, options: records.Options) -> Iterator[records.Found]:
    """Read what get_all, get or an export job of mem0 returns."""
    memories = [one for one in objects if SHAPES["mem0"](one)]
    profiles = (one for one in objects if not one.outer and ("user_id" in one or options.chat))
    for one in memories or profiles:
        about = {name: one.named(name) for name in ("user_id", "agent_id", "run_id", "app_id")}
        common: dict[str, Any] = {
            "chat": records.chat_named(about["user_id"]),
            "expires_at": one.get("expiration_date"),
            "tags": [tag[:64] for tag in listed(one.get("categories")) if isinstance(tag, str)],
            "metadata": {**Fields.of(one.get("metadata")), "mem0": compact(**about)},
        }
        if "memory" in one:
            yield _known(one, one["memory"], key=one.text("id"), **common)
            continue
        # The fields of the schema that an export job was given.
        for name, value in one.items():
            parts = [each for each in listed(value) if isinstance(each, (str, int, float))]
            if parts and name not in (*about, *common, *_OWN):
                text = f"{name.replace('_', ' ').capitalize()}: {', '.join(map(str, parts))}"
                yield _known(one, text, key=f"{one.place}.{name}", **common)
    for one in objects:
        if _has(one, "relationship", "relation") and _has(one, "target", "destination"):
            yield records.Skipped(one.place, _("a relation of a graph: there are none here"))


def read_zep(objects: Objects, options: records.Options) -> Iterator[records.Found]:
    """Read threads (or sessions) with their messages, and the facts of a graph's edges."""
    threads = ("thread_id", "session_id", "thread_uuid")
    places = (*threads, "graph_uuid", "user_uuid")
    users = {
        one.text(name): one.text("user_id")
        for one in objects
        for name in (*places, "uuid")
        if one.text("user_id") and one.text(name)
    }
    for one in objects:
        known = (users[key] for name in places if (key := one.named(name)) in users)
        user = one.named("user_id") or next(known, "")
        if "fact" in one:
            yield _known(
                one,
                one["fact"],
                chat=records.chat_named(user),
                key=one.text("uuid"),
                valid_from=one.get("valid_at"),
                # Zep sets the one where the world changed, the other where it only learned better.
                valid_until=one.get("invalid_at") or one.get("expired_at"),
                metadata={"zep": compact(name=one.text("name"), uuid=one.text("uuid"))},
            )
        elif "summary" in one and "labels" in one:
            yield records.Skipped(one.place, _("an entity of a graph: only its facts come in"))
        elif SHAPES["zep"](one):
            # Its second version has the role's kind beside the role, which is a name there.
            role = (one.text("role_type") or one.text("role")).lower().removesuffix("role")
            if role not in (*OURS, *THEIRS):
                yield records.Skipped(
                    one.place, _("a message of the role %(role)s") % {"role": role or "–"}
                )
                continue
            name = one.text("name") or (one.text("role") if one.text("role_type") else "")
            thread = one.named(*threads)
            yield records.said(
                records.moment(one.get("created_at")),
                one.place,
                chat=records.chat_named(user or thread),
                is_ours=role in OURS,
                text=one.text("content"),
                sender=name,
                key=one.text("uuid"),
                metadata={"zep": {**Fields.of(one.get("metadata")), "thread": thread}},
            )


def read_honcho(objects: Objects, options: records.Options) -> Iterator[records.Found]:
    """Read the messages of peers in sessions, and what was concluded about a peer.

    Raises MoveError if nobody says which peer is the assistant.
    """
    messages = [one for one in objects if "content" in one and one.text(*_PEER)]
    peers: dict[str, dict[str, None]] = {}
    for one in messages:
        peers.setdefault(one.named(*_SESSION), {})[one.text(*_PEER)] = None
    named = {peer for each in peers.values() for peer in each}
    ours = _assistants(named, options)
    for one in messages:
        session, peer = one.named(*_SESSION), one.text(*_PEER)
        people = [each for each in peers[session] if each not in ours]
        # With several people it is the session's chat, as a group's.
        chat = people[0] if len(people) == 1 else session
        yield records.said(
            records.moment(one.get("created_at")),
            one.place,
            chat=records.chat_named(chat),
            is_ours=peer in ours,
            text=one.text("content"),
            sender=peer,
            key=one.text("id", "public_id"),
            metadata={"honcho": compact(session=session, peer=peer)},
        )
    for one in objects:
        yield from _conclusions(one, ours)


def _assistants(peers: Iterable[str], options: records.Options) -> set[str]:
    likely = ("assistant", "ai", "bot", "agent", "chatbot")
    names = sorted(peers)
    ours = {one for one in names if options.is_business(one)}
    if not options.business:
        ours = {one for one in names if one.lower() in likely}
    if names and not ours:
        text = _("Say which peer is the assistant. There are: %(names)s")
        raise records.MoveError(text, "business", names=", ".join(names[:20]))
    return ours


def _conclusions(one: _Object, ours: set[str]) -> Iterator[records.Found]:
    about = one.named("observed_id", "observed", "peer_id", "target")
    common: dict[str, Any] = {
        # What is known about the assistant itself is nobody's chat.
        "chat": "" if about in ours else records.chat_named(about),
        "metadata": {"honcho": compact(observer=one.text("observer_id", "observer"))},
    }
    is_explicit = "explicit[" in one.place and not one.text(*_PEER)
    if "content" in one and (one.text("observed_id", "observed") or is_explicit):
        yield _known(one, one["content"], key=one.text("id"), **common)
    elif "conclusion" in one:
        yield _known(one, one["conclusion"], **common)
    for name in _LEARNED:
        texts = one.get(name)
        for text in texts.split("\n") if isinstance(texts, str) else listed(texts):
            line = text.strip(" -*") if isinstance(text, str) else ""
            if line and not line.startswith("#"):
                yield _known(one, line, **common)


def read_langgraph(objects: Objects, options: records.Options) -> Iterator[records.Found]:
    """Read rows of a store's table, or its Items: a namespace, a key, and a value."""
    for one in filter(SHAPES["langgraph"], objects):
        space, value = one.get("namespace", one.get("prefix")), one["value"]
        try:
            # A row of CSV has its value as a text.
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            yield records.Skipped(one.place, _("its value is no JSON"), is_bad=True)
            continue
        if not isinstance(value, dict):
            yield records.Skipped(one.place, _("its value is no JSON object"), is_bad=True)
            continue
        levels = space.split(".") if isinstance(space, str) else list(map(str, listed(space)))
        texts = [each for each in value.values() if isinstance(each, str) and each.strip()]
        is_text = len(texts) == len(value) == 1
        whole = texts[0] if is_text else json.dumps(value, ensure_ascii=False)
        memory = _known(
            one,
            cut_at_word(whole, MAX_CONTENT),
            chat="",
            key=json.dumps([levels, one.text("key")]),
            metadata={"langgraph": {"namespace": levels, "key": one.text("key")}},
        )
        if isinstance(memory, records.Known):
            # As keyed memories have them: a level with a dot of its own is encoded.
            plain = (re.sub("[%./]", lambda one: f"%{ord(one[0]):02X}", level) for level in levels)
            place = {"namespace": ".".join(plain), "key": one.text("key"), "value": value}
            memory.record.update(place)
        yield memory


def read_chatwoot(objects: Objects, options: records.Options) -> Iterator[records.Found]:
    """Read conversations and messages of its API, or the rows of its table of messages.

    Yields nothing for a report, which has figures in place of messages.
    """
    people: dict[str, Fields] = {}
    for one in objects:
        if (talk := _conversation(one)) and (contact := _contact(one)):
            people.setdefault(talk, contact)
    for one in filter(SHAPES["chatwoot"], objects):
        yield _chatwoot_message(one, people.get(_conversation(one), Fields()))


def _contact(one: _Object) -> Fields:
    """Return the client that an object shows: of a conversation, or of a message that came in."""
    meta = one.at("meta") or one.at("conversation").at("meta") or one.outer.at("meta")
    if contact := meta.at("sender", "contact") or one.at("contact") or one.outer.at("contact"):
        return contact
    sender = one.at("sender")
    incoming = str(one.get("message_type")) in ("0", "incoming")
    is_client = sender.text("type").lower() == "contact" or incoming
    flat = {name: one.text(f"contact_{name}") for name in ("phone_number", "name", "email")}
    return (sender if is_client else Fields()) or Fields(compact(**flat))


def _conversation(one: _Object) -> str:
    own = one.text("conversation_id") or one.at("conversation").text("id", "display_id")
    # A conversation has its messages, or its people, around them.
    is_talk = "messages" in one or "meta" in one
    return own or (one.text("id") if is_talk else "") or one.outer.text("conversation_id", "id")


def _chatwoot_message(one: _Object, contact: Fields) -> records.Found:
    written = str(one["message_type"])
    kind = {"0": "incoming", "1": "outgoing", "3": "template"}.get(written, written)
    if str(one.get("private")).lower() in ("true", "t", "1"):
        return records.Skipped(one.place, _("a private note"))
    if kind not in ("incoming", "outgoing", "template"):
        return records.Skipped(one.place, _("a notice, not a message"))
    if Fields.of(one.get("content_attributes")).flag("deleted"):
        return records.Skipped(one.place, _("a deleted message"))
    sender, files = one.at("sender"), one.objects("attachments")
    talk = _conversation(one)
    name = contact.text("phone_number", "identifier", "email", "name")
    is_ours = kind != "incoming"
    by_hand = sender.text("type").lower() == "user" or one.text("sender_type") == "User"
    file_kind = files[0].text("file_type") if files else "text"
    return records.said(
        records.moment(one.get("created_at")),
        one.place,
        chat=records.chat_named(name or (talk and f"chatwoot-{talk}")),
        is_ours=is_ours,
        text=one.text("content"),
        sender=sender.text("name") or ("" if is_ours else contact.text("name")),
        key=one.text("id"),
        kind={"file": "document"}.get(file_kind, file_kind),
        metadata={"chatwoot": compact(conversation=talk), **compact(by_hand=by_hand and is_ours)},
    )


OBJECT_READERS: Mapping[str, ObjectReader] = {
    "mem0": read_mem0,
    "zep": read_zep,
    "honcho": read_honcho,
    "langgraph": read_langgraph,
    "chatwoot": read_chatwoot,
}
