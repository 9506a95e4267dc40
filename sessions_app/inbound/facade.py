"""Public face of taking messages in: what other packages may use."""

from sessions_app.inbound.exchanges import (
    MemoryDisabledError,
    exchange_record,
    messages_learn,
    session_open_in,
)
from sessions_app.inbound.receive import (
    events_receive,
    foreign_numbers,
    handshake_seen,
    last_message_from,
    raw_deliveries_drop,
)
from sessions_app.inbound.retry_deliveries import deliveries_due, delivery_retry, unprocessed_count
from sessions_app.inbound.take_history import old_thread_take
from sessions_app.inbound.take_message import IntakeRules
