"""A strict server a vendor: answers 400 in the vendor's words to what the vendor refuses, else as it is told.

Words and rules are those of the vendors' references and of error responses in public reports: OpenAI's and Azure's
reasoning models, Anthropic's and Gemini's compatible endpoints, OpenRouter handing on a provider's error, DeepSeek,
vLLM, SGLang, and a gateway whose pydantic models forbid what they do not know.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.pipelines.services.clients.live_servers import Answer, run_handler, say
from tests.pipelines.services.clients.openai_server import ChatServer

KNOWN = {
    *("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "tools"),
    *("presence_penalty", "parallel_tool_calls", "response_format", "reasoning_effort"),
}
Refuse = Callable[[dict], tuple[set[str], Answer] | None]
"""Returns the keys that a body is refused for, and the answer."""


def refuse_openai(words: str, code: str = "", param: str | None = None) -> Answer:
    error = {"message": words, "type": "invalid_request_error", "param": param, "code": code or None}
    return say({"error": error}, 400)


def check_json_word(body: dict) -> tuple[set[str], Answer] | None:
    asked = body.get("response_format", {}).get("type")
    if asked == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        words = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        return {"response_format"}, refuse_openai(words, param="messages")
    return None


def judge_gpt5(body: dict) -> tuple[set[str], Answer] | None:
    """OpenAI's GPT-5 and o-series: one key a response."""
    if "max_tokens" in body:
        words = "Unsupported parameter: 'max_tokens' is not supported with this model."
        words += " Use 'max_completion_tokens' instead."
        return {"max_tokens"}, refuse_openai(words, "unsupported_parameter", "max_tokens")
    if body.get("temperature", 1) != 1:
        words = f"Unsupported value: 'temperature' does not support {body['temperature']} with this model."
        words += " Only the default (1) value is supported."
        return {"temperature"}, refuse_openai(words, "unsupported_value", "temperature")
    for key in ("top_p", "presence_penalty", "stop"):
        if key in body:
            words = f"Unsupported parameter: '{key}' is not supported with this model."
            return {key}, refuse_openai(words, "unsupported_parameter", key)
    for key in sorted({*body} - KNOWN - {"prompt_cache_key"}):
        return {key}, refuse_openai(f"Unknown parameter: '{key}'.", "unknown_parameter", key)
    return check_json_word(body)


def judge_azure(body: dict) -> tuple[set[str], Answer] | None:
    """Azure's deployments of the same models."""
    for key in sorted({*body} - KNOWN):
        return {key}, refuse_openai(f"Unrecognized request argument supplied: {key}")
    return judge_gpt5(body)


BOTH = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."


def judge_anthropic(body: dict) -> tuple[set[str], Answer] | None:
    """Anthropic's compatible endpoint: what it does not know it ignores; newer models want one of two."""
    if {"temperature", "top_p"} <= {*body}:
        error = {"code": "invalid_request_error", "message": BOTH, "type": "invalid_request_error", "param": None}
        return {"temperature+top_p"}, say({"error": error}, 400)
    return None


def judge_gemini(body: dict) -> tuple[set[str], Answer] | None:
    """Gemini's compatible endpoint: a list, all unknown names in one message."""
    strange = sorted({*body} - KNOWN | {*body} & {"seed", "presence_penalty"})
    if not strange:
        return None
    told = [f'Invalid JSON payload received. Unknown name "{key}": Cannot find field.' for key in strange]
    violations = [{"description": line} for line in told]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
    error = {"code": 400, "message": "\n".join(told), "status": "INVALID_ARGUMENT", "details": details}
    return set(strange), say([{"error": error}], 400)


def judge_openrouter(body: dict) -> tuple[set[str], Answer] | None:
    """OpenRouter: leaves out what a provider does not know, and hands on what the provider says of the rest."""
    if {"temperature", "top_p"} <= {*body}:
        raw = json.dumps({"message": f"The model returned the following errors: {BOTH}"})
        metadata = {"raw": raw, "provider_name": "Amazon Bedrock"}
        error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
        return {"temperature+top_p"}, say({"error": error, "user_id": "user_1"}, 400)
    return None


def judge_deepseek(body: dict) -> tuple[set[str], Answer] | None:
    """DeepSeek: no schemas; its bounds of max_tokens."""
    if body.get("response_format", {}).get("type") == "json_schema":
        words = "This response_format type is unavailable now"
        return {"response_format"}, refuse_openai(words, "invalid_request_error")
    if not 1 <= body.get("max_tokens", 1) <= 8192:
        words = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
        return {"max_tokens"}, refuse_openai(words, "invalid_request_error")
    return check_json_word(body)


def judge_vllm(body: dict) -> tuple[set[str], Answer] | None:
    """vLLM: takes all of the API and its own keys; the versions that forbid others say so as pydantic does."""
    for key in sorted({*body} - KNOWN - {"chat_template_kwargs", "top_k", "min_p", "repetition_penalty"}):
        told = [{"type": "extra_forbidden", "loc": ("body", key), "msg": "Extra inputs are not permitted", "input": 1}]
        return {key}, say({"object": "error", "message": str(told), "type": "BadRequestError", "code": 400}, 400)
    return None


def judge_sglang(body: dict) -> tuple[set[str], Answer] | None:
    """SGLang: unknown keys are ignored."""
    return None


STRICT: Mapping[str, Refuse] = {
    "openai": judge_gpt5,
    "azure": judge_azure,
    "anthropic": judge_anthropic,
    "gemini": judge_gemini,
    "openrouter": judge_openrouter,
    "deepseek": judge_deepseek,
    "vllm": judge_vllm,
    "sglang": judge_sglang,
}
"""By profile."""


@dataclass
class VendorServer(ChatServer):
    """A strict server, and what it refused: the keys of each refusal, in order."""

    refuse: Refuse = judge_sglang
    refused: list[str] = field(default_factory=list)
    wanted_header: tuple[str, str] = ("", "")

    def complete(self, asked):
        name, value = self.wanted_header
        if name and asked.headers.get(name) != value:
            return say({"error": {"code": "401", "message": "Access denied due to invalid subscription key."}}, 401)
        if asked.path.endswith("/models"):
            return say({"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        found = self.refuse(asked.json())
        if found is None:
            return super().complete(asked)
        with self.lock:
            self.refused.extend(sorted(found[0]))
        return found[1]


@contextmanager
def run_vendor(refuse: Refuse, respond=lambda body: "hello", **settings):
    """Run a strict server until the block ends."""
    with run_handler(VendorServer(say=respond, refuse=refuse, **settings)) as server:
        yield server
