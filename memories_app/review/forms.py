"""Forms in which staff write and change memories.

Errors of a service appear in the form, with everything that was typed.
"""

from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django import forms
from django.contrib.postgres.forms import SimpleArrayField
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from memories_app import errors
from memories_app.facts.validation import FACT_TIMES, NewMemory, visibility_problems
from memories_app.models import Memory
from memories_app.store import change, remember
from memoryproject.foundation.admin_kit.stamped_form import StampedForm, digest_of
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError


class Edge(Protocol):
    """The part of the page that a form needs."""

    def embedder(self) -> Embedder: ...

    def find_chat(self, named: str) -> UUID | None: ...

    def keep_chat(self, chat_id: UUID) -> None: ...


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that calls its services once all fields are valid."""

    edge: Edge
    actor: Actor
    content = forms.CharField(
        label=gettext_lazy("Content"),
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"dir": "auto", "rows": 4}),
    )
    tags = SimpleArrayField(
        forms.CharField(max_length=64),
        label=gettext_lazy("Tags"),
        required=False,
        help_text=gettext_lazy("Separated by commas."),
        widget=UnfoldAdminTextInputWidget(attrs={"dir": "auto"}),
    )

    class Meta:
        model = Memory
        fields = (
            "content",
            "visibility",
            "type",
            "category",
            "tags",
            "pinned",
            "expires_at",
            *FACT_TIMES,
        )

    def clean_content(self) -> str:
        """Normalise the line ends that a browser sends."""
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
        except errors.ChangedMeanwhileError as error:
            self.changed_meanwhile(error.fields)
        except errors.MemoryValidationError as error:
            for problem in error.problems:
                known = problem.field if problem.field in self.fields else None
                words = {"field": errors.field_words(problem.field), "detail": problem.detail}
                self.add_error(known, _("%(field)s %(detail)s.") % words)
        except errors.MemoryOperationError as error:
            self.add_error(None, str(error))
        except EmbedderError as error:
            self.add_error(None, errors.no_vector_words(error))

    def apply(self) -> None:
        """Carry out what the form requests."""
        raise NotImplementedError

    def changed_meanwhile(self, names: list[str]) -> None:
        """Report which fields somebody else changed."""
        raise NotImplementedError


class ChangeForm(StampedForm, ServiceForm):
    """A form that detects concurrent changes.

    Concurrent changes of untouched fields stay; the form asks about fields that both changed.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A keyed memory need not be found by a text.
        self.fields["content"].required = self.instance.key is None
        self._seen: dict[str, str] = {}
        self._wanted: dict[str, Any] = {}

    def clean_visibility(self) -> str:
        """Validate it here, so that the error appears at its field."""
        visibility: str = self.cleaned_data["visibility"]
        for _field, detail in visibility_problems(visibility, self.instance.chat_id):
            text = _("This memory came from no chat: %(detail)s.")
            raise forms.ValidationError(text % {"detail": detail})
        return visibility

    def apply(self) -> None:
        given, seen = self.cleaned_data, self.seen_digests()
        if seen is None:
            self.ask_damaged(self._now())
            return
        self._seen = seen
        self._wanted = {name: given[name] for name in seen if digest_of(given[name]) != seen[name]}
        if not self._wanted:
            self.instance = Memory.objects.get(pk=self.instance.pk)
            return
        self.instance = change.memory_patch(
            memory_id=self.instance.pk,
            changes=self._wanted,
            actor=self.actor,
            embedder=self.edge.embedder(),
            check=self._check,
        )

    def _check(self, memory: Memory) -> None:
        """Check the memory in its current state, locked."""
        theirs = [
            name
            for name, value in self._wanted.items()
            if digest_of(getattr(memory, name)) not in (self._seen[name], digest_of(value))
        ]
        if theirs:
            raise errors.ChangedMeanwhileError(theirs)

    def changed_meanwhile(self, names: list[str]) -> None:
        self.ask_again(self._now(), theirs=names, touched=self._wanted)

    def _now(self) -> "ChangeForm":
        return type(self)(instance=Memory.objects.get(pk=self.instance.pk))


class AddForm(ServiceForm):
    whatsapp_chat = forms.CharField(
        label=gettext_lazy("Client"),
        required=False,
        help_text=gettext_lazy(
            "The name or number of the client whom it is about. Needed if it is visible to this "
            "client."
        ),
        widget=UnfoldAdminTextInputWidget(attrs={"dir": "auto"}),
    )
    # The result: created, duplicate or superseding.
    outcome = ""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        given["chat_id"] = None
        named = (given.get("whatsapp_chat") or "").strip()
        try:
            given["chat_id"] = self.edge.find_chat(named)
        except forms.ValidationError as error:
            self.add_error("whatsapp_chat", error)
        if not named and given.get("visibility") == "chat":
            self.add_error("whatsapp_chat", _("Say which client."))
        return given

    def apply(self) -> None:
        given, chat_id = self.cleaned_data, self.cleaned_data["chat_id"]
        remembered = remember.memory_remember(
            NewMemory(
                content=given["content"],
                visibility=given["visibility"],
                chat_id=chat_id,
                type=given["type"],
                category=given["category"],
                tags=tuple(given["tags"]),
                pinned=given["pinned"],
                expires_at=given["expires_at"],
                **{name: given[name] for name in FACT_TIMES},
                source="staff",
            ),
            embedder=self.edge.embedder(),
            actor=self.actor,
            before_storing=partial(self.edge.keep_chat, chat_id) if chat_id else None,
        )
        self.instance = remembered.memory
        self.outcome = remembered.status
