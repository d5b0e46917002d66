import numpy as np

from pipelines.graph.walks import draw_units, draw_words, make_keys, mix_words

IDENTITIES = np.arange(20_000, dtype=np.uint64)


def test_words_are_those_of_splitmix64():
    # The first three outputs for seed 0 of the generator as published: its n-th state is n times the golden ratio.
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    wanted = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mix_words(states).tolist() == wanted
    assert draw_words(np.zeros(1, dtype=np.uint64), 2).tolist() == wanted[2:]


def test_units_of_neighbouring_identities_are_even_and_unrelated():
    keys = make_keys(7, IDENTITIES)
    first, second = draw_units(keys, 0), draw_units(keys, 1)
    for units in (first, second):
        assert 0 <= units.min() < 0.001 < 0.999 < units.max() < 1
        counts = np.bincount((units * 10).astype(int), minlength=10)
        assert abs(counts - 2000).max() < 200
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03
