from pipelines.graph.facts import draw_nodes, sample_nodes, stem_key


def test_keys_that_differ_in_their_numbers_are_one_relation():
    assert stem_key("leader_name1") == stem_key("Leader_name2") == "leader_name"


def test_a_sample_is_the_whole_of_a_small_corpus_and_about_its_size_else(toy):
    assert sample_nodes(toy, 1000) == list(toy.article_nodes())
    assert len(sample_nodes(toy, 5)) < len(toy.article_nodes())
    assert sample_nodes(toy, 5) == sample_nodes(toy, 5)


def test_a_draw_does_not_depend_on_order():
    assert draw_nodes(range(100), 7, "a") == draw_nodes(reversed(range(100)), 7, "a")
    assert len(draw_nodes(range(100), 7, "a")) == 7
    assert draw_nodes(range(100), 7, "a") != draw_nodes(range(100), 7, "b")


def test_of_very_many_nodes_the_draw_still_reaches_from_first_to_last():
    drawn = draw_nodes(range(1_000_000), 10, "a")
    assert len(drawn) == 10
    assert drawn == sorted(drawn)
    assert drawn[0] < 500_000 < drawn[-1]
