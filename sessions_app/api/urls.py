"""The addresses of the REST API, under /api/v1/."""

from django.urls import path

from memories_app.memory_documents.document_api import (
    DocumentArchiveView,
    DocumentCleanupView,
    DocumentsView,
)
from memoryproject.foundation.rest_kit.views import ID
from sessions_app.api.views import AuditVerifyView, AuditView, IndexView, MemoryDocumentView, MeView
from sessions_app.cards.api import CardView
from sessions_app.conversation_views import session_api
from sessions_app.conversation_views.chats_api import ChatsView, ChatView
from sessions_app.conversation_views.message_api import (
    ExchangesView,
    MessageSearchView,
    MessagesView,
    OneMessageView,
)
from sessions_app.documents.document_api import FilesView, FileView
from sessions_app.forgetting.presentation import ReceiptsView, ReceiptView
from sessions_app.inbound.chat_api import AskView
from sessions_app.jobs.api import (
    EraseJobView,
    ExportJobView,
    ImportJobView,
    JobResultView,
    JobsView,
    JobView,
    ReembedJobView,
)
from sessions_app.memories.api.keyed_api import (
    KeyedView,
    MemoriesDeleteView,
    NamespaceMemoriesView,
    NamespacesView,
)
from sessions_app.memories.api.memory_api import MemoriesView, MemoryBatchView, MemoryView
from sessions_app.memories.api.recall_api import RecallView
from sessions_app.memories.presentation import MemoryExportView, MemoryImportView
from sessions_app.person.api import PersonView
from sessions_app.transcripts.api import (
    SessionTranscriptView,
    TranscriptsView,
    ValidateTranscriptView,
)
from sessions_app.turns.turn_api import ContextView, FeedbackView, TurnView
from sessions_app.webhook_endpoints.delivery_api import (
    DeliveriesView,
    EventsView,
    RedeliverView,
    TestView,
)
from sessions_app.webhook_endpoints.endpoint_api import EndpointsView, EndpointView, RotateView

SESSION = f"sessions/<{ID}:session_id>/"
ENDPOINT = f"webhooks/endpoints/<{ID}:endpoint_id>/"
DOCUMENT = "documents/<str:category>/<str:identifier>/"

urlpatterns = [
    path("", IndexView.as_view(), name="api-index"),
    path("chat/", AskView.as_view(), name="api-chat"),
    path("sessions/", session_api.SessionsView.as_view(), name="api-sessions"),
    path(SESSION, session_api.OneSessionView.as_view(), name="api-session"),
    path(f"{SESSION}reset/", session_api.ResetView.as_view(), name="api-session-reset"),
    path(f"{SESSION}expire/", session_api.ExpireView.as_view(), name="api-session-expire"),
    path(f"{SESSION}exchanges/", ExchangesView.as_view(), name="api-session-exchanges"),
    path(f"{SESSION}messages/", MessagesView.as_view(), name="api-session-messages"),
    path(
        f"{SESSION}messages/<{ID}:message_id>/",
        OneMessageView.as_view(),
        name="api-session-message",
    ),
    path(f"{SESSION}context/", ContextView.as_view(), name="api-session-context"),
    path(f"{SESSION}summaries/", session_api.SummariesView.as_view(), name="api-session-summaries"),
    path(
        f"{SESSION}summaries/<{ID}:summary_metadata_id>/",
        session_api.SummaryView.as_view(),
        name="api-session-summary",
    ),
    path("messages/search/", MessageSearchView.as_view(), name="api-messages-search"),
    path("chats/", ChatsView.as_view(), name="api-chats"),
    path("chats/<str:whatsapp_chat>/", ChatView.as_view(), name="api-chat-detail"),
    path("chats/<str:whatsapp_chat>/person/", PersonView.as_view(), name="api-chat-person"),
    path(f"turns/<{ID}:turn_id>/", TurnView.as_view(), name="api-turn"),
    path(f"turns/<{ID}:turn_id>/feedback/", FeedbackView.as_view(), name="api-turn-feedback"),
    path("memories/", MemoriesView.as_view(), name="api-memories"),
    path("memories/batch/", MemoryBatchView.as_view(), name="api-memories-batch"),
    path("memories/recall/", RecallView.as_view(), name="api-memories-recall"),
    path("memories/export/", MemoryExportView.as_view(), name="api-memories-export"),
    path("memories/import/", MemoryImportView.as_view(), name="api-memories-import"),
    path("memories/delete/", MemoriesDeleteView.as_view(), name="api-memories-delete"),
    path("memories/keyed/", NamespacesView.as_view(), name="api-keyed-namespaces"),
    path("memories/keyed/<str:namespace>/", NamespaceMemoriesView.as_view(), name="api-keyed-list"),
    path("memories/keyed/<str:namespace>/<key:key>/", KeyedView.as_view(), name="api-keyed"),
    path(f"memories/<{ID}:memory_id>/", MemoryView.as_view(), name="api-memory"),
    path(DOCUMENT, MemoryDocumentView.as_view(), name="api-document"),
    path("files/", FilesView.as_view(), name="api-files"),
    path(f"files/<{ID}:document_id>/", FileView.as_view(), name="api-file"),
    path("receipts/", ReceiptsView.as_view(), name="api-receipts"),
    path(f"receipts/<{ID}:receipt_id>/", ReceiptView.as_view(), name="api-receipt"),
    path("me/", MeView.as_view(), name="api-me"),
    path("audit/", AuditView.as_view(), name="api-audit"),
    path("audit/verify/", AuditVerifyView.as_view(), name="api-audit-verify"),
    path(f"{SESSION}card/", CardView.as_view(), name="api-session-card"),
    path(f"{SESSION}transcript/", SessionTranscriptView.as_view(), name="api-session-transcript"),
    path("transcripts/", TranscriptsView.as_view(), name="api-transcripts"),
    path("transcripts/validate/", ValidateTranscriptView.as_view(), name="api-transcripts-check"),
    path("documents/", DocumentsView.as_view(), name="api-documents"),
    path("documents/cleanup/", DocumentCleanupView.as_view(), name="api-documents-cleanup"),
    path(f"{DOCUMENT}archive/", DocumentArchiveView.as_view(), name="api-document-archive"),
    path("webhooks/endpoints/", EndpointsView.as_view(), name="api-webhooks"),
    path(ENDPOINT, EndpointView.as_view(), name="api-webhook"),
    path(f"{ENDPOINT}test/", TestView.as_view(), name="api-webhook-test"),
    path(f"{ENDPOINT}rotate/", RotateView.as_view(), name="api-webhook-rotate"),
    path(f"{ENDPOINT}deliveries/", DeliveriesView.as_view(), name="api-webhook-deliveries"),
    path(
        f"{ENDPOINT}deliveries/<{ID}:delivery_id>/redeliver/",
        RedeliverView.as_view(),
        name="api-webhook-redeliver",
    ),
    path("events/", EventsView.as_view(), name="api-events"),
    path("jobs/", JobsView.as_view(), name="api-jobs"),
    path("jobs/export/", ExportJobView.as_view(), name="api-jobs-export"),
    path("jobs/import/", ImportJobView.as_view(), name="api-jobs-import"),
    path("jobs/reembed/", ReembedJobView.as_view(), name="api-jobs-reembed"),
    path("jobs/erase/", EraseJobView.as_view(), name="api-jobs-erase"),
    path(f"jobs/<{ID}:job_id>/", JobView.as_view(), name="api-job"),
    path(f"jobs/<{ID}:job_id>/result/", JobResultView.as_view(), name="api-job-result"),
]
