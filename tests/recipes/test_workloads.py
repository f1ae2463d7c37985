from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests import samples

from hostler.model.enums import JobState, LeaseState, NodeState
from hostler.model.lease import Job, Lease, Node
from hostler.model.request import RunRef
from hostler.recipes import workloads

NOW = datetime(2026, 12, 1, tzinfo=UTC)
OFFERING = samples.offering("40", "us-east-1a")


def request(**changes):
    return samples.request("default", max_cost_usd=Decimal(100), **changes)


def lease(**changes):
    run = RunRef(dag_id="hostler_node_lifecycle", run_id="r1")
    return Lease(
        lease_id="lease1", deployment="test", run=run, request=request(**changes), state=LeaseState.ACTIVE, created_at=NOW
    )


def node(name, address):
    return Node(
        node_name=name,
        lease_id="lease1",
        slot_index=0,
        intent_id=name,
        tenant="default",
        offering=OFFERING,
        provider_id="i-1",
        state=NodeState.INITIALIZED,
        launched_at=NOW,
        address=address,
    )


def job(**changes):
    base = {
        "job_id": "lease1-1",
        "lease_id": "lease1",
        "attempt": 1,
        "attempt_token": "token",
        "node_names": ("b", "a"),
        "state": JobState.STARTING,
        "started_at": NOW,
    }
    return Job(**{**base, **changes})


NODES = (node("a", "10.0.0.1"), node("b", "10.0.0.2"), node("c", "10.0.0.3"))


def test_orders_for_when_two_nodes_then_they_come_in_the_jobs_rank_order():
    orders = workloads.orders_for(lease(), job(), NODES)

    assert [order.rank for order in orders] == [0, 1]
    assert {order.world_size for order in orders} == {2}
    assert {order.master_host for order in orders} == {"10.0.0.2"}
    assert len({order.master_port for order in orders}) == 1
    assert 20_000 <= orders[0].master_port < 40_000
    assert {order.job_id for order in orders} == {"lease1-1"}
    assert {order.attempt_token for order in orders} == {"token"}


def test_orders_for_when_digits_then_the_whole_program_travels_and_options_are_environment():
    asked = lease(recipe_options=(("epochs", "3"), ("step_delay_s", "0.1")), checkpoint_interval_steps=5)
    order = workloads.orders_for(asked, job(), NODES)[0]

    names = {"__init__.py", "train.py", "loop.py", "gang.py", "checkpoints.py"}
    assert set(order.files) == {f"digits/{name}" for name in names}
    assert all(order.files[name] for name in order.files)
    assert order.env["HOSTLER_OPTION_EPOCHS"] == "3"
    assert order.env["HOSTLER_OPTION_STEP_DELAY_S"] == "0.1"
    assert order.env["HOSTLER_CHECKPOINT_INTERVAL_STEPS"] == "5"
    assert order.env["HOSTLER_LEASE_ID"] == "lease1"
    assert "HOSTLER_CODE_URI" not in order.env
    assert "-m digits.train" in order.argv[-1]


def test_orders_for_when_resumed_then_all_ranks_restore_the_same_step():
    assert {order.restore_step for order in workloads.orders_for(lease(), job(resumed_from_step=40), NODES)} == {40}
    assert {order.restore_step for order in workloads.orders_for(lease(), job(shipped_step=40), NODES)} == {None}


def test_orders_for_when_script_then_the_users_words_run_unchanged_with_their_folders():
    asked = lease(recipe="script", script="echo a\npython train.py", code_uri="s3://bucket/code", data_uri="file:///data")
    order = workloads.orders_for(asked, job(), NODES)[1]

    assert order.argv[:2] == ("sh", "-c")
    assert order.argv[2].endswith("\necho a\npython train.py")
    assert order.files == {}
    assert (order.env["HOSTLER_CODE_URI"], order.env["HOSTLER_DATA_URI"]) == ("s3://bucket/code", "file:///data")


def test_orders_for_when_torch_then_one_process_an_accelerator_is_started():
    order = workloads.orders_for(lease(recipe="torch-ddp"), job(), NODES)[0]
    assert "--nproc-per-node=8 " in order.argv[-1]
    assert "torch_ddp/train.py" in order.files


@pytest.mark.parametrize("nodes", [NODES[:1], (NODES[0], node("b", None))])
def test_orders_for_when_a_node_has_no_address_then_it_is_named(nodes):
    with pytest.raises(ValueError, match="no address yet of b"):
        workloads.orders_for(lease(), job(), nodes)


def test_master_port_for_when_jobs_differ_then_ports_mostly_do():
    ports = {workloads.master_port_for(f"job-{index}") for index in range(200)}
    assert len(ports) > 190
    assert min(ports) >= 20_000
    assert max(ports) < 40_000


def test_check_when_all_is_well_then_nothing():
    assert workloads.check(request()) == []
    assert workloads.check(request(recipe="script", script="true", recipe_options=(("anything", "x"),))) == []
    assert workloads.check(request(recipe="torch-ddp", recipe_options=(("precision", "bf16"),))) == []


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"recipe": "imagenet"}, "recipe", "unknown recipe 'imagenet'; allowed: digits, script, torch-ddp"),
        ({"recipe": "script"}, "script", "needs the command line"),
        ({"recipe": "script", "script": "  "}, "script", "needs the command line"),
        ({"script": "true"}, "script", "only with recipe `script`"),
        (
            {"recipe_options": (("epoch", "3"),)},
            "recipe_options",
            "unknown option 'epoch' of recipe 'digits'; allowed: answer_s,",
        ),
        ({"recipe_options": (("epochs", "0"),)}, "recipe_options", "epochs: 0; allowed: a whole number from 1 to 1e+06"),
        ({"recipe_options": (("epochs", "1.5"),)}, "recipe_options", "epochs: '1.5'; allowed: a whole number"),
        ({"recipe_options": (("learning_rate", "nan"),)}, "recipe_options", "learning_rate: nan; allowed: a number"),
        (
            {"recipe": "torch-ddp", "recipe_options": (("precision", "fp8"),)},
            "recipe_options",
            "allowed: auto, bf16, fp16, fp32",
        ),
        ({"recipe": "script", "script": "true", "recipe_options": (("A-B", "1"),)}, "recipe_options", "'A-B': allowed are"),
    ],
)
def test_check_when_something_is_wrong_then_field_and_what_is_allowed_are_named(changes, field, words):
    ((found_field, message),) = workloads.check(request(**changes))
    assert found_field == field
    assert words in message


def test_setup_options_when_torch_is_needed_then_it_is_asked_for():
    assert workloads.setup_options(lease()) == {"accelerator": "H100", "accelerator_count": "8", "torch": "false"}
    assert workloads.setup_options(lease(recipe="torch-ddp"))["torch"] == "true"


def test_options_when_documented_then_the_page_names_each_of_them():
    page = (Path(__file__).parents[2] / "docs" / "user-code.md").read_text()
    for recipe in workloads.RECIPES.values():
        for name in recipe.options:
            assert f"`{name}`" in page


@pytest.mark.parametrize("recipe", sorted(workloads.RECIPES))
def test_options_when_left_to_default_then_the_default_itself_is_allowed(recipe):
    options = workloads.RECIPES[recipe].options
    defaults = tuple((name, str(option.default)) for name, option in options.items() if option.default != "")
    assert workloads.check(request(recipe=recipe, recipe_options=defaults)) == []
