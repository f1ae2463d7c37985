import pytest

from hostler.catalog.accelerator_facts import KINDS, accelerator_facts, read_facts
from hostler.catalog.errors import CatalogError
from hostler.model.accelerators import ACCELERATORS

HEADING = "Name,Kind,MemoryMiB,BandwidthGBs,Fp32,Fp16,Bf16,Fp8,Int8,LinkGBs,Linked,Graphics,Video,Source"
ROW = "T4,gpu,15360,320,8.1,65,0,0,130,0,1,yes,yes,data sheet"


def test_facts_when_shipped_then_every_name_is_one_a_request_may_use():
    facts = accelerator_facts()
    assert set(facts) <= set(ACCELERATORS)
    assert {item.kind for item in facts.values()} == set(KINDS)
    assert all(item.source for item in facts.values())


def test_facts_when_published_figures_then_as_the_data_sheets_say():
    facts = accelerator_facts()
    assert (facts["A100-80GB"].tflops["bf16"], facts["A100-80GB"].memory_mib) == (312, 81920)
    assert facts["H100"].tflops["bf16"] == 989
    assert "bf16" not in facts["T4"].tflops
    assert facts["TPU-v5p"].linked_count == 8960


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("15360", "lots", "line 2: MemoryMiB 'lots'"),
        ("15360", "NaN", "line 2: MemoryMiB 'NaN'"),
        ("320", "0", "line 2: BandwidthGBs '0'"),
        ("gpu", "abacus", "line 2: Kind 'abacus' is not one of gpu"),
        ("yes,yes", "yes,maybe", "line 2: Video 'maybe' is not one of yes, no"),
        (",data sheet", "", "line 2: 13 cells, expected 14"),
        ("data sheet", "", "line 2: Name and Source"),
        (ROW, f"{ROW}\n{ROW}", "line 3: Name 'T4' stands twice"),
    ],
)
def test_facts_when_a_row_is_broken_then_file_line_and_field_are_named(old, new, words):
    with pytest.raises(CatalogError, match=words):
        read_facts(f"{HEADING}\n{ROW}".replace(old, new, 1), source="facts.csv")


def test_facts_when_the_heading_is_another_then_refused():
    with pytest.raises(CatalogError, match="line 1: the columns are not"):
        read_facts("Name,Kind\n", source="facts.csv")
