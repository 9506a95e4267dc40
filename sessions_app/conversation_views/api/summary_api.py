"""REST views of seed 003's SummarizationMetadata: which messages a summary covers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.serializers import Moment
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.models import SummarizationMetadata
from sessions_app.presentation import examples
from sessions_app.presentation.filters import session_within

# Serialize which messages a summary covers.


class TimestampRangeSerializer(serializers.Serializer[Any]):
    start = Moment(source="range_start", help_text="The earliest timestamp, inclusive.")
    end = Moment(source="range_end", help_text="The latest timestamp, inclusive.")


class SummarySerializer(serializers.Serializer[Any]):
    """The messages that a summary covers: SummarizationMetadata of seed 003."""

    summary_metadata_id = serializers.UUIDField(
        help_text="By which the summary's message names it: summaryMetadataId in its metadata."
    )
    session_id = serializers.UUIDField(help_text="The session whose messages it covers.")
    number = serializers.IntegerField(help_text="Its place among the session's summaries, from 1.")
    summary_message_id = serializers.UUIDField(help_text="The message that holds its text.")
    summarized_message_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="The ids of the messages that it covers."
    )
    first_order = serializers.IntegerField(help_text="order_num of its first message.")
    last_order = serializers.IntegerField(help_text="order_num of its last message.")
    timestamp_range = TimestampRangeSerializer(
        source="*", help_text="The earliest and the latest timestamp of its messages."
    )
    skill_id = serializers.CharField(
        help_text="The instructions that it was made by, such as conversation-summary."
    )
    model = serializers.CharField(help_text="Empty where no chat model made it.")
    is_extractive = serializers.BooleanField(
        help_text="Made of the messages' own words, without a chat model."
    )
    sources_deleted = serializers.BooleanField(
        help_text="Its messages were deleted (DELETE_SUMMARIZED_MESSAGES)."
    )
    created_at = Moment(help_text="When the summary was made.")


RIGHTS = {"GET": ["sessions_app.view_summarizationmetadata"]}


class SummariesView(ListView):
    scopes = {"GET": "read"}
    staff_rights = RIGHTS
    queryset = SummarizationMetadata.objects.all()
    serializer_class = SummarySerializer
    reach_field = "session__chat_id"
    ordering = ("number",)

    @described(
        operation_id="sessions_summaries_list",
        summary="The summaries of a session, the first one first",
        examples=[response_example("One summary", examples.SUMMARY)],
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """List which messages each summary covers; its text is a message of the session."""
        session = session_within(self.caller, session_id)
        return self.page_of(self.within_reach().filter(session=session))


class SummaryView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = RIGHTS

    @described(
        operation_id="sessions_summaries_get",
        summary="One summary",
        responses=SummarySerializer,
        examples=[response_example("A summary", examples.SUMMARY)],
    )
    def get(self, request: Request, session_id: UUID, summary_metadata_id: UUID) -> Response:
        """Return the summary that a message names as `summaryMetadataId` in its metadata."""
        session = session_within(self.caller, session_id)
        found = SummarizationMetadata.objects.filter(session=session, pk=summary_metadata_id)
        summary = found.first()
        if summary is None:
            raise NotFound(f"There is no summary {summary_metadata_id} in this session.")
        return Response(SummarySerializer(summary).data)
