"""The sections of a configuration: every key with its default, its bounds and what it means.

Units are in a field's description. Published numbers are the defaults of the recipe that publishes them.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pipelines.secrets import check_address, check_variable
from pipelines.splits import SHARES
from schemas.datasets import Split, Verification
from schemas.proofs import Agreement, AnswerType

Variable = Annotated[str, AfterValidator(check_variable)]
"""Name of an environment variable that holds a key, never the key."""


class Section(BaseModel):
    """A table of the configuration: frozen, no undeclared keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CONTACT = r"^$|^[ -~]*([!-?A-~]@[!-?A-~]|[a-z]://[!-~])[ -~]*$"
"""Nothing, or text in ASCII with a mail address or a page's address in it."""
ADDRESS = r"^https?://[^\s@?#]+$"
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def _complete(names: object) -> AfterValidator:
    """Return what gives 0 to each name of a closed list that is left out."""
    return AfterValidator(lambda given: {name: given.get(name, 0) for name in get_args(names)})


Qid = Annotated[str, Field(pattern=r"^Q[1-9][0-9]{0,17}$")]


class GeneratedWorld(Section):
    """A toy Wikipedia generated into the workspace when neither a dump nor a world is named."""

    entities: int = Field(2000, ge=60, le=200_000, description="articles about entities")
    seed: int = Field(7, ge=0, description="seed of the generator")


class CorpusConfig(Section):
    """Where the corpus comes from: exactly one of ``dump``, ``world`` and ``generate``."""

    dump: str = Field(
        "", description="pages-articles dump (.xml.bz2, .xml.gz or .xml); tables and images/ are found beside it"
    )
    world: str = Field("", description="folder made by `synth world`")
    generate: GeneratedWorld | None = Field(None, description="generate a toy Wikipedia")
    unchecked_words: bool = Field(
        False,
        description="go on past paths though the checks of words do not know the wiki's language: no question is then "
        "proved, and difficulty keeps those that a solver answers",
    )


COMMONS_API = "https://commons.wikimedia.org/w/api.php"


class CommonsConfig(Section):
    """Wikimedia Commons: what its API says of pictures about which the corpus knows nothing, and the pictures."""

    api: str = Field(
        "",
        pattern=r"^(https?://[^\s@?#]+)?$",
        description="address of api.php, as https://commons.wikimedia.org/w/api.php, without user, password or "
        "parameters; empty: that one if pictures are fetched, else none is asked",
    )
    fetch: bool = Field(
        False, description="fetch pictures that are not at hand; each once, under its content's name in the image store"
    )

    @property
    def endpoint(self) -> str:
        """The address of the API that is asked; empty for none."""
        return self.api or (COMMONS_API if self.fetch else "")


class SeedsConfig(Section):
    """Which entities may be anchors."""

    limit: int = Field(0, ge=0, description="at most this many seeds; 0 is no limit")
    rule: Literal["opensearch-vl", "vsearcher"] = Field(
        "opensearch-vl",
        description="opensearch-vl: by infobox and incoming links; vsearcher: by few sitelinks and many statements; "
        "a key that names one of the two is ignored by the other",
    )
    endpoint: str = Field(
        "",
        pattern=rf"^$|{ADDRESS}",
        description="SPARQL 1.1 endpoint whose entities of classes are the candidates, as "
        "https://query.wikidata.org/sparql, without user, password or parameters; replies are recorded, so that each "
        "query is asked once. Empty: the corpus's articles",
    )
    classes: tuple[Qid, ...] = Field((), description="Qids, one of which an entity must be an instance of; () for any")
    min_in_degree: int = Field(
        50,
        ge=0,
        description="opensearch-vl: fewest articles linking to a seed; in a corpus of under a million articles 3 are "
        "enough",
    )
    hub_share: float = Field(
        0.015,
        ge=0.0,
        le=1.0,
        description="in a corpus of under a million articles the share of them, by in-degree, that are hubs: closed to "
        "walks, and under opensearch-vl no seeds; in a larger one 10,000 incoming links make a hub; countries, oceans, "
        "years and the like always are",
    )
    require_infobox: bool = Field(True, description="opensearch-vl: seeds need an infobox")
    require_image: bool = Field(True, description="seeds need a free lead picture, which is not too small")
    concepts: str = Field(
        "",
        description="method = concepts: file of visual concepts, one a line, each with its frequency after a tab; "
        "empty: the corpus's articles, with their in-degree. limit of them are drawn, or 10,000, half from the head "
        "and half from the tail",
    )


Dimension = Literal["hops", "domain", "answer_type", "difficulty"]
DIFFICULTIES = ("never", "seldom", "often")


class TargetsConfig(Section):
    """Target sizes: seeds are drawn in rounds, for the strata that lack rows, until all are full or cannot be filled.

    Without a target ``seeds.limit`` seeds are drawn once. Of rows beyond a target none is released or paid for further.
    """

    by: tuple[Dimension, ...] = Field(
        (),
        description="what tells strata apart: hops, the anchor's domain, the answer's type, and difficulty (never, "
        "seldom or often solved: no attempt, under half of them, or more was right); empty: one stratum a split",
    )
    rows: Annotated[dict[Split, Annotated[int, Field(ge=0)]], _complete(Split)] = Field(
        dict.fromkeys(get_args(Split), 0),
        description="rows in all of a split, the same number of every stratum: trajectories of sft, rows of rl, "
        "questions of eval, as vqa or exam has them",
    )
    strata: dict[Split, dict[str, Annotated[int, Field(ge=1)]]] = Field(
        {},
        description='instead of rows: those of the strata named, and of no other, as { sft = { "2, Person" = 20 } }: '
        "values in the order of targets.by",
    )
    rounds: int = Field(12, ge=1, description="most rounds of drawing")

    @property
    def wanted(self) -> bool:
        """Whether there is any target."""
        return any(map(self.wants, self.rows))

    def wants(self, split: Split) -> bool:
        """Return whether there is a target for a split."""
        return bool(self.rows[split] or self.strata.get(split))

    def name_strata(self, split: Split) -> dict[tuple[str, ...], int]:
        """Return the rows of the strata of a split that are named, by their values."""
        parts = ((name.split(","), rows) for name, rows in self.strata.get(split, {}).items())
        return {tuple(filter(None, map(str.strip, values))): rows for values, rows in parts}


OcrEngine = Literal["rapidocr", "layer"]
PluggableTool = Literal["text_search", "image_search", "pages"]
PluginName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class GroundingsConfig(Section):
    """Pictures."""

    min_side: int = Field(512, ge=1, description="shorter side, pixels")
    require_image: bool = Field(True, description="refuse rows without a usable picture")
    retrieval_rank: int = Field(
        10, ge=0, description="one search for the question may not find the answer's page among so many; 0 is off"
    )
    min_answers: int = Field(5, ge=0, description="distinct answers over all anchors of the type (N_img); 0 is off")
    ocr: tuple[OcrEngine, ...] = Field(
        ("rapidocr",), description="engines that look for readable names; () leaves that check out"
    )


ENCODER: dict[Literal["model", "pretrained"], str] = {"model": "ViT-L-14-quickgelu", "pretrained": ""}
"""The encoder where a configuration says nothing: none, for want of weights."""
Encoder = Annotated[dict[Literal["model", "pretrained"], str], AfterValidator(lambda given: ENCODER | given)]


class EnhancementsConfig(Section):
    """The shares of questions whose picture is degraded, with the tool that repairs it, or set in a larger one."""

    high_resolution: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="share of the questions whose picture becomes a small part of one of high resolution, to be cut "
        "out (SenseNova-MARS, 3.4)",
    )
    share: float = Field(
        0.1, ge=0.0, le=1.0, description="share of the questions that a release may keep; 0 degrades none"
    )
    substitute: bool = Field(
        False,
        description="let other degradations take the share of one that no tool repairs here, or of which too few "
        "can be repaired; false leaves it empty, so that those repaired keep equal shares",
    )
    degradations: tuple[Literal["blur", "downsample", "perspective"], ...] = Field(
        ("blur", "downsample", "perspective"), description="which, in equal shares"
    )


class ToolsConfig(Section):
    """What the agent's visual tools work with."""

    image_search: Literal["hash", "clip"] = Field(
        "hash",
        description="the corpus's search by picture. hash: by perceptual hash, finds copies; clip: by [encoder], finds "
        "likeness and parts, too",
    )
    layout: Literal["", "rapidocr", "layer"] = Field(
        "", description="engine behind layout_parsing; empty: there is no such tool"
    )
    edsr: str = Field(
        "", description="file of EDSR weights (EDSR_x2.pb to EDSR_x4.pb) behind super_resolution; empty: it warns"
    )
    family: Literal["local", "live"] = Field(
        "local", description="local: over the corpus, deterministic, no network; live: the services of [live]"
    )
    summarise: bool | Literal["auto"] = Field(
        False,
        description="models.summariser sums up pages that are searched for or visited; else passages are shown. auto: "
        "where models.summariser or models.default names a model",
    )
    pages_read: int = Field(
        2, ge=1, le=10, description="pages that a text search reads where the dialect's search reads pages"
    )
    thumbnails: int = Field(
        0, ge=0, le=10, description="pictures of an image search's results that are shown, each with a name of its own"
    )


LiveTool = Literal["search", "reader", "images"]


class LiveConfig(Section):
    """Services behind the live tools. Replies are recorded; keys are named by environment variables."""

    search: Literal["serper", "serpapi"] = Field("serper", description="whose protocol the text search speaks")
    reader: Literal["direct", "jina"] = Field(
        "direct", description="direct: pages are fetched here, with every address checked; jina: by a reader service"
    )
    images: Literal["google-vision", "serpapi"] = Field(
        "google-vision", description="whose protocol the image search speaks"
    )
    urls: dict[LiveTool | Literal["pictures"], Annotated[str, Field(pattern=ADDRESS)]] = Field(
        {},
        description="address of each service; one that is left out has the public one. pictures, for serpapi: where "
        "the workspace's images/ folder is published, as it takes addresses alone",
    )
    key_envs: dict[LiveTool, Variable] = Field(
        {}, description="environment variable with the key of each, if it wants one"
    )


class ServeConfig(Section):
    """A vLLM server of a model, on the port of its base_url: `synth serve-model ROLE` starts it."""

    own: bool = Field(False, description="a run starts the server when it first asks the model, and stops it")
    model: str = Field(
        "", description="weights that vLLM loads, a folder or a name on the Hub; empty: the model's name"
    )
    python: str = Field("", description="a Python that has vLLM; empty: the one that runs synth")
    arguments: tuple[str, ...] = Field((), description="further arguments of vLLM's server")
    gpus: int = Field(0, ge=0, description="GPUs behind one address, whose hours are counted; vLLM is spread over them")


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
Replies = Literal["schema", "json", "text"]
Addresses = Annotated[
    tuple[Annotated[str, Field(pattern=ADDRESS)], ...],
    BeforeValidator(lambda given: [given] if isinstance(given, str) and given else given or ()),
]
Price = Annotated[float, Field(ge=0.0)]
ROLES = {
    "writer": "writes canonical questions, and names what pictures of the news show",
    "rewriter": "writes descriptors and fuzzy questions",
    "evaluator": "reads every text back; never the model that wrote it",
    "path_judge": "reads pages for guided walks, ranks their steps and marks their paths",
    "solver": "attempts questions to measure difficulty",
    "teacher": "solves questions with tools: the rollouts",
    "judge": "judges answers, rollouts and pictures; never the model that it judges",
    "summariser": "sums up pages for the teacher",
}
Role = Annotated[str, Field(pattern=f"^(default|{'|'.join(ROLES)})$")]


class ModelConfig(Section):
    """A model in a role. A parameter that is not set is not sent, so that the server's own default holds."""

    adapter: Literal["openai", "scripted", "plugin"] = Field(
        "openai",
        description="who answers: an OpenAI-compatible server, the role's player of the toy world, or a plugin",
    )
    name: str = Field(
        "", description="the model's name at the server, in rows and in manifests; plugin: its entry point's name"
    )
    base_url: Addresses = Field(
        (), description="address of the API, as http://127.0.0.1:8000/v1; a list: the same model at each"
    )
    api_key_env: Variable = Field("", description="environment variable that holds the key; empty: none")
    revision: str = Field(
        "", description="tells two models of one name apart; part of a recording's key. Empty: the address is"
    )
    profile: str = Field(
        "",
        description="vendor whose keys are sent: openai (GPT-5 and the o-series), azure, anthropic, gemini, "
        "openrouter, deepseek, vllm or sglang. A server that refuses a key beyond it stops the run",
    )
    replies: Literal["", Replies] = Field(
        "",
        description="how a reply's shape is asked for: forced by a JSON schema, any JSON object (json), or nothing is "
        "forced (text); all are parsed and repaired alike. Empty: as the profile says, schema where there is none",
    )
    temperature: float | None = Field(None, ge=0.0, le=2.0, description="sampling temperature; 0 is greedy")
    max_tokens: int | None = Field(None, ge=1, description="longest reply")
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="further keys of every request, as { top_p = 0.9, reasoning_effort = 'low' }; scripted: abilities",
    )
    headers: dict[HeaderName, Annotated[str, Field(pattern=r"^[ -~]*$")]] = Field(
        default_factory=dict,
        description='further headers of every request; a secret is named as { x-key = "env:VARIABLE" }',
    )
    timeout: float = Field(120.0, gt=0.0, description="seconds for a whole reply")
    concurrency: int = Field(
        256, ge=1, description="most requests in flight at one address; fewer while it asks to slow down"
    )
    prices: dict[Literal["input", "output", "gpu_hour"], Price] = Field(
        default_factory=dict, description="of a million tokens in and out, and of an hour of one of serve.gpus"
    )
    mode: Literal["live", "batch"] = Field(
        "live",
        description="batch: by the server's Batch API, at half the price; a reply may take a day. Not for teacher and "
        "summariser, whose requests wait for one another",
    )
    serve: ServeConfig = ServeConfig()


Budgeted = Literal["money", "tokens", "gpu_hours"]


class RuntimeConfig(Section):
    """How the work is cut, and by what it is made; of all this ``shard_rows`` alone decides which rows are drawn."""

    shard_rows: int = Field(
        256,
        ge=1,
        description="seeds a shard; later stages keep the cut, and walks of one shard keep to shares together: another "
        "number draws other questions",
    )
    concurrency: int = Field(
        256,
        ge=1,
        description="records of a stage in flight at once, of all its shards together, or fewer: as many as its models "
        "take requests; of a question all rollouts count as one",
    )
    engine: Literal["local", "processes", "ray"] = Field(
        "local",
        description="what makes shards: this process, `runtime.workers` processes of this machine, or a Ray cluster",
    )
    workers: int = Field(
        0, ge=0, description="processes that read a dump, and that make shards; 0 is one for each core, or CPU of Ray"
    )
    address: str = Field(
        "",
        pattern=r"^([^\s:/]+:[0-9]+)?$",
        description="ray: the cluster, as HOST:6379 where `ray start --head` runs; a run starts on a host of it",
    )
    patience: float = Field(
        300.0, ge=0.0, description="seconds that every address of a model may be away or busy before the run stops"
    )
    unusable: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="share of requests of one kind without a usable reply (empty, cut, refused or unreadable) with "
        "which a stage stops; 1 stops none",
    )
    unscored: float = Field(
        0.2, ge=0.0, le=1.0, description="share of attempts that nobody could score with which the run stops; 1: never"
    )


class NewsConfig(Section):
    """Articles of the news, for method = "news" (BridgeVQA); their corpus is made of them alone."""

    source: str = Field(
        "",
        description="articles: a .jsonl file, an RSS or Atom feed, or a folder of such; empty: news/ of the world",
    )
    licence: str = Field(
        "",
        description="licence of texts and pictures that name none, as you have the right to publish them; empty: not "
        "known, so that nothing is published unless releases.unknown_licences says so",
    )
    after: str = Field(
        "", pattern=r"^(\d{4}-\d\d-\d\d)?$", description="articles of this day or older are refused, as 2026-06-30"
    )
    per_source: int = Field(0, ge=0, description="most articles of a source; 0 is no limit")
    fetch: bool = Field(
        False,
        description="fetch pictures that articles name by address, from public hosts within the limits of [live]; "
        "false: those that lie beside the articles alone",
    )
    decisions: str = Field(
        "",
        description="people's decisions on undecided chains: the CSV of review/bridges/ filled in, or what Argilla "
        "exports; empty: undecided ones are refused",
    )


class PathsConfig(Section):
    """Constrained walks."""

    hops: tuple[int, ...] = Field((2, 3, 4), description="path lengths h")
    weights: tuple[float, ...] = Field((0.4, 0.4, 0.2), description="probability of each length")
    walks: int = Field(10, ge=1, description="walks tried for a seed before it is dropped")
    per_seed: int = Field(1, ge=1, description="paths made from a seed")
    in_degree: dict[Literal["bridge", "answer"], tuple[int, int]] = Field(
        default_factory=dict,
        description="least and most articles that link to a bridge, and to the page with the answer, as in "
        "{ bridge = [2, 100] }; the papers bound the anchor's alone",
    )
    text_hops: bool = Field(False, description="allow hops made by a link in a sentence, beside infobox relations")
    guide: Literal["off", "model"] = Field(
        "off",
        description="model: models.path_judge reads relations out of each page, ranks the steps worth asking and marks "
        "every path; off: walks are drawn by chance",
    )
    least_mark: int = Field(
        3, ge=1, le=5, description="guided walks: least mark of interest, naturalness, determinacy and need (1 to 5)"
    )
    salience: bool = Field(
        False,
        description="prefer hops that tell things apart and facts that people ask for; false draws all alike, as "
        "published",
    )
    max_answer_share: float = Field(
        1.0,
        gt=0.0,
        le=1.0,
        description="largest share of a shard's paths that end at one entity, ask for one fact or have one answer; 1: "
        "no cap",
    )
    max_relation_share: float = Field(1.0, gt=0.0, le=1.0, description="the same of one relation; five may in any case")


class QuestionsConfig(Section):
    """Canonical questions, and what their answers must be."""

    agreement: Agreement = Field(
        "required",
        description="what a sentence of the answer's page must say beside the infobox: required (the same), "
        "uncontradicted (nothing else) or off",
    )
    read_pages: bool = Field(
        True, description="let the evaluator read the prose for the answer and for second values of the hops"
    )
    volatile: bool = Field(False, description="allow answers that change with time: populations, office holders, ranks")
    max_answer_share: float = Field(
        0.05, gt=0.0, le=1.0, description="largest share of one answer among all of its relation; 1 is no limit"
    )
    obfuscated_answers: float = Field(
        0.0, ge=0.0, le=1.0, description="share of fuller dates of which only the month and year, or year, is asked"
    )


class RewritesConfig(Section):
    """Fuzzy rewriting."""

    min_alone_first: int = Field(
        5, ge=1, description="entities the first bridge's descriptor must fit without the chain"
    )
    min_alone: int = Field(2, ge=1, description="the same for the other bridges")

    def require_alone(self, node: int) -> int:
        """Return how many entities the descriptor of a node (1 is the first hidden one) must fit without the chain."""
        return self.min_alone_first if node == 1 else self.min_alone


class InjectionsConfig(Section):
    """Rounds of text injection, for method = "injection"."""

    rounds: tuple[int, ...] = Field((1, 3, 5), description="numbers of rounds: easy, medium, hard")
    weights: tuple[float, ...] = Field((0.4, 0.3, 0.3), description="share of each number of rounds in a release")
    draws: tuple[float, ...] = Field(
        (),
        description="share of the seeds that each number of rounds is tried for first: more of one that fails more "
        "often; empty: weights",
    )
    trees: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="share of questions that are first tried as trees: some rounds hide an entity beside the chain "
        "from picture to answer; the others are first tried as chains",
    )
    tries: int = Field(10, ge=1, description="chains of one length tried for a seed and a number of rounds")


class DifficultyConfig(Section):
    """Attempts under conditions of rising cost, and which questions they refuse."""

    preset: Literal["opensearch-vl", "vsearcher", "mars", "fvqa"] = Field(
        "opensearch-vl",
        description="which conditions are measured and decide: opensearch-vl (no tool, then one image search), "
        "vsearcher (with the picture, text alone, picture too simple), mars (rare successes with the picture), fvqa "
        "(the solver searches as it likes, in the dialect of rollouts; what it searched when it was right is the "
        "label)",
    )
    attempts: int = Field(8, ge=1, description="attempts a condition and solver")
    probe_attempts: int = Field(
        2,
        ge=0,
        description="attempts at each end of a question, asked alone from a bridge on that is called by its type; one "
        "that is right refuses the question before anything else is tried. 0: none",
    )


class RolloutsConfig(Section):
    """Teacher rollouts."""

    splits: tuple[Split, ...] = Field(
        ("sft",), description="splits whose questions are rolled out; only sft releases trajectories, () rolls out none"
    )
    wanted: int = Field(
        2,
        ge=1,
        description="accepted trajectories of a question: rollouts are asked for in waves, each of as many as are "
        "missing; as many as attempts, or more: all attempts are made at once",
    )
    attempts: int = Field(5, ge=1, description="most rollouts of a question (K)")
    max_calls: int = Field(30, ge=1, description="tool calls a rollout; one more turn is left for the answer")
    max_context_tokens: int = Field(
        0,
        ge=0,
        description="tokens of transcript a rollout, as the teacher's server counts those in and out of a turn, else "
        "estimated from above, pictures left out; 0 is no limit",
    )
    dialect: Literal["synth", "opensearch-vl", "vsearcher", "mmsearch-r1", "mars", "dr-mmsearch", "native"] = Field(
        "synth",
        description="protocol that the teacher speaks: tags, tool names and system prompt of a published system, ours, "
        "or native tool calls",
    )


TrajectoryCheck = Literal[
    "tool-errors",
    "from-memory",
    "unsupported",
    "memory-jump",
    "path-not-covered",
    "repetition",
    "contaminated",
    "unknown-image",
    "unseen-claim",
    "too-long",
]
ALL_CHECKS: tuple[TrajectoryCheck, ...] = get_args(TrajectoryCheck)


class TrajectoriesConfig(Section):
    """The rejection cascade. Format and the answer always decide."""

    checks: tuple[TrajectoryCheck, ...] = Field(ALL_CHECKS, description="mechanical checks that refuse")
    max_tokens: int = Field(
        32_000, ge=0, description="length a student is trained at, pictures included, estimated from above; 0: no limit"
    )
    min_process: float = Field(
        0.0, ge=0.0, le=5.0, description="lowest mean mark that models.judge gives the way to the answer; 0: not asked"
    )
    verifications: tuple[Verification, ...] = Field(
        (),
        description="what models.judge must confirm, in place of its marks (mars): coherence (thoughts follow "
        "from what was seen and lead to the calls), plausibility (calls have a purpose, claims a source)",
    )


Layout = Literal["columns", "vsearcher", "fvqa", "livevqa", "infoseek", "webqa"]


class QuestionFile(Section):
    """A file of questions that others asked."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="your name for it, kept with each row")
    columns: dict[str, str] = Field(
        {},
        description="layout columns: where id, question, answer, answer_aliases, image, entity and language are; a dot "
        "leads into a nested column. Empty: usual names",
    )
    images: str = Field(
        "", description="folder of its pictures, by name or id, or WebQA's imgs.tsv; empty: they are in the file itself"
    )
    entities: str = Field("", description="infoseek: the file ..._withkb.jsonl, which says what each picture shows")


class BenchmarkConfig(QuestionFile):
    """Files of a benchmark; one ``[[releases.benchmarks]]`` each. Questions that overlap with it are refused."""

    path: tuple[str, ...] = Field(min_length=1, description="its files: Parquet, JSON or JSON lines")
    layout: Layout | Literal[""] = Field("", description="empty: recognised from the rows of each file")


class ReleasesConfig(Section):
    """Published datasets."""

    search_free: tuple[Share, Share] = Field(
        (0.0, 1.0),
        description="least and largest share of a split's questions that need no search, where that is known",
    )
    max_per_fact: int = Field(2, ge=1, description="questions of a split asking for one final fact")
    max_answer_share: float = Field(
        0.1,
        gt=0.0,
        le=1.0,
        description="largest share of one answer among a dataset's questions that ask for its relation, which is what "
        "guessing it scores; each answer is kept once in any case",
    )
    max_gold_share: float = Field(
        0.25,
        gt=0.0,
        le=1.0,
        description="largest share of the right answer among those that the words allow where the picture is not seen, "
        "each weighted by how many entities lead to it; of questions for training twice that",
    )
    max_skeleton_share: float = Field(
        0.05,
        gt=0.0,
        le=1.0,
        description="largest share of questions with the same words around names, types and values",
    )
    exam: bool = Field(False, description="release questions of the eval split as the dataset exam, not as vqa")
    apart_from: tuple[str, ...] = Field(
        (),
        description="folders of other releases: a question that shares an entity between picture and answer, the "
        "final fact, the answer or the picture with them is refused",
    )
    benchmarks: tuple[BenchmarkConfig, ...] = ()
    unknown_licences: bool = Field(
        False, description="publish pages and pictures whose licence is not known, as live tools bring them, marked so"
    )


class PluginsConfig(Section):
    """What other distributions add by entry points, chosen by name; none is imported that is not named."""

    prompts: str = Field("", description="of the group synth.prompts, in place of a folder: a package of such a folder")
    checks: tuple[PluginName, ...] = Field(
        (),
        description="of the group synth.checks: asked of every finished question that was walked, after our own checks",
    )
    stages: dict[PluginName, str] = Field(
        default_factory=dict,
        description='of the group synth.stages: after which stage each stands, as { shorten = "groundings" }',
    )
    tools: dict[PluggableTool, PluginName] = Field(
        default_factory=dict,
        description='of the group synth.backends: what answers a tool, as { text_search = "mine" }; a model in a role '
        "is named by models.ROLE.plugin",
    )
    settings: dict[PluginName, dict[str, bool | int | float | str]] = Field(
        default_factory=dict,
        description="what each plugin is made with, by its name; a secret is the name of a variable. Releases tell "
        "numbers and switches",
    )


class PoolConfig(QuestionFile):
    """Questions that others asked, from a file; one ``[[pools]]`` each. They have no proof, and are told apart."""

    path: str = Field(description="its file: .parquet, .pq, .jsonl or .json")
    layout: Layout = Field(
        "columns",
        description="fvqa: rows of MMSearch-R1 and MARS; columns: a table with usual names, as VSearcher's",
    )
    plugin: str = Field(
        "", description="instead of layout: name of an entry point of the group synth.sources that reads the file"
    )
    share: float = Field(
        0.0, ge=0.0, le=1.0, description="of all questions that come into difficulty; 0: all that the file has"
    )
    split: Split | Literal[""] = Field(
        "", description="split of all its rows; empty: by answer and entity, as walked questions are split"
    )
    licence: str = Field(
        "", description="of questions and pictures; unknown ones are released only with releases.unknown_licences"
    )
    source: str = Field("", pattern=ADDRESS[:-1] + "$|^$", description="web address of the set, for the attribution")


class RunConfig(Section):
    """Everything a run is told."""

    recipe: str = Field(description="name of the recipe")
    method: Literal["paths", "injection", "concepts", "news", "pools"] = Field(
        "paths",
        description="paths: walk, then hide (OpenSearch-VL); injection: ask, then hide behind facts (VSearcher); "
        "concepts: draw visual concepts and ask for their names or a fact (MMSearch-R1); news: questions about "
        "pictures of news articles (BridgeVQA); pools: ask none, all are of [[pools]], and the corpus is what local "
        "tools search",
    )
    seed: int = Field(7, ge=0, description="seed of every choice the pipeline makes")
    contact: str = Field(
        "", pattern=CONTACT, description="address or mail in the User-Agent; SPARQL, Commons and the web want one"
    )
    corpus: CorpusConfig = CorpusConfig()
    pools: tuple[PoolConfig, ...] = ()
    news: NewsConfig = NewsConfig()
    seeds: SeedsConfig = SeedsConfig()
    targets: TargetsConfig = TargetsConfig()
    commons: CommonsConfig = CommonsConfig()
    splits: Annotated[dict[Split, Share], _complete(Split)] = Field(
        SHARES, description="shares of entities and answer keys by split: sft becomes trajectories, rl tasks"
    )
    paths: PathsConfig = PathsConfig()
    questions: QuestionsConfig = QuestionsConfig()
    rewrites: RewritesConfig = RewritesConfig()
    injections: InjectionsConfig = InjectionsConfig()
    groundings: GroundingsConfig = GroundingsConfig()
    encoder: Encoder = Field(
        ENCODER,
        description="the model that says which picture fits which description (needs the extra clip): its "
        "architecture, as open_clip names it, and its weights, a name of open_clip's or a checkpoint file; empty "
        "weights: there is no encoder",
    )
    tools: ToolsConfig = ToolsConfig()
    live: LiveConfig = LiveConfig()
    difficulty: DifficultyConfig = DifficultyConfig()
    enhancements: EnhancementsConfig = EnhancementsConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    trajectories: TrajectoriesConfig = TrajectoriesConfig()
    releases: ReleasesConfig = ReleasesConfig()
    models: dict[Role, ModelConfig] = Field(
        default_factory=dict, description="the model in each role; a role takes from default what it does not set"
    )
    prompts: str = Field(
        "",
        description="folder of your own prompts, as NAME/v1.md with the front matter of those shipped; the highest "
        "version of a name takes the place of the shipped prompt. Empty: none",
    )
    plugins: PluginsConfig = PluginsConfig()
    budget: Annotated[dict[Budgeted, Price], _complete(Budgeted)] = Field(
        dict.fromkeys(get_args(Budgeted), 0.0),
        description="what one run may spend, 0 is no limit: money in the currency of prices, tokens in and out, and "
        "gpu_hours, as models.*.serve.gpus counts them; what is recorded costs nothing",
    )
    runtime: RuntimeConfig = RuntimeConfig()
    replies: Annotated[str, AfterValidator(check_address)] = Field(
        "",
        description="where recorded replies are kept, which decides none: a PostgreSQL database, as "
        "postgresql://user@host/database, for workers on several hosts. Its password is named by PGPASSWORD or "
        "~/.pgpass, or the whole address by env:VARIABLE. Empty: SQLite in the workspace, for the processes of one "
        "host",
    )

    @property
    def target_values(self) -> dict[Dimension, tuple[str, ...]]:
        """The values of each dimension of ``targets.by``; domains are those of the corpus."""
        lengths = zip(self.paths.hops, self.paths.weights, strict=True)
        return {
            "hops": tuple(str(hops) for hops, weight in lengths if weight > 0),
            "domain": (),
            "answer_type": get_args(AnswerType),
            "difficulty": DIFFICULTIES,
        }

    @property
    def summarises(self) -> bool:
        """Whether a model sums pages up for the agent."""
        return bool(self.tools.summarise) and "summariser" in self.roles

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that have a model."""
        return tuple(role for role in ROLES if role in self.models and self.models[role].name)
