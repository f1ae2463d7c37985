"""What a healthy node does in a year that looks like trouble: episodes with their rates a node and year.

Rates are ours, on the high side of what public fleets tell (transient tool failures, user program errors, corrected memory).
"""

from datetime import timedelta

YEAR_S = 365 * 86_400.0


def probe_fails(node, rng):
    for _ in range(rng.randint(1, 3)):
        node.silence()


def library_fails(node, rng):
    for _ in range(rng.randint(1, 2)):
        node.silence(is_log_read=True)


def reading_is_missing(node, rng):
    field = rng.choice(["temperature_c", "ecc_volatile_uncorrectable_count", "throttle_mask", "name", "is_remap_pending"])
    node.look(node.devices({field: None, "missing": {field: "Unknown Error"}}, rng.randrange(node.gpu_count)))


def idles(node, rng):
    for _ in range(rng.randint(1, 3)):
        idle = {"pcie_width": rng.choice([1, 4, 8]), "throttle_mask": 0x1, "utilisation_ratio": 0.0}
        node.look(node.devices(idle, rng.randrange(node.gpu_count)))


def is_power_capped(node, rng):
    for _ in range(rng.randint(1, 3)):
        node.look(
            node.devices({"throttle_mask": rng.choice([0x2, 0x4, 0x10, 0x100, 0x4 | 0x10])}, rng.randrange(node.gpu_count))
        )


def slows_down_once(node, rng):
    for _ in range(rng.randint(1, 3)):
        node.look(node.devices({"throttle_mask": rng.choice([0x8, 0x40, 0x20, 0x80])}, rng.randrange(node.gpu_count)))
        node.calm()


def gets_warm(node, rng):
    index = rng.randrange(node.gpu_count)
    for _ in range(rng.randint(1, 2)):
        node.look(node.devices({"temperature_c": rng.randint(85, 87)}, index))


def stays_warm(node, rng):
    index = rng.randrange(node.gpu_count)
    for _ in range(rng.randint(3, 10)):
        node.look(node.devices({"temperature_c": rng.randint(85, 88)}, index))


def corrects_memory(node, rng):
    for _ in range(rng.randint(1, 3)):
        node.look(node.devices({"remapped_correctable_count": rng.randint(1, 20)}, rng.randrange(node.gpu_count)))


def remaps_a_row(node, rng):
    node.write(rng.choice([63, 92]), rng.randrange(node.gpu_count), "pid='<unknown>', name=<unknown>, Row Remapper: remapped")
    node.look()


def contains_an_error(node, rng):
    node.write(94, rng.randrange(node.gpu_count), f"pid={rng.randint(1000, 9000)}, name=python3, Contained")
    node.look()


def program_errs(node, rng):
    code = rng.choice([13, 31, 43, 68, 69, 11, 32])
    index, pid = rng.randrange(node.gpu_count), rng.randint(1000, 9000)
    unit = f"Graphics SM Warp Exception on (GPC {rng.randrange(7)}, TPC {rng.randrange(9)}, SM 0): Out Of Range Address"
    for line in range(rng.randint(1, 6)):
        node.write(code, index, f"pid={pid}, name=python3, {unit}", after_s=line * 0.01)
    node.write(45, index, f"pid={pid}, name=python3, Ch 00000008", after_s=0.3)
    node.look()


def job_is_killed(node, rng):
    node.write(45, rng.randrange(node.gpu_count), f"pid={rng.randint(1000, 9000)}, name=python3, Ch 00000008")
    node.look()


def link_is_trained(node, rng):
    node.look(node.devices({"nvlink_active_count": 17}, rng.randrange(node.gpu_count)))


def is_listed_short(node, rng):
    """One answer lacks an accelerator, as when a tool reads while another one resets its settings."""
    node.look(node.devices()[: node.gpu_count - 1])


def is_rebooted(node, rng):
    node.silence()
    node.silence()
    node.reboot()
    node.look()


def clock_jumps(node, rng):
    node.clock_off += timedelta(seconds=rng.choice([-3600, 3600, 86_400, -86_400]))
    node.look()


RATES = {
    probe_fails: 52,
    library_fails: 26,
    reading_is_missing: 26,
    idles: 26,
    is_power_capped: 26,
    slows_down_once: 12,
    gets_warm: 26,
    stays_warm: 6,
    corrects_memory: 12,
    remaps_a_row: 1,
    contains_an_error: 0.5,
    program_errs: 40,
    job_is_killed: 26,
    link_is_trained: 2,
    is_listed_short: 2,
    is_rebooted: 6,
    clock_jumps: 2,
}


def episodes(rng, seconds, share=1.0):
    """Returns (second, episode) in order; ``share``: of the rates."""
    found = []
    for act, per_year in RATES.items():
        rate = per_year * share / YEAR_S
        at = rng.expovariate(rate)
        while at < seconds:
            found.append((at, act))
            at += rng.expovariate(rate)
    return sorted(found, key=lambda entry: entry[0])


def live(node, rng, seconds, share=1.0):
    """Lives through so many seconds of noise."""
    end = node.at_s + seconds
    for at, act in episodes(rng, seconds, share):
        node.pass_until(end - seconds + at)
        act(node, rng)
        if rng.random() < 0.9:  # some episodes run into the next one
            node.settle()
    node.pass_until(end)
