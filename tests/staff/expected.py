"""Who may do what in the admin: the table that tests/staff/test_every_role.py holds every
address and every action against.

Whoever brings a list, a page or an action adds it here; the test fails on one that isn't here,
and on one that is here but not there.

- A list of the admin (a ModelAdmin): a line in LISTS. ``view``, ``add``, ``change`` and
  ``delete`` are letters of who may; ``actions`` has a line for each of its actions (without
  Django's own "delete_selected", which goes by ``delete``).
- Any other address below /admin/: a line in PAGES, by the name of its URL. ``get`` and ``post``
  are letters of who may; None: that method isn't answered. A POST gets 405, a GET is led to the
  page of the form, which memoryproject/staff_site/site.py names. ``args`` are the arguments
  of the address, where "app_label.modelname" stands for the key of a row of that list (from
  tests/staff/furnish.py, which needs a row of each); ``data`` is what is posted.

The letters: P staff without a group, V Viewer, R Reviewer, M Memory manager, U Auditor,
A Administrator, S superuser. Nobody who isn't logged in may do anything but log in.

Refused is 403, or for who isn't logged in the login (a page's own refreshing: 401); and nothing
was written but, at most, to the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

STAFF = "PVRMUAS"
READ = "VRMAS"
REVIEW = "RMAS"
MANAGE = "MAS"
AUDIT = "UAS"
ADMINISTER = "AS"
NOBODY = ""


@dataclass(frozen=True)
class Rows:
    view: str
    add: str = NOBODY
    change: str = NOBODY
    delete: str = NOBODY
    actions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    get: str | None
    post: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


LISTS: Mapping[str, Rows] = {
    # --- conversations
    "sessions_app.chat": Rows(
        READ,
        change=ADMINISTER,
        actions={
            "allow_selected": REVIEW,
            "block_selected": REVIEW,
            "undecide_selected": REVIEW,
            "forget_selected": MANAGE,
        },
    ),
    "sessions_app.chataddress": Rows(READ),
    "sessions_app.label": Rows(READ, add=REVIEW, change=REVIEW, delete=REVIEW),
    "sessions_app.cannedreply": Rows(READ, add=MANAGE, change=MANAGE, delete=MANAGE),
    "sessions_app.checkquestion": Rows(READ, add=REVIEW, change=REVIEW, delete=REVIEW),
    "sessions_app.chatsession": Rows(
        READ, actions={"forget_selected": MANAGE, "make_selected_cards": REVIEW}
    ),
    "sessions_app.message": Rows(READ, actions={"forget_selected": MANAGE}),
    "sessions_app.messageembedding": Rows(READ),
    "sessions_app.turn": Rows(READ, actions={"send_again": REVIEW}),
    "sessions_app.outboundpart": Rows(READ),
    "sessions_app.inbounddelivery": Rows(READ, actions={"process_again": REVIEW}),
    "sessions_app.summarizationmetadata": Rows(READ),
    "sessions_app.assistantprofile": Rows(READ, change=ADMINISTER),
    "sessions_app.openinghours": Rows(READ, change=ADMINISTER),
    "sessions_app.rule": Rows(READ, add=ADMINISTER, change=ADMINISTER, delete=ADMINISTER),
    "cards_app.memorycard": Rows(READ, actions={"make_again": REVIEW}),
    # --- memories
    "memories_app.memory": Rows(
        READ,
        add=MANAGE,
        change=MANAGE,
        actions={
            "pin": MANAGE,
            "unpin": MANAGE,
            "make_public": MANAGE,
            "make_owner": MANAGE,
            "make_chat": MANAGE,
            "approve": REVIEW,
            "reject": REVIEW,
            "export_selected": MANAGE,
            "forget_selected": MANAGE,
        },
    ),
    "memories_app.memoryembedding": Rows(READ),
    "memories_app.embeddingmodel": Rows(READ, change=ADMINISTER),
    "memories_app.mergeproposal": Rows(
        READ, change=REVIEW, actions={"accept": REVIEW, "dismiss": REVIEW}
    ),
    "memories_app.sourcedocument": Rows(READ, add=MANAGE, actions={"forget_selected": MANAGE}),
    "memories_app.memorydocument": Rows(READ, actions={"remove_selected": MANAGE}),
    # --- proof
    "sessions_app.forgetreceipt": Rows(READ),
    "sessions_app.forgetrun": Rows(MANAGE),
    "audit.auditevent": Rows(AUDIT),
    # --- the server
    "api.apitoken": Rows(ADMINISTER, add=ADMINISTER, actions={"revoke_selected": ADMINISTER}),
    "hooks.webhookendpoint": Rows(
        ADMINISTER,
        add=ADMINISTER,
        change=ADMINISTER,
        delete=ADMINISTER,
        actions={"give_new_secret": ADMINISTER, "send_test": ADMINISTER},
    ),
    "hooks.webhookdelivery": Rows(ADMINISTER, actions={"send_again": ADMINISTER}),
    # What a schedule names is run: nobody writes one here.
    "django_q.schedule": Rows(ADMINISTER),
    "django_q.success": Rows(ADMINISTER),
    "django_q.failure": Rows(ADMINISTER),
    "django_q.ormq": Rows(ADMINISTER),
    # --- staff
    "auth.user": Rows(ADMINISTER, add=ADMINISTER, change=ADMINISTER, delete=ADMINISTER),
    "auth.group": Rows(ADMINISTER, add=ADMINISTER, change=ADMINISTER, delete=ADMINISTER),
    "dashboard.failedlogin": Rows(ADMINISTER, actions={"unlock": ADMINISTER}),
}

_CHAT = {"chat_id": "sessions_app.chat"}
_TURN = {"turn_id": "sessions_app.turn"}
_MEMORY = {"memory_id": "memories_app.memory"}
_RUN = {"run_id": "sessions_app.forgetrun"}
_RECEIPT = {"receipt_id": "sessions_app.forgetreceipt.receipt_id"}
_USER = {"id": "auth.user"}
PAGES: Mapping[str, Page] = {
    "index": Page(STAFF, STAFF),
    "password_change": Page(STAFF, STAFF),
    "password_change_done": Page(STAFF),
    "two_factor": Page(STAFF, STAFF, data={"do": "begin"}),
    "notifications": Page(STAFF, STAFF),
    "logout": Page(None, STAFF),
    "undo": Page(None, STAFF),
    "jsi18n": Page(STAFF),
    # Answers 404 for what has no page outside of the admin, which nothing has.
    "view_on_site": Page(STAFF, STAFF, args={"content_type_id": 1, "object_id": 1}),
    "app_list": Page(AUDIT, AUDIT, args={"app_label": "audit"}),
    "dashboard_figures": Page(READ),
    "costs": Page(READ),
    "global_search": Page(READ),
    # An application's request is missing here: the page says so.
    "api_apitoken_consent": Page(ADMINISTER, ADMINISTER),
    # --- contacts
    "contacts": Page(READ),
    "contact": Page(READ, args=_CHAT),
    "moving": Page(ADMINISTER, ADMINISTER, data={"do": "preview"}),
    "broadcasts": Page(REVIEW, REVIEW, data={"do": "preview"}),
    "broadcast": Page(
        REVIEW, REVIEW, args={"broadcast_id": "sessions_app.broadcast"}, data={"to": "cancelled"}
    ),
    "contact_edit": Page(REVIEW, REVIEW, args=_CHAT),
    "contact_export": Page(MANAGE, args=_CHAT),
    "contact_merge_find": Page(MANAGE, args=_CHAT),
    "contact_split": Page(MANAGE, MANAGE, args=_CHAT),
    "contact_merge_undo": Page(
        MANAGE, MANAGE, args={"merge_id": "sessions_app.contactmerge"}, data={"seen": ""}
    ),
    # A contact can't be merged with itself: both lead back.
    "contact_merge": Page(MANAGE, MANAGE, args={**_CHAT, "other_id": "sessions_app.chat"}),
    # --- conversations
    "sessions_app_chat_conversation": Page(READ, READ, args=_CHAT),
    "sessions_app_chat_viewers": Page(READ, None, args=_CHAT),
    "sessions_app_chat_filters": Page(
        READ, READ, data={"do": "save", "name": "Mine", "query": "assigned=me"}
    ),
    "sessions_app_chat_review": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_review_many": Page(None, REVIEW),
    "sessions_app_chat_access": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_note": Page(REVIEW, REVIEW, args={"note_id": UUID(int=0)}),
    "sessions_app_chat_takeover": Page(REVIEW, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_pause": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_resume": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_reply": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_draft": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_templates": Page(REVIEW, None, args=_CHAT),
    "sessions_app_chat_takeover_template": Page(None, REVIEW, args=_CHAT),
    "sessions_app_chat_takeover_canned": Page(REVIEW, None, args=_CHAT),
    "sessions_app_message_media": Page(
        READ, args={"message_id": "sessions_app.mediafile.message_id"}
    ),
    "sessions_app_turn_rerun": Page(REVIEW, REVIEW, args=_TURN),
    "sessions_app_turn_recall": Page(READ, args=_TURN),
    "sessions_app_turn_trials": Page(
        REVIEW, REVIEW, args=_TURN, data={"trial": "0c4a7f8e-5a0c-4a49-9d92-5d7a8f1f2b11"}
    ),
    "sessions_app_turn_near": Page(READ, args=_TURN),
    "sessions_app_turn_failures": Page(READ),
    "sessions_app_turn_failures_act": Page(
        None, REVIEW, data={"do": "resolve", "cause": "0" * 16, "until": "1"}
    ),
    "sessions_app_turn_send_held": Page(None, REVIEW),
    "sessions_app_turn_rate": Page(None, REVIEW, args=_TURN, data={"verdict": "bad"}),
    "sessions_app_turn_resolve": Page(None, REVIEW, args=_TURN),
    "sessions_app_turn_change_trial": Page(None, MANAGE, data={"content": "x"}),
    "sessions_app_turn_teach": Page(None, MANAGE, args=_TURN, data={"for": "client"}),
    "sessions_app_turn_correct": Page(None, MANAGE, args={**_TURN, **_MEMORY}),
    "sessions_app_turn_unknown": Page(READ),
    "sessions_app_turn_unknown_teach": Page(None, MANAGE, data={"turns": "1"}),
    "sessions_app_turn_unknown_ignore": Page(None, REVIEW, data={"turns": "1"}),
    "sessions_app_turn_outcomes": Page(READ),
    "sessions_app_turn_outcomes_decide": Page(None, REVIEW, data={"session": str(UUID(int=0))}),
    "sessions_app_assistantprofile_preview": Page(None, ADMINISTER),
    "sessions_app_rule_last_week": Page(READ, args={"rule_id": "sessions_app.rule"}),
    # --- memories
    "sessions_app_checkquestion_import": Page(REVIEW, REVIEW),
    "memories_app_memory_export": Page(None, MANAGE),
    "memories_app_memory_import": Page(MANAGE, MANAGE),
    "memories_app_memory_table": Page(MANAGE, MANAGE),
    "memories_app_memory_table_example": Page(MANAGE, MANAGE, args={"kind": "prices"}),
    "memories_app_memory_rows": Page(None, MANAGE),
    "memories_app_memory_waiting": Page(READ, READ),
    "memories_app_memory_promises": Page(READ),
    "memories_app_memory_promises_mark": Page(None, MANAGE, data={"state": "kept"}),
    "memories_app_memory_answer_many": Page(None, REVIEW, data={"decision": "approve"}),
    "memories_app_memory_decide": Page(None, REVIEW, args=_MEMORY),
    "memories_app_memory_answer": Page(None, REVIEW, args=_MEMORY),
    "memories_app_mergeproposal_decide": Page(
        None, REVIEW, args={"proposal_id": "memories_app.mergeproposal"}
    ),
    # --- proof
    "sessions_app_forgetreceipt_text": Page(READ, args=_RECEIPT),
    "sessions_app_forgetrun_search": Page(MANAGE, MANAGE),
    "sessions_app_forgetrun_choose": Page(None, MANAGE),
    "sessions_app_forgetrun_person": Page(MANAGE, MANAGE, args=_CHAT),
    "sessions_app_forgetrun_export": Page(MANAGE, args=_CHAT),
    "sessions_app_forgetrun_confirm": Page(None, MANAGE, args=_RUN),
    "sessions_app_forgetrun_progress": Page(MANAGE, args=_RUN),
    "sessions_app_forgetrun_receipts": Page(MANAGE, args=_RUN),
    "sessions_app_forgetrun_text": Page(MANAGE, args=_RUN),
    "audit_auditevent_verify": Page(AUDIT, AUDIT),
    "audit_auditevent_export": Page(None, AUDIT, data={"format": "csv"}),
    # --- the server
    "operations": Page(ADMINISTER),
    "operations_settings": Page(ADMINISTER),
    "operations_setting": Page(
        ADMINISTER, ADMINISTER, args={"name": "RECALL_TOP_K"}, data={"RECALL_TOP_K": "5"}
    ),
    "operations_queue": Page(ADMINISTER),
    "operations_job": Page(None, ADMINISTER, args={"key": "x", "verb": "drop"}),
    "operations_schedules": Page(ADMINISTER),
    "operations_schedule_run": Page(None, ADMINISTER, args={"schedule_id": "django_q.schedule"}),
    "operations_turns": Page(ADMINISTER),
    "operations_turn_take_up": Page(None, ADMINISTER, args=_TURN),
    "operations_provider": Page(ADMINISTER, ADMINISTER),
    "setup": Page(ADMINISTER),
    "setup_close": Page(None, ADMINISTER),
    "setup_step": Page(
        ADMINISTER, ADMINISTER, args={"step": "owner"}, data={"GODFATHER_PHONE": "+15550100100"}
    ),
    "operations_models": Page(ADMINISTER),
    "operations_models_action": Page(None, ADMINISTER, args={"verb": "forget"}),
    # --- staff
    "auth_user_password_change": Page(ADMINISTER, ADMINISTER, args=_USER),
    "auth_user_reset_second_factor": Page(ADMINISTER, ADMINISTER, args=_USER),
}

# For everybody, logged in or not; and an address whose right depends on what is asked for.
OPEN = {"login", "login_code", "set_language", "app_manifest", "app_worker"}
BY_WHAT_IS_ASKED = {"autocomplete"}
# Told by 404 to who may not: that there is such a part isn't said.
HIDDEN = {"app_list"}
