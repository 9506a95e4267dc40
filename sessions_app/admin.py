"""Register the admin pages of every feature."""

import sessions_app.cards.admin
import sessions_app.conversation_views.admin.chat_pages
import sessions_app.conversation_views.admin.message_pages
import sessions_app.conversation_views.admin.session_pages
import sessions_app.documents.admin
import sessions_app.forgetting.admin.receipt_pages
import sessions_app.forgetting.admin.run_pages
import sessions_app.inbound.admin
import sessions_app.inbox.admin.label_pages
import sessions_app.memories.admin.memory_pages
import sessions_app.profile.admin
import sessions_app.summaries.admin
import sessions_app.takeover.admin.canned_pages
import sessions_app.takeover.admin.register_turn_pages
import sessions_app.tokens.admin
import sessions_app.turns.admin.turn_pages
import sessions_app.webhook_endpoints.admin  # noqa: F401 importing registers
