"""The addresses of the REST API, under /api/v1/."""

from django.urls import URLPattern, path

from memories_app.memory_documents import document_api
from memoryproject.foundation.rest_kit.views import ID, ApiView
from sessions_app.api.views import AuditVerifyView, AuditView, IndexView, MemoryDocumentView, MeView
from sessions_app.cards.api import CardView
from sessions_app.conversation_views import chats_api, message_api, session_api
from sessions_app.documents.document_api import FilesView, FileView
from sessions_app.forgetting.presentation import ReceiptsView, ReceiptView
from sessions_app.inbound.chat_api import AskView
from sessions_app.jobs import api as jobs
from sessions_app.memories.api import keyed_api, memory_api, recall_api
from sessions_app.memories.presentation import MemoryExportView, MemoryImportView
from sessions_app.person.api import PersonView
from sessions_app.transcripts.api import (
    SessionTranscriptView,
    TranscriptsView,
    ValidateTranscriptView,
)
from sessions_app.turns.turn_api import ContextView, FeedbackView, TurnView
from sessions_app.webhook_endpoints import delivery_api, endpoint_api

SESSION = f"sessions/<{ID}:session_id>/"
ENDPOINT = f"webhooks/endpoints/<{ID}:endpoint_id>/"
DOCUMENT = "documents/<str:category>/<str:identifier>/"


def _at(address: str, view: type[ApiView], name: str) -> URLPattern:
    return path(address, view.as_view(), name=f"api-{name}")


urlpatterns = [
    _at("", IndexView, "index"),
    _at("chat/", AskView, "chat"),
    _at("sessions/", session_api.SessionsView, "sessions"),
    _at(SESSION, session_api.OneSessionView, "session"),
    _at(f"{SESSION}reset/", session_api.ResetView, "session-reset"),
    _at(f"{SESSION}expire/", session_api.ExpireView, "session-expire"),
    _at(f"{SESSION}exchanges/", message_api.ExchangesView, "session-exchanges"),
    _at(f"{SESSION}messages/", message_api.MessagesView, "session-messages"),
    _at(f"{SESSION}messages/<{ID}:message_id>/", message_api.OneMessageView, "session-message"),
    _at(f"{SESSION}context/", ContextView, "session-context"),
    _at(f"{SESSION}summaries/", session_api.SummariesView, "session-summaries"),
    _at(
        f"{SESSION}summaries/<{ID}:summary_metadata_id>/",
        session_api.SummaryView,
        "session-summary",
    ),
    _at("messages/search/", message_api.MessageSearchView, "messages-search"),
    _at("chats/", chats_api.ChatsView, "chats"),
    _at("chats/<str:whatsapp_chat>/", chats_api.ChatView, "chat-detail"),
    _at("chats/<str:whatsapp_chat>/person/", PersonView, "chat-person"),
    _at(f"turns/<{ID}:turn_id>/", TurnView, "turn"),
    _at(f"turns/<{ID}:turn_id>/feedback/", FeedbackView, "turn-feedback"),
    _at("memories/", memory_api.MemoriesView, "memories"),
    _at("memories/batch/", memory_api.MemoryBatchView, "memories-batch"),
    _at("memories/recall/", recall_api.RecallView, "memories-recall"),
    _at("memories/export/", MemoryExportView, "memories-export"),
    _at("memories/import/", MemoryImportView, "memories-import"),
    _at("memories/delete/", keyed_api.MemoriesDeleteView, "memories-delete"),
    _at("memories/keyed/", keyed_api.NamespacesView, "keyed-namespaces"),
    _at("memories/keyed/<str:namespace>/", keyed_api.NamespaceMemoriesView, "keyed-list"),
    _at("memories/keyed/<str:namespace>/<key:key>/", keyed_api.KeyedView, "keyed"),
    _at(f"memories/<{ID}:memory_id>/", memory_api.MemoryView, "memory"),
    _at(DOCUMENT, MemoryDocumentView, "document"),
    _at("files/", FilesView, "files"),
    _at(f"files/<{ID}:document_id>/", FileView, "file"),
    _at("receipts/", ReceiptsView, "receipts"),
    _at(f"receipts/<{ID}:receipt_id>/", ReceiptView, "receipt"),
    _at("me/", MeView, "me"),
    _at("audit/", AuditView, "audit"),
    _at("audit/verify/", AuditVerifyView, "audit-verify"),
    _at(f"{SESSION}card/", CardView, "session-card"),
    _at(f"{SESSION}transcript/", SessionTranscriptView, "session-transcript"),
    _at("transcripts/", TranscriptsView, "transcripts"),
    _at("transcripts/validate/", ValidateTranscriptView, "transcripts-check"),
    _at("documents/", document_api.DocumentsView, "documents"),
    _at("documents/cleanup/", document_api.DocumentCleanupView, "documents-cleanup"),
    _at(f"{DOCUMENT}archive/", document_api.DocumentArchiveView, "document-archive"),
    _at("webhooks/endpoints/", endpoint_api.EndpointsView, "webhooks"),
    _at(ENDPOINT, endpoint_api.EndpointView, "webhook"),
    _at(f"{ENDPOINT}test/", delivery_api.TestView, "webhook-test"),
    _at(f"{ENDPOINT}rotate/", endpoint_api.RotateView, "webhook-rotate"),
    _at(f"{ENDPOINT}deliveries/", delivery_api.DeliveriesView, "webhook-deliveries"),
    _at(
        f"{ENDPOINT}deliveries/<{ID}:delivery_id>/redeliver/",
        delivery_api.RedeliverView,
        "webhook-redeliver",
    ),
    _at("events/", delivery_api.EventsView, "events"),
    _at("jobs/", jobs.JobsView, "jobs"),
    _at("jobs/export/", jobs.ExportJobView, "jobs-export"),
    _at("jobs/import/", jobs.ImportJobView, "jobs-import"),
    _at("jobs/reembed/", jobs.ReembedJobView, "jobs-reembed"),
    _at("jobs/erase/", jobs.EraseJobView, "jobs-erase"),
    _at(f"jobs/<{ID}:job_id>/", jobs.JobView, "job"),
    _at(f"jobs/<{ID}:job_id>/result/", jobs.JobResultView, "job-result"),
]
