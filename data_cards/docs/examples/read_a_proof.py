"""Verify every release of a workspace with no model, and read the proof of one question.

python data_cards/docs/examples/read_a_proof.py [WORKSPACE]
"""

import sys
from itertools import pairwise

import pyarrow.dataset as ds

from pipelines.api import open_workspace, verify


def main(folder: str) -> None:
    """Print what verification says, and one proof step by step."""
    releases = open_workspace(folder).releases()
    for release in releases:
        report = verify(release.path)
        print(f"{release.dataset} {release.version}: {report.describe()} rows are derived again")
        for problem in report.problems[:3]:
            print(f"  {problem.where}: {problem.what}")

    row = ds.dataset(releases[0].path / "proofs", format="parquet").head(1).to_pylist()[0]
    proof = row["proof"]
    print(f"\n{row['text']}\nAnswer: {row['answer']['surface']}")
    for hop, (source, target) in zip(proof["hops"], pairwise(proof["nodes"]), strict=True):
        said = hop["evidence"]
        print(f"{hop['index']}. {source['title']} -- {hop['relation']} --> {target['title']}")
        print(f"   {said['title']}, revision {said['revision']}, bytes {said['start']}-{said['end']}: {said['text']!r}")
    print(f"{len(proof['hops']) + 1}. {proof['answer_relation']} of {proof['nodes'][-1]['title']}")
    for count in proof["counts"]:
        print(f"   {count['name']} at node {count['node']}: {count['value']}{' or more' if count['capped'] else ''}")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "my-workspace")
