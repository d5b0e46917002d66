"""Is a rollout read to its end by whoever is trained on it (R8)?"""

from pipelines.checks.verdicts import PASSED, CheckResult


def check_length(tokens: int, max_tokens: int) -> CheckResult:
    """FAIL (``too-long``) when a trajectory does not fit into the length that it is trained at.

    Trainers cut at the end, where the answer stands, so the whole must fit (VSearcher rolls out at 200,000 tokens and
    trains at 20,480).

    Args:
        tokens: length when trained on, pictures included.
        max_tokens: 0 is no limit.
    """
    if max_tokens == 0 or tokens <= max_tokens:
        return PASSED
    return CheckResult("FAIL", "too-long", f"{tokens:,} tokens, trained on are {max_tokens:,}")
