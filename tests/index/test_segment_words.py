"""The short way through the cutter, for plain words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmemex.index import segment


@given(st.from_regex(r"[A-Za-z]{1,70}", fullmatch=True) | st.sampled_from(sorted(segment.STOPWORDS)))
def test_plain_words_are_cut_the_same_on_the_short_way(word):
    assert segment._cut(word, 2) == segment._cut_chunk(word)
