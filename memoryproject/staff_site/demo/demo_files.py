"""The pictures and the recordings of the demo, drawn and sounded by this module."""

from __future__ import annotations

import math
import struct
import wave
from collections.abc import Iterator
from io import BytesIO

from PIL import Image, ImageDraw

SIZE = (640, 480)
RATE = 8_000
# Each syllable: its length and the pause after it in seconds, its pitch in Hz, and two formants.
SYLLABLES = (
    (0.22, 0.03, 128, 700, 1_150),
    (0.18, 0.02, 140, 400, 2_000),
    (0.30, 0.14, 122, 500, 900),
    (0.16, 0.02, 136, 450, 1_900),
    (0.20, 0.03, 146, 700, 1_200),
    (0.24, 0.02, 132, 320, 2_200),
    (0.36, 0.20, 112, 480, 950),
    (0.20, 0.03, 138, 650, 1_150),
    (0.42, 0.10, 108, 700, 1_100),
)
HARMONICS = 22


def cake() -> bytes:
    """Return a picture of a chocolate cake with candles."""
    picture, draw = _canvas("#f6ead8", "#c99b6d")
    draw.ellipse((110, 360, 530, 430), fill="#ffffff", outline="#d9d2c8", width=3)
    for top, left, colour in ((265, 160, "#4a2a1b"), (165, 215, "#5b3421")):
        right = SIZE[0] - left
        draw.rectangle((left, top + 20, right, top + 110), fill=colour)
        draw.ellipse((left, top + 90, right, top + 130), fill=colour)
        draw.ellipse((left, top, right, top + 40), fill="#7a4a30")
        for place in range(left + 12, right - 12, 26):
            draw.ellipse((place, top + 24, place + 18, top + 48), fill="#7a4a30")
    for place in (260, 300, 340, 380):
        draw.rectangle((place - 4, 115, place + 4, 182), fill="#e4a5b4")
        draw.ellipse((place - 6, 92, place + 6, 116), fill="#f2b233")
    return _png(picture)


def hall() -> bytes:
    """Return the plan of a hall: round tables, a stage, and the table for the cake beside it."""
    picture, draw = _canvas("#f4f6f8", "#f4f6f8")
    draw.rectangle((30, 30, 610, 450), outline="#36475a", width=5)
    draw.rectangle((220, 35, 420, 105), fill="#8fa3b8", outline="#36475a", width=2)
    draw.rectangle((450, 50, 520, 95), fill="#d97b66", outline="#36475a", width=2)
    draw.rectangle((285, 446, 355, 454), fill="#f4f6f8")
    for row in (190, 290, 390):
        for column in (110, 230, 410, 530):
            draw.ellipse((column - 34, row - 34, column + 34, row + 34), fill="#dfe7ee")
            draw.ellipse((column - 24, row - 24, column + 24, row + 24), fill="#ffffff")
            draw.ellipse((column - 34, row - 34, column + 34, row + 34), outline="#36475a", width=2)
    return _png(picture)


def window() -> bytes:
    """Return a picture of the café's window with loaves."""
    picture, draw = _canvas("#bcd7e6", "#8a6a4f")
    draw.rectangle((60, 110, 580, 430), fill="#fff7e6", outline="#5a3f2b", width=12)
    for place in range(60, 580, 52):
        colour = "#2f6f5e" if (place - 60) // 52 % 2 else "#ffffff"
        draw.pieslice((place, 80, place + 52, 150), 0, 180, fill=colour)
        draw.rectangle((place, 60, place + 52, 116), fill=colour)
    for shelf in (270, 400):
        draw.rectangle((66, shelf, 574, shelf + 8), fill="#8a6a4f")
        for place in range(95, 540, 92):
            draw.ellipse((place, shelf - 58, place + 78, shelf + 6), fill="#c78b4a")
            for cut in (18, 36, 54):
                draw.line((place + cut, shelf - 44, place + cut + 8, shelf - 22), "#f0d9b0", 4)
    return _png(picture)


def shelf() -> bytes:
    """Return a picture of a shelf of books with a place for a vase."""
    picture, draw = _canvas("#e8ece6", "#b79a7c")
    draw.rectangle((90, 70, 550, 400), fill="#8a6446", outline="#5f432d", width=10)
    for top in (80, 190, 300):
        draw.rectangle((104, top, 536, top + 90), fill="#f3e9dc")
    colours = ("#2f6f5e", "#d97b66", "#36475a", "#e4b34c", "#8fa3b8")
    # The place of the vase is on the board in the middle.
    for top, books in ((80, 22), (190, 8), (300, 19)):
        for number in range(books):
            left = 112 + 19 * number
            height = 58 + number * 7 % 24
            colour = colours[(number + top) % len(colours)]
            draw.rectangle((left, top + 90 - height, left + 15, top + 90), fill=colour)
    return _png(picture)


def leak() -> bytes:
    """Return a picture of a dishwasher from whose door water runs."""
    picture, draw = _canvas("#dfe6ea", "#c8c2b8")
    draw.rectangle((170, 60, 470, 400), fill="#f7f8f9", outline="#8b97a3", width=5)
    draw.rectangle((170, 60, 470, 120), fill="#cfd6dc", outline="#8b97a3", width=5)
    draw.ellipse((400, 76, 430, 106), fill="#36475a")
    draw.rectangle((240, 145, 400, 158), fill="#8b97a3")
    draw.ellipse((120, 385, 440, 455), fill="#9cc7e6")
    for left, top in ((205, 330), (245, 300), (285, 350), (325, 315)):
        draw.rectangle((left - 3, top, left + 3, 400), fill="#7fb5dc")
        draw.ellipse((left - 9, 392, left + 9, 414), fill="#7fb5dc")
    return _png(picture)


def voice() -> bytes:
    """Return a recording: somebody hums a sentence, as harmonics that two formants strengthen."""
    samples: list[float] = []
    for seconds, pause, pitch, *formants in SYLLABLES:
        count = int(seconds * RATE)
        weights = [
            sum(math.exp(-(((pitch * n - each) / 220) ** 2)) for each in formants) + 0.3 / n
            for n in range(1, HARMONICS)
        ]
        for place in range(count):
            turn = 2 * math.pi * pitch * (1 - 0.08 * place / count) * place / RATE
            loudness = math.sin(math.pi * place / count) ** 0.6
            waves = sum(weight * math.sin(n * turn) for n, weight in enumerate(weights, start=1))
            samples.append(loudness * waves)
        samples += [0.0] * int(pause * RATE)
    loudest = max(abs(each) for each in samples)
    written = BytesIO()
    with wave.open(written, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE)
        whole = [int(each / loudest * 24_000) for each in samples]
        recording.writeframes(struct.pack(f"<{len(whole)}h", *whole))
    return written.getvalue()


FILES = {"cake": cake, "hall": hall, "window": window, "voice": voice}

RECORDED = {
    "310000000000001": shelf,
    "310000000000002": voice,
    "310000000000003": cake,
    "leak.jpg": leak,
    "note.oga": voice,
}
"""The files that recorded messages name, by their ids at the Cloud API or their names."""


def recorded_media() -> Iterator[tuple[str, bytes, str]]:
    """Yield the name of each of RECORDED with its content and type, as WhatsApp would hand it out.

    Recordings stay WAV, which needs no encoder.
    """
    for name, make in RECORDED.items():
        if make is voice:
            yield name, make(), "audio/wav"
        else:
            yield name, _jpeg(make()), "image/jpeg"


def _canvas(wall: str, table: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", SIZE, wall)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 330, *SIZE), fill=table)
    return picture, draw


def _jpeg(picture: bytes) -> bytes:
    written = BytesIO()
    Image.open(BytesIO(picture)).convert("RGB").save(written, "JPEG", quality=88)
    return written.getvalue()


def _png(picture: Image.Image) -> bytes:
    written = BytesIO()
    picture.quantize(32).save(written, "PNG", optimize=True)
    return written.getvalue()
