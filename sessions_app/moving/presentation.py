"""The staff's page that moves data in from other products, and out as an archive."""

import logging
import tempfile
from typing import Any

from django import forms
from django.db import DatabaseError
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from sessions_app.conversations.chat_queries import contacts_named
from sessions_app.embedding.facade import embedder
from sessions_app.models import Chat
from sessions_app.moving.kinds import NAMES, move_in
from sessions_app.moving.open_archive import archive_write
from sessions_app.moving.records import MoveError, Options, moment
from sessions_app.moving.sources import MEGABYTE, Source
from sessions_app.moving.store_records import Report

logger = logging.getLogger(__name__)

RIGHTS = ("sessions_app.change_chat", "memories_app.add_memory")
# Who exports reads all of it, as elsewhere.
EXPORT_RIGHTS = (
    *("sessions_app.view_chat", "sessions_app.view_message"),
    *("memories_app.view_memory", "memories_app.export_memory"),
)
# A browser waits for the response; manage.py import_from takes more.
MAX_BYTES = 64 * MEGABYTE


class MoveInForm(forms.Form):
    kind = forms.ChoiceField(label=gettext_lazy("What wrote it"), choices=list(NAMES.items()))
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("JSON, lines of JSON, CSV, _chat.txt, or a Zip of them."),
    )
    whatsapp_chat = forms.CharField(
        label=gettext_lazy("Into this chat"),
        help_text=gettext_lazy("The person's number. Empty: the chats that the file names."),
        required=False,
    )
    business = forms.CharField(
        label=gettext_lazy("The business's name in the file"),
        help_text=gettext_lazy("Or the assistant's. With a comma between several."),
        required=False,
    )
    all_or_nothing = forms.BooleanField(
        label=gettext_lazy("Store nothing if anything can't be read"), required=False
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            text = _("The file is larger than %(most)s: use “manage.py import_from”.")
            raise forms.ValidationError(text % {"most": filesizeformat(MAX_BYTES)})
        return file


def moving_page(request: HttpRequest) -> HttpResponseBase:
    """Show both forms; preview or bring in a file, or send the archive."""
    rights_required(request, *RIGHTS)
    do = request.POST.get("do", "")
    may_export = request.user.has_perms(EXPORT_RIGHTS)
    problem = ""
    if do == "export":
        rights_required(request, *EXPORT_RIGHTS)
        typed = request.POST.get("whatsapp_chat", "").replace("\x00", "").strip()
        chats = contacts_named(typed) if typed else [None]
        if len(chats) == 1:
            return _archive(request, chats[0])
        problem = _("There is no such chat.")
    is_in = request.method == "POST" and do != "export"
    form = MoveInForm(*((request.POST, request.FILES) if is_in else ()))
    report = _moved(request, form, preview=do != "store") if is_in and form.is_valid() else None
    context = {
        "form": form,
        "may_export": may_export,
        "problem": problem,
        "report": report,
        "first": [{**one, "at": moment(one.get("at"))} for one in report.first] if report else [],
    }
    status = 400 if request.method == "POST" and report is None else 200
    return staff_page(request, "admin/moving.html", _("Move in and out"), context, status=status)


def _moved(request: HttpRequest, form: MoveInForm, *, preview: bool) -> Report | None:
    """Return the report; None, with an error in the form, if nothing can be said."""
    given = form.cleaned_data
    names = [name for name in given["business"].split(",") if name.strip()]
    try:
        return move_in(
            given["kind"],
            Source(given["file"].file, given["file"].name),
            Options(given["whatsapp_chat"].strip(), names),
            actor=staff_actor(request),
            embedder=embedder(),
            preview=preview,
            all_or_nothing=given["all_or_nothing"],
        )
    except MoveError as error:
        form.add_error({"chat": "whatsapp_chat"}.get(error.about, error.about) or None, error.text)
    except (EmbedderError, DatabaseError):
        logger.exception("Data were not moved in as a whole.")
        form.add_error(None, _("It broke off. What is in stays: do it again to go on."))
    return None


def _archive(request: HttpRequest, chat: Chat | None) -> FileResponse:
    file = tempfile.TemporaryFile()  # noqa: SIM115 the response closes it
    storage = configured_media_storage() if "with_files" in request.POST else None
    redacted = "redact" in request.POST
    archive_write(file, chat=chat, actor=staff_actor(request), storage=storage, redacted=redacted)
    file.seek(0)
    name = "archive.redacted.zip" if redacted else "archive.zip"
    headers = {"Cache-Control": "no-store"}
    return FileResponse(file, as_attachment=True, filename=name, headers=headers)


MOVING_PAGES = {"moving": OwnPage("moving/", moving_page, "GET HEAD POST")}
