"""A sample of questions for people to judge, and what they said of it.

``review/questions/`` holds the forms, ``sample.json`` (every question that was ever given out, with its stratum) and
``decisions.json``, which a run puts into its releases: the version is another one, and card and report say the result.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import ConfigError, CorruptInput, Damaged
from pipelines.files import write_bytes, write_text
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore
from pipelines.release.making import make_chain, name_picture, read_proofs
from pipelines.release.manifest import check_release_files
from pipelines.release.reviewed import (
    Numbers,
    Review,
    measure_reviews,
    name_group,
    parse_reviews,
    render_reviews,
)
from pipelines.release.rows import ProofRow, read_values
from pipelines.run.reviewing import Said, read_forms, write_forms
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace, read_names, write_names
from schemas.datasets import Enhancement, Picture

Question = Enhancement | ProofRow
SAMPLE, DECISIONS = "sample.json", "decisions.json"
IMPORTED = "bring it back, or remove it and import the forms again"
GIVEN_OUT = "bring it back, or remove it and export the sample again"


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What was written out for people."""

    folder: Path
    questions: int
    drawn_from: int
    strata: dict[str, int]
    """Questions of the sample by stratum."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read back."""

    file: Path
    added: int
    known: int
    """Decisions that an earlier import brought already."""
    result: dict[str, Numbers] = field(default_factory=dict)
    """Of all decisions so far, by stratum; see :func:`pipelines.release.reviewed.measure_reviews`."""


def find_folder(workspace: Workspace) -> Path:
    """Return where samples and decisions lie."""
    return workspace.reviews / "questions"


def read_decided(workspace: Workspace) -> tuple[Review, ...]:
    """Return everything that people decided on questions of a workspace.

    Raises:
        CorruptInput: if the file of decisions has other bytes than were written.
    """
    path = find_folder(workspace) / DECISIONS
    if not path.is_file():
        return ()
    try:
        return parse_reviews(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptInput(f"{path}: is not what was imported; {IMPORTED}") from error


def export_sample(workspace: Workspace, release: Path | None, size: int, seed: int) -> SampleReport:
    """Write a stratified sample out for people.

    A stratum is hops, domain and how often a question was solved. Every stratum has its share of the sample, so that a
    share of the sample is an estimate of the share of all; what is drawn depends on the questions and the seed alone.

    Args:
        workspace: that the forms are written into.
        release: to draw from; None for the questions that the last run selected.
        size: of the sample; all questions where there are no more.
        seed: of the draw.

    Raises:
        ConfigError: if there are no questions to draw from.
        GateNotMet: if the release is not what its manifest says.
    """
    if release is not None:
        check_release_files(release)
    strata = {row.record_id: _name_group(row) for row in _read_questions(workspace, release)}
    if not strata:
        raise ConfigError("review export: there are no questions; let `synth run` come to its selections first")
    drawn = draw_sample(strata, size, seed)
    rows = [row for row in _read_questions(workspace, release) if row.record_id in drawn]
    folder = find_folder(workspace)
    places = _place_pictures(workspace, release, [row.picture for row in rows if row.picture])
    write_forms(folder, "questions", [_describe(row, places) for row in rows])
    known = read_sample(workspace) | {key: strata[key] for key in drawn}
    write_names(folder / SAMPLE, known)
    return SampleReport(folder, len(drawn), len(strata), dict(sorted(Counter(drawn.values()).items())))


def draw_sample(strata: Mapping[str, str], size: int, seed: int) -> dict[str, str]:
    """Return a sample by id with strata: every n-th question of all, ordered by stratum and then at random."""
    ordered = sorted(strata, key=lambda key: (strata[key], digest_value([seed, key])))
    count = min(size, len(ordered))
    chosen = (ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count))
    return {key: strata[key] for key in chosen}


def _read_questions(workspace: Workspace, release: Path | None) -> Iterator[Question]:
    if release is not None:
        yield from read_proofs(release)
        return
    key = workspace.read_latest().get("selections", "")
    if key:
        yield from read_parts(workspace.stage("selections", key), Enhancement)


def _name_group(row: Question) -> str:
    cells = row.cells if isinstance(row, Enhancement) else row.difficulty
    return name_group(row.hops_named, row.domain, cells)


def _describe(row: Question, places: Mapping[str, Path]) -> dict[str, str]:
    links = (f"{link.subject}: {link.relation}: {link.object}" for link in make_chain(row))
    return {
        "id": row.record_id,
        "picture": str(places[row.picture.sha256].resolve()) if row.picture else "",
        "question": row.text,
        "answer": row.answer.surface,
        "steps": " → ".join(row.trace.steps if row.trace else links),
        "remark": "",
    }


def _place_pictures(workspace: Workspace, release: Path | None, pictures: Sequence[Picture]) -> dict[str, Path]:
    """Return the files of pictures by sha256; those that only the release holds are written beside the forms.

    Raises:
        ConfigError: if one is nowhere.
    """
    store, folder = PictureStore(workspace.images), find_folder(workspace) / "pictures"
    places = {picture.sha256: store.path(picture.sha256, picture.extension) for picture in pictures}
    missing = {name_picture(each): each.sha256 for each in pictures if not places[each.sha256].is_file()}
    for path in sorted((release / "data").glob("*.parquet")) if release is not None and missing else ():
        for row in read_values(path):
            for image in [row.get("image"), *(row.get("images") or ())]:
                if image and (sha256 := missing.pop(image["path"], "")):
                    places[sha256] = folder / image["path"]
                    write_bytes(places[sha256], image["bytes"])
    if missing:
        raise ConfigError(f"review export: picture {min(missing)} is neither in {workspace.images} nor in the release")
    return places


def read_sample(workspace: Workspace) -> dict[str, str]:
    """Return the questions that were ever given out, each with its stratum.

    Raises:
        CorruptInput: if the list has other bytes than were written.
    """
    path = find_folder(workspace) / SAMPLE
    try:
        return read_names(path)
    except Damaged as error:
        raise CorruptInput(f"{path}: is not what was exported; {GIVEN_OUT}") from error


def import_decisions(workspace: Workspace, files: Iterable[Path]) -> ImportReport:
    """Add what people said to ``decisions.json``; nothing is written unless every decision is valid.

    Raises:
        ConfigError: naming file and line, if a decision is on no question of a sample, is no word that is allowed, does
            not say who decided and when, or is a person's second one on a question.
    """
    folder = find_folder(workspace)
    strata, before = read_sample(workspace), read_decided(workspace)
    if not strata:
        raise ConfigError(f"review import: no sample was given out from {workspace.root}; see `synth review export`")
    file = folder / DECISIONS
    decided = {(review.question, review.reviewer): (review, str(file)) for review in before}
    spelling = {review.reviewer.casefold(): review.reviewer for review in before}
    told: dict[tuple[str, str], Review] = {}
    for said in (each for path in files for each in read_forms(path, "review import")):
        review = _settle(said, strata)
        # A person's name is spelt as it was first.
        name = spelling.setdefault(review.reviewer.casefold(), review.reviewer)
        review = review.model_copy(update={"reviewer": name})
        key = review.question, review.reviewer
        earlier, where = decided.get(key, (review, ""))
        if key in told or earlier.accepted != review.accepted:
            raise ConfigError(
                f"{said.where}: {review.reviewer} decided on {said.id} before: {where}; "
                f"keep one of the two; for a changed mind remove {file} and import the forms again"
            )
        told[key] = review
        if not where:
            decided[key] = review, said.where
    reviews = [review for review, _ in decided.values()]
    write_text(file, render_reviews(reviews))
    added = len(reviews) - len(before)
    return ImportReport(file, added, len(told) - added, measure_reviews(strata, reviews))


def _settle(said: Said, known: Mapping[str, str]) -> Review:
    if said.id not in known:
        raise ConfigError(f"{said.where}: {said.id!r} is no question of a sample that was given out here")
    decision = said.settle()
    return Review(
        question=said.id, reviewer=decision.decided_by, accepted=decision.accepted, decided_on=decision.decided_on
    )
