"""Getting a run its corpus: a dump named by the user, a generated world, or one generated here; built once each."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from pipelines.config.settings import CorpusConfig, GeneratedWorld, RunConfig
from pipelines.corpus.addresses import find_licence_url
from pipelines.corpus.articles import DUMP, name_source, read_articles, write_news
from pipelines.corpus.dump import list_parts
from pipelines.corpus.manifest import InputFile, clear_unfinished, digest_corpus, find_side_files
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.files import clear_temps
from pipelines.ids import digest_file, digest_value
from pipelines.memory import count_cores
from pipelines.run.progress import Reporter
from pipelines.run.workspace import Workspace, read_names, write_names
from pipelines.services.addresses import Guard
from pipelines.services.clients.http import HttpClient
from pipelines.services.clients.news import NewsPictures

DUMP_PATTERN = "*-pages-articles*.xml*"


def find_dump(config: CorpusConfig, workspace: Workspace, reporter: Reporter) -> Path:
    """Return the dump of a run, generating a world first when the configuration asks for one.

    Raises:
        ConfigError: if there is no such dump or world.
    """
    if config.dump:
        dump = Path(config.dump)
        if not dump.is_file():
            raise ConfigError(f"corpus.dump {dump}: no such file; name a pages-articles .xml.bz2, .xml.gz or .xml")
        return dump
    folder = Path(config.world) if config.world else _ensure_world(config.generate, workspace, reporter)
    if not folder.is_dir():
        raise ConfigError(f"corpus.world {folder}: no such folder; make one with `synth world {folder}`")
    dumps = sorted(path for path in folder.glob(DUMP_PATTERN) if "-index" not in path.name)
    if len(dumps) != 1:
        raise ConfigError(f"corpus.world {folder}: {len(dumps)} files match {DUMP_PATTERN}; a world has one dump")
    return dumps[0]


def _ensure_world(config: GeneratedWorld | None, workspace: Workspace, reporter: Reporter) -> Path:
    if config is None:
        raise ConfigError("corpus: none of dump, world and generate is set")
    # Imported here because production works without the toy.
    from pipelines.toy.publishing import write_world
    from pipelines.toy.world import WorldConfig

    folder = place_world(config, workspace)
    if folder.is_dir():
        return folder
    clear_temps(workspace.worlds)
    reporter.begin("world", unit="entities")
    summary = write_world(folder, WorldConfig(**config.model_dump()))
    reporter.finish(f"{summary['articles']:,} articles, {summary['pictures']:,} pictures in {folder}")
    return folder


def place_world(config: GeneratedWorld, workspace: Workspace) -> Path:
    """Return where the world of some settings is, or would be generated."""
    from pipelines.toy.publishing import WORLD_FORMAT

    return workspace.worlds / digest_value([WORLD_FORMAT, config])[:16]


def settle_source(config: RunConfig, workspace: Workspace, reporter: Reporter) -> CorpusConfig:
    """Return where the dump of a run is; articles of the news are first written as an export, once for each source.

    Raises:
        ConfigError: if there is no such dump, world or source.
        CorruptInput: if a file of the source cannot be read.
        Unavailable: if no picture can be fetched.
    """
    if config.method != "news":
        return config.corpus
    source, news = _find_source(config, workspace, reporter), config.news
    if news.fetch:
        reporter.begin("news", unit="pictures")
        found = asyncio.run(_make_fetcher(config, workspace).fetch_all(_list_addresses(source)))
        reporter.finish(f"{len(found):,} pictures at hand of those that articles name by address")
    export = find_export(config, workspace, reporter)
    if not export.parent.is_dir():
        workspace.news.mkdir(parents=True, exist_ok=True)
        clear_temps(workspace.news)
        fetched = _find_fetched(config, workspace, source)
        write_news(source, export.parent, news.licence, find_licence_url(news.licence), fetched)
    return CorpusConfig(dump=str(export))


def find_export(config: RunConfig, workspace: Workspace, reporter: Reporter) -> Path:
    """Return where the export of a run's articles is or would be.

    Raises:
        ConfigError: if there is no such source or world.
    """
    source, news = _find_source(config, workspace, reporter), config.news
    name = name_source(source, news.licence, find_licence_url(news.licence), _find_fetched(config, workspace, source))
    return workspace.news / name / DUMP


def _make_fetcher(config: RunConfig, workspace: Workspace) -> NewsPictures:
    return NewsPictures(workspace.news / "pictures", config.contact, HttpClient(), Guard())


def _list_addresses(source: Path) -> Iterator[str]:
    return (article.picture_url for article in read_articles(source) if article.picture_url and not article.picture)


def _find_fetched(config: RunConfig, workspace: Workspace, source: Path) -> dict[str, Path]:
    """Return the pictures that were fetched for a source; nothing is fetched here."""
    if not config.news.fetch:
        return {}
    return _make_fetcher(config, workspace).find_at_hand(_list_addresses(source))


def _find_source(config: RunConfig, workspace: Workspace, reporter: Reporter) -> Path:
    named = config.news.source
    source = Path(named) if named else find_dump(config.corpus, workspace, reporter).parent / "news"
    if not source.exists():
        raise ConfigError(f"news.source {source}: no such file or folder; name a .jsonl file, a feed or a folder")
    return source


def ensure_corpus(
    config: CorpusConfig, workspace: Workspace, reporter: Reporter, workers: int = 0
) -> tuple[Corpus, bool]:
    """Open the corpus of a run, building it when the workspace has none for this very dump.

    Args:
        config: where the dump is.
        workspace: where corpora are.
        reporter: told how far a build is.
        workers: processes that read the dump; 0 is one for each core.

    Returns:
        The corpus, and whether it was built now.

    Raises:
        ConfigError: if the dump is missing.
        CorruptInput: if it is not a dump, or ends too early, or the corpus that is there is damaged.
    """
    dump = find_dump(config, workspace, reporter)
    folder = workspace.corpora / name_corpus(dump, workspace)
    if folder.exists():
        corpus = Corpus.open(folder)
        clear_unfinished(workspace.corpora)
        return corpus, False
    # Imported here, as below, because a run whose corpus is there starts sooner without.
    from pipelines.corpus.build import build_corpus

    workspace.corpora.mkdir(parents=True, exist_ok=True)
    clear_temps(workspace.corpora)
    build_corpus(dump, folder, follow_phases(reporter), workers or count_cores())
    return Corpus.open(folder), True


def follow_phases(reporter: Reporter) -> Callable[[str, int, int], None]:
    """Return a listener to a corpus build that tells each of its phases as a piece of work."""
    current = ("", 0)

    def listen(phase: str, done: int, total: int) -> None:
        nonlocal current
        scale, unit = (1e6, "MB") if phase in ("templates", "pages") else (1, "pages")
        if phase != current[0] or total not in (0, current[1]):
            current = (phase, total)
            reporter.begin(f"corpus {phase}", round(total / scale), unit)
        reporter.advance(round(done / scale))

    return listen


def name_corpus(dump: Path, workspace: Workspace) -> str:
    """Return the folder name of a dump's corpus: its stem, and a digest of the dump and the files beside it."""
    known = read_names(workspace.root / "inputs.json")
    side = find_side_files(dump)
    files = [*(("dump", path) for path in list_parts(dump)), *side.list_files()]
    inputs = [InputFile(role, path.name, _digest_once(path, known), 0) for role, path in files]
    if side.images is not None:
        inputs.append(InputFile("pictures", "images", _digest_pictures(side.images.parent, known), 0))
    write_names(workspace.root / "inputs.json", known)
    return f"{dump.name.split('-pages-', 1)[0].split('.', 1)[0]}-{digest_corpus(tuple(inputs))[:12]}"


def digest_input(path: Path, workspace: Workspace) -> str:
    """Return a digest of a file's bytes, or of a folder's names and bytes; what has not changed is not read again."""
    known = read_names(workspace.root / "inputs.json")
    count = len(known)
    digest = _digest_pictures(path, known) if path.is_dir() else _digest_once(path, known)
    if len(known) > count:
        write_names(workspace.root / "inputs.json", known)
    return digest


def _digest_once(path: Path, known: dict[str, str]) -> str:
    """Return a file's sha256, hashed again only when its size or time of change is another: a dump has 24 GB."""
    seen = path.stat()
    mark = f"{path.resolve()} {seen.st_size} {seen.st_mtime_ns}"
    if mark not in known:
        known[mark] = digest_file(path)
    return known[mark]


def _digest_pictures(folder: Path, known: dict[str, str]) -> str:
    """Return a digest of all pictures' names and bytes, hashed again only when a name, size or time has changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    seen = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    mark = f"{folder.resolve()} {digest_value(seen)}"
    if mark not in known:
        known[mark] = digest_value([[name, digest_file(path)] for (name, _, _), path in zip(seen, files, strict=True)])
    return known[mark]
