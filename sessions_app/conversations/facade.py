"""Public interface of conversations: the names that other packages may use."""

from sessions_app.conversations.activity import activity_recount
from sessions_app.conversations.bound_chats import (
    MAX_LENGTH,
    chat_at_or_new,
    check_chats,
    token_chats,
)
from sessions_app.conversations.card_requests import (
    card_put_off,
    cards_outdate,
    cards_request,
    cards_sweep,
)
from sessions_app.conversations.chat_addresses import (
    address_change,
    addresses_lock,
    chat_find,
    chat_for_group,
    chat_for_party,
    chat_known,
    party_of,
)
from sessions_app.conversations.chat_queries import chat_at, chat_name
from sessions_app.conversations.command_words import Command, parse_command
from sessions_app.conversations.conversation_message import (
    MAX_MESSAGES,
    ConversationMessage,
    as_conversation_message,
    checked,
)
from sessions_app.conversations.epochs import (
    ForgottenMeanwhileError,
    Held,
    Mark,
    Reader,
    ScopeBusyError,
    Scopes,
    ScopesGrewError,
    backup_held,
    chat_scope,
    forgetting_begin,
    forgetting_check,
    forgetting_mark,
    forgetting_try,
    forgetting_wait,
    rest_begin,
)
from sessions_app.conversations.errors import (
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    SessionArchivedError,
)
from sessions_app.conversations.exposure import exposure_of
from sessions_app.conversations.file_texts import counted, document_failure
from sessions_app.conversations.history_queries import (
    History,
    conversation_history,
    history_for_turn,
    messages_before,
    messages_left_out,
    profile_current,
)
from sessions_app.conversations.history_window import window_recompute
from sessions_app.conversations.integration_events import ANSWERING, SENDING, turn_failed
from sessions_app.conversations.message_store import NewMessage, message_retext, messages_add
from sessions_app.conversations.message_text import indexed_of, is_knowledge, speaker_of, text_of
from sessions_app.conversations.preview_recorder import MAX_SHOWN, PreviewRecorder, Seen, What
from sessions_app.conversations.profile_lock import profile_locked
from sessions_app.conversations.redact_derived import text_redact, unstored_forget
from sessions_app.conversations.reply_window import last_heard, window_closes
from sessions_app.conversations.session_lifecycle import (
    expires_at,
    session_end,
    session_open,
    session_start,
    sessions_end,
    sessions_record,
)
from sessions_app.conversations.system_texts import received_text, text_for
from sessions_app.conversations.timeline import (
    BEGINNING,
    FOUND,
    Place,
    TimelinePage,
    first_since,
    messages_found,
    page_after,
    page_around,
    page_before,
    place_of,
)

__all__ = [
    "ANSWERING",
    "BEGINNING",
    "Command",
    "ConversationMessage",
    "ConversationNotFoundError",
    "DataValidationError",
    "FOUND",
    "ForgottenMeanwhileError",
    "GenericMemoryError",
    "Held",
    "History",
    "MAX_LENGTH",
    "MAX_MESSAGES",
    "MAX_SHOWN",
    "Mark",
    "NewMessage",
    "Place",
    "Reader",
    "SENDING",
    "ScopeBusyError",
    "Scopes",
    "ScopesGrewError",
    "Seen",
    "SessionArchivedError",
    "TimelinePage",
    "What",
    "PreviewRecorder",
    "activity_recount",
    "address_change",
    "addresses_lock",
    "as_conversation_message",
    "backup_held",
    "card_put_off",
    "cards_outdate",
    "cards_request",
    "cards_sweep",
    "chat_at",
    "chat_at_or_new",
    "chat_find",
    "chat_for_group",
    "chat_for_party",
    "chat_known",
    "chat_name",
    "chat_scope",
    "check_chats",
    "checked",
    "conversation_history",
    "counted",
    "document_failure",
    "expires_at",
    "first_since",
    "forgetting_begin",
    "forgetting_check",
    "forgetting_mark",
    "forgetting_try",
    "forgetting_wait",
    "history_for_turn",
    "indexed_of",
    "is_knowledge",
    "last_heard",
    "message_retext",
    "messages_add",
    "messages_before",
    "messages_found",
    "messages_left_out",
    "page_after",
    "page_around",
    "page_before",
    "parse_command",
    "party_of",
    "place_of",
    "profile_current",
    "profile_locked",
    "received_text",
    "rest_begin",
    "session_end",
    "session_open",
    "session_start",
    "sessions_end",
    "sessions_record",
    "speaker_of",
    "text_for",
    "text_of",
    "text_redact",
    "token_chats",
    "exposure_of",
    "turn_failed",
    "unstored_forget",
    "window_closes",
    "window_recompute",
]
