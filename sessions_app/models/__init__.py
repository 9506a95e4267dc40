"""Chats, sessions, messages, turns and provider deliveries."""

from sessions_app.models.activity import ChatActivity
from sessions_app.models.canned import CannedReply
from sessions_app.models.cards import CardWork
from sessions_app.models.chats import Chat, ChatAddress
from sessions_app.models.contact_merges import ContactMerge
from sessions_app.models.deliveries import InboundDelivery, OutboundPart
from sessions_app.models.extraction import ExtractionWork
from sessions_app.models.forget_runs import ForgetItem, ForgetRun
from sessions_app.models.limits import ChatAccess, UsageDay
from sessions_app.models.messages import Message, MessageEmbedding
from sessions_app.models.profile import AssistantProfile
from sessions_app.models.ratings import AnswerRating, AnswerResolved, RatingReason
from sessions_app.models.receipts import ForgetEpoch, ForgetReceipt, ForgottenKind
from sessions_app.models.review import (
    Assignment,
    Bookmark,
    ChatLabel,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Snooze,
)
from sessions_app.models.saved_filters import SavedFilter
from sessions_app.models.sessions import ChatSession
from sessions_app.models.stored_media import MediaFile
from sessions_app.models.summaries import SummarizationMetadata, SummaryWork
from sessions_app.models.takeover import ChatPause
from sessions_app.models.transcripts import TranscriptBatch
from sessions_app.models.trials import AnswerTrial
from sessions_app.models.turn_replays import TurnReplay
from sessions_app.models.turns import Turn

__all__ = [
    "AnswerRating",
    "AnswerResolved",
    "AnswerTrial",
    "Assignment",
    "AssistantProfile",
    "Bookmark",
    "CannedReply",
    "CardWork",
    "Chat",
    "ChatAccess",
    "ChatActivity",
    "ChatAddress",
    "ChatLabel",
    "ChatPause",
    "ChatSession",
    "ContactMerge",
    "ForgetEpoch",
    "ForgetItem",
    "ForgetReceipt",
    "ForgetRun",
    "ForgottenKind",
    "ExtractionWork",
    "InboundDelivery",
    "Label",
    "MediaFile",
    "Message",
    "MessageEmbedding",
    "Note",
    "OutboundPart",
    "RatingReason",
    "ReadMark",
    "ReviewedMark",
    "SavedFilter",
    "Snooze",
    "SummarizationMetadata",
    "SummaryWork",
    "TranscriptBatch",
    "Turn",
    "TurnReplay",
    "UsageDay",
]
