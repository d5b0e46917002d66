"""Commands that measure checks, judges and the parts of a recipe, and those that serve runs: worlds, deployments."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    LimitOption,
    ModelsOption,
    RecipeOption,
    RunOption,
    SetOption,
    WorkspaceOption,
    app,
    bench,
    emit,
    emit_json,
    emit_table,
    interruptible,
    to_json,
)

if TYPE_CHECKING:
    from pipelines.run.ablations import Ablated

NIGHTLY = "0 2 * * *"


@app.command("deploy")
def deploy_command(  # noqa: PLR0913 - a command line has the options it has
    run: Annotated[
        str, typer.Argument(help="Run that is deployed, or a recipe, as of `synth run`.", metavar="[RUN]")
    ] = "",
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    limit: LimitOption = 0,
    budget: Annotated[float, typer.Option("--budget", min=0.0, help="Money a run may spend; 0 is no limit.")] = 0.0,
    models: ModelsOption = "",
    set_: SetOption = None,
    cron: Annotated[str, typer.Option("--cron", help="When the run starts: minute hour day month weekday.")] = NIGHTLY,
    timezone: Annotated[str, typer.Option("--timezone", help="Of --cron, such as Europe/Berlin.")] = "UTC",
    name: Annotated[str, typer.Option("--name", help="Of this workspace, where a server runs several.")] = "",
    split: Annotated[bool, typer.Option("--split", help="Schedule the run in parts, each in its own pool.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Give a Prefect server a run every night: pools, limits, schedules; a second time changes nothing."""
    from pipelines.cli.commands import name_limits
    from pipelines.cli.deploying import deploy_run, describe_deployed
    from pipelines.cli.naming import RunChoice, make_request

    # Refused now and not at two in the night; and by then another run may be the last one.
    limits = tuple(name_limits(limit, budget))
    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()), limits, models)
    parameters = {
        "workspace": str(workspace.resolve()),
        "name": make_request(choice, workspace).name,
        "recipe": recipe,
        "configs": [str(path.resolve()) for path in config or []],
        "limit": limit,
        "budget": budget,
        "settings": set_ or [],
        "models": models,
    }
    deployed = deploy_run(parameters, cron, timezone, name, split)
    emit_json(deployed) if as_json else emit(describe_deployed(deployed))


@app.command("world")
def world_command(
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist or be empty.")],
    entities: Annotated[int, typer.Option(min=60, max=200_000, help="Articles about entities.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 7,
    missing: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of infobox fields left to the prose.")] = 0.1,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Generate a toy Wikipedia: dump, tables, Wikidata, pictures, and the truth beside them."""
    from pipelines.toy.publishing import write_world
    from pipelines.toy.world import WorldConfig

    summary = write_world(out, WorldConfig(entities=entities, seed=seed, missing=missing))
    emit_json(to_json(summary)) if as_json else emit(
        f"{out}: {', '.join(f'{name} {count:,}' for name, count in summary.items())}"
    )


@bench.command("judge")
def bench_judge_command(  # noqa: PLR0913 - as above
    pairs: Annotated[int, typer.Option(help="Planted answers of each kind.")] = 150,
    seed: Annotated[int, typer.Option(help="Seed of the plants.")] = 7,
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Plant near misses and true paraphrases; measure the typed comparer, and a recipe's judges where one is named."""
    from pipelines.cli.commands import measure_judges
    from pipelines.cli.judge_card import render_judge

    report = measure_judges(pairs, seed, recipe, config, set_ or [], workspace)
    emit_json(to_json(report)) if as_json else emit_table(render_judge(report))


@app.command("ablate")
def ablate_command(  # noqa: PLR0913 - a command line has the options it has
    run: RunOption = "",
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Leave out this alone; may be repeated.")] = None,
    limit: LimitOption = 0,
    models: ModelsOption = "",
    set_: SetOption = None,
    card: Annotated[Path | None, typer.Option("--card", help="Write the table as Markdown to this file.")] = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Run a recipe whole and with one thing left out at a time, and say what checks and solvers find on the rows."""
    from copy import deepcopy

    from pipelines.cli.commands import name_limits, run_recipe
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.config.loading import make_config
    from pipelines.files import write_text
    from pipelines.run.ablations import ablate, choose_switches

    limits = tuple(name_limits(limit, 0.0))
    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()), limits, models)
    tables = make_request(choice, workspace).tables

    def load(*settings: str) -> "Any":  # noqa: ANN401 - RunConfig, which help does not wait for
        return make_config(deepcopy(tables), settings)

    chosen = choose_switches(only or [])
    with interruptible():
        found = ablate(load, chosen, workspace, lambda settings: run_recipe(settings, workspace, "", []))
    if card is not None:
        write_text(card, render_card(load(), found))
    emit_json([each.as_dict() for each in found]) if as_json else emit("\n".join(list_lines(found)))


def list_lines(found: "list[Ablated]") -> list[str]:
    """Return the table as lines of Markdown: what is left out, its measure whole and without, rows and cost."""
    lines = [
        "| left out | measure | whole recipe | without | difference | rows vqa + sft | calls | cost |",
        "|---|---|---:|---:|---|---:|---:|---:|",
    ]
    whole = found[0]
    for each in found:
        measure = each.switch.measure if each.switch else ""
        shown = [_show(run.measures[measure]) if measure else "" for run in (whole, each)]
        rows = f"{each.rows.get('vqa', 0):,} + {each.rows.get('sft', 0):,}"
        name = each.switch.name if each.switch else "nothing"
        lines.append(
            f"| {name} | {measure} | {shown[0]} | {shown[1]} | {each.compare(whole)} | {rows} "
            f"| {each.calls:,} | {each.cost:,.4f} |"
        )
    return lines


def _show(share: Any) -> str:  # noqa: ANN401 - Share, which help does not wait for
    low, high = share.interval
    return f"{share.hits} of {share.of}: {share.value:.1%} ({low:.0%} to {high:.0%})"


def list_measures(found: "list[Ablated]") -> list[str]:
    """Return every measure of every run as lines of Markdown."""
    names = list(found[0].measures)
    lines = ["| left out | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for each in found:
        name = each.switch.name if each.switch else "nothing"
        lines.append(f"| {name} | " + " | ".join(f"{each.measures[key].value:.1%}" for key in names) + " |")
    return lines


_NOTES = (
    "How to read it:",
    "",
    "- Without anchoring, fuzzing, retrieval, enhancement, cascade or process judge the measure is what the switch",
    "  itself leaves in. Such a row shows that switch and measure are wired, not what the part is worth.",
    "- Anchoring is measured by `one link away`. That was chosen after `solved by image+image-search` had shown no",
    "  effect in an earlier pass with scripted players (23.9% with, 25.0% without).",
    "- Filtering counts as solved what is answered in at least half of the attempts. Scripted, the examiner has the",
    "  same abilities as the solver of the run, with luck of its own. That rule was chosen after others: in earlier",
    "  passes `solved at least once` had shown +9.6 points (25.7% with, 35.3% without), and a keener examiner +5.3.",
    "- Scripted players have the abilities that they are given: no number here says how a model would fare.",
)
"""What a reader must know of how the measures were chosen; the numbers are of the passes before."""


def _list_notes(found: "list[Ablated]") -> list[str]:
    """Return the notes, with what this pass left in all the time, and whether it was a rerun."""
    from pipelines.run.ablations import SWITCHES

    done = {each.switch.name for each in found if each.switch}
    rest = [switch.name for switch in SWITCHES if switch.name not in done]
    notes = [*_NOTES]
    if rest:
        notes.append(f"- Not left out in this pass, and so not measured: {', '.join(rest)}.")
    if not any(each.calls for each in found):
        notes.append("- Calls and cost are of a rerun on recorded stages, so they are nil.")
    return notes


def render_card(config: Any, found: "list[Ablated]") -> str:  # noqa: ANN401 - RunConfig
    """Return the page of a recipe's ablations: its world, seed and players, and the tables."""
    settings = config.models["solver"].extra_body
    players = ", ".join(f"{role} {config.models[role].name}" for role in config.roles)
    return "\n".join([
        f"# Ablations of {config.recipe}",
        "",
        "What the checks, and solvers under every condition, find on released rows when one thing is left out. Made by",
        f"`synth ablate --recipe {config.recipe} --card FILE`; Wilson intervals of 95%, the question is the unit.",
        "Calls and cost are what this pass paid: a stage or a reply that was there before costs nothing again.",
        "",
        *_list_notes(found),
        "",
        f"Corpus: {_describe_world(config.corpus)}. Seed of the run: {config.seed}. Players: {players}; abilities of",
        f"the solver: {settings}.",
        "",
        *list_lines(found),
        "",
        "Every measure:",
        "",
        *list_measures(found),
        "",
    ])  # fmt: skip


def _describe_world(corpus: Any) -> str:  # noqa: ANN401 - CorpusConfig
    """Return how a generated world was made, or the name of a dump."""
    if corpus.dump:
        return Path(corpus.dump).name
    made = corpus.generate.model_dump() if corpus.generate else {}
    if corpus.world:
        made = json.loads((Path(corpus.world) / "world.json").read_text(encoding="utf-8"))["config"]
    return f"a generated world, {made['entities']:,} entities, seed {made['seed']}"
