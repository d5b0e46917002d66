"""Summaries with no model: the sentences of a page that fit a goal, as they stand there."""

from pipelines.agent.layout import cut_text
from pipelines.agent.passages import GAP, choose_sentences
from schemas.tasks import SummariseInputs

SENTENCES = 5
LONGEST = 280
"""Characters of a sentence; five fit into a summary."""


def summarise_page(page: SummariseInputs) -> str:
    """Return the title and at most five sentences or lines that fit the goal, in their order."""
    chosen = choose_sentences(page.text.replace(GAP, ""), page.goal, SENTENCES)
    return "\n".join((f"About {page.title}:", *(cut_text(sentence, LONGEST) for sentence in chosen)))
