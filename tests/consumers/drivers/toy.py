"""A byte-level tokenizer with the control tokens and the chat template of Qwen, built on the spot: nothing is fetched.

It counts otherwise than Qwen's own; structure, control tokens, pictures and masks are the same.
"""

import hashlib
import json
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
PLAIN = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""Tokens of their own that are no control tokens, as in Qwen3."""
TEMPLATE = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}
{%- if message.content is string -%}{{- message.content -}}{%- else -%}
{%- for part in message.content -%}{{- part.text -}}{%- endfor -%}{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endgeneration -%}
{%- else -%}
{%- if message.content is string -%}{{- message.content -}}{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- else -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""


def make_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bare = Tokenizer(models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bare.decoder = decoders.ByteLevel()
    bare.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    bare.add_tokens([AddedToken(name, special=False, normalized=False) for name in PLAIN])
    return PreTrainedTokenizerFast(
        tokenizer_object=bare,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=100_000_000,
    )


def find_spans(tokenizer, ids, trained):
    """Return the trained stretches as text."""
    spans, open_ids = [], []
    for token, mask in zip([*ids, 0], [*trained, False], strict=True):
        if mask:
            open_ids.append(int(token))
        elif open_ids:
            spans.append(decode(tokenizer, open_ids))
            open_ids = []
    return spans


def decode(tokenizer, ids):
    """Return all text, control tokens included, with one pad a picture."""
    pad = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    kept = [token for place, token in enumerate(ids) if token != pad or place == 0 or ids[place - 1] != pad]
    return tokenizer.decode(kept, skip_special_tokens=False)


def describe_row(tokenizer, ids, trained):
    """Return a row's text, its trained stretches and their lengths in tokens."""
    spans = find_spans(tokenizer, ids, trained)
    return {"text": decode(tokenizer, ids), "spans": spans, "tokens": len(ids), "trained": sum(map(bool, trained))}


def hash_pixels(image):
    """Return the digest of a decoded picture's pixels."""
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


def report(**told):
    """Print the one JSON document that a driver says."""
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def make_processor(tokenizer):
    """Return the processor of Qwen2-VL around a tokenizer; its constructor refuses one without video."""
    from transformers import Qwen2VLImageProcessor, Qwen2VLProcessor

    processor = Qwen2VLProcessor.__new__(Qwen2VLProcessor)
    processor.tokenizer, processor.image_processor = tokenizer, Qwen2VLImageProcessor()
    processor.video_processor = processor.image_processor
    processor.chat_template = TEMPLATE
    processor.image_token, processor.video_token = "<|image_pad|>", "<|video_pad|>"
    processor.image_token_id = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    processor.video_token_id = tokenizer.convert_tokens_to_ids("<|video_pad|>")
    processor.image_ids, processor.video_ids = [processor.image_token_id], [processor.video_token_id]
    return processor
