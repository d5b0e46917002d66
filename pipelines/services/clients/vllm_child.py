"""vLLM in a process of its own: ``python vllm_child.py ARGUMENTS...``, arguments being those of vLLM's engine.

Run by a Python that has vLLM and nothing of ours, so only that and the standard library are imported. JSON lines come
in by standard input, ``{"id": 0, "body": {...}}`` with what ``/chat/completions`` takes, and ``{"run": n}`` after a
batch. A line for each goes out by what was standard output, after ``{"ready": true}``; all that the engine prints goes
to standard error. When standard input ends, whoever started this is gone, and so is this, with all of its processes.
"""

import json
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

Line = dict[str, Any]


def read_batches(requests: IO[bytes], batches: "queue.Queue[list[Line]]") -> None:
    """Put each batch that comes in into a queue, and end the process group with the input."""
    batch: list[Line] = []
    for raw in requests:
        line = json.loads(raw)
        if "run" in line:
            batches.put(batch)
            batch = []
        else:
            batch.append(line)
    # The engine's processes are in the group, too. Nobody is left to read what they would still say.
    os.killpg(0, signal.SIGKILL)


def load_model(arguments: list[str]) -> Any:  # noqa: ANN401 - vLLM's types are not known here
    """Return ``vllm.LLM`` from the arguments that its server takes, too."""
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    return LLM.from_engine_args(EngineArgs.from_cli_args(parser.parse_args(arguments)))


def make_sampling(body: Line, defaults: Line) -> Any:  # noqa: ANN401 - as above
    """Return a request's sampling over the model's own defaults, as vLLM's server has it."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    wanted = {name: body[name] for name in ("temperature", "top_p", "max_tokens", "seed")}
    wanted |= {name: body[name] for name in ("presence_penalty", "stop") if name in body}
    form, structured = body.get("response_format"), None
    if form:
        schema = form["type"] == "json_schema"
        shape = {"json": form["json_schema"]["schema"]} if schema else {"json_object": True}
        structured = StructuredOutputsParams(**shape)
    return SamplingParams(**{**defaults, **wanted}, structured_outputs=structured)


def run_batch(llm: Any, batch: list[Line], defaults: Line) -> list[Line]:  # noqa: ANN401 - as above
    """Return a line for each request: its reply, or why it was refused.

    ``LLM.chat`` refuses a batch for one request in it; enqueued one by one, each is refused for itself.
    """
    replies: list[Line] = []
    taken: list[int] = []
    for request in batch:
        try:
            body = request["body"]
            llm.enqueue_chat([body["messages"]], [make_sampling(body, defaults)], use_tqdm=False)
            taken.append(request["id"])
        except Exception as error:  # noqa: BLE001 - vLLM, its tokenizers and picture readers share no root for these
            replies.append({"id": request["id"], "error": f"{type(error).__name__}: {error}"})
    # They come back in the order in which they were enqueued.
    for number, output in zip(taken, llm.wait_for_completion(use_tqdm=False), strict=True):
        (said,) = output.outputs
        replies.append(
            {
                "id": number,
                "text": said.text,
                "tokens_in": len(output.prompt_token_ids),
                "tokens_out": len(said.token_ids),
                "whole": said.finish_reason == "stop",
            }
        )
    return replies


def main() -> None:
    """Load the model and answer batches until standard input ends."""
    # What the engine prints must not come between the replies.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted
        os.dup2(nothing.fileno(), 0)
    batches: queue.Queue[list[Line]] = queue.Queue()
    threading.Thread(target=read_batches, args=(requests, batches), daemon=True).start()
    llm = load_model(sys.argv[1:])
    llm.get_default_sampling_params()
    defaults = dict(llm.default_sampling_params or {})
    lines: list[Line] = [{"ready": True}]
    while True:
        replies.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        replies.flush()
        lines = run_batch(llm, batches.get(), defaults)


if __name__ == "__main__":
    main()
