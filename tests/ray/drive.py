"""The command of these tests: ``python -m tests.ray.drive JSON`` runs the flow with the parameters that JSON names."""

import json
import sys

from flows.synthesize import SKIPPED, synthesize
from pipelines.errors import SynthError


def main() -> None:
    """Run the flow, and end with the code that ``synth run`` would end with."""
    try:
        state = synthesize(**json.loads(sys.argv[1]), return_state=True)
        if state.name == SKIPPED:
            sys.exit(3)
        sys.stdout.write("\n".join(state.result()))
    except SynthError as error:
        sys.stderr.write(f"synth: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
