import pytest
from tests.recipes.agent.bench import AgentBench


@pytest.fixture
def make_agent(tmp_path):
    made = []

    def _make(name: str = "node-0", **more) -> AgentBench:
        made.append(AgentBench(tmp_path / name, name, **more))
        return made[-1]

    yield _make
    for one in made:
        one.close()


@pytest.fixture
def agent(make_agent):
    return make_agent()
