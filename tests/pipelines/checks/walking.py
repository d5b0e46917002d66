"""A clean rollout of three pages made by hand, for the checks to be held against its faulty twins."""

from pipelines.agent.cascade import read_trail
from pipelines.agent.observations import Shown, render_hits, render_page
from pipelines.agent.transcript import Turn, render_turn
from pipelines.checks.rollouts import Trail
from pipelines.ids import canonical_json
from schemas.datasets import Observation, Picture, Rollout, RolloutImage, Step
from schemas.proofs import Answer

BASE = "https://en.wikipedia.org/wiki/"
ANSWER = Answer(
    type="date",
    value="1204-04-05",
    precision="day",
    unit="",
    surface="5 April 1204",
    aliases=("April 5, 1204", "1204-04-05"),
    key="date:1204-04-05",
)
PAGES = {
    "Kelm Bridge": "Designer: Ana Kovač\nOpened: 1931\n\nKelm Bridge is a bridge in Velm.",
    "Ana Kovač": "Birth place: Marlow\n\nAna Kovač was an engineer of 1,234 bridges.",
    "Marlow (town)": "Founded: 5 April 1204\nRiver: Ister\n\nMarlow is a town of 12,500 people.",
}
BRIDGE, ENGINEER, TOWN = PAGES
QUESTION = "When was the birthplace of the person who designed the bridge in the image founded?"


def make_picture(width: int = 640, height: int = 480) -> Picture:
    return Picture(
        sha256="a" * 64,
        extension="jpg",
        file="Kelm.jpg",
        width=width,
        height=height,
        phash="0" * 16,
        author="A. Author",
        licence="CC0",
        licence_url="https://example.org/cc0",
        source_url="https://example.org/Kelm",
    )


def make_url(title: str) -> str:
    return BASE + title.replace(" ", "_")


def see(text: str, **changes) -> Observation:
    return Observation(**{"ok": True, "error": "", "text": text, "images": ()} | changes)


def call(tool: str, seen: Observation, thought: str = "Let me go on.", **arguments) -> Step:
    source = canonical_json(arguments)
    reply = render_turn(Turn(thought, tool, source))
    return Step(thought=thought, tool=tool, arguments=source, reply=reply, observation=seen)


def look(*titles: str, **changes) -> Step:
    return call("image_search", see(show_hits(*titles)), image="img_1", **changes)


def search(query: str, *titles: str, **changes) -> Step:
    return call("text_search", see(show_hits(*titles)), query=query, **changes)


def visit(title: str, text: str | None = None, **changes) -> Step:
    page = render_page(Shown(make_url(title), title, PAGES.get(title, "") if text is None else text), 12_000)
    return call("visit", see(page), url=make_url(title), **changes)


def fail(tool: str = "visit", error: str = "unknown-page", **arguments) -> Step:
    return call(tool, see("There is no such page.", ok=False, error=error), **arguments)


def answer(text: str = "5 April 1204", thought: str = "The page says 5 April 1204.") -> Step:
    reply = render_turn(Turn(thought, answer=text))
    return Step(thought=thought, tool="", arguments="", reply=reply, observation=None)


def show_hits(*titles: str) -> str:
    return render_hits([Shown(make_url(title), title, PAGES.get(title, "A page.")) for title in titles], 600)


CLEAN = (
    look(BRIDGE),
    visit(BRIDGE),
    search("Ana Kovač", ENGINEER),
    visit(ENGINEER),
    search("Marlow", TOWN),
    visit(TOWN),
    answer(),
)


def make_rollout(*steps: Step, **changes) -> Rollout:
    last = steps[-1] if steps else None
    answered = last is not None and not last.tool
    settings = {
        "record_id": "rollout-00000001",
        "parent_id": "question-0001",
        "split": "sft",
        "attempt": 0,
        "teacher": "teacher",
        "prompt": "act/v3",
        "system": "Answer.",
        "question": QUESTION,
        "images": (RolloutImage(id="img_1", picture=make_picture()),),
        "steps": steps,
        "answer": last.reply.rpartition("<answer>")[2].removesuffix("</answer>") if answered else "",
        "stop_reason": "answered" if answered else "turn-limit",
        "reference": ANSWER,
        "bridges": (ENGINEER,),
        "path": tuple(PAGES),
    }
    return Rollout(**settings | changes)


def walk(*steps: Step, **changes) -> Trail:
    """Return the trail of a rollout; of no steps, that of the clean one."""
    return read_trail(make_rollout(*(steps or CLEAN), **changes))


def replace_step(number: int, *steps: Step) -> tuple[Step, ...]:
    """Return the clean steps with one of them replaced by none, one or several."""
    place = number % len(CLEAN)
    return (*CLEAN[:place], *steps, *CLEAN[place + 1 :])
