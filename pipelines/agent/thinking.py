"""Thoughts that a server took out of a reply, put back: a turn of the text protocols begins with its thought."""

from pipelines.agent.dialects import Dialect
from pipelines.agent.transcript import neutralise_markup
from pipelines.backends.protocols import ChatReply


def restore_thought(reply: ChatReply, dialect: Dialect) -> str:
    """Return a reply's text with its thought where the dialect has it.

    Servers with a parser of trains of thought give them apart, and templates of thinking models open the tag in the
    prompt, so that the reply begins within it. A reply that opens it itself, rightly or not, comes back unchanged.
    """
    opening, closing = f"<{dialect.think}>", f"</{dialect.think}>"
    if opening in reply.text:
        return reply.text
    if closing in reply.text:
        return f"{opening}\n{reply.text.lstrip()}"
    thought = clean_reasoning(reply)
    return f"{opening}\n{thought}\n{closing}\n{reply.text.lstrip()}" if thought else reply.text


def clean_reasoning(reply: ChatReply) -> str:
    """Return the train of thought that a server gave apart, without the tags that it talks about.

    It ends where the server says, so a tag in it, such as that of the answer to come, is none of the turn's.
    """
    return neutralise_markup(reply.reasoning).strip()
