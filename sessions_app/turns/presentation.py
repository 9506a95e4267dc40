"""What pages and REST resources of other packages use of those of answering."""

from sessions_app.turns.admin.part_pages import OutboundPartAdmin
from sessions_app.turns.admin.replay import PromptLine, prompt_lines
from sessions_app.turns.admin.turn_pages import TurnAdmin

__all__ = [
    "OutboundPartAdmin",
    "PromptLine",
    "TurnAdmin",
    "prompt_lines",
]
