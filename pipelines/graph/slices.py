"""Slices of Wikidata: the entities of one class with so many statements and sitelinks, as one SPARQL query each.

A slice divides into slices that hold every one of its entities once. The query is plain SPARQL 1.1 with its prefixes,
so that the same text runs on Blazegraph, QLever and Oxigraph: no hints, no label service, no path, no ORDER BY. It asks
for the counts on the entity, where the Wikidata Query Service, QLever and a munged dump have them; a raw RDF dump has
them on the data node, and there every slice is empty.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from pipelines.errors import ConfigError

PREFIXES: Final = """\
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX schema: <http://schema.org/>
"""
_SITE = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/")
_CLASS = re.compile(r"Q[1-9][0-9]{0,17}")
_TOP = 1 << 20
"""More statements than any entity has: the open end beyond it is not divided."""
_FIRST_STEP = 16
_LONGEST_ENDING = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from ``low`` to ``high``, both included; ``high`` None is no end."""

    low: int
    high: int | None = None

    def divide(self) -> tuple["Span", ...]:
        """Return two spans that hold the same numbers, or none when there is nothing to divide."""
        if self.high is None:
            middle = max(2 * self.low, _FIRST_STEP)
            return () if middle > _TOP else (Span(self.low, middle - 1), Span(middle))
        if self.low >= self.high:
            return ()
        middle = (self.low + self.high) // 2
        return Span(self.low, middle), Span(middle + 1, self.high)

    def render(self, name: str) -> tuple[str, str]:
        """Return what to select for a count and the pattern that bounds it.

        A single number stands in the pattern itself: a store looks it up where it would have to test a filter.
        """
        if self.low == self.high:
            return f"({self.low} AS ?{name})", f"?item wikibase:{name} {self.low} ."
        bounds = [f"?{name} >= {self.low}"] + [f"?{name} <= {self.high}"] * (self.high is not None)
        return f"?{name}", f"?item wikibase:{name} ?{name} . FILTER({' && '.join(bounds)})"


@dataclass(frozen=True, slots=True)
class Slice:
    """The entities of a class within two spans whose Qid ends in ``ending``."""

    class_qid: str
    statements: Span
    sitelinks: Span
    ending: str = ""
    """Last digits, with the Q before them where they are the whole Qid."""

    def divide(self) -> tuple["Slice", ...]:
        """Return slices that hold the same entities, each once; none when it cannot be divided further."""
        if spans := self.statements.divide():
            return tuple(replace(self, statements=span) for span in spans)
        if spans := self.sitelinks.divide():
            return tuple(replace(self, sitelinks=span) for span in spans)
        if self.ending.startswith("Q") or len(self.ending) == _LONGEST_ENDING:
            return ()
        whole = ["Q"] if self.ending else []
        return tuple(replace(self, ending=before + self.ending) for before in [*whole, *"0123456789"])

    def render(self, site: str, limit: int) -> str:
        """Return the query for at most ``limit`` of its entities that have an article on a site.

        Args:
            site: address such as ``https://en.wikipedia.org/``.
            limit: one more than the caller wants shows that there are more.

        Raises:
            ConfigError: if the class or the site could not stand in a query.
        """
        _check_names(self.class_qid, site)
        sitelinks, bounded_sitelinks = self.sitelinks.render("sitelinks")
        statements, bounded_statements = self.statements.render("statements")
        ending = f'  FILTER(STRENDS(STR(?item), "{self.ending}"))\n' if self.ending else ""
        return (
            f"{PREFIXES}SELECT ?item {sitelinks} {statements} ?identifiers ?title WHERE {{\n"
            f"  ?item wdt:P31 wd:{self.class_qid} .\n"
            f"  {bounded_statements}\n"
            f"  {bounded_sitelinks}\n{ending}"
            f"  ?article schema:about ?item ; schema:isPartOf <{site}> ; schema:name ?title .\n"
            "  OPTIONAL { ?item wikibase:identifiers ?identifiers }\n"
            f"}} LIMIT {limit}\n"
        )


def _check_names(class_qid: str, site: str) -> None:
    if not _CLASS.fullmatch(class_qid):
        raise ConfigError(f"class {class_qid!r}: expected a Qid such as Q811979")
    if not _SITE.fullmatch(site):
        raise ConfigError(f"site {site!r}: expected an address such as https://en.wikipedia.org/")
