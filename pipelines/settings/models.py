"""Models in their roles, what a run may spend on them, and how its work is cut."""

from typing import Annotated, Literal

from pydantic import Field

from pipelines.settings.base import Section


class ServeConfig(Section):
    """A vLLM server of a model: `synth serve-model ROLE` starts it, and a run for itself where ``own`` says so."""

    own: bool = Field(
        False, description="a run starts the server when it first asks the model, and stops it at its end"
    )
    model: str = Field("", description="what vLLM loads, a folder or a name on the Hub; empty: the model's name")
    python: str = Field("", description="a Python that has vLLM; empty: the one that runs synth")
    port: int = Field(8000, ge=1, le=65535, description="port on the loopback interface")
    tensor_parallel: int = Field(1, ge=1, description="GPUs that one copy of the model is spread over")
    max_context: int = Field(0, ge=0, description="longest prompt and reply together, tokens; 0: the model's own")
    arguments: tuple[str, ...] = Field((), description="further arguments of vLLM's server, as they are")
    start_seconds: float = Field(900.0, gt=0.0, description="seconds to be ready in")


class ModelConfig(Section):
    """A model in a role."""

    adapter: Literal["templates", "knower", "teacher", "judge", "openai", "vllm"] = Field(
        description="who answers: a scripted player, an OpenAI-compatible server, or vLLM inside a worker of this run"
    )
    name: str = Field(description="name in rows and manifests; for openai the model's name at the server")
    base_url: str = Field(
        "", pattern=r"^(https?://[^\s@?#]+)?$", description="openai: address of the API, as http://127.0.0.1:8000/v1"
    )
    more_urls: tuple[Annotated[str, Field(pattern=r"^https?://[^\s@?#]+$")], ...] = Field(
        (), description="openai: further addresses of the very same model; revision must be named then"
    )
    api_key_env: str = Field("", description="openai: name of the environment variable that holds the key; empty: none")
    timeout: float = Field(120.0, gt=0.0, description="openai: seconds for a whole reply")
    tries: int = Field(4, ge=1, description="openai: how often a request is sent that gets no whole reply")
    patience: float = Field(
        300.0, ge=0.0, description="openai: seconds that every address may be away or busy before the run stops"
    )
    concurrency: int = Field(
        256, ge=1, description="openai: most requests in flight at one address; fewer while it asks to slow down"
    )
    revision: str = Field(
        "",
        description="openai: what tells two models of one name apart; part of a recording's key. Empty: the address is",
    )
    replies: Literal["schema", "json", "text"] = Field(
        "schema",
        description="openai, vllm: how a reply's shape is asked for. schema: forced by JSON schema; json: any JSON "
        "object; text: nothing is forced, for models that reason worse when it is. All are parsed and repaired alike",
    )
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="sampling temperature; 0 is greedy")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="nucleus sampling")
    max_tokens: int = Field(2048, ge=1, description="longest reply")
    presence_penalty: float = Field(0.0, ge=-2.0, le=2.0, description="against words that were used before")
    price_in: float = Field(0.0, ge=0.0, description="price of a million tokens in")
    price_out: float = Field(0.0, ge=0.0, description="price of a million tokens out")
    gpus: float = Field(0.0, ge=0.0, description="GPUs behind one address; GPU-seconds are counted while it works")
    gpu_price: float = Field(0.0, ge=0.0, description="price of a GPU-hour")
    settings: dict[str, float] = Field(default_factory=dict, description="abilities of a scripted player, 0..1")
    serve: ServeConfig = ServeConfig()


class ModelsConfig(Section):
    """Roles of a run. A judge is never the model it judges."""

    writer: ModelConfig = ModelConfig(adapter="templates", name="templates")
    rewriter: ModelConfig = ModelConfig(adapter="templates", name="templates")
    solver: ModelConfig = ModelConfig(adapter="knower", name="knower", temperature=0.7)
    solvers: dict[str, ModelConfig] = Field(
        default_factory=dict, description="further solvers by a name of your own, for difficulty.solvers"
    )
    teacher: ModelConfig = ModelConfig(adapter="teacher", name="scripted-teacher", temperature=0.7)
    judge: ModelConfig | None = Field(
        None, description="judges answers that the typed comparer leaves open; none: nobody"
    )
    second_judge: ModelConfig | None = Field(
        None, description="a judge of another family; where the two disagree an answer is unscored"
    )
    image_judge: ModelConfig | None = Field(None, description="says whether a picture is too simple (vsearcher)")
    process_judge: ModelConfig | None = Field(None, description="marks the way to an answer, not the answer")
    summariser: ModelConfig | None = Field(None, description="sums up pages for the agent, see tools.summarise")

    def get(self, role: str) -> ModelConfig:
        """Return the model of a role, or of a further solver.

        Raises:
            KeyError: if nobody plays it.
        """
        found = self.solvers[role] if role in self.solvers else getattr(self, role, None)
        if not isinstance(found, ModelConfig):
            raise KeyError(role)
        return found

    def list_roles(self) -> tuple[str, ...]:
        """Return every role that somebody plays, further solvers after the others."""
        fixed = [name for name in type(self).model_fields if isinstance(getattr(self, name), ModelConfig)]
        return (*fixed, *self.solvers)


class BudgetConfig(Section):
    """What one run may spend; what is recorded costs nothing. 0 is no limit."""

    money: float = Field(0.0, ge=0.0, description="in the currency of the prices of models")
    tokens: int = Field(0, ge=0, description="tokens in and out")
    gpu_hours: float = Field(0.0, ge=0.0, description="GPU-hours, see models.*.gpus")


class RuntimeConfig(Section):
    """How the work is cut; nothing here decides a row's content."""

    shard_rows: int = Field(256, ge=1, description="seeds a shard; later stages keep the cut")
    concurrency: int = Field(
        256,
        ge=1,
        description="records in flight at once, of all shards together; of a question all rollouts count as one",
    )
    workers: int = Field(0, ge=0, description="processes that read a dump; 0 is one for each core")
