"""How a conversation ended: what was settled last, what is open, and who has to act."""

from typing import TypedDict

from cards_app.rules.statements import Found, ReadMessage, Spoken

MAX_OPEN = 3
# More questions than that without an answer are no open matters, but a monologue.
MAX_PENDING = 20
SIDES = {"assistant": "user", "user": "assistant"}
ACTORS = ("user", "assistant", "")


class Outcome(TypedDict):
    """``settled``: "" for nothing. ``acts``: who has to act: "user", "assistant" or ""."""

    settled: str
    open: list[str]
    acts: str


class OpenMatters:
    """Questions without an answer, and answers that were put off, in a running conversation."""

    def __init__(self) -> None:
        self._pending: list[tuple[ReadMessage, Spoken]] = []
        self._put_off: list[tuple[ReadMessage, Spoken]] = []
        self.last: ReadMessage | None = None

    def add(self, message: ReadMessage) -> None:
        theirs = [each for each in self._pending if each[0].side != message.side]
        own = [each for each in self._pending if each[0].side == message.side]
        deferral = next((each for each in message.sentences if puts_off(each)), None)
        if deferral is not None:
            # The matter stays open, as the question that was put off or by its own words.
            own_words = [] if "promises" in deferral.marks else [(message, deferral)]
            self._put_off += theirs[-1:] or own_words
        elif message.side == "assistant" or message.agrees or message.content:
            content = message.content
            self._put_off = [
                each
                for each in self._put_off
                if each[0].side == message.side or not each[1].content & content
            ]
        self._pending = own + [(message, each) for each in message.sentences if is_open(each)]
        del self._pending[:-MAX_PENDING], self._put_off[:-MAX_PENDING]
        self.last = message

    def found(self) -> list[tuple[ReadMessage, Spoken]]:
        """Return the open matters in their order."""
        found = [*self._put_off, *self._pending]
        unique = {
            (message.number, spoken.sentence.start): (message, spoken) for message, spoken in found
        }
        return [unique[key] for key in sorted(unique)]


def is_open(spoken: Spoken) -> bool:
    """Return whether the sentence asks something; a closing courtesy asks nothing."""
    return spoken.asks and "courtesy" not in spoken.marks


def puts_off(spoken: Spoken) -> bool:
    return "defers" in spoken.marks


def who_acts(
    matters: list[tuple[ReadMessage, Spoken]], tasks: list[Found], last: ReadMessage | None
) -> str:
    """Return who has to act next: "user", "assistant", or "" for nobody.

    A question of the last two messages waits for the other side, then the last task decides, then
    what else is open.
    """
    questions = [message for message, spoken in matters if spoken.asks]
    if questions and last is not None and last.number - questions[-1].number <= 1:
        return SIDES[questions[-1].side]
    if tasks:
        return _actor(tasks[-1])
    return SIDES[questions[-1].side] if questions else ""


def _actor(task: Found) -> str:
    """Return who does it: who promises it, or the other one of who asks for it."""
    marks = task.spoken.marks
    own = task.message.side
    if marks & {"requests", "reminds"} and not marks & {"promises"}:
        return SIDES[own]
    if own == "assistant" and marks & {"todo", "duties"} and not marks & {"promises", "acts"}:
        return SIDES[own]
    return own
