"""Show summaries with the messages that they cover."""

from django.contrib import admin
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _, gettext_lazy

from cards_app.rules.extract import entries_load
from memoryproject.foundation.admin_kit import display, staff_admin
from sessions_app.models import Message, SummarizationMetadata
from sessions_app.presentation import audited_view, message_kinds
from sessions_app.presentation.links import list_address, message_link, messages_address

DELETED = gettext_lazy("The messages were deleted when they had been summed up.")


@admin.register(SummarizationMetadata)
class SummaryAdmin(audited_view.ConversationAdmin):
    """Admin of summaries, with links to their messages and along their chain."""

    read_as = "summary"
    list_is_read = True
    list_display = ("created_at", "chat", "messages_range", "short_text", "shown_kind")
    list_filter = ("is_extractive", "sources_deleted", "created_at")
    search_fields = (
        "session__session_id",
        "session__chat__whatsapp_chat",
        "summary_metadata_id",
        "digest",
    )
    list_select_related = ("session__chat", "summary_message")
    fieldsets = staff_admin.sections(
        (None, "chat whole_text shown_kind summary_link chain_link"),
        (gettext_lazy("What it covers"), "messages_range time_range sources"),
        (gettext_lazy("How the text is composed"), "sentences shown_digest"),
        (
            gettext_lazy("Work"),
            "summary_metadata_id session number skill_id model",
            {"classes": ("collapse",)},
        ),
    )

    @admin.display(description=gettext_lazy("chat"), ordering="session__chat")
    def chat(self, made: SummarizationMetadata) -> str:
        return str(made.session.chat)

    @admin.display(description=gettext_lazy("messages"), ordering="first_order")
    def messages_range(self, made: SummarizationMetadata) -> str:
        values = {"first": made.first_order, "last": made.last_order}
        return _("%(first)d to %(last)d") % values

    @admin.display(description=gettext_lazy("period"))
    def time_range(self, made: SummarizationMetadata) -> str:
        local = [timezone.localtime(at) for at in (made.range_start, made.range_end)]
        first, last = (date_format(at, "DATETIME_FORMAT") for at in local)
        return _("%(first)s to %(last)s") % {"first": first, "last": last}

    @admin.display(description=gettext_lazy("summary"))
    def short_text(self, made: SummarizationMetadata) -> str:
        return display.shown_short(made.summary_message.content)

    @admin.display(description=gettext_lazy("summary, including earlier ones"))
    def whole_text(self, made: SummarizationMetadata) -> str:
        return display.shown_text(made.summary_message.content)

    @admin.display(description=gettext_lazy("made by"), ordering="is_extractive")
    def shown_kind(self, made: SummarizationMetadata) -> str:
        if made.is_extractive:
            return display.shown_mark(_("excerpts, without a chat model"))
        return display.shown_mark(made.model or "–", "good")

    summary_link = display.column(
        gettext_lazy("message"), lambda made: message_link(made.summary_message)
    )

    @admin.display(description=gettext_lazy("conversation"))
    def chain_link(self, made: SummarizationMetadata) -> str:
        address = list_address(
            "sessions_app_summarizationmetadata", session__session_id__exact=made.session_id
        )
        read = display.shown_link(messages_address(made.session), _("read the whole conversation"))
        return format_html("{} · {}", read, display.shown_link(address, _("all summaries of it")))

    @admin.display(description=gettext_lazy("messages"))
    def sources(self, made: SummarizationMetadata) -> str:
        if made.sources_deleted:
            return str(DELETED)
        messages = Message.objects.filter(pk__in=made.summarized_message_ids).order_by("order_num")
        rows = ((message_link(each), message_kinds.shown_message(each)) for each in messages)
        return display.shown_table((_("message"), _("content")), rows)

    @admin.display(description=gettext_lazy("of these messages only"))
    def shown_digest(self, made: SummarizationMetadata) -> str:
        return display.shown_text(made.digest)

    @admin.display(description=gettext_lazy("sentences"))
    def sentences(self, made: SummarizationMetadata) -> str:
        """Return each sentence of the summary with links to the messages that say it."""
        entries = entries_load(made.chapter)
        if entries is None:
            return display.shown_text(made.chapter)
        places = {place for each in entries for place in each.places}
        found = Message.objects.filter(session=made.session_id, order_num__in=places)
        links = {each.order_num: message_link(each) for each in found.defer("terms")}
        rows = (
            (
                format_html_join(" ", "{}", ((links.get(each, each),) for each in entry.places)),
                entry.speaker + entry.text,
            )
            for entry in entries
        )
        return display.shown_table((_("message"), _("content")), rows)
