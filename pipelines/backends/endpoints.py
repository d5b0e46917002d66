"""Addresses that serve one model, and what is known of each: load, limit, and whether it is well, busy or away.

No clock and no lock here: whoever calls says what time it is, in seconds of a clock that never goes back.
"""

import math
from dataclasses import dataclass, field
from random import Random
from typing import Literal

FIRST_LIMIT = 4
"""Requests in flight that an address is trusted with before it has answered any, where there are others."""
DEAD_AFTER = 5
"""Failures in a row after which an address is away; one is enough where nobody listens."""
LONGEST_WAIT = 600.0
"""Seconds that an address is left alone at most, whatever it asks for."""
LONGEST_PAUSE = 30.0
"""Seconds between two probes of an address that is away, at most."""
SPARED = 8
"""Requests in flight at the least loaded address from which on one is spared to see if another is back."""
FORGOTTEN = 30.0
"""Seconds after which what an address took for its replies counts for a third: a slow one is tried again."""

_MEMORY = 0.1
"""Weight of the newest outcome in how well and how fast an address is."""
_LEAST_SECONDS = 1e-3
"""Of a reply, where none is known."""

OutcomeKind = Literal["answered", "busy", "failed", "silent", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended at an address.

    ``answered``: with a reply, be it a refusal of this prompt. ``busy``: asked to slow down. ``failed``: with no whole
    reply. ``silent``: the same, by time. ``gone``: nobody listens. ``unknown``: cancelled, which says nothing.
    """

    kind: OutcomeKind
    wait: float = 0.0
    """Seconds that the address asked for, 0 where it named none."""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A place at an address."""

    endpoint: "Endpoint"
    taken: float
    meter: float
    """The address's GPU-seconds a request when the place was taken."""
    probe: bool


@dataclass(slots=True, eq=False)
class Endpoint:
    """One address.

    The limit grows as TCP's window does: by one an answer until the address first asks to slow down, then by one a
    full round, and only while it is what holds requests back; it is halved at most once a round trip.

    Attributes:
        url: the address.
        most: requests in flight, at most.
        limit: the same, as the address now bears it; at least 1.
        gpus: behind the address, shared alike by its requests in flight.
        pause: seconds of the first probe or wait, doubled each time.
        random: draws the jitter.
    """

    url: str
    most: int
    limit: float
    gpus: float = 0.0
    pause: float = 0.5
    random: Random = field(default_factory=Random, repr=False)
    in_flight: int = 0
    sent: int = 0
    answered: int = 0
    dead: bool = False
    last_error: str = ""
    troubled_since: float = math.inf
    """When it was first busy or away since it last answered."""
    busy_until: float = -math.inf
    probe_at: float = -math.inf
    _well: float = 1.0
    """Share of its last requests that it answered."""
    _seconds: float = 0.0
    """What it took for a reply when it last answered, 0 where that is not known."""
    _answered_at: float = 0.0
    _probing: bool = False
    _starting: bool = True
    _streak: int = 0
    _rounds: int = 0
    _cut_at: float = -math.inf
    _died_at: float = -math.inf
    _meter: float = 0.0
    _metered_at: float = 0.0

    def has_room(self, now: float) -> bool:
        """Return whether a request may be sent."""
        if now < self.busy_until:
            return False
        if self.dead:
            return not self._probing and now >= self.probe_at
        return self.in_flight < int(self.limit)

    def weigh(self, now: float) -> float:
        """Return its load: seconds that its requests in flight and one more would take one after the other.

        One that fails bears less. Its limit says only when it is full: were the load a share of the limit, one with a
        low limit would never be full, and its limit would stay low.
        """
        seconds = max(_LEAST_SECONDS, self._seconds * math.exp((self._answered_at - now) / FORGOTTEN))
        return (self.in_flight + 1) * seconds / self._well**3

    def find_next(self, now: float) -> float:
        """Return when time alone may make room, infinity if it cannot."""
        moment = max(self.busy_until, self.probe_at if self.dead and not self._probing else -math.inf)
        return moment if moment > now else math.inf

    def was_away(self, since: float, now: float, patience: float) -> bool:
        """Return whether it was busy or away for so many seconds, none of them before the first moment."""
        idle = self.dead or (not self.in_flight and now < self.busy_until)
        return idle and now >= max(since, self.troubled_since) + patience

    def take(self, now: float) -> Ticket:
        """Count a request in."""
        self._advance(now)
        self.in_flight += 1
        self.sent += 1
        self._probing = self._probing or self.dead
        return Ticket(self, now, self._meter, self.dead)

    def end(self, ticket: Ticket, outcome: Outcome, now: float) -> float:
        """Count a request out, learn from it, and return its GPU-seconds."""
        self._advance(now)
        match outcome.kind:
            case "answered":
                self._note_answer(now - ticket.taken, now)
            case "busy":
                self._note_busy(ticket, outcome, now)
            case "failed" | "silent" | "gone":
                self._note_failure(ticket, outcome, now)
        self.in_flight -= 1
        if ticket.probe:
            self._probing = False
        return self._meter - ticket.meter

    def _advance(self, now: float) -> None:
        if self.in_flight and self.gpus:
            self._meter += self.gpus * (now - self._metered_at) / self.in_flight
        self._metered_at = now

    def _note_answer(self, seconds: float, now: float) -> None:
        self.answered += 1
        known = self._seconds * math.exp((self._answered_at - now) / FORGOTTEN)
        self._seconds = known + _MEMORY * (seconds - known) if self._seconds and not self.dead else seconds
        self._answered_at = now
        self._well += _MEMORY * (1.0 - self._well)
        self._streak = self._rounds = 0
        self.troubled_since = math.inf
        if self.dead:
            self.dead = False
            self.limit = min(self.limit, FIRST_LIMIT)
            self._starting = True
            # What it did before it went away is no guide, and a low limit is caution enough.
            self._well = 1.0
        elif self.in_flight >= int(self.limit):
            self.limit = min(self.most, self.limit + (1.0 if self._starting else 1.0 / self.limit))

    def _note_busy(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        # It speaks, so it lives.
        self.dead = False
        self._streak = 0
        self.last_error = outcome.said
        self.troubled_since = min(self.troubled_since, now)
        wait = outcome.wait
        if self._cut(ticket, now):
            self._rounds += 1
            wait = wait or self._draw_pause(self._rounds)
        self.busy_until = max(self.busy_until, now + min(wait, LONGEST_WAIT))

    def _note_failure(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        self.last_error = outcome.said
        if ticket.taken < self._died_at:
            # Sent before it was given up: nothing new.
            return
        self._streak += 1
        self._well = max(_MEMORY, self._well * (1.0 - _MEMORY))
        if outcome.kind == "silent":
            self._cut(ticket, now)
        if ticket.probe or outcome.kind == "gone" or self._streak >= DEAD_AFTER:
            self.dead = True
            self._died_at = now
            self._rounds += 1
            self.troubled_since = min(self.troubled_since, now)
            self.probe_at = now + self._draw_pause(self._rounds)

    def _cut(self, ticket: Ticket, now: float) -> bool:
        """Halve the limit unless the request was sent before it was last halved; return whether it was."""
        if ticket.taken < self._cut_at:
            return False
        self._cut_at = now
        self._starting = False
        self.limit = max(1.0, self.limit / 2)
        return True

    def _draw_pause(self, rounds: int) -> float:
        longest = min(LONGEST_PAUSE, self.pause * 2.0 ** min(rounds - 1, 32))
        return longest * self.random.uniform(0.5, 1.0)


def choose_endpoint(endpoints: tuple[Endpoint, ...], avoided: Endpoint | None, now: float) -> Endpoint | None:
    """Return the one with the least load among those with room, None if there is none.

    Args:
        endpoints: all of them.
        avoided: where the request has just failed: taken only if nothing else has room. None for a first try.
        now: seconds.
    """
    best, least, probe = None, (True, math.inf, 0), None
    for endpoint in endpoints:
        if not endpoint.has_room(now):
            continue
        if endpoint.dead:
            probe = endpoint if probe is None or endpoint.sent < probe.sent else probe
            continue
        rank = (endpoint is avoided, endpoint.weigh(now), endpoint.sent)
        if best is None or rank < least:
            best, least = endpoint, rank
    # A request that has failed once is no good probe.
    spared = best is None or (avoided is None and best.in_flight >= SPARED)
    return probe if probe is not None and spared else best
