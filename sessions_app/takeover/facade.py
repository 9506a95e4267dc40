"""Public face of taking chats over: what other packages may use."""

from sessions_app.takeover.send_template import chat_template
from sessions_app.takeover.staff_reply import OwnNumber, StaffReply, Writer, chat_reply
