import os
import subprocess
import sys

import pytest

from hostler.catalog import cache
from hostler.catalog.cache import KEPT, default_folder, open_index
from hostler.catalog.errors import CatalogError
from hostler.catalog.offerings import load_catalog

AZURE = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,Generation,TotalGpuMemoryMiB\n"
T4 = "Standard_NC4as_T4_v3,T4,1,4,28,0.526,0.1,eastus,V1,\n"
V100 = "Standard_NC12s_v3,V100,2,12,224,6.12,1.1,eastus,V1,\n"


@pytest.fixture
def price_list(tmp_path):
    path = tmp_path / "skypilot_azure_2026-05-20.csv"
    path.write_text(AZURE + T4 + V100)
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def loads(monkeypatch):
    """Counts how often price lists are read."""
    calls = []

    def counted(paths, **options):
        calls.append(tuple(paths))
        return load_catalog(paths, **options)

    monkeypatch.setattr("hostler.catalog.offerings.load_catalog", counted)
    return calls


def keys(index, name="T4", count=1):
    return [item.key for item in index.known((name,), count)]


def test_cache_when_opened_twice_then_lists_are_read_once_and_the_answer_is_the_same(price_list, folder, loads):
    first, second = (open_index([price_list], folder=str(folder)) for _ in range(2))
    assert len(loads) == 1
    assert (
        keys(first)
        == keys(second)
        == ["azure/eastus//Standard_NC4as_T4_v3/on-demand", "azure/eastus//Standard_NC4as_T4_v3/spot"]
    )
    assert repr(first.known(("T4", "V100"), 2)) == repr(second.known(("T4", "V100"), 2))
    assert first.sizes == second.sizes
    assert (first.sizes["T4"], first.sizes["V100"]) == ({1: 2}, {2: 2})


def test_cache_when_a_list_changes_within_the_same_second_and_size_then_it_is_read_again(price_list, folder, loads):
    open_index([price_list], folder=str(folder))
    facts = price_list.stat()
    price_list.write_text(AZURE + T4.replace("0.526", "0.527") + V100)
    os.utime(price_list, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    found = open_index([price_list], folder=str(folder)).known(("T4",), 1)[0].offering
    assert len(loads) == 2
    assert str(found.price_usd_per_hour) == "0.527"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"\x80\x04\x95 pickle",
        lambda data: data[: len(data) // 2],
        lambda data: data[:60] + b"\x00" + data[61:],
        lambda data: data.replace(b"Standard_NC12s", b"Standard_NC13s"),
        lambda data: data[:16] + b"\xff" + data[17:],
    ],
)
def test_cache_when_its_file_is_damaged_then_lists_are_read_again(price_list, folder, loads, spoil):
    good = keys(open_index([price_list], folder=str(folder)))
    file = next(folder.iterdir())
    file.write_bytes(spoil(file.read_bytes()))
    index = open_index([price_list], folder=str(folder))
    assert keys(index) == good
    assert len(index.known(("V100",), 2)) == 2
    assert len(loads) == 2


def test_cache_when_its_folder_cannot_be_made_then_it_goes_without(price_list, tmp_path, loads):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    for _ in range(2):
        assert len(keys(open_index([price_list], folder=str(blocker / "cache")))) == 2
    assert len(loads) == 2


def test_cache_when_the_file_is_anothers_then_it_is_not_used(price_list, folder, loads, monkeypatch):
    open_index([price_list], folder=str(folder))
    monkeypatch.setattr(cache.os, "getuid", lambda: os.geteuid() + 1)
    open_index([price_list], folder=str(folder))
    assert len(loads) == 2


def test_cache_when_it_is_filled_then_only_the_user_can_read_it_and_nothing_half_is_left(price_list, folder):
    open_index([price_list], folder=str(folder))
    assert folder.stat().st_mode & 0o077 == 0
    assert [file.stat().st_mode & 0o077 for file in folder.iterdir()] == [0]


def test_cache_when_many_lists_were_opened_then_the_oldest_go(tmp_path, folder):
    for number in range(KEPT + 3):
        path = tmp_path / f"list{number}.csv"
        path.write_text(AZURE + T4.replace("0.526", f"0.6{number:02d}"))
        open_index([path], folder=str(folder))
    assert len(list(folder.iterdir())) == KEPT


def test_cache_when_a_row_is_broken_then_named_each_time_and_left_out_only_when_told(price_list, folder):
    price_list.write_text(AZURE + T4 + V100.replace("6.12", "six"))
    for _ in range(2):
        with pytest.raises(CatalogError, match=r"skypilot_azure_2026-05-20\.csv, line 3"):
            open_index([price_list], folder=str(folder))
    for _ in range(2):
        index = open_index([price_list], keep_going=True, folder=str(folder))
        assert len(keys(index)) == 2
        assert ["line 3" in str(fault) for fault in index.catalog.faults] == [True]


def test_cache_when_a_list_is_missing_then_the_error_is_that_of_reading_it(tmp_path, folder):
    with pytest.raises(CatalogError, match=r"missing\.csv"):
        open_index([tmp_path / "missing.csv"], folder=str(folder))


def test_cache_when_a_folder_is_given_then_its_lists_count_by_name(price_list, folder, loads):
    open_index([price_list.parent], folder=str(folder))
    (price_list.parent / "another.csv").write_text(AZURE + T4.replace("eastus", "westus"))
    assert len(keys(open_index([price_list.parent], folder=str(folder)))) == 4
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("own", "xdg", "home", "expected"),
    [
        ("/own", "/xdg", "/home/a", "/own"),
        ("", "/xdg", "/home/a", ""),
        (None, "/xdg", "/home/a", "/xdg/hostler"),
        (None, "relative", "/home/a", "/home/a/.cache/hostler"),
        (None, None, "/home/a", "/home/a/.cache/hostler"),
    ],
)
def test_folder_when_asked_then_own_then_xdg_then_home(monkeypatch, own, xdg, home, expected):
    for name, value in (("HOSTLER_CACHE", own), ("XDG_CACHE_HOME", xdg), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert default_folder() == expected


def test_cache_when_it_is_warm_then_no_reader_of_price_lists_is_imported(price_list, folder):
    open_index([price_list], folder=str(folder))
    code = (
        "import sys; from hostler.catalog.cache import open_index; "
        f"open_index([{str(price_list)!r}], folder={str(folder)!r}).known(('T4',), 1); "
        "print([m for m in ('hostler.catalog.offerings', 'csv', 'gzip', 'importlib.resources', 'pathlib') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"
