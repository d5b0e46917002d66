"""Wrong versions of the checks, put in the place of the right ones wherever these were imported."""

import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, get_type_hints

import pipelines
import pipelines.checks
from pipelines.agent import depicting
from pipelines.checks.verdicts import CheckResult

Wrong = Callable[[Callable[..., Any]], Callable[..., Any]]
SPACE = ("pipelines.checks.", "pipelines.graph.", "pipelines.release.")
"""Modules whose caches may hold what a mutant found."""


def list_modules() -> list[ModuleType]:
    """Return every module of the checks, and the one that checks what a ranker measured."""
    found = pkgutil.walk_packages(pipelines.checks.__path__, "pipelines.checks.")
    return [*(import_module(module.name) for module in found), depicting]


def list_checks() -> dict[str, FunctionType]:
    """Return every public function of the checks that says PASS, FAIL or UNKNOWN, by name."""
    found = {
        name: value
        for module in list_modules()
        for name, value in vars(module).items()
        if name.startswith("check_") and inspect.isfunction(value) and value.__module__ == module.__name__
    }
    return {name: check for name, check in found.items() if get_type_hints(check)["return"] is CheckResult}


def list_finders() -> dict[str, FunctionType]:
    """Return every public function of the checks that lists problems of a proof, by name."""
    return {
        name: value
        for module in list_modules()
        for name, value in vars(module).items()
        if name.startswith("find_") and name.endswith("problems") and value.__module__ == module.__name__
    }


def disable(check: Callable[..., CheckResult]) -> Callable[..., CheckResult]:
    """Return a check that finds nothing."""
    return wraps(check)(lambda *given, **named: CheckResult("PASS"))


def invert(code: str) -> Wrong:
    """Return what makes a check say FAIL with its code where it says PASS, and PASS where it says anything else."""

    def wrong(check: Callable[..., CheckResult]) -> Callable[..., CheckResult]:
        def answer(*given: Any, **named: Any) -> CheckResult:
            found = check(*given, **named)
            return CheckResult("FAIL", code, "inverted") if found.outcome == "PASS" else CheckResult("PASS")

        return wraps(check)(answer)

    return wrong


def find_nothing(finder: Callable[..., Any]) -> Callable[..., Any]:
    """Return a finder of problems that finds none."""
    return wraps(finder)(lambda *given, **named: [])


def find_opposite(finder: Callable[..., Any]) -> Callable[..., Any]:
    """Return a finder that finds a problem where there is none, and none where there is one."""
    return wraps(finder)(lambda *given, **named: [] if list(finder(*given, **named)) else ["inverted"])


def rewrite(old: str, new: str) -> Wrong:
    """Return what compiles a function anew, in its own module, with one piece of its source replaced."""

    def wrong(function: Callable[..., Any]) -> Callable[..., Any]:
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(old) == 1, f"{function.__qualname__} holds {old!r} {source.count(old)} times, wanted is 1"
        made: dict[str, Any] = {}
        exec(compile(source.replace(old, new), "<mutant>", "exec"), sys.modules[function.__module__].__dict__, made)
        return made[function.__name__]

    return wrong


@contextmanager
def install(original: Callable[..., Any], wrong: Wrong) -> Iterator[None]:
    """Put a wrong version of a function in its place in every module, or class, that has it.

    No result of a check is ever cached; what checks are made of is, so that of anything else the caches are emptied.
    """
    mutant = wrong(original)
    places = list(find_places(original))
    assert places
    try:
        put(places, mutant, original)
        yield
    finally:
        put(places, original, original)


def put(places: list[tuple[Any, str]], function: Callable[..., Any], original: Callable[..., Any]) -> None:
    for owner, name in places:
        setattr(owner, name, function)
    if not original.__name__.startswith("check_"):
        clear_caches()


def find_places(original: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    """Yield each module or class of the pipeline that has a function, with the name it has there."""
    modules = [module for name, module in sys.modules.items() if name.startswith(("pipelines", "tests.planted"))]
    owners: Mapping[int, Any] = {id(each): each for module in modules for each in (module, *list_classes(module))}
    for owner in owners.values():
        yield from ((owner, name) for name, value in list(vars(owner).items()) if value is original)


def list_classes(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]


def clear_caches() -> None:
    """Forget what was found with another version of a function."""
    for name, module in list(sys.modules.items()):
        for value in list(vars(module).values()) if name.startswith(SPACE) else ():
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()
