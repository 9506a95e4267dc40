"""Register the admin pages of every feature.

``sessions_app.memories`` completes and registers the pages of memories and of merge proposals:
they need an embedder and the names of chats.
"""

import memories_app.embedding_models.admin
import memories_app.memory_documents.admin  # noqa: F401 importing registers
