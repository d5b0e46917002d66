"""A release verified as a whole: rows against proofs and corpus, rows against each other, documents against rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pydantic import ValidationError

from pipelines.config.settings import PluginsConfig
from pipelines.errors import CorruptInput, GateNotMet, RecordFailed
from pipelines.graph.query import Indexes
from pipelines.ids import digest_file
from pipelines.pictures import PictureStore
from pipelines.release.manifest import (
    MANIFEST,
    ReleaseManifest,
    check_release_files,
    read_release_manifest,
    render_manifest,
)
from pipelines.release.rows import ROW_TYPES, ProofRow, ReleaseRow, SftRow, explain_misfit, shorten
from pipelines.release.verify.documents import CLAIMED, Survey, find_document_problems, place_row, read_credits
from pipelines.release.verify.origin import (
    Ledger,
    check_together,
    describe_settings,
    find_manifest_problems,
    find_placement_problems,
    find_threshold_problems,
    name_maker,
    read_settings,
)
from pipelines.release.verify.questions import Asker, find_question_problems
from pipelines.release.verify.replaying import Replayer, remake_row
from pipelines.release.verify.reports import Problem, VerifyReport, describe_basis
from pipelines.release.verify.rows import RawRow, check_columns, find_row_problems, read_proof_rows, read_rows
from pipelines.release.verify.transcripts import find_protocol_problems, find_trajectory_problems

NO_PLUGINS = PluginsConfig()


def verify_release(
    folder: Path,
    ground: Indexes,
    advance: Callable[[int], None] = lambda done: None,
    plugins: PluginsConfig = NO_PLUGINS,
) -> VerifyReport:
    """Verify a release folder against a corpus.

    Args:
        folder: ``releases/<dataset>/<version>``.
        ground: the corpus the proofs refer to, built by anyone from the same dump.
        advance: called with the number of rows that are done.
        plugins: checks that may be asked, with their settings; a release alone makes no plugin's code run.
    """
    given = read_release_manifest(folder)
    manifest, problems = read_settings(given)
    found = digest_file(folder / MANIFEST)
    if (folder / MANIFEST).read_bytes() != render_manifest(given).encode():
        problems.append(Problem(MANIFEST, f"bytes: they are not those that publishing writes; {name_maker(manifest)}"))
    problems += check_columns(folder, manifest.dataset)
    try:
        check_release_files(folder)
    except GateNotMet as error:
        problems.insert(0, Problem("files", str(error)))
    with TemporaryDirectory(prefix="synth-verify-") as place, ExitStack() as stack:
        replayer = stack.enter_context(
            Replayer(ground.corpus, manifest, PictureStore(Path(place)), read_credits(folder))
        )
        check = ReleaseCheck(folder, manifest, ground, replayer, plugins)
        try:
            problems += check.run(advance)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            what = f"a Parquet file cannot be read as {manifest.dataset}: {error}"
            raise CorruptInput(f"release {folder}: {what}") from error
    return check.report(problems, found)


@dataclass
class ReleaseCheck:
    """One pass over a release's rows, and what it found out."""

    folder: Path
    manifest: ReleaseManifest
    ground: Indexes
    replayer: Replayer
    plugins: PluginsConfig = NO_PLUGINS
    rows: Counter[bool] = field(default_factory=Counter)
    """By whether there is a proof."""
    verified: Counter[bool] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    proofs: Mapping[str, ProofRow] = field(default_factory=dict)
    last: tuple[str, tuple[str, str]] = ("", ("", ""))
    """Split and place of the row before."""
    days: int = 0
    """Transcripts that tell the day of a reply."""

    def __post_init__(self) -> None:
        self.survey = Survey(self.manifest)
        self.asker = Asker.of(self.manifest, self.plugins)

    def run(self, advance: Callable[[int], None]) -> list[Problem]:
        """Return every problem but those of the manifest's own digests."""
        self.proofs, problems = read_proof_rows(self.folder)
        for raw in read_rows(self.folder / "data"):
            whats = self._check_row(raw)
            problems += [Problem(str(raw[2].get("id")), what) for what in whats]
            proof = self.proofs.get(self._name_question(raw))
            # A row whose proof is missing is not from outside: it counts as one that does not verify.
            proved = proof is None or bool(proof.proof.nodes) or proof.trace is not None
            self.rows[proved] += 1
            # What a check that cannot be asked has decided is not derived.
            self.verified[proved] += not whats and not (proved and self.asker.missing)
            advance(self.rows.total())
        whole = not problems
        problems += [Problem(MANIFEST, f"plugin: {what}") for what in self.asker.missing]
        problems += [*check_together(self.proofs, self.ledger), *self._check_manifest()]
        if whole and self.ledger.ids:
            # With a row that is wrong all that is written about the rows would be wrong, too.
            problems += find_document_problems(self.folder, self.survey)
        return problems

    def _check_manifest(self) -> Iterator[Problem]:
        manifest, proofs = self.manifest, list(self.proofs.values())
        yield from find_manifest_problems(manifest, self.ground.corpus)
        yield from find_threshold_problems(manifest, proofs)
        yield from find_placement_problems(manifest, proofs)
        for setting in sorted(self.ledger.settings)[:1]:
            yield from (Problem("data", what) for what in find_protocol_problems(manifest, *setting))
        if self.rows.total() != manifest.rows:
            yield Problem(MANIFEST, f"it says {manifest.rows} rows, the files hold {self.rows.total()}")
        splits = {name: (each.rows, len(each.questions)) for name, each in self.survey.facts.splits.items()}
        told = {each.name: (each.rows, each.questions) for each in manifest.splits}
        if self.verified == self.rows and splits != told:
            yield Problem(MANIFEST, f"splits: it says {told} rows and questions, the files hold {splits}")

    def _check_row(self, raw: RawRow) -> list[str]:
        split, index, values = raw
        self.ledger.ids[str(values.get("id"))] += 1
        question = self._name_question(raw)
        self.ledger.questions.add(question)
        proof = self.proofs.get(question)
        if proof is None:
            return [f"no proof for question {question}"]
        try:
            row: ReleaseRow = ROW_TYPES[self.manifest.dataset].model_validate(values, strict=False)
        except ValidationError as error:
            return [f"row: {explain_misfit(error)}"]
        if isinstance(row, SftRow):
            self.ledger.settings.add((row.messages[0].content if row.messages else "", row.tools, row.dialect))
        if question not in self.ledger.verdicts:
            found = find_question_problems(self.ground, proof)
            self.ledger.verdicts[question] = found or self.asker.find_problems(self.ground, proof)
        problems = self.ledger.verdicts[question] or find_row_problems(proof, row, index)
        if split != proof.split:
            problems = [*problems, f"split: the row's file is of {split}, its proof of {proof.split}"]
        return problems or list(self._survey_row(split, proof, row))

    def _survey_row(self, split: str, proof: ProofRow, row: ReleaseRow) -> Iterator[str]:
        try:
            made = remake_row(self.manifest.dataset, proof, row, self.replayer)
        except RecordFailed as error:
            yield f"images: a picture cannot be read: {error}"
            return
        yield from made.problems
        place = place_row(made.example)
        if self.last[0] == split and place <= self.last[1]:
            yield f"rows: it stands behind {self.last[1][1]}; rows are sorted by picture and id"
        self.last = (split, place)
        if made.example.trajectory is not None:
            self.days += bool(made.example.trajectory.day)
            yield from find_trajectory_problems(self.manifest, made.example.trajectory, made.replayed)
        if problem := self.survey.add(made.example, row):
            yield problem

    def _name_question(self, raw: RawRow) -> str:
        return str(raw[2].get("question_id" if self.manifest.dataset == "sft" else "id"))

    def report(self, problems: list[Problem], root: str) -> VerifyReport:
        """Return what was found."""
        return VerifyReport(
            dataset=self.manifest.dataset,
            version=self.manifest.version,
            rows=self.rows[True],
            verified=self.verified[True],
            problems=tuple(problems),
            claims=tuple(sorted({describe_basis(row) for row in self.proofs.values()})),
            unproved=self.rows[False],
            held=self.verified[False],
            root=root,
            underived=tuple(self._describe_underived()),
        )

    def _describe_underived(self) -> Iterator[str]:
        yield from describe_settings(self.manifest)
        tried = sum(bool(row.difficulty) for row in self.proofs.values())
        if tried:
            yield f"difficulty of {tried} questions, and what follows from it: the attempts are not in the release"
        if self.manifest.dataset == "sft":
            skipped = self.replayer.skipped
            yield f"words of the thoughts of {self.rows.total()} transcripts, held to the rules that accept them only"
            told = ", ".join(f"{tool} {times}" for tool, times in sorted(skipped.items()))
            yield (
                f"observations of {skipped.total()} calls ({told}), and what their rows point at"
                if skipped
                else (f"no observation: all {self.replayer.calls} calls were made again")
            )
        elif self.replayer.skipped:
            yield f"what a search by the picture finds, of {self.replayer.skipped.total()} questions"
        if self.replayer.alike:
            yield f"bytes of {self.replayer.alike} pictures: made again they look the same"
        outside = sum(row.origin is not None for row in self.proofs.values())
        if outside:
            yield f"splits of {outside} questions from outside: their pools decide"
        if reviewed := len(self.survey.facts.reviews):
            yield f"{reviewed} decisions of people: reviews.json is the author's word"
        if self.manifest.benchmarks:
            names = ", ".join(shorten(entry.name) for entry in self.manifest.benchmarks)
            yield f"benchmarks that questions were kept apart from, and how many were refused: {names}"
        yield from self.asker.unasked
        if self.manifest.articles is not None:
            yield f"rights in the texts of the articles: {shorten(self.manifest.articles.licence) or 'not known'}"
        if self.days:
            yield f"days of {self.days} transcripts"
        yield "funnel, models, stage keys, commit, writer and sizes in memory: they are the author's word"
        yield f"entries of quality.json: {', '.join(CLAIMED)}"
