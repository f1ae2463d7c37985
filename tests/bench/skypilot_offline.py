"""Times SkyPilot's optimizer over price lists of this machine, without network. Run by SkyPilot's own interpreter:

``python tests/bench/skypilot_offline.py FOLDER``, with ``HOME`` an empty folder. Prints one JSON document. It lays the lists of the
folder where SkyPilot keeps its own, says that AWS, Google and Azure are enabled, and asks for any of four accelerators, spot and
on-demand.
"""

import csv
import gzip
import json
import os
import sys
import time
from pathlib import Path

ACCELERATORS = ("A100", "A100-80GB", "H100", "L4")
COLUMNS = (
    *("InstanceType", "vCPUs", "MemoryGiB", "AcceleratorName", "AcceleratorCount", "GpuInfo", "Price", "SpotPrice"),
    *("Region", "AvailabilityZone", "Generation", "Arch"),
)
NAMES = {"a100": "A100", "h100": "H100", "h200": "H200", "l4": "L4", "l40s": "L40S", "t4": "T4", "a10g": "A10G", "v100": "V100"}


def rows_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from csv.DictReader(stream)


def aws_row(row):
    name = NAMES.get(row["GpuName"], row["GpuName"])
    if name == "A100" and row["GpuMemoryMiB"] == "81920":
        name = "A100-80GB"
    return {
        **row,
        "MemoryGiB": float(row["MemoryMiB"]) / 1024,
        "AcceleratorName": name,
        "AcceleratorCount": row["GpuCount"],
        "Price": row["OnDemandPerHour"],
        "AvailabilityZone": f"{row['Region']}-az1",
    }


def lay(folder, catalogs):
    """Writes the lists of the folder in SkyPilot's own layout; returns how many rows there are."""
    sources = {
        "aws": [aws_row(row) for row in rows_of(folder / "aws_gpu_specs_prices_2026-07-20.csv.gz") if row["OnDemandPerHour"]],
        "gcp": list(rows_of(folder / "skypilot_schema_gcp_gpu_2026-05-20.csv.gz")),
        "azure": list(rows_of(folder / "skypilot_schema_azure_gpu_2026-05-20.csv.gz")),
    }
    quotas = {
        "aws": "instance_quota_mapping.csv:InstanceType,OnDemandQuotaCode,SpotQuotaCode",
        "gcp": "accelerator_quota_mapping.csv:Accelerator,NormalQuota,SpotQuota",
    }
    for cloud, rows in sources.items():
        place = catalogs / cloud
        place.mkdir(parents=True)
        with (place / "vms.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", restval="")
            writer.writeheader()
            writer.writerows(rows)
        (place / "images.csv").write_text("Tag,Region,OS,OSVersion,ImageId,CreationDate,BaseImageId\n")
        if cloud in quotas:
            name, heading = quotas[cloud].split(":")
            (place / name).write_text(f"{heading}\n")
    held: dict[str, set[str]] = {}
    for cloud, rows in sources.items():
        for row in rows:
            held.setdefault(row["AcceleratorName"], set()).add({"aws": "AWS", "gcp": "GCP", "azure": "Azure"}[cloud])
    (catalogs / "common").mkdir()
    with (catalogs / "common" / "accelerators.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["AcceleratorName", "Clouds"])
        writer.writerows((name, str(sorted(clouds))) for name, clouds in sorted(held.items()) if name)
    return sum(len(rows) for rows in sources.values())


def main():
    began = time.process_time(), time.perf_counter()
    from sky.catalog import constants  # where the catalogs lie depends on its version

    catalogs = Path(os.environ["HOME"]) / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION
    count = lay(Path(sys.argv[1]), catalogs)
    import sky
    from sky import check, clouds, dag, optimizer, resources

    enabled = [clouds.AWS(), clouds.GCP(), clouds.Azure()]
    check.get_cached_enabled_clouds_or_refresh = lambda *args, **kwargs: enabled

    def ask():
        with dag.Dag() as graph:
            task = sky.Task(run="true", num_nodes=2)
            wanted = [
                resources.Resources(accelerators={name: 8}, use_spot=spot) for name in ACCELERATORS for spot in (False, True)
            ]
            task.set_resources(set(wanted))
        optimizer.Optimizer.optimize(graph, quiet=True)
        return task.best_resources

    best = ask()
    cold = time.process_time() - began[0], time.perf_counter() - began[1]
    warm = []
    for _ in range(3):
        start = time.process_time()
        ask()
        warm.append(time.process_time() - start)
    answer = {"rows": count, "best": repr(best), "cold_cpu_s": cold[0], "cold_wall_s": cold[1], "warm_cpu_s": min(warm)}
    sys.stdout.write(json.dumps({"skypilot": sky.__version__, **answer}) + "\n")


if __name__ == "__main__":
    main()
