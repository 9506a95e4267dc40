"""Public face of embedding: what other packages may use."""

from sessions_app.embedding.choice import embedder, load_early
from sessions_app.embedding.maintenance import embeddings_tend, texts_waiting
from sessions_app.embedding.message_vectors import messages_embed, session_embed, vectors_abandoned
