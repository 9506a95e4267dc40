"""Public face of embedding: what other packages may use."""

from sessions_app.embedding.choice import configured, embedder, load_early, target
from sessions_app.embedding.maintenance import embeddings_tend, reembed, texts_waiting
from sessions_app.embedding.message_vectors import messages_embed, session_embed, vectors_abandoned
