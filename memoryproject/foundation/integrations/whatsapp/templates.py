"""Message templates as Meta approved them: what they need, how they look, how they are sent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from memoryproject.foundation.integrations.lenient import Fields

APPROVED, MARKETING = "APPROVED", "MARKETING"
HEADER, BODY, BUTTON = "header", "body", "button"
MEDIA = ("image", "video", "document")
QUICK_REPLY = "quick_reply"

_VARIABLE = re.compile(r"\{\{\s*(\w{1,60})\s*\}\}")
# Their contents can't be filled in a form of ours.
_UNKNOWN_PARTS = ("CAROUSEL", "LIMITED_TIME_OFFER")
_UNKNOWN_BUTTONS = ("FLOW", "CATALOG", "MPM", "SPM", "ORDER_DETAILS", "VOICE_CALL", "APP")


@dataclass(frozen=True)
class Slot:
    """A value that a template needs.

    ``part``: header, body or button. ``kind``: text; image, video or document, by its address or
    the id of an upload; url, the end of a button's address; quick_reply, what a press sends back;
    copy_code. ``name``: that of the variable, or its number. ``index``: the button's place.
    """

    part: str
    kind: str = "text"
    name: str = ""
    index: int = 0

    @property
    def is_optional(self) -> bool:
        return self.kind == QUICK_REPLY


@dataclass(frozen=True)
class ApprovedTemplate:
    """A template of Meta's list.

    ``category``: MARKETING, UTILITY or AUTHENTICATION. ``buttons``: the texts on them. ``lacks``:
    a part that can't be filled here; such a template isn't sent.
    """

    name: str
    language: str
    category: str
    header: str = ""
    body: str = ""
    footer: str = ""
    buttons: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()
    lacks: str = ""

    def preview(self, values: Sequence[str]) -> str:
        """Return the template as a text with these values; variables without one stay."""
        given = dict(zip(self.slots, values, strict=False))
        media = [slot for slot in self.slots if slot.part == HEADER and slot.kind in MEDIA]
        header = _filled(self.header, HEADER, given)
        if media:
            header = f"[{media[0].kind}] {given.get(media[0], '')}".strip()
        shown = [f"[{text}]" for text in self.buttons]
        parts = [header, _filled(self.body, BODY, given), self.footer, " ".join(shown)]
        return "\n\n".join(part for part in parts if part)


def _filled(text: str, part: str, given: Mapping[Slot, str]) -> str:
    values = {slot.name: value for slot, value in given.items() if slot.part == part and value}
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), text)


def read_template(about: Fields) -> ApprovedTemplate:
    """Return a template of Meta's list; what can't be read of it is left out."""
    texts = {"HEADER": "", "BODY": "", "FOOTER": ""}
    slots: list[Slot] = []
    buttons: list[Fields] = []
    lacks = ""
    for component in about.objects("components"):
        kind = component.text("type").upper()
        wanted = component.text("format").upper()
        if kind == "HEADER" and wanted.lower() in MEDIA:
            slots.append(Slot(HEADER, wanted.lower()))
        elif kind in _UNKNOWN_PARTS or (kind == "HEADER" and wanted not in ("", "TEXT")):
            lacks = lacks or (wanted or kind).lower()
        elif kind == "BUTTONS":
            buttons = component.objects("buttons")
        elif kind in texts:
            texts[kind] = component.text("text")
            slots += [Slot(kind.lower(), name=name) for name in _variables(texts[kind])]
    unknown = [each.text("type").lower() for each in buttons if _type_of(each) in _UNKNOWN_BUTTONS]
    return ApprovedTemplate(
        name=about.text("name"),
        language=about.text("language"),
        category=about.text("category").upper(),
        header=texts["HEADER"],
        body=texts["BODY"],
        footer=texts["FOOTER"],
        buttons=tuple(each.text("text") or each.text("type").lower() for each in buttons),
        # Meta takes the header's values first, then the body's.
        slots=(*sorted(slots, key=lambda slot: slot.part == BODY), *_button_slots(buttons)),
        lacks=lacks or next(iter(unknown), ""),
    )


def _type_of(button: Fields) -> str:
    return button.text("type").upper()


def _variables(text: str) -> list[str]:
    """Return the names of a text's variables, each once; numbers in their order."""
    names = list(dict.fromkeys(_VARIABLE.findall(text)))
    return sorted(names, key=int) if all(name.isdigit() for name in names) else names


def _button_slots(buttons: Sequence[Fields]) -> Iterator[Slot]:
    for index, button in enumerate(buttons):
        kind = _type_of(button)
        variables = _variables(button.text("url"))
        if kind == "QUICK_REPLY":
            yield Slot(BUTTON, QUICK_REPLY, button.text("text"), index)
        elif kind == "COPY_CODE":
            yield Slot(BUTTON, "copy_code", button.text("text"), index)
        # A code for signing in stands in the button's address, or in its place.
        elif kind == "OTP" or (kind == "URL" and variables):
            yield Slot(BUTTON, "url", button.text("text"), index)


def positional(count: int) -> tuple[Slot, ...]:
    """Return the slots of a body's numbered variables, for a template that isn't in the list."""
    return tuple(Slot(BODY, name=str(number)) for number in range(1, count + 1))


def components_of(slots: Sequence[Slot], values: Sequence[str]) -> list[dict[str, Any]]:
    """Return the components of a message with these values, as Meta takes them."""
    components: list[dict[str, Any]] = []
    by_part: dict[str, list[dict[str, Any]]] = {}
    for slot, value in zip(slots, values, strict=False):
        if slot.part == BUTTON:
            if value:
                components.append(
                    {
                        "type": BUTTON,
                        "sub_type": slot.kind,
                        "index": str(slot.index),
                        "parameters": [_parameter(slot, value)],
                    }
                )
        else:
            by_part.setdefault(slot.part, []).append(_parameter(slot, value))
    parts = [{"type": part, "parameters": found} for part, found in by_part.items()]
    return [*parts, *components]


def _parameter(slot: Slot, value: str) -> dict[str, Any]:
    if slot.kind in MEDIA:
        if value.isdigit():
            return {"type": slot.kind, slot.kind: {"id": value}}
        about = {"link": value}
        if slot.kind == "document":
            # WhatsApp would show it without a name.
            about["filename"] = unquote(urlsplit(value).path.rpartition("/")[2]) or "document"
        return {"type": slot.kind, slot.kind: about}
    if slot.kind == QUICK_REPLY:
        return {"type": "payload", "payload": value}
    if slot.kind == "copy_code":
        return {"type": "coupon_code", "coupon_code": value}
    named = slot.part != BUTTON and not slot.name.isdigit()
    return {"type": "text", **({"parameter_name": slot.name} if named else {}), "text": value}
