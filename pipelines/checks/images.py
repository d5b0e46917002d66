"""Is a picture large enough, and may it be given away? Decided from its row alone, without its bytes."""

import re
from typing import Literal

from pipelines.checks.verdicts import PASSED, CheckResult

LicenceClass = Literal["free", "unfree", "unknown"]

# What names a country (PD-US-expired, PD-ineligible-USonly), leaves the reason open (PD-because) or says nothing of the
# work that is shown (PD-Art, PD-scan) is not free everywhere.
_PUBLIC_DOMAIN = (
    r"pd(?:-(?:self|user|author|release|textlogo|shape|ineligible|mark"
    r"|old(?:-(?:70|75|80|90|95|100|auto))?(?:-(?:expired|1923|1996))?"
    r"|usgov(?:-(?:nasa|noaa|usgs|nps|fws|usda|loc|military))?))?"
)
_FREE = re.compile(
    r"public domain(?: mark(?: 1\.0)?)?|" + _PUBLIC_DOMAIN + r"|cc0(?:[ -]1\.0)?(?: universal)?|cc[ -]zero"
    r"|cc[ -]by(?:[ -]sa)?(?:[ -](?:[1-4]\.\d)(?:(?:,\d\.\d)*|\+)?)?"
    r"(?:[ -](?:migrated|[a-z]{2}|igo|scotland|international|unported))?"
    r"|creative commons attribution(?:[ -]share ?alike)?(?: [1-4]\.\d)?(?: (?:international|unported|generic))?"
    r"|creative commons (?:zero|cc0)(?: 1\.0)?"
    r"|(?:gfdl|gnu free documentation licen[cs]e)(?:[ -]1\.[1-3](?:\+| or later)?)?"
    r"|(?:fal|free art licen[cs]e|licence art libre)(?:[ -]1\.3)?"
    r"|(?:ogl|open government licen[cs]e)(?:[ -]v?[1-3](?:\.0)?)?"
)
_UNFREE = re.compile(
    r"\bnc\b|\bnd\b|non-?[ -]?commercial|no-?[ -]?deriv|non-?[ -]?free|fair[ -]use|all rights reserved|copyrighted"
    r"|permission|with permission|unlicensed"
)


def classify_licence(licence: str) -> LicenceClass:
    """Say whether a licence's short name is on the allow-list.

    On it are the public domain, by tags whose reason holds everywhere or for works of the United States' government;
    CC0, and any version of CC BY, CC BY-SA, the GFDL, the Free Art License and the Open Government Licence.
    ``unfree`` is what forbids commerce or changes or is no licence at all; anything not recognised is ``unknown``. The
    names are those of Wikimedia Commons (``LicenseShortName``): ``CC BY-SA 4.0``, ``cc-by-2.0``, ``PD-old-100``.
    """
    name = " ".join(licence.replace("_", " ").lower().split())
    if _UNFREE.search(name):
        return "unfree"
    return "free" if _FREE.fullmatch(name) else "unknown"


def is_free_licence(licence: str) -> bool:
    """Say whether a picture under this licence may be given away and changed; an unknown licence may not."""
    return classify_licence(licence) == "free"


def check_licence(licence: str) -> CheckResult:
    """FAIL (``picture-not-free``) for a licence that forbids use, UNKNOWN for one not on the list or none at all."""
    found = classify_licence(licence)
    if found == "free":
        return PASSED
    detail = f"licence {licence!r}; allowed are public domain, CC0, CC BY, CC BY-SA, GFDL, FAL and OGL"
    return CheckResult("FAIL" if found == "unfree" else "UNKNOWN", "picture-not-free", detail)


def check_size(width: int, height: int, min_side: int) -> CheckResult:
    """FAIL (``picture-too-small``) when the shorter side has fewer than ``min_side`` pixels; UNKNOWN without a size."""
    if width <= 0 or height <= 0:
        return CheckResult("UNKNOWN", "picture-too-small", f"size {width}x{height} is not known")
    if min(width, height) >= min_side:
        return PASSED
    return CheckResult("FAIL", "picture-too-small", f"{width}x{height}, allowed from {min_side} on the shorter side")


def check_picture(width: int, height: int, licence: str, min_side: int) -> CheckResult:
    """Check size, then licence; the first that does not pass is returned (research/quality.md I7).

    Args:
        width: in pixels, as displayed.
        height: in pixels, as displayed.
        licence: short name as Wikimedia Commons gives it.
        min_side: fewest pixels allowed on the shorter side.
    """
    size = check_size(width, height, min_side)
    return check_licence(licence) if size.passed else size
