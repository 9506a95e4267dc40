"""A poster that records its posts and returns scripted responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from memoryproject.foundation.integrations.network.addresses import Posted, PostError


@dataclass(frozen=True)
class Post:
    url: str
    headers: Mapping[str, str]
    body: bytes


class RecordingPoster:
    """``posts`` holds the posts in order.

    The next posts get ``answers`` (an error is raised), and 204 when there are none left.
    """

    def __init__(self, *answers: Posted | PostError) -> None:
        self.posts: list[Post] = []
        self.answers: deque[Posted | PostError] = deque(answers)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        self.posts.append(Post(url, dict(headers), body))
        answer = self.answers.popleft() if self.answers else Posted(204)
        if isinstance(answer, PostError):
            raise answer
        return answer
