from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from hostler.api.paging import Wish, cut
from hostler.api.rows import Row

prices = st.none() | st.decimals(0, 100, places=2)


def rows_of(values):
    return [Row("dag", {"name": f"n{index}", "price": value}, f"n{index}") for index, value in enumerate(values)]


def wish(**changes):
    return Wish(**{"words": (), "sort": "price", "is_descending": False, "offset": 0, "limit": 10, **changes})


@given(st.lists(prices, max_size=40), st.booleans(), st.integers(1, 15))
def test_cut_when_paged_through_then_every_row_comes_once_in_order_and_unknown_last(values, is_descending, limit):
    seen, offset = [], 0
    while True:
        page = cut(rows_of(values), wish(is_descending=is_descending, limit=limit, offset=offset))
        assert page.offset == offset
        seen += page.rows
        offset += limit
        if offset >= page.total:
            break
    assert sorted(row.fields["name"] for row in seen) == sorted(f"n{index}" for index in range(len(values)))
    known = [row.fields["price"] for row in seen if row.fields["price"] is not None]
    assert known == sorted(known, reverse=is_descending)
    assert [row.fields["price"] is None for row in seen] == sorted(row.fields["price"] is None for row in seen)


def test_cut_when_rows_have_gone_since_then_the_last_page_is_shown():
    page = cut(rows_of([Decimal(1)] * 25), wish(offset=90))
    assert (page.offset, len(page.rows), page.total) == (20, 5, 25)
    assert cut([], wish(offset=90)).offset == 0


def test_cut_when_words_are_given_then_all_of_them_are_in_the_row():
    page = cut(rows_of([Decimal(1)] * 25), wish(words=("n1", "2")))
    assert [row.fields["name"] for row in page.rows] == ["n12"]


def test_cut_when_rows_are_equal_then_their_order_stays_also_descending():
    page = cut(rows_of([Decimal(1)] * 3), wish(is_descending=True))
    assert [row.fields["name"] for row in page.rows] == ["n0", "n1", "n2"]
