"""Serve the pages on which staff choose what to erase, and the forms of search and confirmation."""

from collections.abc import Collection, Iterable
from datetime import datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.timezone import get_current_timezone
from django.utils.translation import get_language, gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit import list_csv, staff_admin, staff_pages
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.replica import TooSlowError
from sessions_app.conversations.chat_queries import contacts_named, number_searched
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.deletion_plan import MODELS
from sessions_app.forgetting.find_matches import (
    MEMORY,
    MESSAGE,
    Matches,
    Wanted,
    matches_all,
    matches_find,
)
from sessions_app.forgetting.person_export import person_export
from sessions_app.forgetting.runs import MAX_ITEMS, Chosen, TooManyError, run_draft
from sessions_app.models import Chat, ForgetItem, ForgetRun, ForgottenKind
from sessions_app.models.receipts import MAX_REQUEST_NUMBER, Requester
from sessions_app.presentation.links import DIRECTION_MARKS, chat_or_404, contact_typed

# The confirmation word of each language.
WORDS = {"en": "FORGET", "he": "לשכוח"}


def word_now() -> str:
    """Return the confirmation word of the page's language."""
    return WORDS.get((get_language() or "en")[:2], WORDS["en"])


FIELD = {"class": "field-input"}
TEXT = {**FIELD, "dir": "auto"}


def _day_field(label: Any) -> forms.DateField:
    widget = forms.DateInput(attrs={**FIELD, "type": "date"})
    return forms.DateField(label=label, required=False, widget=widget)


class SearchForm(forms.Form):
    words = forms.CharField(
        label=gettext_lazy("Words"),
        max_length=500,
        widget=forms.TextInput(attrs={**TEXT, "type": "search"}),
        error_messages={"required": gettext_lazy("Say what it is about.")},
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Look in"),
        choices=[(MEMORY, gettext_lazy("memories")), (MESSAGE, gettext_lazy("messages"))],
        initial=[MEMORY, MESSAGE],
        widget=forms.CheckboxSelectMultiple,
    )
    how = forms.ChoiceField(
        label=gettext_lazy("Find by"),
        choices=[
            ("words", gettext_lazy("words: everything that holds all of them, in any form")),
            ("meaning", gettext_lazy("meaning: what is nearest to it")),
        ],
        initial="words",
        widget=forms.RadioSelect,
    )
    chat = forms.CharField(
        label=gettext_lazy("Only in the chat"),
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs=TEXT),
        help_text=gettext_lazy("The contact's name or number. Needed for messages by meaning."),
    )
    since = _day_field(gettext_lazy("From"))
    until = _day_field(gettext_lazy("To"))

    def clean_chat(self) -> Chat | None:
        return contact_typed(self.cleaned_data["chat"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        by_meaning = cleaned.get("how") == "meaning" and cleaned.get("kinds") == [MESSAGE]
        if by_meaning and "chat" not in self.errors and cleaned.get("chat") is None:
            text = _("Messages are found by meaning within one chat only: say which.")
            self.add_error("chat", text)
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", _("This day comes before the first one."))
        return cleaned

    def wanted(self) -> Wanted:
        """Return the criteria of the valid form; days are in the business's time zone."""
        given = self.cleaned_data
        chat = given["chat"]
        return Wanted(
            words=given["words"],
            kinds=tuple(given["kinds"]),
            by_meaning=given["how"] == "meaning",
            chat_id=chat.pk if chat else None,
            since=_midnight(given["since"]),
            until=_midnight(given["until"], days=1),
        )


def _midnight(day: Any, *, days: int = 0) -> datetime | None:
    if day is None:
        return None
    try:
        return datetime.combine(day + timedelta(days=days), time.min, get_current_timezone())
    except OverflowError:
        return None


class ConfirmForm(forms.Form):
    """Form that confirms a run.

    ``wanted`` is the text to type: the number of a single person, otherwise the word.
    """

    typed = forms.CharField(
        max_length=300,
        widget=forms.TextInput(attrs={**TEXT, "autocomplete": "off", "size": 32}),
        error_messages={"required": gettext_lazy("Nothing was typed, so nothing is erased.")},
    )

    requester = forms.ChoiceField(
        label=gettext_lazy("Who asked for it"),
        choices=Requester.choices,
        required=False,
        widget=forms.Select(attrs=FIELD),
    )
    request_number = forms.RegexField(
        label=gettext_lazy("Request number"),
        # Not a text: a receipt is kept for good and holds nothing of what was erased.
        regex=r"^[A-Za-z0-9א-ת/_.#-]+$",
        required=False,
        max_length=MAX_REQUEST_NUMBER,
        widget=forms.TextInput(attrs={**TEXT, "autocomplete": "off", "size": 20}),
        error_messages={
            "invalid": gettext_lazy(
                "A number, without blanks: letters, digits and / _ . # - only. Nothing is erased."
            )
        },
    )

    def __init__(self, *args: Any, run: ForgetRun, **options: Any) -> None:
        super().__init__(*args, **options)
        self.person = person_of(run)
        self.wanted = self.person.shown_number if self.person else word_now()

    def clean_typed(self) -> str:
        typed = str(self.cleaned_data["typed"]).translate(DIRECTION_MARKS).strip().casefold()
        if self.person is None:
            right = {word.casefold() for word in WORDS.values()}
        else:
            right = {self.wanted.casefold(), self.person.whatsapp_chat.casefold()}
        # The whole number, with or without its country's code, which has three digits at most.
        is_whole = len(number_searched(typed)) >= max(len(number_searched(self.wanted)) - 3, 7)
        if typed not in right and not (is_whole and contacts_named(typed) == [self.person]):
            raise forms.ValidationError(_("That isn't what has to be typed. Nothing is erased."))
        return typed


def person_of(run: ForgetRun) -> Chat | None:
    """Return the chat of a run that forgets exactly one whole person."""
    if run.total != 1:
        return None
    item = ForgetItem.objects.filter(run=run, kind=str(ForgottenKind.CHAT)).first()
    return Chat.objects.filter(pk=item.object_id).first() if item else None


# The pages: a search, a person, the lists' action.


TEMPLATES = "admin/sessions_app/forgetrun"
FORGET = "sessions_app.forget"
READ = ("sessions_app.view_message", "memories_app.view_memory")
EXPORT = (*READ, "memories_app.export_memory")

# The kinds that staff choose in lists; the messages of a session are none of its own.
KINDS = {model: kind for kind, model in MODELS.items() if kind != str(ForgottenKind.MESSAGES)}


def run_address(run_id: UUID) -> str:
    """Return the address of the page with a run's preview, progress and outcome."""
    return reverse("admin:sessions_app_forgetrun_change", args=[run_id])


def _draft(request: HttpRequest, chosen: Iterable[Chosen]) -> HttpResponse:
    """Store the choice as a draft, and redirect to its preview. Raises TooManyError, ValueError."""
    run = run_draft(chosen=chosen, asked_by=request.user.get_username())
    return redirect(run_address(run.pk))


def search_page(request: HttpRequest) -> HttpResponse:
    """Search by POST, so that the search text is in no address and no log."""
    staff_pages.rights_required(request, FORGET, *READ)
    form = SearchForm(request.POST) if request.method == "POST" else SearchForm()
    return _search_page(request, form)


def choose_page(request: HttpRequest) -> HttpResponse:
    """Store the selected results, or all of them, as a draft."""
    staff_pages.rights_required(request, FORGET, *READ)
    form = SearchForm(request.POST)
    if form.is_valid():
        try:
            return _draft(request, _chosen(request, form))
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the search first.")
            messages.error(request, text.format(most=MAX_ITEMS))
        except TooSlowError:
            messages.error(request, _too_slow())
        except ValueError:
            messages.error(request, _("Nothing is chosen."))
    return _search_page(request, form)


def _chosen(request: HttpRequest, form: SearchForm) -> list[Chosen]:
    if "all" in request.POST:
        return matches_all(form.wanted(), embedder=embedder(), most=MAX_ITEMS + 1)
    return [
        (kind, UUID(key))
        for kind, _colon, key in (each.partition(":") for each in request.POST.getlist("chosen"))
        if kind in (MEMORY, MESSAGE)
    ]


def _found(request: HttpRequest, form: SearchForm) -> Matches | None:
    """Return what a valid form finds, and audit that its texts were shown."""
    if not form.is_bound or not form.is_valid():
        return None
    try:
        found = matches_find(form.wanted(), embedder=embedder())
    except TooSlowError:
        messages.error(request, _too_slow())
        return None
    chat = form.cleaned_data["chat"]
    of = chat.pk if chat else None
    staff_read_record(request, chat_id=of, list="forget search", searched=True)
    return found


def _too_slow() -> str:
    return _("That takes too long over everything. Name a chat or dates.")


def _search_page(request: HttpRequest, form: SearchForm) -> HttpResponse:
    found = _found(request, form)
    shown = found.shown if found else []
    names = Chat.objects.in_bulk({each.chat_id for each in shown if each.chat_id})
    pages = {MEMORY: "memories_app_memory", MESSAGE: "sessions_app_message"}
    context = {
        "form": form,
        "found": found,
        "hits": [
            {
                "match": each,
                "value": f"{each.kind}:{each.key}",
                "address": reverse(f"admin:{pages[each.kind]}_change", args=[each.key]),
                "kind": _("memory") if each.kind == MEMORY else _("message"),
                "chat": names.get(each.chat_id) if each.chat_id else None,
            }
            for each in shown
        ],
        "most": MAX_ITEMS,
    }
    return staff_pages.staff_page(request, "search", _("Search and erase"), context, of=ForgetRun)


def person_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show the person, to export first. A POST creates the draft and redirects to its preview."""
    staff_pages.rights_required(request, FORGET)
    chat = chat_or_404(chat_id)
    if request.method == "POST":
        return _draft(request, [(str(ForgottenKind.CHAT), chat.pk)])
    context = {"chat": chat, "may_export": request.user.has_perms(EXPORT)}
    title = _("Erase a whole group") if chat.is_group else _("Erase a whole person")
    return staff_pages.staff_page(request, "person", title, context, of=ForgetRun)


def export_page(request: HttpRequest, chat_id: UUID) -> StreamingHttpResponse:
    """Return everything stored about the person as a download."""
    staff_pages.rights_required(request, *EXPORT)
    chat = chat_or_404(chat_id)
    lines = person_export(chat=chat, actor=staff_actor(request))
    answer = StreamingHttpResponse(
        (f"{line}\n" for line in lines), content_type="application/x-ndjson; charset=utf-8"
    )
    return list_csv.as_download(answer, f"person-{chat.pk}.ndjson")


class ForgetAction(staff_admin.ReadOnlyAdmin):
    """Mixin for a list in which staff select objects to forget.

    They can select one, several, or all that the list's search and filters found.
    """

    unbounded_actions: Collection[str] = ("forget_selected",)

    def has_forget_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(FORGET))

    @admin.action(description=gettext_lazy("Erase…"), permissions=["forget"])
    def forget_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Store the selection as a draft and show what would go."""
        kind = KINDS[self.model]
        keys = queryset.order_by().values_list("pk", flat=True)[: MAX_ITEMS + 1]
        try:
            return _draft(request, [(kind, key) for key in keys])
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the list by a filter first.")
            messages.error(request, text.format(most=MAX_ITEMS))
        except ValueError:
            # Another person forgot it while the list was open, or it no longer matches the filter.
            text = _("What was chosen isn't in the list any more.")
            messages.warning(request, text)
        return None
