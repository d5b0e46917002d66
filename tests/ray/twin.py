"""``python -m tests.ray.twin JSON``: makes all shards of the stages that are still open, whoever else makes them, too.

JSON holds the parameters of the flow. Nothing is claimed and nothing is sealed, as in a worker.
"""

import json
import sys
from contextlib import closing
from pathlib import Path

from pipelines.cli.commands import load_config
from pipelines.run.assembly import Assembly
from pipelines.run.chains import link_stages
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import Reporter
from pipelines.run.workers import Span, WorkerSpec, list_missing, run_span
from pipelines.run.workspace import Workspace


def main() -> None:
    """Make the shards of the first open chain."""
    given = json.loads(sys.argv[1])
    config = load_config("", [], [f"seeds.limit={given['limit']}", *given["settings"]])
    workspace = Workspace(Path(given["workspace"]))
    corpus, _ = ensure_corpus(config.corpus, workspace, Reporter())
    with closing(Assembly(config, workspace, corpus)) as assembly:
        spec = WorkerSpec(config, workspace.root, "", assembly.corpus_entry, "twin")
        chain = next(c for c in link_stages(assembly.plan_stages("")) if c[0].folder.read_manifest() is None)
        span = Span(tuple((plan.name, plan.key) for plan in chain), tuple(list_missing(chain)))
    report = run_span(spec, span)
    if report.error is not None:
        raise report.error


if __name__ == "__main__":
    main()
