import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.builder.placement.graph_partition import partition_graph


@st.composite
def coloured_graphs(draw, largest=14):
    count = draw(st.integers(0, largest))
    colours = draw(st.lists(st.integers(0, draw(st.integers(0, 2))), min_size=count, max_size=count))
    pairs = list(itertools.combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=3 * count)) if pairs else []
    return colours, edges


def quotient_edges(segments, edges):
    return {(segments[a], segments[b]) for a, b in edges if segments[a] != segments[b]}


def reaches(edges, start):
    found, waiting = set(), [start]
    while waiting:
        here = waiting.pop()
        for source, target in edges:
            if source == here and target not in found:
                found.add(target)
                waiting.append(target)
    return found


@settings(max_examples=300, deadline=None)
@given(coloured_graphs())
def test_every_node_has_one_segment_of_its_colour_and_numbers_are_dense(graph):
    colours, edges = graph
    segments = partition_graph(colours, edges)
    assert len(segments) == len(colours)
    assert sorted(set(segments)) == list(range(len(set(segments))))
    for segment in set(segments):
        assert len({colours[node] for node, of in enumerate(segments) if of == segment}) == 1


@settings(max_examples=300, deadline=None)
@given(coloured_graphs())
def test_segments_are_numbered_in_a_topological_order_so_none_is_left_and_entered_again(graph):
    colours, edges = graph
    segments = partition_graph(colours, edges)
    assert all(segments[source] <= segments[target] for source, target in edges)


@settings(max_examples=300, deadline=None)
@given(coloured_graphs())
def test_a_segment_is_connected(graph):
    colours, edges = graph
    segments = partition_graph(colours, edges)
    for segment in set(segments):
        nodes = [node for node, of in enumerate(segments) if of == segment]
        inner = [(a, b) for a, b in edges if segments[a] == segments[b] == segment]
        both_ways = inner + [(b, a) for a, b in inner]
        assert reaches(both_ways, nodes[0]) | {nodes[0]} == set(nodes)


@settings(max_examples=500, deadline=None)
@given(coloured_graphs())
def test_no_two_neighbouring_segments_of_one_colour_could_be_joined(graph):
    colours, edges = graph
    segments = partition_graph(colours, edges)
    colour_of = dict(zip(segments, colours, strict=True))
    between = quotient_edges(segments, edges)
    for first, second in between:
        if colour_of[first] == colour_of[second]:
            other_ways = [edge for edge in between if edge != (first, second)]
            assert second in reaches(other_ways, first), (first, second)


@settings(max_examples=50, deadline=None)
@given(coloured_graphs(largest=30), st.randoms())
def test_the_order_in_which_edges_are_listed_does_not_matter(graph, random):
    colours, edges = graph
    shuffled = random.sample(edges, len(edges))
    assert partition_graph(colours, edges) == partition_graph(colours, shuffled)


@pytest.mark.parametrize(
    ("colours", "edges", "expected"),
    [
        ("DDDD", [(0, 1), (1, 2), (2, 3)], [0, 0, 0, 0]),
        ("DDGD", [(0, 1), (1, 2), (2, 3)], [0, 0, 1, 2]),
        # The last node could run with the first, but the way through the GPU forbids it.
        ("DGD", [(0, 1), (1, 2), (0, 2)], [0, 1, 2]),
        # Here it can: the GPU branch does not come from the first.
        ("DGD", [(0, 2), (1, 2)], [1, 0, 1]),
        # Two branches that share nothing are two segments.
        ("DD", [], [0, 1]),
        ("", [], []),
    ],
)
def test_small_graphs_are_cut_where_a_person_would_cut_them(colours, edges, expected):
    assert partition_graph([ord(colour) for colour in colours], edges) == expected
