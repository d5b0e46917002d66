"""The ``synth`` command: parse arguments, call one function, print one summary.

Only typer is imported by these modules; everything else is imported by the command that needs it, so ``--help`` answers
at once.
"""

import atexit
import sys
from io import TextIOWrapper

from pipelines.cli import configs as cli_configs
from pipelines.cli import deploying as cli_deploying
from pipelines.cli import releases as cli_releases
from pipelines.cli import runs as cli_runs
from pipelines.cli.console import app, guarded
from pipelines.stopping import end_by_signals, ignore_signals

COMMANDS = (cli_runs, cli_configs, cli_releases, cli_deploying)
"""Where commands register themselves."""
SHOWN = (
    "init run status doctor plan view explain sql verify export push deploy serve-tools serve-model world prune config"
)
"""The commands in the order in which most people come to them."""
app.registered_commands.sort(key=lambda command: SHOWN.split().index(command.name or ""))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one line on stderr and an exit code.

    0 done; 1 a gate not met; 2 our configuration or input; 3 a service, disk or lock away: run again to continue; 4 a
    defect of synth, with a log of it.
    """
    is_own = arguments is None
    if isinstance(sys.stdout, TextIOWrapper):
        # A name that the terminal's encoding lacks ends no run.
        sys.stdout.reconfigure(errors="backslashreplace")
    if is_own:
        # The last that Python does; by then it has put back what a signal does by itself, which is to end it by -15.
        atexit.register(ignore_signals)
    try:
        told = sys.argv[1:] if arguments is None else arguments
        guarded(lambda: app(args=arguments, prog_name="synth"), told, is_own)
    except SystemExit as ending:
        if is_own:
            end_by_signals(ending.code if isinstance(ending.code, int) else 0)
        raise


if __name__ == "__main__":
    main()
