""""""

import hashlib
import sys

import pytest

from pipelines.agent.cascade import EstimatedTokens, ExactTokens, open_tokenizer

COUNT = EstimatedTokens().count


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # What Qwen's tokenizer says of them.
        ("The page of Marlow states it: founded on 5 April 1204, in the reign of nobody in particular.", 27),
        ('<tool_call>\n{"name": "text_search", "arguments": {"query": "Ana Kovač"}}\n</tool_call>', 27),
        ("Kelm Bridge is a bridge in Velm.", 10),
        ("2000000", 7),
        ("北京是中国的首都", 4),
    ],
)
def test_estimates_come_out_above_what_a_tokenizer_says(text, tokens):
    assert tokens <= COUNT(text)


@pytest.fixture
def fake_tokenizers(monkeypatch):
    """A package ``tokenizers`` that splits at spaces."""

    class Encoding:
        def __init__(self, ids):
            self.ids = ids

    class Tokenizer:
        @staticmethod
        def from_buffer(source):
            if b"words" not in source:
                raise Exception("no model")
            return Tokenizer()

        def encode(self, text, add_special_tokens):
            assert add_special_tokens is False
            return Encoding(text.split())

    module = type(sys)("tokenizers")
    module.Tokenizer = Tokenizer
    monkeypatch.setitem(sys.modules, "tokenizers", module)


def test_a_students_tokenizer_counts_exactly(fake_tokenizers, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": "words"}')
    counter = open_tokenizer(path)
    assert isinstance(counter, ExactTokens)
    assert counter.count("one two \ud800 three") == 4
    assert counter.identity == f"tokenizer:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert hash(counter) == hash(open_tokenizer(path))
