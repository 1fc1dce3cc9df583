from dryfit.short_text import grouped, short_name, with_short_names


def test_a_long_name_keeps_both_its_ends():
    name = "first" + "-" * 600 + "last"
    assert len(short_name(name)) == 80
    assert short_name(name).startswith("first-")
    assert short_name(name).endswith("-last")
    assert short_name("a" * 80) == "a" * 80


def test_long_names_are_shortened_where_a_text_quotes_them():
    assert with_short_names(f"'{'a' * 600}' reads 'b'") == f"'{'a' * 38}...{'a' * 39}' reads 'b'"
    prose = f"'a' {'reads ' * 30}'b'"
    assert with_short_names(prose) == prose


def test_of_many_that_are_alike_the_first_is_told_in_full():
    entries = [("rule", f"layer{i}", f"'layer{i}' is wrong") for i in range(20)]
    assert grouped([*entries, ("other", "x", "'x' is worse")]) == [
        "'layer0' is wrong",
        "  likewise 'layer1', 'layer2' and 17 more",
        "'x' is worse",
    ]


def test_few_that_are_alike_are_all_told():
    entries = [("rule", name, f"{name} is wrong") for name in "abc"]
    assert grouped(entries) == ["a is wrong", "b is wrong", "c is wrong"]
