"""The page of the assistant's profile: one row that always exists, with a preview of the prompt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from memoryproject.foundation.admin_kit.staff_admin import OneRowAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.admin_kit.stamped_form import StampedForm
from memoryproject.foundation.audit.audit_events import staff_edit_record
from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.tables import read_table
from sessions_app.conversations.epochs import profile_locked
from sessions_app.models import AssistantProfile
from sessions_app.models.chats import CLIENT, GODFATHER
from sessions_app.trials.change_trial_page import profile_try
from sessions_app.turns.facade import PromptParts, Recalled, build_prompt, profile_for_prompt
from sessions_app.turns.presentation import PromptLine, prompt_lines

_WORDS = read_table(__file__, "page_words.yaml")
FIELDS, SECTIONS = _WORDS["profile"], _WORDS["profile_sections"]
MAX_LENGTH = 20_000
CODES = re.compile(r"[a-z]{2,3}(?:\s*,\s*[a-z]{2,3})*\s*,?")


class TextField(forms.CharField):
    """Normalise line ends; browsers send them as CRLF."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text


def _area(name: str, rows: int = 6) -> TextField:
    # Text that begins in Hebrew is written from right to left.
    widget = UnfoldAdminTextareaWidget(attrs={"dir": "auto", "rows": rows})
    return TextField(**FIELDS[name], required=False, max_length=MAX_LENGTH, widget=widget)


def _line(name: str, most: int, direction: str = "auto", **options: Any) -> forms.CharField:
    widget = UnfoldAdminTextInputWidget(attrs={"dir": direction})
    return forms.CharField(**FIELDS[name], max_length=most, widget=widget, **options)


class ProfileForm(StampedForm):
    name = _line("name", 64)
    business_name = _line("business_name", 80, required=False)
    persona = _area("persona")
    business_facts = _area("business_facts", rows=10)
    opening_hours = _area("opening_hours", rows=3)
    languages = _line("languages", 64, "ltr")
    privacy_notice_en = _area("privacy_notice_en", rows=3)
    privacy_notice_he = _area("privacy_notice_he", rows=3)

    class Meta:
        model = AssistantProfile
        fields: ClassVar = list(FIELDS)

    def clean_languages(self) -> str:
        languages: str = self.cleaned_data["languages"].strip().casefold()
        if not CODES.fullmatch(languages):
            raise forms.ValidationError(_("Write codes of two or three letters, such as en, he."))
        return languages.rstrip(",").rstrip()

    def sections(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Return the titles of the sections, each with its fields."""
        return [(str(each["title"]), [self[name] for name in each["fields"]]) for each in SECTIONS]


# Build the prompt that the chat model would get for an unsaved profile.

KINDS: dict[str, Promise] = {CLIENT: gettext_lazy("a client"), GODFATHER: gettext_lazy("the owner")}
LANGUAGES: dict[str, Promise] = {"en": gettext_lazy("English"), "he": gettext_lazy("Hebrew")}
# Example content isn't interface text: it is in the chosen language.
QUESTIONS = {"en": "When are you open tomorrow?", "he": "מתי אתם פתוחים מחר?"}
MEMORIES = {
    "en": "They prefer to be called in the afternoon",
    "he": "מעדיפים שיתקשרו אליהם אחר הצהריים",
}
# Each real prompt has its own unguessable mark.
FENCE = "000000000000"


@dataclass(frozen=True)
class Preview:
    kind: str
    language: str
    lines: Sequence[PromptLine]
    tokens: int

    @property
    def whom(self) -> str:
        return str(KINDS[self.kind])


def prompt_preview(
    profile: AssistantProfile,
    *,
    kind: str,
    language: str,
    now: datetime,
    time_zone: str,
    max_context_tokens: int | None = None,
) -> Preview:
    """Return an example prompt with one memory and one question.

    Unknown kinds and languages are replaced by the first ones.
    """
    kind = kind if kind in KINDS else CLIENT
    language = language if language in QUESTIONS else "en"
    memory = Recalled(MEMORIES[language], "memory", now - timedelta(days=7))
    prompt = build_prompt(
        PromptParts(
            profile=profile_for_prompt(profile),
            now=now,
            time_zone=time_zone,
            fence=FENCE,
            user_role=kind,
            recalled=[memory],
            history=[ChatMessage("user", QUESTIONS[language])],
            max_context_tokens=max_context_tokens,
        )
    )
    entries = [message.as_dict() for message in prompt.messages]
    return Preview(kind, language, prompt_lines(entries, all_unfolded=True), prompt.tokens)


# The page.


PAGE = "admin/sessions_app/assistantprofile/profile.html"
PART = "admin/sessions_app/assistantprofile/preview.html"
STALE = 409


@admin.register(AssistantProfile)
class AssistantProfileAdmin(OneRowAdmin):
    search_fields = ("name",)
    own_pages: ClassVar[Any] = {"preview": OwnPage("preview/", "preview", "POST")}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form on GET, save it on POST.

        A form that was based on an older profile is shown again, with the typed and the stored
        values.
        """
        if object_id != "1":
            return redirect("admin:sessions_app_assistantprofile_changelist")
        if request.method == "POST":
            if not self.has_change_permission(request):
                raise PermissionDenied
            return self._save(request)
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        profile, _made = AssistantProfile.objects.get_or_create(pk=1)
        return self._page(request, ProfileForm(instance=profile))

    def preview(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the typed values and the prompt that they produce, without saving.

        POST the form with ``kind`` and ``language``. With the header ``X-Part``, return only the
        prompt; with ``ask``, what models answer by it.
        """
        if not self.has_change_permission(request):
            raise PermissionDenied
        profile = AssistantProfile.objects.filter(pk=1).first() or AssistantProfile(pk=1)
        form = ProfileForm(request.POST, instance=profile)
        if form.is_valid() and "ask" in request.POST:
            return profile_try(request, form.instance)
        if not form.is_valid():
            if "X-Part" in request.headers:
                return TemplateResponse(request, PART, {"problems": _words(form)}, status=422)
            return self._page(request, form, status=422)
        # The form has put the typed values into its own, unsaved copy.
        shown = prompt_preview(
            form.instance,
            kind=request.POST.get("kind", ""),
            language=request.POST.get("language", ""),
            now=timezone.now(),
            time_zone=settings.BUSINESS_TIME_ZONE,
            max_context_tokens=settings.MAX_CONTEXT_TOKENS,
        )
        if "X-Part" in request.headers:
            return TemplateResponse(request, PART, {"preview": shown})
        return self._page(request, form, preview=shown)

    @transaction.atomic
    def _save(self, request: HttpRequest) -> HttpResponse:
        profile = profile_locked()
        form = ProfileForm(request.POST, instance=profile)
        if not form.is_valid():
            return self._page(request, form, status=422)
        # Created under the lock, it has the stored values.
        if form.refuse_unseen(now=form):
            return self._page(request, form, status=STALE)
        if form.changed_data:
            form.save()
            self.log_change(request, profile, self.construct_change_message(request, form, []))
            staff_edit_record(request, "profile.update", "profile", profile.pk, form.changed_data)
        messages.success(request, _("The assistant's profile was changed successfully."))
        return redirect("admin:sessions_app_assistantprofile_change", profile.pk)

    def _page(
        self,
        request: HttpRequest,
        form: ProfileForm,
        *,
        preview: Preview | None = None,
        status: int = 200,
    ) -> HttpResponse:
        may_change = self.has_change_permission(request)
        if not may_change:
            for field in form.fields.values():
                field.disabled = True
        context = {
            "list_title": _("The assistant's profile"),
            "form": form,
            "profile": form.instance,
            "may_change": may_change,
            "preview": preview,
            "kinds": KINDS.items(),
            "languages": LANGUAGES.items(),
            "kind": preview.kind if preview else next(iter(KINDS)),
            "language": preview.language if preview else "en",
        }
        return staff_page(
            request, PAGE, _("The assistant's profile"), context, of=self.model, status=status
        )


def _words(form: ProfileForm) -> list[tuple[str, str]]:
    """Return the problems with the fields' names as staff see them."""
    return [
        (str(form.fields[name].label), " ".join(str(error) for error in errors))
        for name, errors in form.errors.items()
        if name in form.fields
    ]
