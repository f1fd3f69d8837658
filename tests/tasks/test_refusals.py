"""What fails: one image, one release, and nothing else."""

import pytest

HAZARD = ("coppelius/kernels/halves.py", '"move half"', '"hazard"')


def test_a_syntax_error_refuses_its_own_images_only(built):
    before = built.outputs()
    built.edit("coppelius/kernels/shares.py", "return", "return return")
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    outcome = built.build()
    assert outcome.status == 1
    others = built.steps("emit halve guard encode check", "first", "second")
    assert outcome.ran == sorted([*others, "emit:fourth", "emit:fifth"])
    assert 'emit:fourth failed\n    File "coppelius/kernels/shares.py", line 7' in outcome.output
    assert "steps: 10 run, 8 up to date, 2 failed, 12 not reached" in outcome.output
    now = built.outputs()
    assert {path for path in before if now[path] == before[path]} >= {"sm86/arena.bin", "sm86/manifest.json"}
    built.edit("coppelius/kernels/shares.py", "return return", "return")
    assert built.build().ran == ["arena", "cubin"]  # with the images that went on


def test_an_undone_syntax_error_leaves_nothing_to_do(built):
    built.edit("coppelius/kernels/plain.py", "return", "return return")
    assert built.doit().status == 1
    built.edit("coppelius/kernels/plain.py", "return return", "return")
    assert built.build().ran == []


def test_an_error_in_what_kernels_share_refuses_those_that_import_it(built):
    built.edit("coppelius/kernels/common.py", "return", "return return")
    outcome = built.build()
    assert (outcome.status, outcome.ran) == (1, ["emit:fifth", "emit:fourth"])
    assert 'File "coppelius/kernels/common.py", line 5' in outcome.output


def test_a_first_build_with_an_error_publishes_nothing_and_the_next_does_the_rest(mini):
    mini.edit("coppelius/kernels/halves.py", "return", "return return")
    outcome = mini.build()
    assert outcome.status == 1
    others = ("first", "second", "fourth", "fifth")
    also = ["emit:third", "place:first", "place:second"]
    assert outcome.ran == mini.steps("emit halve guard encode check", *others, also=also)
    assert not (mini.root / "build/sm86/arena.bin").exists()
    mini.edit("coppelius/kernels/halves.py", "return return", "return")
    later = ["place:fourth", "place:fifth", "arena", "cubin"]
    assert mini.build().ran == mini.steps("emit halve guard encode check place", "third", also=later)


def test_a_kernel_that_raises_says_where(built):
    built.edit("coppelius/kernels/plain.py", "return", "assert count == 4\n    return")
    outcome = built.build()
    assert (outcome.status, outcome.ran) == (1, ["emit:first", "emit:second"])
    assert "emit:second failed\n" in outcome.output
    assert 'File "coppelius/kernels/plain.py", line 5, in plain' in outcome.output
    assert built.root.as_posix() not in outcome.output


def test_a_kernel_that_ends_the_process_fails_its_own_images_only(built):
    built.edit("coppelius/kernels/plain.py", "return", "raise SystemExit(3)\n    return")
    built.edit("coppelius/kernels/shares.py", '"shared"', '"Shared"')
    outcome = built.build()
    assert outcome.status == 1
    assert set(built.steps("emit halve guard encode check", "fourth", "fifth")) <= set(outcome.ran)
    assert "emit:first failed" in outcome.output
    assert "SystemExit: 3" in outcome.output


def test_a_refusal_is_its_own_words(built):
    built.edit("coppelius/kernels/plain.py", "return", 'raise Refusal("no such count")\n    return')
    built.edit("coppelius/kernels/plain.py", "def plain", "from coppelius.isa.refusal import Refusal\n\n\ndef plain")
    assert built.doit().output.startswith(
        "emit:first failed\n    no such count\nemit:second failed as emit:first did\n"
    )


def test_a_refused_image_refuses_the_release_and_hides_no_other(built):
    before = built.outputs()
    built.edit(*HAZARD)
    built.edit("coppelius/kernels/shares.py", '"shared"', '"hazard"')
    outcome = built.build()
    assert outcome.status == 1
    assert outcome.ran == built.steps("emit halve guard encode check", "third", "fourth", "fifth", also=["arena"])
    assert "arena failed\n    third: refused (schedule); nothing is released\n" in outcome.output
    assert "3 of 5 images refused: third, fourth, fifth" in outcome.output
    assert 'third: instruction 0 is a hazard, {"line": 4}' in outcome.output
    assert 'fifth: instruction 19 is a hazard, {"line": 6}' in outcome.output
    assert "accepted: first, second\n" in outcome.output
    now = built.outputs()
    assert all(now[path] == before[path] for path in ("sm86/arena.bin", "sm86/manifest.json"))
    assert built.release_is_whole()
    again = built.build()
    assert (again.status, again.ran) == (1, ["arena"])


def test_a_check_asked_for_by_name_fails_each_time(built):
    built.edit(*HAZARD)
    for _ in range(2):
        outcome = built.build("check:third")
        assert outcome.status == 1
        assert "check:third failed\n    third: refused (schedule)\n    third: instruction 0" in outcome.output
    assert built.build("check:first").status == 0
    assert built.build("check").status == 1
    assert built.build("check:*").status == 1
    # a whole build reports it through the arena, and has it as up to date
    outcome = built.build()
    assert (outcome.status, outcome.ran) == (1, ["arena"])


def test_the_place_of_a_hazard_follows_a_comment(built):
    built.edit(*HAZARD)
    assert '{"line": 4}' in built.build("check:third").output
    built.edit("coppelius/kernels/halves.py", "def halves", "# a comment\ndef halves")
    assert '{"line": 5}' in built.build("check:third").output
    assert built.build().ran == ["arena"]


def test_an_undone_hazard_is_a_whole_release_again(built):
    before = built.outputs()
    built.edit(*HAZARD)
    assert built.doit().status == 1
    built.edit(HAZARD[0], HAZARD[2], HAZARD[1])
    assert built.doit().status == 0
    assert built.outputs() == before


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_a_failing_first_image_makes_no_other_run_again(built, arguments):
    built.edit("coppelius/kernels/plain.py", "return", "return return")
    assert built.doit("run", *arguments).status == 1
    built.edit("coppelius/kernels/plain.py", "return return", "# as it was\n    return")
    assert built.build(*arguments).ran == ["emit:first", "emit:second"]
