"""A source: questions and answers on alternate lines."""

from pipelines.api import ForeignQuestion


def make_source(language: str = "en"):
    """Return what reads such a file."""

    def read(path):
        lines = path.read_text().splitlines()
        for number, (question, answer) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            yield ForeignQuestion(str(number), question, (answer,), (), language=language)

    return read
