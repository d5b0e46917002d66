"""What engine ray refuses before anything is written; the engine itself is tested in ``tests/ray``."""

from importlib.util import find_spec

import pytest

from flows.cluster import RayPool
from flows.synthesize import make_span
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.executors import make_executor

ADDRESS, REPLIES = "runtime.address=10.0.0.1:6379", "replies=postgresql://synth@10.0.0.1/synth"
URL = "models.writer.base_url=http://127.0.0.1:8000/v1"


def make_pool(*settings: str) -> RayPool:
    config = make_config(read_recipe("demo"), ["runtime.engine=ray", *settings])
    return RayPool(config, make_span, lambda ending, future: future.set_result(ending.result()))


def test_without_an_address_it_is_said_how_to_start_a_cluster() -> None:
    with pytest.raises(ConfigError, match=r"runtime.address names no cluster.*ray start --head"):
        make_pool()


def test_replies_in_a_file_of_one_host_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"replies is empty.*PostgreSQL database that every host reaches"):
        make_pool(ADDRESS)


def test_a_model_server_that_only_the_drivers_host_reaches_is_refused() -> None:
    own = ("models.writer.adapter=openai", "models.writer.name=m", "models.writer.serve.own=true", URL)
    with pytest.raises(ConfigError, match=r"models.writer.serve.own.*synth serve-model writer"):
        make_pool(ADDRESS, REPLIES, *own)


def test_without_a_prefect_server_that_all_hosts_reach_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(ConfigError, match="PREFECT_API_URL is not set"):
        make_pool(ADDRESS, REPLIES)


@pytest.mark.skipif(find_spec("ray") is not None, reason="the extra ray is installed")
def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://10.0.0.1:4200/api")
    with pytest.raises(ConfigError, match=r"pip install 'synth\[ray\]' on every host"):
        make_pool(ADDRESS, REPLIES)


def test_the_command_says_that_the_flow_runs_on_a_cluster() -> None:
    config = make_config(read_recipe("demo"), ["runtime.engine=ray", "runtime.address=10.0.0.1:6379"])
    with pytest.raises(ConfigError, match="synth deploy"):
        make_executor(config)
