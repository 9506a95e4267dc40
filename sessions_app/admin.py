"""Register the admin pages of every feature."""

import sessions_app.cards.admin
import sessions_app.conversation_views.admin.chats
import sessions_app.conversation_views.admin.messages
import sessions_app.conversation_views.admin.sessions
import sessions_app.documents.admin
import sessions_app.forgetting.admin.receipts
import sessions_app.forgetting.admin.runs
import sessions_app.inbound.admin
import sessions_app.inbox.admin.labels
import sessions_app.memories.admin.memories
import sessions_app.profile.admin
import sessions_app.summaries.admin
import sessions_app.takeover.admin.turn_pages
import sessions_app.tokens.admin
import sessions_app.turns.admin.turns
import sessions_app.webhook_endpoints.admin  # noqa: F401 importing registers
