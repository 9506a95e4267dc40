"""The pages of the opening hours and of the rules, with what a rule did and would have done."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.dates import WEEKDAYS as DAY_NAMES
from django.utils.text import Truncator
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from unfold import widgets

from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.admin_kit.staff_admin import OneRowAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_edit_record
from memoryproject.foundation.integrations.whatsapp.base import Template
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.tables import read_table
from sessions_app.conversations.history_queries import profile_current
from sessions_app.hours import WEEKDAYS, day_spans, hours_of, line_twice
from sessions_app.models import Chat, OpeningHours, Rule, RuleRun
from sessions_app.models.review import Happening
from sessions_app.presentation.audited_view import RecordedAdmin
from sessions_app.presentation.links import conversation_address
from sessions_app.rules import Span, happened, template_of
from sessions_app.takeover.facade import ReplyRefusedError, placeholders_check, template_check

# The opening hours.

_WORDS = read_table(__file__, "page_words.yaml")
HOURS, DONE = _WORDS["hours"], _WORDS["done"]
# A memory, prompts and answers hold some lines of other days.
MAX_LINE = 200


def _day(day: int, help_text: Any = "") -> forms.CharField:
    widget = widgets.UnfoldAdminTextInputWidget(attrs={"dir": "auto"})
    options: Any = {"label": DAY_NAMES[day], "help_text": help_text, "widget": widget}
    return forms.CharField(**options, required=False, max_length=200)


def _lines(name: str, most: int) -> forms.CharField:
    widget = widgets.UnfoldAdminTextareaWidget(attrs={"dir": "auto", "rows": 5})
    return forms.CharField(**HOURS[name], required=False, max_length=most, widget=widget)


class HoursForm(forms.ModelForm):  # type: ignore[type-arg]
    """The texts are kept in one column: see AssistantProfile.hours."""

    sunday = _day(6, HOURS["sunday"])
    monday, tuesday, wednesday, thursday, friday, saturday = map(_day, range(6))
    dates = _lines("dates", 20_000)
    away_text = _lines("away_text", 4_000)
    NAMES = (*WEEKDAYS, "dates", "away_text")

    class Meta:
        model = OpeningHours
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.NAMES:
            self.initial[name] = self.instance.hours.get(name, "")
            # Read there for whoever may not change them.
            setattr(self.instance, name, self.initial[name] or "–")
        self.fields["away_text"].validators.append(placeholders_check)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in WEEKDAYS:
            if day_spans(given.get(name, "")) is None:
                text = _(
                    "Write times that don't overlap, such as 9:00–12:00, 16:00–19:00, or “closed”."
                )
                self.add_error(name, text)
        try:
            lines = given.get("dates", "").splitlines()
            if long := next((line for line in lines if len(line) > MAX_LINE), ""):
                raise ValueError(Truncator(long).chars(MAX_LINE))
            if line := line_twice(given.get("dates", "")):
                text = _("The date of this line has hours already: “%(line)s”. Write one line.")
                self.add_error("dates", text % {"line": line})
        except ValueError as error:
            text = _("This line can't be read: “%(line)s”. Write 24/12/2026 9:00–13:00, or closed.")
            self.add_error("dates", text % {"line": error})
        if given.get("away_text") and not any(given.get(name) for name in self.NAMES[:-1]):
            self.add_error("away_text", _("Without opening hours it is never sent."))
        return given

    def save(self, commit: bool = True) -> Any:
        # Here and not in clean(): the form takes other columns from the locked row after that.
        given = {name: self.cleaned_data[name].replace("\r\n", "\n") for name in self.NAMES}
        self.instance.hours = {name: text for name, text in given.items() if text}
        return super().save(commit)


@admin.register(OpeningHours)
class OpeningHoursAdmin(OneRowAdmin):
    form = HoursForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        # They are fields of the form alone: a class can't name them.
        return (
            (_("Every week"), {"fields": WEEKDAYS}),
            (_("Other days"), {"fields": ("dates",)}),
            (_("While you are closed"), {"fields": ("away_text",)}),
        )

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        return OpeningHours.objects.get_or_create(pk=1)[0] if object_id == "1" else None

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        staff_edit_record(request, "hours.update", "profile", obj.pk, form.changed_data)
        enqueue("sessions_app.tasks.tell_hours", task_name="opening hours")


# The rules.

ACTIONS = ("add_label", "assignees", "tells", "due_minutes", "text", "template")
LAST_WEEK = timedelta(days=7)
MAX_SHOWN = 200


def rule_sentence(rule: Rule, people: Sequence[str]) -> str:
    """Return the rule in the reader's language. ``people``: the names of its assignees."""
    parts = [_("When %(when)s") % {"when": rule.get_when_display()}]
    if rule.when == Happening.SILENCE:
        minutes = rule.minutes or 0
        words = ngettext(" for %(number)s minute", " for %(number)s minutes", minutes)
        parts[0] += words % {"number": minutes}
    if rule.when == Happening.LABEL:
        parts[0] += f" ({rule.label or '–'})"
    if rule.words:
        words = ", ".join(rule.words.splitlines())
        parts.append(_("if the message holds “%(words)s”") % {"words": words})
    if rule.out_of_hours:
        parts.append(_("if we are closed"))
    due = ngettext(
        "mark as due in %(value)s minute", "mark as due in %(value)s minutes", rule.due_minutes or 0
    )
    by_turn = _("assign by turn to %(value)s") if len(people) > 1 else _("assign to %(value)s")
    does = (
        (_("add the label %(value)s"), rule.add_label),
        (by_turn, ", ".join(people)),
        (_("tell us"), rule.tells),
        (due, rule.due_minutes),
        (_("send “%(value)s”"), rule.text),
        (_("send the template %(value)s"), rule.template),
    )
    acts = "; ".join(text % {"value": value} for text, value in does if value)
    return ", ".join([*parts, _("then %(does)s.") % {"does": acts}])


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Whoever may only look has no fields.
        if "text" in self.fields:
            self.fields["text"].validators.append(placeholders_check)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        when = given.get("when")
        if when == Happening.LABEL and not given.get("label"):
            self.add_error("label", _("Say which label."))
        if when == Happening.LABEL and given.get("words"):
            self.add_error("words", _("Where a label is added there is no message to look at."))
        if when == Happening.SILENCE and not given.get("minutes"):
            self.add_error("minutes", _("Say after how many minutes."))
        if given.get("out_of_hours") and hours_of(profile_current()) is None:
            self.add_error("out_of_hours", _("Set the opening hours first."))
        if given.get("template"):
            try:
                template_check(Template(*template_of(given["template"]), ()))
            except ReplyRefusedError as refused:
                self.add_error("template", refused.text)
        if not any(given.get(name) for name in ACTIONS) and not self.errors:
            self.add_error(None, _("Say what the rule does."))
        return given


@admin.register(Rule)
class RuleAdmin(RecordedAdmin):
    recorded_as = "rule"
    form = RuleForm
    list_display = ("name", "sentence", "position", "is_on", "acted")
    search_fields = ("name",)
    actions = None
    readonly_fields = ("acted",)
    fieldsets = (
        (None, {"fields": ("name", "is_on", "position", "acted")}),
        (gettext_lazy("When"), {"fields": ("when", "minutes", "label")}),
        (gettext_lazy("If"), {"fields": ("words", "out_of_hours")}),
        (gettext_lazy("Then"), {"fields": ACTIONS}),
    )
    own_pages: ClassVar[Any] = {
        "last_week": OwnPage("<int:rule_id>/last-week/", "last_week", "GET HEAD")
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rule]:
        found: QuerySet[Rule] = super().get_queryset(request).select_related("label", "add_label")
        return found.prefetch_related("assignees").annotate(acted=Count("runs", distinct=True))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["queryset"] = User.objects.filter(is_active=True, is_staff=True).order_by("username")
        kwargs["widget"] = widgets.UnfoldAdminCheckboxSelectMultipleWidget()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        if form.changed_data:
            # What happened before isn't made up for.
            obj.since = timezone.now()
        super().save_model(request, obj, form, change)

    @admin.display(description=gettext_lazy("rule in words"))
    def sentence(self, rule: Rule) -> str:
        people = [user.get_username() for user in rule.assignees.all()]
        return rule_sentence(rule, sorted(people))

    @admin.display(description=gettext_lazy("what it did"), ordering="acted")
    def acted(self, rule: Any) -> str:
        if rule.pk is None:
            return _("Save the rule, and see what it would have done in the last week.")
        address = reverse("admin:sessions_app_rule_last_week", args=[rule.pk])
        return shown_link(
            address, _("Acted: %(number)s. Try it on last week") % {"number": rule.acted}
        )

    def last_week(self, request: HttpRequest, rule_id: int) -> HttpResponse:
        """Show what the rule did, and what it would have done in the last week."""
        rights_required(request, "sessions_app.view_rule", "sessions_app.view_chat")
        rule = self.get_queryset(request).filter(pk=rule_id).first()
        if rule is None:
            raise Http404
        now = timezone.now()
        events = happened(rule, Span(now - LAST_WEEK, now), hours_of(profile_current()))
        newest = events[: -MAX_SHOWN - 1 : -1]
        chats = Chat.objects.in_bulk([event.chat_id for event in newest])
        runs = RuleRun.objects.filter(rule=rule).select_related("chat").order_by("-at")
        context = {
            "rule": rule,
            "sentence": self.sentence(rule),
            "count": len(events),
            "most": MAX_SHOWN,
            "chats": len({event.chat_id for event in events}),
            "events": [
                (chats[event.chat_id], conversation_address(event.chat_id), event.at)
                for event in newest
                if event.chat_id in chats
            ],
            "runs": [
                (run, conversation_address(run.chat_id), [DONE[did] for did in run.did.split()])
                for run in runs[:MAX_SHOWN]
            ],
        }
        template = "admin/sessions_app/rule/last_week.html"
        return staff_page(request, template, _("What the rule does"), context, of=Rule)
