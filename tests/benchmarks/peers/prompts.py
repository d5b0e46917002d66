"""The prompts that every client of the benchmark sends: a shared system text and one question a row."""

SYSTEM = """You answer one question as well as you can, with no tools beyond what is shown here.
Think it through before you decide, but reply with the short answer alone: a name, a date, a number, or a few words.
Give one answer. No list, no alternatives, no explanation. When you are not sure of every step, the answer is "unknown".
Reply with one JSON object and nothing else: {"answer": "..."}"""


def make_prompts(rows: int) -> list[tuple[str, str]]:
    """Return a system and a user text for each row."""
    return [(SYSTEM, f"When was the bridge number {number} opened that the picture shows?") for number in range(rows)]
