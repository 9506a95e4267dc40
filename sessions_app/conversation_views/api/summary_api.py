"""REST views of seed 003's SummarizationMetadata: which messages a summary covers."""

from __future__ import annotations

from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.conversation_views.api.summary_serializers import SummarySerializer
from sessions_app.models import SummarizationMetadata
from sessions_app.presentation import examples
from sessions_app.presentation.lookup import session_within

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
