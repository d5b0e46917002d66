"""Run a recipe, and look at what it made with DuckDB.

    python data_cards/docs/examples/run_and_look.py [WORKSPACE [SECTION.KEY=VALUE ...]]

Without settings it makes a toy Wikipedia of 600 entities: no key, GPU or network. What is done is not done again.
"""

import sys

import duckdb

from pipelines.api import open_workspace, run


def main(folder: str, settings: list[str]) -> None:
    """Run the demo in a folder and print what became of its rows."""
    document = run("demo", folder, settings=settings)
    print(document.summarise())

    workspace = open_workspace(folder)
    # One statement over the workspace's own views ...
    found = workspace.sql("SELECT stage, reason, count(*) AS n FROM rejections GROUP BY ALL ORDER BY n DESC LIMIT 5")
    for row in found.as_dicts():
        print(f"{row['stage']:12} {row['reason']:28} {row['n']:6,}")

    # ... or a dataset as an Arrow table, in a DuckDB (or anything else) of your own.
    questions = duckdb.from_arrow(workspace.datasets()["groundings"].to_arrow())
    hops = questions.query(
        "questions", "SELECT len(proof.hops), count(*), any_value(text) FROM questions GROUP BY 1 ORDER BY 1"
    )
    for count, rows, text in hops.fetchall():
        print(f"{count} hops: {rows} questions, such as {text!r}")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "my-workspace", sys.argv[2:] or ["corpus.generate.entities=600"])
