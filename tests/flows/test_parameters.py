"""The flow takes what ``synth run`` takes: a parameter more or less on one side is noticed."""

import inspect

import typer

from flows.synthesize import synthesize
from pipelines.cli.main import app

OTHERWISE = {"config": "configs", "set": "settings", "stage": "stages"}
"""Options that may be repeated, of which the flow takes a list."""
OWN = {"json", "preview"}
"""Of the command line alone: how the result is printed, and cards for whoever sits there."""


def test_the_parameters_of_the_flow_are_the_options_of_the_command():
    command = typer.main.get_command(app).commands["run"]
    options = {param.opts[0].removeprefix("--"): param for param in command.params if param.name != "help"}
    named = {OTHERWISE.get(name, name).replace("-", "_"): param for name, param in options.items() if name not in OWN}
    parameters = inspect.signature(synthesize.fn).parameters
    assert set(parameters) == set(named)
    for name, parameter in parameters.items():
        default = named[name].default
        assert (parameter.default or None) == (str(default) if name == "workspace" else default or None), name
        assert ("list" in str(parameter.annotation)) == named[name].multiple, name
