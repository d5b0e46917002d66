"""What ``synth doctor`` sees of models without asking any server: vLLM on this machine, and who judges whom."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pipelines.config import RunConfig
from pipelines.findings import Finding
from pipelines.services import list_roles_in_use
from pipelines.settings import ModelConfig

LOOPBACK: Final = "127.0.0.1"
START_SECONDS: Final = 20.0
_FIND_VLLM = "import importlib.util as u; s = u.find_spec('vllm'); print(s.origin if s and s.origin else '')"
"""Found and not imported: importing it takes longer than everything else here."""
_FAMILY = re.compile(r"[^\W\d_]+")
SCRIPTED = frozenset(["templates", "knower", "teacher", "judge"])


def look_at_local_models(config: RunConfig) -> list[Finding]:
    """Say whether vLLM, its models and its ports are ready for what the run starts itself."""
    models = {role: config.models.get(role) for role in list_roles_in_use(config)}
    local = {role: model for role, model in models.items() if model.adapter == "vllm" or _is_own(model)}
    found: list[Finding] = []
    for role, model in local.items():
        found += [_look_at_python(role, model), _look_at_weights(role, model)]
        if _is_own(model):
            found.append(_look_at_port(role, model))
    return [*found, *_look_at_shared_ports(local)]


def _is_own(model: ModelConfig) -> bool:
    return model.adapter == "openai" and model.serve.own


def _look_at_python(role: str, model: ModelConfig) -> Finding:
    what, python = f"{role}: vLLM", model.serve.python or sys.executable
    said = find_vllm(python)
    if said:
        return Finding(what, "problem", f"{python}: {said}; name one that has it: models.{role}.serve.python")
    return Finding(what, "ok", f"{python} has it")


def find_vllm(python: str) -> str:
    """Return why a Python cannot be used for vLLM; empty where it has it."""
    try:
        done = subprocess.run(
            [python, "-c", _FIND_VLLM], capture_output=True, text=True, check=False, timeout=START_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run ({type(error).__name__})"
    return "" if done.returncode == 0 and done.stdout.strip() else "has no vLLM"


def _look_at_weights(role: str, model: ModelConfig) -> Finding:
    what, name = f"{role}: weights", model.serve.model or model.name
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file():
        return Finding(what, "ok", f"{name}: a model's folder")
    if folder.is_dir():
        return Finding(what, "problem", f"{name}: no config.json in it; name a model's folder")
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        return Finding(what, "problem", f"{name}: no such folder; see models.{role}.serve.model")
    return Finding(what, "ok", f"{name}: no folder here; vLLM takes it from the Hub or its cache")


def _look_at_port(role: str, model: ModelConfig) -> Finding:
    what, port = f"{role}: port", model.serve.port
    address = urlsplit(model.base_url)
    if (address.port or {"https": 443}.get(address.scheme, 80)) != port:
        return Finding(what, "problem", f"base_url is {model.base_url}, but the server will be at port {port}")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port that was closed a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            advice = f"end what listens there, or choose another models.{role}.serve.port"
            return Finding(what, "problem", f"{port} cannot be had ({error.strerror}); {advice}")
    return Finding(what, "ok", f"{port} is free")


def _look_at_shared_ports(local: Mapping[str, ModelConfig]) -> Iterator[Finding]:
    """Find ports that two different models want."""
    first: dict[int, tuple[str, ModelConfig]] = {}
    for role, model in local.items():
        if not _is_own(model):
            continue
        other, before = first.setdefault(model.serve.port, (role, model))
        if (before.name, before.serve) != (model.name, model.serve):
            detail = f"{model.serve.port} is that of {other}, which is another model; give each one its own"
            yield Finding(f"{role}: port", "problem", detail)


def look_at_judges(config: RunConfig) -> list[Finding]:
    """Say whether a judge is a model it judges, and whether two judges are of one family."""
    models = config.models
    judged = {role: models.get(role) for role in list_roles_in_use(config) if role in models.solvers}
    judged |= {"solver": models.solver, "teacher": models.teacher}
    judges = {"judge": models.judge, "second_judge": models.second_judge}
    found = []
    for role, judge in judges.items():
        if judge is None:
            continue
        for other, model in judged.items():
            finding = _compare(role, judge, other, model)
            found += [finding] if finding else []
    if models.process_judge:
        finding = _compare("process_judge", models.process_judge, "teacher", models.teacher)
        found += [finding] if finding else []
    if models.judge and models.second_judge:
        found.append(_compare_judges(models.judge, models.second_judge))
    return found


def _compare(role: str, judge: ModelConfig, other: str, model: ModelConfig) -> Finding | None:
    if judge.name != model.name:
        return None
    if judge.revision == model.revision:
        return Finding(f"{role} and {other}", "problem", f"both are {judge.name}; a judge is never the model it judges")
    detail = f"both are {judge.name}, of the revisions {judge.revision!r} and {model.revision!r}"
    return Finding(f"{role} and {other}", "warning", f"{detail}; a judge flatters its own kind")


def _compare_judges(judge: ModelConfig, second: ModelConfig) -> Finding:
    what = "judge and second_judge"
    if (judge.name, judge.revision) == (second.name, second.revision):
        return Finding(what, "problem", f"both are {judge.name}; they will always agree")
    family = name_family(judge.name)
    if family and family == name_family(second.name):
        return Finding(
            what, "warning", f"{judge.name} and {second.name} look like one family, {family}: they err alike"
        )
    return Finding(what, "ok", f"{judge.name} and {second.name}")


def name_family(name: str) -> str:
    """Return what family a model's name looks like: its first word, up to a digit, such as ``qwen`` of Qwen/Qwen3-VL.

    A rule of thumb: relatives by another name are not found, and a family of two makers' models is taken for one.
    """
    word = _FAMILY.search(name.rstrip("/").rsplit("/", 1)[-1])
    return word.group().lower() if word else ""
