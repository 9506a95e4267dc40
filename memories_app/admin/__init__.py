"""Memories in the admin. Their text changes through the services only.

The pages of memories and proposals make vectors and name chats, which this app can't choose:
``sessions_app.admin.memories`` completes and registers them.
"""

from memories_app.admin import embeddings, memory_documents

__all__ = ["embeddings", "memory_documents"]
