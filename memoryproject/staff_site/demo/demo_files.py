"""The pictures and the recording of the story, drawn and sounded by this module."""

from __future__ import annotations

import math
import struct
import wave
from io import BytesIO

# It comes with reportlab.
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


def _canvas(wall: str, table: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", SIZE, wall)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 330, *SIZE), fill=table)
    return picture, draw


def _png(picture: Image.Image) -> bytes:
    written = BytesIO()
    picture.quantize(32).save(written, "PNG", optimize=True)
    return written.getvalue()
