"""Transcripts held against the settings that a manifest tells: protocol, ids, the rules they were accepted by."""

from collections.abc import Iterator

from pipelines.agent.cascade import ESTIMATED, examine_rollout
from pipelines.agent.dialects import SYNTH, find_dialect, list_specs, render_system, render_tools, translate_tools
from pipelines.config.disclosure import Told, read_sections
from pipelines.config.settings import TrajectoriesConfig
from pipelines.ids import digest_value, make_record_id
from pipelines.release.manifest import SERVED, ReleaseManifest
from pipelines.release.rows import find_text_dialect, shorten, strip_tokens
from schemas.datasets import Trajectory

EMPTY = digest_value("")
MOST_ATTEMPTS = 1000


def find_protocol_problems(manifest: ReleaseManifest, system: str, tools: str, dialect: str) -> Iterator[str]:
    """Yield what the system message, the tools and the dialect of all transcripts say otherwise than the settings."""
    told = manifest.told
    name, calls = told.get("rollouts.dialect"), told.get("rollouts.max_calls")
    if not isinstance(name, str) or not isinstance(calls, int):
        return
    spoken = find_dialect(name)
    if dialect != find_text_dialect(name).name:
        yield f"dialect: the rows are in {dialect}, the settings say {name}"
        return
    layout = told.get("tools.layout") != ""
    offers = [render_tools(list_specs(opencv, layout)) for opencv in (True, False)]
    fitting = [offer for offer in offers if translate_tools(offer, spoken) == tools]
    if not fitting:
        yield f"tools: they are not those that {name} offers: {shorten(tools)}"
        return
    ours = all(manifest.untold.get(key, EMPTY) == EMPTY for key in ("prompts.dir", "prompts.plugin"))
    if not ours and not spoken.native:
        return
    wanted = strip_tokens(render_system(SYNTH if spoken.native else spoken, fitting[0], calls))
    if system != wanted:
        yield f"messages: the system message is {shorten(system)}, the prompt's is {shorten(wanted)}"


def find_trajectory_problems(manifest: ReleaseManifest, trajectory: Trajectory, whole: bool) -> Iterator[str]:
    """Yield why a transcript could not have been accepted under the settings, and what of it is told otherwise.

    Args:
        manifest: of the release.
        trajectory: the transcript, with its observations made again.
        whole: whether all of them were.
    """
    told = manifest.told
    yield from _find_id_problems(manifest, trajectory)
    if told.get("tools.family") == "local":
        yield from _find_date_problems(manifest, trajectory)
    if not whole or "trajectories.checks" not in told:
        return
    rules = TrajectoriesConfig.model_validate(read_sections(told).get("trajectories", {}), strict=False)
    estimated = manifest.untold.get("trajectories.tokenizer") == EMPTY
    counted = estimated and told.get("rollouts.dialect") == trajectory.dialect
    if not counted:
        rules = rules.model_copy(update={"max_tokens": 0})
    fatal = told.get("rollouts.fatal_errors")
    result = examine_rollout(trajectory, None, rules, ESTIMATED, fatal if isinstance(fatal, int) else 3)
    yield from (f"messages: {fault.reason}: {fault.detail}" for fault in result.faults)
    if not result.faults and result.supports != trajectory.supports:
        yield f"supports: the row says {shorten(trajectory.supports)}, its observations {shorten(result.supports)}"
    if counted and result.tokens != trajectory.tokens:
        yield f"tokens: the row says {trajectory.tokens}, its messages take {result.tokens}"


def _find_date_problems(manifest: ReleaseManifest, trajectory: Trajectory) -> Iterator[str]:
    """Yield the problems of the dates of a transcript with local tools; scripted players have no day."""
    if trajectory.snapshot != manifest.snapshot:
        yield f"snapshot: the row says {shorten(trajectory.snapshot)}, its tools searched {manifest.snapshot}"
    if trajectory.day and not any(model.revision.startswith(SERVED) for model in manifest.models):
        yield f"day: the row says {shorten(trajectory.day)}, no reply was of a model behind a server"


def _find_id_problems(manifest: ReleaseManifest, trajectory: Trajectory) -> Iterator[str]:
    """Yield the problem of an id that no attempt of the manifest's teacher at the question has."""
    teacher = next((model for model in manifest.models if model.role == "teacher"), None)
    attempts: Told = manifest.told.get("rollouts.attempts")
    dialect = find_dialect(str(manifest.told.get("rollouts.dialect", SYNTH.name)))
    prompt = manifest.prompts.get(dialect.load_prompt().label)
    if teacher is None or prompt is None or not isinstance(attempts, int):
        return
    made = (
        make_record_id("rollout", [trajectory.parent_id, attempt, teacher.revision, prompt])
        for attempt in range(min(attempts, MOST_ATTEMPTS))
    )
    if trajectory.record_id not in made:
        yield f"id: {trajectory.record_id} is no attempt of {teacher.name} at {trajectory.parent_id}"
