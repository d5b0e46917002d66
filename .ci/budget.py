"""Size budgets that only fall. Run in the repository's root: `python .ci/budget.py [--lower]`.

`tests/budgets.toml` holds, for each room, its lines and its tokens of code (names, operators and literals; docstrings
and comments are free), and for the whole: modules, configuration keys, commands, options. The check fails where a
measure is over its number, and where a commit, or the working tree, raises the sum of a unit: a feature that raises one
room lowers another in the same commit. A commit whose message says `Budget allowance: issue 40, +1000 lines, +9000
tokens` may raise the sums of the product by that much. `--lower` writes every measure that is below its number.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

FILE = "tests/budgets.toml"
ROOTS = ("flows", "pipelines", "schemas")
BENCH = ("planted", "mutants", "benchmarks", "faults", "ray")
"""Folders of `make bench`; every other test is in the gate."""
CODE = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
SETTINGS = Path("pipelines/config/settings.py")
ALLOWANCE = re.compile(r"Budget allowance: issue \d+, \+(\d+) lines, \+(\d+) tokens")

Budgets = dict[str, dict[str, int]]
"""Tables of the file: a unit of product or tests by room, or the whole by its measure."""


def count_tokens(text: str) -> int:
    """Count names, operators and literals; neither layout nor docstrings change the number."""
    docstrings = {
        body[0].lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(body := getattr(node, "body", None), list) and body and _is_text(body[0])
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type in CODE and not (token.type == tokenize.STRING and token.start[0] in docstrings) for token in tokens
    )


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def count_lines(text: str) -> int:
    """Count lines, empty ones included."""
    return text.count("\n")


UNITS = {"lines": count_lines, "tokens": count_tokens}


def count_module(path: Path) -> dict[str, int]:
    """Return the size of a module in each unit."""
    text = path.read_text(encoding="utf-8")
    return {unit: count(text) for unit, count in UNITS.items()}


def place_module(path: Path) -> tuple[str, str]:
    """Return whether a module is product or tests, and its room."""
    if path.parts[0] == "tests":
        return "tests", "bench" if path.parts[1] in BENCH else "gate"
    if path.parts[0] != "pipelines":
        return "product", path.parts[0]
    return "product", path.parts[1] if len(path.parts) > 2 else "ground"


def measure() -> Budgets:
    """Measure the working tree."""
    found: dict[str, Counter[str]] = {f"{kind}_{unit}": Counter() for kind in ("product", "tests") for unit in UNITS}
    modules = 0
    paths = [path for root in (*ROOTS, "tests") for path in Path(root).rglob("*.py")]
    with ProcessPoolExecutor() as pool:
        counts = list(pool.map(count_module, paths, chunksize=50))
    for path, counted in zip(paths, counts, strict=True):
        kind, room = place_module(path)
        modules += kind == "product"
        for unit, number in counted.items():
            found[f"{kind}_{unit}"][room] += number
    commands = list(list_commands())
    whole = {
        "modules": modules,
        "data_lines": sum(map(count_data, ROOTS)),
        "config_keys": count_keys(),
        "commands": len(commands),
        "options": sum(commands),
    }
    return {**{table: dict(sorted(rooms.items())) for table, rooms in found.items()}, "whole": whole}


def count_keys() -> int:
    """Count the declared keys of the configuration."""
    classes = (node for node in ast.walk(ast.parse(SETTINGS.read_text())) if isinstance(node, ast.ClassDef))
    return sum(isinstance(node, ast.AnnAssign) for each in classes for node in each.body)


def count_data(root: str) -> int:
    """Count the lines of what a folder of code holds besides Python: tables, templates, scripts, word lists."""
    files = (path for path in Path(root).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))
    return sum(count_lines(path.read_text(encoding="utf-8")) for path in files)


def list_commands() -> Iterator[int]:
    """Yield the number of options of each command."""
    import typer.main

    from pipelines.cli.main import app

    waiting = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += below.values()
        if not below:
            yield sum(each.param_type_name == "option" and each.name != "help" for each in command.params)


def find_over(now: Budgets, allowed: Budgets) -> Iterator[str]:
    """Yield what is over its budget."""
    for table, rooms in now.items():
        for room, number in rooms.items():
            most = allowed.get(table, {}).get(room, 0)
            if number > most:
                yield f"{room} in {table} is {number:,}; its budget is {most:,}"


def find_rises(versions: list[tuple[str, str, Budgets]]) -> Iterator[str]:
    """Yield the sums that rose from one version of the file to the next; each has a commit's name and message."""
    for (_, _, before), (name, message, after) in pairwise(versions):
        granted = ALLOWANCE.search(message)
        extra = dict(zip(UNITS, map(int, granted.groups()), strict=True)) if granted else {}
        for what, most in add_up(before).items():
            most += extra.get(what.removeprefix("product_"), 0)
            if add_up(after).get(what, 0) > most:
                yield f"{name}: the sum of {what} rose from {most:,} to {add_up(after)[what]:,}"


def add_up(budgets: Budgets) -> dict[str, int]:
    """Return what may not rise: each table's sum, and each number of the whole."""
    sums = {table: sum(rooms.values()) for table, rooms in budgets.items() if table != "whole"}
    return sums | {f"whole.{measure}": number for measure, number in budgets.get("whole", {}).items()}


def read_versions() -> list[tuple[str, str, Budgets]]:
    """Return the file as each commit of the first-parent history left it, oldest first, then as it stands."""
    log = _git("log", "--first-parent", "--reverse", "--format=%h%x00%B%x01", "--", FILE)
    commits = [entry.strip().split("\0") for entry in log.split("\1") if entry.strip()]
    versions = [(name, message, tomllib.loads(_git("show", f"{name}:{FILE}"))) for name, message in commits]
    return [*versions, ("the working tree", "", tomllib.loads(Path(FILE).read_text()))]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def write_budgets(budgets: Budgets) -> None:
    """Write the file."""
    tables = [
        "\n".join([f"[{table}]", *(f"{name} = {n}" for name, n in rooms.items())]) for table, rooms in budgets.items()
    ]
    Path(FILE).write_text("# Only falls; see .ci/budget.py.\n" + "\n\n".join(tables) + "\n")


def main() -> int:
    """Compare the tree with its budgets; return 1 where something is over, or a sum rose."""
    now = measure()
    if not Path(FILE).exists():
        write_budgets(now)
        return 0
    allowed: Budgets = tomllib.loads(Path(FILE).read_text())
    if "--lower" in sys.argv:
        allowed = {
            table: {name: min(n, allowed.get(table, {}).get(name, n)) for name, n in rooms.items()}
            for table, rooms in now.items()
        }
        write_budgets(allowed)
    problems = [*find_over(now, allowed), *find_rises(read_versions())]
    for problem in problems:
        print(f"budget: {problem}", file=sys.stderr)  # noqa: T201 - a script of the build
    product = add_up(allowed)
    if not problems:
        print(f"budget: kept, {product['product_lines']:,} lines and {product['product_tokens']:,} tokens")  # noqa: T201
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
