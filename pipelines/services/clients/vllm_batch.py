"""vLLM inside a worker of a run: requests that wait are one batch of ``LLM.chat``, in a child process.

Only the messages of a request are sent; its inputs stay here. What a reply says is not judged here.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import ConfigError
from pipelines.ids import digest_value
from pipelines.services.clients.chat import PictureParts, ReadPicture, Replies, cut_at_stop, make_body, refuse_picture
from pipelines.services.clients.serving import Engine, check_python, choose_python, list_engine_arguments
from pipelines.services.protocols import ChatReply, ChatRequest

VERSION = 1
_CHILD = Path(__file__).with_name("vllm_child.py")


@dataclass(frozen=True, slots=True)
class VllmBatch:
    """A model that a vLLM of this run's own answers for, in batches.

    Attributes:
        name: the model's name; rows and manifests show it.
        log: file for what vLLM says, written anew at its start.
        model: what vLLM loads, a folder or a name on the Hub; empty: the name.
        python: a Python that has vLLM; empty: ours.
        tensor_parallel: GPUs that the model is spread over.
        max_context: longest prompt and reply together, tokens; 0: the model's own.
        arguments: further arguments of vLLM's engine, as its server takes them.
        revision: what tells two models of one name apart.
        replies: how a reply's shape is asked for, see ``ModelConfig``.
        gpus: GPUs that are counted while a batch runs.
        start_seconds: seconds to load the model in.
        read_picture: where pictures come from; called in a thread.

    Raises:
        ConfigError: if the Python has no vLLM.
    """

    name: str
    log: Path
    model: str = ""
    python: str = ""
    tensor_parallel: int = 1
    max_context: int = 0
    arguments: tuple[str, ...] = ()
    revision: str = ""
    replies: Replies = "schema"
    gpus: float = 0.0
    start_seconds: float = 900.0
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    engine: Engine = field(init=False, repr=False, compare=False)
    _pictures: PictureParts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        python = choose_python(self.python)
        check_python("models.ROLE.serve.python", python)
        loaded = self.model or self.name
        command = (python, str(_CHILD), *self._list_arguments(loaded))
        object.__setattr__(self, "_pictures", PictureParts(self.read_picture))
        object.__setattr__(self, "engine", Engine(self.name, command, self.log, self.start_seconds, self.gpus))

    @property
    def identity(self) -> str:
        """Name and revision; without a revision what is loaded, and how, takes its place."""
        loaded = self._list_arguments(self.model or self.name)
        mode = "" if self.replies == "schema" else f":{self.replies}"
        return f"vllm@{VERSION}:{self.name}:{self.revision or digest_value(loaded)}{mode}"

    @property
    def reads_inputs(self) -> bool:
        """Never: the messages are all that is sent."""
        return False

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply, whatever it says.

        Raises:
            Unavailable: if vLLM ended, or is not ready in time.
            ConfigError: if the model can do no such thing for any record, such as native tool calls.
            RecordFailed: if it refuses this very prompt: too long, or a picture that is none.
        """
        if request.tools or any(message.calls or message.call_id for message in request.messages):
            raise ConfigError(
                f"model {self.name}: vLLM inside a worker reads no tool calls; give rollouts another dialect than "
                "native, or have vLLM serve this model with --enable-auto-tool-choice"
            )
        body = await make_body(self.name, request, self._pictures, self.replies)
        return cut_at_stop(await asyncio.wrap_future(self.engine.ask(body)), request.stop)

    def close(self) -> None:
        """End vLLM, where it runs; a further request starts none."""
        self.engine.close()

    def _list_arguments(self, loaded: str) -> list[str]:
        return list_engine_arguments(loaded, self.tensor_parallel, self.max_context, self.arguments)
