"""Public face of the history of conversations: what other packages may use."""

from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.clear_session import session_empty, sessions_archive, sessions_expire
from sessions_app.history.strategies import SummarizationStrategy
