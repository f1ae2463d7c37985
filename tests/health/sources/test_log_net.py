"""Cards and buses: ibstat and its kin, counters, inventories, lspci."""

import json

import pytest
from tests.health.shared_captures import capture, needs_captures

from hostler.health.sources import explain
from hostler.model.enums import HealthAction, Verdict

IBSTAT = """CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tFirmware version: 20.31.1014
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tBase lid: 1
\t\tSM lid: 1
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tCA type: MT4123
\tPort 1:
\t\tState: {state}
\t\tPhysical state: {phys}
\t\tRate: {rate}
\t\tLink layer: {layer}
"""


@pytest.mark.parametrize(
    ("state", "phys", "rate", "layer", "verdict"),
    [
        ("Active", "LinkUp", "200", "InfiniBand", Verdict.HEALTHY),
        ("Active", "LinkUp", "100", "InfiniBand", Verdict.FAILED),
        ("Down", "Polling", "10", "InfiniBand", Verdict.FAILED),
        ("Down", "Disabled", "10", "InfiniBand", Verdict.DEGRADED),
        ("Down", "Disabled", "40", "Ethernet", Verdict.DEGRADED),
        ("Initializing", "LinkUp", "200", "InfiniBand", Verdict.DEGRADED),
    ],
)
def test_ibstat_when_a_port_is_read_then_it_is_judged(state, phys, rate, layer, verdict):
    health = explain(IBSTAT.format(state=state, phys=phys, rate=rate, layer=layer), name="")
    assert (health.source, health.verdict) == ("ib-status", verdict)


IBSTATUS = """Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:b8ce:f603:00e5:1234
\tbase lid:\t 0x1
\tstate:\t\t {state}
\tphys state:\t {phys}
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand
"""


@pytest.mark.parametrize(
    ("state", "phys", "verdict"),
    [
        ("4: ACTIVE", "5: LinkUp", Verdict.HEALTHY),
        ("1: DOWN", "2: Polling", Verdict.FAILED),
        ("2: INIT", "5: LinkUp", Verdict.DEGRADED),
    ],
)
def test_ibstatus_when_a_port_is_read_then_it_is_judged(state, phys, verdict):
    assert explain(IBSTATUS.format(state=state, phys=phys), name="").verdict is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (
            "hca_id: mlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n",
            Verdict.HEALTHY,
        ),
        ("hca_id: mlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n", Verdict.FAILED),
        ("link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ib0\n", Verdict.HEALTHY),
        ("link mlx5_0/1 state DOWN physical_state POLLING netdev ib0\n", Verdict.FAILED),
        ("mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)\n", Verdict.FAILED),
        ("", Verdict.UNKNOWN),
        ("ibstat: command not found", Verdict.UNKNOWN),
    ],
)
def test_ib_when_any_tool_tells_a_port_then_it_is_judged(text, verdict):
    assert explain(text, name="", command="ibstat").verdict is verdict


PERFQUERY = """# Port counters: Lid 6 port 1 (CapMask: 0x5300)
PortSelect:......................1
SymbolErrorCounter:..............{symbol}
LinkErrorRecoveryCounter:........0
LinkDownedCounter:...............{downed}
PortRcvErrors:...................0
LocalLinkIntegrityErrors:........{integrity}
PortXmitData:....................4294967295
"""


@pytest.mark.parametrize(
    ("symbol", "downed", "integrity", "verdict"),
    [
        ("0", "0", "0", Verdict.HEALTHY),
        ("5", "0", "0", Verdict.HEALTHY),
        ("500", "0", "0", Verdict.DEGRADED),
        ("0", "1", "0", Verdict.DEGRADED),
        ("0", "0", "3", Verdict.FAILED),
        ("x", "0", "0", Verdict.UNKNOWN),
    ],
)
def test_perfquery_when_counters_are_read_then_limits_decide(symbol, downed, integrity, verdict):
    assert explain(PERFQUERY.format(symbol=symbol, downed=downed, integrity=integrity), name="").verdict is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001 qdisc mq state UP mode DEFAULT\n", Verdict.HEALTHY),
        ("2: eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9001 qdisc mq state DOWN mode DEFAULT\n", Verdict.FAILED),
        ("2: eth1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT\n", Verdict.UNKNOWN),
        ("3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN\n", Verdict.UNKNOWN),
        ("Settings for eth0:\n\tSpeed: 100000Mb/s\n\tLink detected: yes\n", Verdict.HEALTHY),
        ("Settings for eth0:\n\tSpeed: Unknown!\n\tLink detected: no\n", Verdict.FAILED),
        ("NIC statistics:\n     rx_packets: 12\n     link_down_events_phy: 7\n", Verdict.DEGRADED),
        ("NIC statistics:\n     rx_packets: 12\n     link_down_events_phy: 0\n", Verdict.HEALTHY),
        (
            "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:0\n/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err:4\n",
            Verdict.FAILED,
        ),
    ],
)
def test_network_when_links_and_counters_are_read_then_they_are_judged(text, verdict):
    health = explain(text, name="")
    assert (health.source, health.verdict) == ("network-counters", verdict)


@needs_captures
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("gcm_learn_good.json", Verdict.HEALTHY),
        ("gcm_learn_ib_intf_bad_rate.json", Verdict.FAILED),
        ("gcm_learn_ib_intf_operstate_down.json", Verdict.FAILED),
        ("gcm_DGX_A100.json", Verdict.UNKNOWN),
    ],
)
def test_inventory_when_a_real_one_then_judged_right(name, verdict):
    health = explain(capture(f"nic-inventory/{name}"), name=name)
    assert (health.source, health.verdict) == ("nic-inventory", verdict)


@needs_captures
def test_inventory_when_beside_its_manifest_then_compared():
    expected = json.loads(capture("nic-inventory/gcm_DGX_A100.json"))
    learned = json.loads(capture("nic-inventory/gcm_learn_good.json"))

    def verdict(cards):
        return explain(json.dumps({"expected": expected, "learned": cards}), name="", kind="nic-inventory")

    assert verdict(learned).verdict is not Verdict.FAILED
    rate = "/sys/bus/pci/devices/0000:ba:00.0/infiniband/mlx5_8/ports/1/rate"
    lost = {path: value for path, value in learned.items() if "mlx5_8" not in path}
    assert "expected and not there" in verdict(lost).reasons[0]
    assert verdict(learned | {rate: "100 Gb/sec (4X EDR)\n"}).verdict is Verdict.FAILED


A100 = "3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB]"


@pytest.mark.parametrize(
    ("text", "verdict", "action"),
    [
        (f"01:00.0 {A100} (rev a1)\n", Verdict.UNKNOWN, HealthAction.RECORD),
        (f"01:00.0 {A100} (rev ff)\n", Verdict.FAILED, HealthAction.REBOOT_NODE),
        (f"01:00.0 {A100} (rev ff) (prog-if ff)\n\t!!! Unknown header type 7f\n", Verdict.FAILED, HealthAction.REBOOT_NODE),
        (
            f"01:00.0 {A100} (rev a1)\n\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)\n\tKernel driver in use: nvidia\n",
            Verdict.HEALTHY,
            HealthAction.NONE,
        ),
        (
            f"01:00.0 {A100} (rev a1)\n\tLnkSta:\tSpeed 16GT/s, Width x4 (downgraded)\n\tKernel driver in use: nvidia\n",
            Verdict.DEGRADED,
            HealthAction.RECORD,
        ),
        (f"01:00.0 {A100} (rev a1)\n\tKernel driver in use: nouveau\n", Verdict.FAILED, HealthAction.REBOOT_NODE),
        (f"01:00.0 {A100} (rev a1)\n\tKernel modules: nvidia, nouveau\n", Verdict.FAILED, HealthAction.REBOOT_NODE),
        (
            "00:00.0 Host bridge: Intel Corporation Device\n00:1f.0 ISA bridge: Intel Corporation Device\n",
            Verdict.UNKNOWN,
            HealthAction.RECORD,
        ),
    ],
)
def test_lspci_when_a_gpu_is_read_then_a_lost_one_is_told(text, verdict, action):
    health = explain(text, name="", command="lspci -vv")
    assert (health.source, health.verdict, health.action) == ("lspci", verdict, action)


@needs_captures
@pytest.mark.parametrize(("name", "count", "first"), [("a10", 1, "0000:06:00.0"), ("a100", 8, "0001:00:00.0")])
def test_lspci_when_a_real_one_then_all_gpus_are_listed(name, count, first):
    health = explain(capture(f"kernel-logs/gpud_lspci.nn.{name}"), name="lspci")
    assert len(health.accelerators) == count
    assert health.accelerators[0].pci == first
