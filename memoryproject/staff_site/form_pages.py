"""The page on which the form of each address stands that takes POST only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

# By the name of the address: the page, and the argument of the address that the page has, too.
FORM_PAGES: Mapping[str, tuple[str, str]] = {
    "logout": ("index", ""),
    "sessions_app_chat_review": ("sessions_app_chat_conversation", "chat_id"),
    "sessions_app_chat_review_many": ("sessions_app_chat_changelist", ""),
    "sessions_app_chat_access": ("sessions_app_chat_conversation", "chat_id"),
    "sessions_app_chat_takeover_pause": ("sessions_app_chat_takeover", "chat_id"),
    "sessions_app_chat_takeover_resume": ("sessions_app_chat_takeover", "chat_id"),
    "sessions_app_chat_takeover_reply": ("sessions_app_chat_takeover", "chat_id"),
    "sessions_app_chat_takeover_template": ("sessions_app_chat_takeover", "chat_id"),
    "sessions_app_turn_failures_act": ("sessions_app_turn_failures", ""),
    "sessions_app_turn_send_held": ("index", ""),
    "sessions_app_turn_rate": ("sessions_app_turn_change", "turn_id"),
    "sessions_app_turn_resolve": ("sessions_app_turn_change", "turn_id"),
    "sessions_app_turn_teach": ("sessions_app_turn_change", "turn_id"),
    "sessions_app_turn_correct": ("sessions_app_turn_change", "turn_id"),
    "sessions_app_turn_unknown_teach": ("sessions_app_turn_unknown", ""),
    "sessions_app_turn_unknown_ignore": ("sessions_app_turn_unknown", ""),
    "sessions_app_assistantprofile_preview": ("sessions_app_assistantprofile_changelist", ""),
    "memories_app_memory_export": ("memories_app_memory_changelist", ""),
    "memories_app_memory_rows": ("memories_app_memory_changelist", ""),
    "memories_app_memory_answer_many": ("memories_app_memory_waiting", ""),
    "memories_app_memory_answer": ("memories_app_memory_waiting", ""),
    "memories_app_memory_decide": ("memories_app_memory_change", "memory_id"),
    "memories_app_mergeproposal_decide": ("memories_app_mergeproposal_change", "proposal_id"),
    "sessions_app_forgetrun_choose": ("sessions_app_forgetrun_search", ""),
    "sessions_app_forgetrun_confirm": ("sessions_app_forgetrun_change", "run_id"),
    "audit_auditevent_export": ("audit_auditevent_changelist", ""),
    "operations_job": ("operations_queue", ""),
    "operations_schedule_run": ("operations_schedules", ""),
    "operations_turn_take_up": ("operations_turns", ""),
}


def lead_to_form(view: Callable[..., Any]) -> Callable[..., Any]:
    """Lead a GET of an address that takes POST only to the page of its form.

    A page that answers a POST has such an address. It is asked for by GET when somebody switches
    the language there, loads it again, or logs in after the session ended.
    """

    @wraps(view)
    def led(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer: HttpResponseBase = view(request, *args, **kwargs)
        if answer.status_code != 405 or request.method not in ("GET", "HEAD"):
            return answer
        match = request.resolver_match
        page, argument = FORM_PAGES.get(match.url_name or "" if match else "", ("", ""))
        if not page:
            return answer
        address = reverse(f"admin:{page}", args=[kwargs[argument]] if argument else [])
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(f"{address}?{query}" if query else address)

    return led
