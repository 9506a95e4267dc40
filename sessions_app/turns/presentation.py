"""Functions of answering for pages and REST resources of other packages."""

from sessions_app.turns.admin.rating_pages import answers_waiting
from sessions_app.turns.admin.recalled import RecalledRow, near_misses, recalled_rows
from sessions_app.turns.admin.replay import PromptLine, answer_of, prompt_lines, question_of
from sessions_app.turns.admin.state_labels import duration
from sessions_app.turns.admin.teach import ADD, CHANGE, CLIENT, reason
from sessions_app.turns.admin.turn_pages import OutboundPartAdmin, TurnAdmin
