"""Verifying a release: everything that corpus, proofs and settings decide is derived again and compared, with no model.

Its files are held against the manifest, the manifest against corpus and settings, each row against its proof and the
corpus, the rows against each other, and what is written about the rows against the rows. But for the digests nothing
of the manifest is trusted that can be derived, so a release that was changed and sealed anew fails.

Each row is made again from its proof row by the functions that publishing uses, and every column is compared. A
transcript is checked by the rules it was accepted by, and the calls of local tools are made again. What cannot be
derived is named in the report: the words of thoughts, attempts, what live tools and models said, the author's word on
earlier stages. Against a consistent forgery of these only the root helps: the manifest's sha256, told in another way.

A derivation from proof rows alone is added in ``ReleaseCheck._check_manifest`` of :mod:`.release`; what a report says
that no row tells, in ``CLAIMED`` of :mod:`.card`.
"""

from pipelines.release.verify.questions import find_picture_problems, find_question_problems, read_anew
from pipelines.release.verify.release import verify_release
from pipelines.release.verify.reports import Problem, VerifyReport, describe_claim, describe_origin, describe_rows
from pipelines.release.verify.rows import find_row_problems
from pipelines.release.verify.transcripts import find_transcript_problems

__all__ = [
    "Problem",
    "VerifyReport",
    "describe_claim",
    "describe_origin",
    "describe_rows",
    "find_picture_problems",
    "find_question_problems",
    "find_row_problems",
    "find_transcript_problems",
    "read_anew",
    "verify_release",
]
