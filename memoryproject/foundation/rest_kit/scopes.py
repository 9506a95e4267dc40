"""The scopes of a token, and the admin permissions that correspond to them."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

READ = "read"
WRITE = "write"
FORGET = "forget"
AUDIT = "audit"
SCOPES = (READ, WRITE, FORGET, AUDIT)
# In a view's ``scopes``: for every caller, whatever it may do.
ANY = "any"

SCOPE_HELP = {
    READ: _("read conversations, memories, cards and replays, and recall"),
    WRITE: _("say something in a chat, store and change"),
    FORGET: _("delete and erase, with a receipt"),
    AUDIT: _("read and verify the audit log"),
}

# Staff who use the API with their session have a scope if they have all of its permissions.
STAFF_PERMISSIONS = {
    READ: ("sessions_app.view_message", "memories_app.view_memory"),
    WRITE: ("sessions_app.change_chat", "memories_app.change_memory"),
    FORGET: ("sessions_app.forget",),
    AUDIT: ("audit.view_auditevent",),
}
