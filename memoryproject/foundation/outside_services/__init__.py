"""The health of the services that this server calls: chat model, embedder, WhatsApp providers."""
