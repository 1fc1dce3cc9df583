from dryfit.quantization.rewrites import Rewrite, RewriteAction, RewriteJournal


def step(layer, action=RewriteAction.MOVED, over=("pool",), reason="it picks values", scales=()):
    return Rewrite("move-quantizes", layer, action, over, reason, scales)


def test_a_journal_keeps_the_order_and_tells_of_each_layer():
    steps = [step("a"), step("b"), step("a", RewriteAction.FOLDED, ("w",))]
    journal = RewriteJournal(steps[:1])
    for one in steps[1:]:
        journal.add(one)
    assert list(journal) == steps
    assert len(journal) == 3
    assert journal.of("a") == (steps[0], steps[2])
    assert journal.of("c") == ()


def test_a_copy_of_a_copy_has_the_name_of_the_first():
    journal = RewriteJournal()
    journal.note_copy("q before pool", "q")
    journal.note_copy("q before conv", "q before pool")
    assert journal.origin("q before conv") == "q"
    assert journal.origin("q") == "q"
    assert journal.origin("stranger") == "stranger"


def test_a_step_reads_as_a_sentence():
    assert str(step("q", over=("pool", "slice"))) == "'q' moved over 'pool', 'slice': it picks values"
    assert str(step("q", RewriteAction.MERGED, ("p",), "the same")) == "'q' merged into 'p': the same"
    assert str(step("q", RewriteAction.STOPPED, (), "alone")) == "'q' stopped: alone"
