""""""

import pytest

from pipelines.agent.cascade import estimate_tokens


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
    assert tokens <= estimate_tokens(text)
