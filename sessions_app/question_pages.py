"""The pages of the question set: its list with the results over time, a question, the import."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.display import column, shown_short
from memoryproject.foundation.admin_kit.list_filters import choice_filter
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.text.characters import fold
from sessions_app.memories.table_pages import TableForm
from sessions_app.memories.tables.columns import TableError, rows_of
from sessions_app.models import CheckDay, CheckQuestion
from sessions_app.models.chats import CLIENT
from sessions_app.models.trials import READS_QUESTIONS, REGRESSED, TABLE, QuestionState
from sessions_app.presentation.audited_view import ConversationAdmin

# A question and its memories are shown together.
WRITES = (*READS_QUESTIONS, "sessions_app.review_chat")
TEMPLATES = "admin/sessions_app/checkquestion"
ACTION = "question.change"
STARTERS = Path(__file__).parent / "turns" / "question_sets"
# The plot is at least so many days wide.
LEAST_DAYS = 7
# The names of the beginnings; and what columns, audiences and languages are called in tables.
NAMES = json.loads((STARTERS / "names.json").read_text(encoding="utf-8"))
WORDS = {fold(each): key for key, names in NAMES["words"].items() for each in names.split(", ")}
EDITED = ("text", "expected", "user_role", "language")
# The columns of a table without headers.
PLACES = (*EDITED, "answer")
STATES = {
    "regressed": (gettext_lazy("Was right, fails now"), REGRESSED),
    **{value: (label, Q(state=value)) for value, label in QuestionState.choices},
}
STATE_FILTER = choice_filter("state", gettext_lazy("state"), STATES)
HELP = gettext_lazy("One of the recalled texts has to hold all of them, in any form.")


class QuestionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A question. That of an answer needs no words: it expects what was recalled then."""

    class Meta:
        model = CheckQuestion
        fields = EDITED

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "expected" in self.fields:
            self.fields["expected"].required = self.instance.message_id is None
            self.fields["expected"].help_text = HELP


class QuestionTableForm(TableForm):
    kind = visibility = currency = None  # type: ignore[assignment]


def table_questions(text: str) -> list[tuple[int, QuestionForm, str]]:
    """Return for each row of a table its number, its question and its answer.

    Raises TableError.
    """
    rows = rows_of(text, headers_in=lambda cells: sum(WORDS.get(fold(c)) in PLACES for c in cells))
    headers = [WORDS.get(fold(cell), "") for cell in rows[0].cells] if rows else []
    names = headers if "text" in headers else PLACES
    found = []
    for row in rows[names is headers :]:
        cells = {name: cell for name, cell in zip(names, row.cells, strict=False) if cell}
        for name in cells.keys() & {"user_role", "language"}:
            cells[name] = WORDS.get(fold(cells[name]), cells[name])
        form = QuestionForm({"user_role": CLIENT, **cells})
        found.append((row.number, form, cells.get("answer", "")))
    return found


@admin.register(CheckQuestion)
class CheckQuestionAdmin(ConversationAdmin):
    """The question set. A question that a person asked can't be edited, only what it expects."""

    list_title = gettext_lazy("Question set")
    read_as = "question"
    list_is_read = True
    form = QuestionForm
    list_display = ("question", "expects", "shown_state", "user_role", "language", "source")
    list_filter = (STATE_FILTER, "user_role", "language", "source")
    list_select_related = ("message",)
    search_fields = ("text", "expected", "message__content")
    list_before_template = f"{TEMPLATES}/results.html"
    change_form_after_template = f"{TEMPLATES}/row.html"
    ordering = ("-pk",)
    sortable_by = ()
    own_pages: ClassVar[Any] = {"import": OwnPage("import/", "import_view", "GET HEAD POST")}
    question = column(gettext_lazy("question"), lambda row: shown_short(row.asked))
    expects = column(gettext_lazy("expects"), lambda row: shown_short(row.expected or row.memory))
    shown_state = column(
        gettext_lazy("state"), lambda row: render_to_string(f"{TEMPLATES}/state.html", {"row": row})
    )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perms(READS_QUESTIONS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perms(WRITES)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    has_delete_permission = has_change_permission

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        return ("expected",) if obj and obj.message_id else EDITED

    def get_object(self, request: HttpRequest, *key: Any, **more: Any) -> CheckQuestion | None:
        found: CheckQuestion | None = super().get_object(request, *key, **more)
        self.complete_rows(request, [found] if found else [])
        return found

    def complete_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        """Give the rows the texts of the memories that they name."""
        rows = list(rows)
        named = {key for row in rows for key, _ in (*row.recalled_then, *row.recalled_now)}
        memories = Memory.objects.filter(pk__in=named | {row.memory_id for row in rows} - {None})
        texts = {str(key): text for key, text in memories.values_list("pk", "content")}
        for row in rows:
            row.memory = texts.get(str(row.memory_id), "")
            sides = (row.recalled_then, row.recalled_now)
            row.sides = [[(key, texts.get(key), score) for key, score in side] for side in sides]

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        # As many as a plot shows apart on a telephone.
        days = list(CheckDay.objects.order_by("-day")[:30])
        most = max((day.passed + day.failed for day in days), default=0)
        starters = {} if CheckQuestion.objects.exists() else NAMES["starters"]
        # The first runs are bars of a week, not one that is as wide as the plot.
        lacking = max(LEAST_DAYS - len(days), 0)
        shown = {"days": days, "most": most, "lacking": lacking, "width": len(days) + lacking}
        return {**shown, "starters": starters}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store a question; what passed before was another one."""
        obj.created_by = obj.created_by or request.user.get_username()
        if form.changed_data:
            obj.state, obj.since, obj.passed_at = QuestionState.NEW, None, None
        super().save_model(request, obj, form, change)
        how = "update" if change else "create"
        staff_record(request, ACTION, "question", obj.pk, chat_id=obj.chat_id, how=how)
        enqueue("sessions_app.tasks.check_questions", task_name="check the question set")

    def delete_model(self, request: HttpRequest, obj: CheckQuestion) -> None:
        staff_record(request, ACTION, "question", obj.pk, chat_id=obj.chat_id, how="delete")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset.select_related("message"):
            self.delete_model(request, row)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, with a beginning (``?starter=``) or the rows of a table; store them."""
        rights_required(request, *WRITES)
        starter = request.GET.get("starter", "")
        if starter and starter not in NAMES["starters"]:
            raise Http404("There is no such beginning.")
        text = (STARTERS / f"{starter}.csv").read_text(encoding="utf-8") if starter else ""
        form = QuestionTableForm(
            request.POST or ({"text": text} if text else None), request.FILES or None
        )
        context: dict[str, Any] = {"form": form}
        try:
            if form.is_bound and form.is_valid():
                context["rows"] = table_questions(form.cleaned_data["text"])
                context["form"] = QuestionTableForm(initial=form.cleaned_data)
        except TableError as error:
            context["error"] = str(error)
        if "rows" in context and request.POST.get("do") == "store":
            self._store(request, context["rows"])
            return redirect("admin:sessions_app_checkquestion_changelist")
        status = 400 if form.errors or "error" in context else 200
        template, title = f"{TEMPLATES}/import.html", _("Import questions")
        return staff_page(request, template, title, context, of=self.model, status=status)

    def _store(self, request: HttpRequest, rows: Sequence[tuple[int, QuestionForm, str]]) -> None:
        found = [form.instance for _number, form, _answer in rows if form.is_valid()]
        # A table may ask the same twice: the first one counts.
        first: dict[Any, CheckQuestion] = {}
        for each in found:
            first.setdefault((each.text.lower(), each.user_role), each)
        good = list(first.values())
        for question in good:
            question.source, question.created_by = TABLE, request.user.get_username()
        CheckQuestion.objects.bulk_create(good, ignore_conflicts=True)
        staff_record(request, ACTION, "questions", rows=len(good), how="import")
        enqueue("sessions_app.tasks.check_questions", task_name="check the question set")
        text = _("Questions added: %(good)d. Rows left out: %(bad)d.")
        messages.success(request, text % {"good": len(good), "bad": len(rows) - len(good)})
