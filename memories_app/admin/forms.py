"""The forms in which staff write and change memories. What a service refuses stands in the form,
with everything that was typed."""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.contrib.postgres.forms import SimpleArrayField

from memories_app.errors import MemoryOperationError, MemoryValidationError
from memories_app.models import Memory
from memories_app.services.change import (
    memory_expire_at,
    memory_pin,
    memory_set_visibility,
    memory_update,
)
from memories_app.services.remember import memory_remember
from memories_app.validation import visibility_problems
from memoryproject.audit.events import Actor
from memoryproject.integrations.embedders.base import Embedder, EmbedderError


class Edge(Protocol):
    """What a form needs from the page that shows it."""

    def embedder(self) -> Embedder: ...

    def find_chat(self, whatsapp_chat: str) -> UUID | None: ...


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Calls its services once everything that was typed is right in itself."""

    edge: Edge
    actor: Actor
    content = forms.CharField(
        strip=False, widget=AdminTextareaWidget(attrs={"dir": "auto", "rows": 4})
    )
    tags = SimpleArrayField(
        forms.CharField(max_length=64), required=False, help_text="Separated by commas."
    )

    class Meta:
        model = Memory
        fields = ("content", "visibility", "type", "category", "tags", "pinned", "expires_at")

    def clean_content(self) -> str:
        """A browser sends line ends of its own."""
        content: str = self.cleaned_data["content"].replace("\r\n", "\n")
        same = content == self.instance.content.replace("\r\n", "\n")
        return self.instance.content if same else content

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and not self.errors:
            self._try()

    def _try(self) -> None:
        try:
            self.apply()
        except MemoryValidationError as error:
            for problem in error.problems:
                known = problem.field if problem.field in self.fields else None
                self.add_error(known, f"{problem.field} {problem.detail}.")
        except MemoryOperationError as error:
            self.add_error(None, str(error))
        except EmbedderError as error:
            self.add_error(None, f"No vector can be made just now: {error} Try again later.")

    def apply(self) -> None:
        """Do what the form asks for."""
        raise NotImplementedError


class ChangeForm(ServiceForm):
    def clean_visibility(self) -> str:
        """Here, so that nothing else is changed where this can't be."""
        visibility: str = self.cleaned_data["visibility"]
        for _, detail in visibility_problems(visibility, self.instance.chat_id):
            raise forms.ValidationError(f"This memory came from no chat: {detail}.")
        return visibility

    def apply(self) -> None:
        given = self.cleaned_data
        memory_id = self.instance.pk
        named = {"content", "type", "category", "tags"} & set(self.changed_data)
        if "visibility" in self.changed_data:
            memory_set_visibility(
                memory_id=memory_id, visibility=given["visibility"], actor=self.actor
            )
        if named:
            memory_update(
                memory_id=memory_id,
                actor=self.actor,
                embedder=self.edge.embedder(),
                **{name: given[name] for name in named},
            )
        if "pinned" in self.changed_data:
            memory_pin(memory_id=memory_id, pinned=given["pinned"], actor=self.actor)
        if "expires_at" in self.changed_data:
            memory_expire_at(memory_id=memory_id, at=given["expires_at"], actor=self.actor)
        self.instance = Memory.objects.get(pk=memory_id)


class AddForm(ServiceForm):
    whatsapp_chat = forms.CharField(
        required=False,
        help_text="Such as 972501234567@c.us: the chat that it is about. "
        "Needed for the visibility “chat”.",
    )
    # What became of it: created, duplicate or superseding.
    outcome = ""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        given["chat_id"] = None
        named = given.get("whatsapp_chat")
        if named:
            given["chat_id"] = self.edge.find_chat(named)
            if given["chat_id"] is None:
                self.add_error("whatsapp_chat", "There is no such chat.")
        elif given.get("visibility") == "chat":
            self.add_error("whatsapp_chat", "Say which chat.")
        return given

    def apply(self) -> None:
        given = self.cleaned_data
        remembered = memory_remember(
            content=given["content"],
            visibility=given["visibility"],
            chat_id=given["chat_id"],
            type=given["type"],
            category=given["category"],
            tags=tuple(given["tags"]),
            pinned=given["pinned"],
            expires_at=given["expires_at"],
            source="staff",
            embedder=self.edge.embedder(),
            actor=self.actor,
        )
        self.instance = remembered.memory
        self.outcome = remembered.status
