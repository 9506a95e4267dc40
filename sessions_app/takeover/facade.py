"""Public face of taking chats over: what other packages may use."""

from sessions_app.takeover.attachment import ReplyRefusedError
from sessions_app.takeover.canned_replies import (
    fill,
    placeholder_values,
    placeholders_check,
    unknown_placeholders,
)
from sessions_app.takeover.send_template import (
    chat_template,
    marketing_stopped,
    template_check,
    template_found,
)
from sessions_app.takeover.staff_reply import (
    OwnNumber,
    StaffReply,
    Writer,
    Written,
    chat_reply,
    number_of,
    reply_turn_store,
)
