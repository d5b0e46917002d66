"""What a trainer must make of a trajectory, from the trajectory alone: no exporter and no loader is asked."""

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from pipelines.pictures import PictureStore
from pipelines.release.rows import strip_page_text
from schemas.datasets import Observation, Step, Trajectory

PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
END = "<|im_end|>\n"
NO_THOUGHT = "<think>\n\n</think>\n\n"
"""What templates of models that reason put before a turn without a thought."""


def leave(text: str) -> str:
    """Change nothing."""
    return text


@dataclass(frozen=True, slots=True)
class Form:
    """How a trainer words a trajectory.

    Attributes:
        native: calls as the reader's own kind of message; else what the teacher wrote.
        flags: whether the reader honours loss flags.
        line: between the pictures of a message and its text.
        unthinking: put before turns without a thought.
        asked: what the exporter changes in the user's messages.
        told: and in tools' replies.
    """

    native: bool
    flags: bool = False
    line: str = "\n"
    unthinking: str = ""
    asked: Callable[[str], str] = leave
    told: Callable[[str], str] = leave


def expect(trajectory: Trajectory, form: Form, root: Path) -> dict[str, object]:
    """Return what a driver must say of one row, and ``dialogue``: all text from the question on."""
    pictures = {image.id: image.picture for image in trajectory.images}
    shown = [trajectory.images[0].picture]
    asked = form.asked(strip_page_text(trajectory.question))
    dialogue, spans = [f"<|im_start|>user\n{PICTURE}{form.line}{asked}{END}"], []
    for step, loss in zip(trajectory.steps, trajectory.loss, strict=True):
        said = word_step(step, form) + END
        dialogue.append(f"<|im_start|>assistant\n{said}")
        spans += [said] if loss or not form.flags else []
        if step.observation is not None:
            dialogue.append(word_observation(step.observation, form, native=form.native and bool(step.tool)))
            shown += [pictures[name] for name in step.observation.images]
    contents = [PictureStore(root / "images").read(picture) for picture in shown]
    return {
        "dialogue": "".join(dialogue),
        "spans": spans,
        "files": [picture.sha256 for picture in shown],
        "pixels": [
            hashlib.sha256(Image.open(io.BytesIO(each)).convert("RGB").tobytes()).hexdigest() for each in contents
        ],
    }


def word_step(step: Step, form: Form) -> str:
    if not form.native:
        return step.reply
    if not step.thought:
        return form.unthinking + step.reply
    call = json.dumps({"name": step.tool, "arguments": json.loads(step.arguments or "{}")}, ensure_ascii=False)
    answer = step.reply.rpartition("</think>")[2].strip()
    act = f"<tool_call>\n{call}\n</tool_call>" if step.tool else answer
    return f"<think>\n{step.thought}\n</think>\n\n{act}"


def word_observation(observation: Observation, form: Form, native: bool) -> str:
    error = "" if observation.ok else f"error: {observation.error}\n"
    body = error + strip_page_text(observation.text)
    places = PICTURE * len(observation.images) + form.line if observation.images else ""
    if native:
        return f"<|im_start|>user\n<tool_response>\n{places}{form.told(body)}\n</tool_response>{END}"
    wrapped = form.asked(f"<tool_response>\n{body}\n</tool_response>")
    return f"<|im_start|>user\n{places}{wrapped}{END}"


def compare_rows(said: dict, expected: list[dict]) -> dict[str, object]:
    """Hold what a driver said against what was expected, row by row and claim by claim, and return what was counted."""
    assert said["loaded"] == len(said["rows"]) == len(expected)
    for row, wanted in zip(said["rows"], expected, strict=True):
        dialogue = row["text"][row["text"].index("<|im_start|>user\n") :]
        assert row["spans"] == wanted["spans"]
        assert shorten(dialogue, wanted["dialogue"]) == shorten(wanted["dialogue"], dialogue)
        assert row["files"] == wanted["files"]
        assert row["pixels"] == wanted["pixels"]
    tokens = sum(row["tokens"] for row in said["rows"])
    return {
        "rows in": len(expected),
        "rows out": len(said["rows"]),
        "spans equal": sum(len(row["spans"]) for row in said["rows"]),
        "texts equal": len(expected),
        "pictures equal": sum(len(row["pixels"]) for row in said["rows"]),
        "tokens": tokens,
        "masked": tokens - sum(row["trained"] for row in said["rows"]),
        "hostile pages": len(expected) - 1,
    }


def shorten(text: str, other: str) -> str:
    """Return a text from where it differs from another, so that a failure can be read."""
    if text == other:
        return ""
    pairs = enumerate(zip(text, other, strict=False))
    differs = next((place for place, (here, there) in pairs if here != there), min(len(text), len(other)))
    return text[max(0, differs - 100) : differs + 200]
