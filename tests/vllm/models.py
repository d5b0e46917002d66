"""Two models with random weights, small enough for a processor: ``python models.py FOLDER`` with vLLM's own Python.

They say garbage, so that only what a server forces, a JSON schema, gives replies of any shape; but garbage in letters
and of some ten of them, since texts that never end would take the tests' time. The tokenizer has a token for each byte
and nothing learned; everything is made here and nothing is fetched.
"""

import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3Config,
    Qwen3ForCausalLM,
)

END = "<|im_end|>"
PAD = "<|endoftext|>"
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
SPECIAL = (PAD, "<|im_start|>", END, *VISION)
VOCABULARY = 320
"""Tokens: 256 bytes, the special ones, and up to a number that every kernel takes."""
POSITIONS = 8192
SIDE = 28 * 28
"""Pixels of a picture that become one token."""
TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type in ("image", "image_url") -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}
{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""
LIKED = "abcdefghijklmnopqrstuvwxyz "
ENDINGS = ('"', END)
SAID = (*"\nAnswer: k7", END)
"""A line break and a whole reply, of no part twice; the comparer leaves such an answer open."""
PULL = 30.0
"""How much a part of it is preferred behind the one before it."""
TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": POSITIONS,
}


def make_tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in SPECIAL])
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        model_max_length=POSITIONS,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def prefer_letters(
    model: Qwen3ForCausalLM | Qwen2VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Make one number of the hidden state the same for all tokens, and weigh the next token by it."""
    likings = torch.full((VOCABULARY,), -2.0)
    likings[[tokenizer.encode(letter)[0] for letter in LIKED]] = 1.0
    likings[[tokenizer.encode(ending)[0] for ending in ENDINGS]] = 1.5
    with torch.no_grad():
        embedded = model.get_input_embeddings().weight
        embedded.normal_()
        embedded[:, 0] = 6.0
        weights = model.get_output_embeddings().weight
        weights.normal_(0.0, 0.1)
        weights[:, 0] = likings
        # Where nothing forces a shape, a reply is one line as solvers are asked for. The rows of the inverse see one
        # part of it each.
        said = [tokenizer.encode(part)[0] for part in SAID]
        seen = torch.linalg.pinv(embedded[said[:-1], 1:])
        weights[said[1:], 1:] += PULL * seen.T


def write_text_model(folder: Path) -> None:
    tokenizer = make_tokenizer()
    torch.manual_seed(7)
    config = Qwen3Config(
        **TEXT,
        head_dim=32,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen3ForCausalLM(config)
    prefer_letters(model, tokenizer)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_vision_model(folder: Path) -> None:
    tokenizer = make_tokenizer()
    torch.manual_seed(11)
    start, end, image, video = tokenizer.convert_tokens_to_ids(list(VISION))
    special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    rope = {"rope_type": "default", "rope_theta": 1_000_000.0, "mrope_section": [4, 6, 6]}
    config = Qwen2VLConfig(
        text_config={**TEXT, **special, "rope_parameters": rope},
        vision_config={"depth": 1, "embed_dim": 64, "hidden_size": TEXT["hidden_size"], "num_heads": 2, "mlp_ratio": 2},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        **special,
    )
    model = Qwen2VLForConditionalGeneration(config)
    prefer_letters(model, tokenizer)
    model.to(torch.bfloat16).save_pretrained(folder)
    pixels = {
        "min_pixels": 4 * SIDE,
        "max_pixels": 16 * SIDE,
        "size": {"shortest_edge": 4 * SIDE, "longest_edge": 16 * SIDE},
    }
    pictures, films = Qwen2VLImageProcessor(**pixels), Qwen2VLVideoProcessor(**pixels)
    Qwen2VLProcessor(pictures, tokenizer, films, chat_template=TEMPLATE).save_pretrained(folder)


if __name__ == "__main__":
    write_text_model(Path(sys.argv[1]) / "tiny-text")
    write_vision_model(Path(sys.argv[1]) / "tiny-vision")
