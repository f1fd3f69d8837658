"""The exact list of steps that an edit makes run, for the native target alone and for another beside it."""

import pytest

ONE, TWO = ("sm86",), ("sm86", "sm121")
pytestmark = pytest.mark.parametrize("mini", [ONE, TWO], indirect=True, ids=["one target", "two targets"])


def test_a_cold_build_runs_every_step_once(mini):
    outcome = mini.build()
    assert outcome.status == 0, outcome.output
    assert outcome.ran == mini.steps(also=["arena", "cubin"])
    assert f"steps: {len(outcome.ran)} run" in outcome.output
    assert "0x100000100    240            15         24" in outcome.output


def test_a_build_of_nothing_new_runs_nothing(built):
    outcome = built.build()
    assert (outcome.status, outcome.ran) == (0, [])
    steps = len(built.steps(also=["arena", "cubin"]))
    assert outcome.output == f"steps: {steps} up to date\n"


def test_a_comment_in_a_kernel_emits_its_images_again(built):
    built.edit("coppelius/kernels/plain.py", "def plain", "# a comment\ndef plain")
    before = built.outputs()
    assert built.build().ran == built.steps("emit", "first", "second")
    moved = {path for path, content in built.outputs().items() if content != before[path]}
    assert moved == {"sm86/first/lines.json", "sm86/second/lines.json"}


def test_a_comment_in_what_kernels_share_emits_those_that_import_it(built):
    built.edit("coppelius/kernels/common.py", "def repeated", "# a comment\ndef repeated")
    assert built.build().ran == built.steps("emit", "fourth", "fifth")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Sixteen bytes an instruction."""', '"""Sixteen bytes, and a new docstring."""'),
        ("FILL =", "\n\n# how to fill\nFILL  = "),
        ("def encode_listing", "def encode_listing(  # what\n"),
    ],
    ids=["docstring", "layout", "comment"],
)
def test_comments_elsewhere_are_free(built, old, new):
    new = new if not new.startswith("def") else "# what follows encodes\ndef encode_listing"
    built.edit("coppelius/program/encoding.py", old, new)
    assert built.build().ran == []


def test_new_words_of_the_same_length_move_no_offset(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    assert built.build().ran == built.steps("emit halve guard encode check", "third", also=["arena", "cubin"])
    assert built.build().ran == []


def test_growth_inside_the_padding_moves_no_later_offset(built):
    built.edit("coppelius/kernels/halves.py", "* count", "* (count + 1)")
    assert built.build().ran == built.steps("emit halve guard encode check place", "third", also=["arena", "cubin"])


def test_growth_past_the_aligned_end_moves_the_offsets_after_it(built):
    built.edit("coppelius/kernels/halves.py", "* count", "* (count + 16)")
    later = built.steps("place", "fourth", "fifth")
    assert built.build().ran == built.steps(
        "emit halve guard encode check place", "third", also=[*later, "arena", "cubin"]
    )


def test_a_change_of_the_encoder_encodes_all_and_equal_bytes_stop(built):
    built.edit("coppelius/program/encoding.py", "    return b", "    unused = 1\n    return b")
    assert built.build().ran == built.steps("encode")


def test_a_change_of_the_encoder_goes_on_where_bytes_change(built):
    built.edit("coppelius/program/encoding.py", "line.encode()", 'line.replace("shared", "Shared").encode()')
    assert built.build().ran == built.steps("encode", also=[*built.steps("check", "fourth", "fifth"), "arena", "cubin"])


def test_a_change_of_the_checker_checks_all(built):
    built.edit("coppelius/check/verdict.py", '"hazard"]', '"hazards"]')
    assert built.build().ran == built.steps("check")


def test_a_change_of_an_action_is_a_change_of_its_stage(built):
    built.edit("tasks/guard.py", "return (late_reads.guard(only_text(inputs)),)",
               "text = only_text(inputs)\n    return (late_reads.guard(text),)")  # fmt: skip
    assert built.build().ran == built.steps("guard")


def test_how_stages_spell_files_is_part_of_their_code(built):
    built.edit("tasks/outputs.py", "indent=1", "indent=2")
    ran = built.build().ran
    assert ran == built.steps("halve guard encode check place", also=["arena", "cubin"])


def test_a_new_row_builds_its_image_and_moves_what_lies_after(built):
    row = '    Image("new", "coppelius.kernels.plain:plain", {"count": 9}),\n    Image("fifth"'
    built.edit("coppelius/catalog.py", '    Image("fifth"', row)
    ran = built.build().ran
    assert ran == built.steps("emit halve guard encode check place", "new", also=["place:fifth", "arena", "cubin"])


def test_a_removed_row_takes_its_files_along(built):
    built.edit(
        "coppelius/catalog.py",
        '    Image("fourth", "coppelius.kernels.shares:shares", {"count": 2}, registers=None),\n',
        "",
    )
    assert built.build().ran == built.steps("", also=["arena", "cubin", "place:fifth"])
    assert not (built.root / "build/sm86/fourth").exists()
    assert not (built.root / "build/sm86/cubins/fourth.cubin").exists()


def test_a_removed_row_spares_what_no_step_wrote(built):
    note = built.root / "build/sm86/fourth/note.txt"
    note.write_text("mine")
    built.edit("coppelius/catalog.py", 'Image("fourth"', 'Image("renamed"')
    built.build()
    assert [path.name for path in note.parent.iterdir()] == ["note.txt"]


def test_a_part_of_a_row_is_read_by_some_steps_only(built):
    built.edit("coppelius/catalog.py", '{"count": 3}', '{"count": 3}, shared_bytes=64')
    assert built.build().ran == built.steps("", also=["arena", "check:third", "cubin"])
    built.edit("coppelius/catalog.py", "shared_bytes=64", "shared_bytes=64, block_x=64")
    assert built.build().ran == built.steps("", also=["arena", "check:third", "cubin", "emit:third"])
    built.edit("coppelius/catalog.py", '{"count": 3}', '{"count": 2}')
    assert built.build().ran == built.steps("emit halve guard encode check place", "third", also=["arena", "cubin"])


@pytest.mark.parametrize(
    ("setting", "stages", "after"),
    [
        ({"half": '"f16"'}, "halve check", ["guard:third", "encode:third", "arena", "cubin"]),
        ({"base": "0x200000000"}, "", ["arena", "cubin"]),
        ({"alignment": "512"}, "place", ["arena", "cubin"]),
    ],
    ids=["half", "base", "alignment"],
)
def test_a_plan_setting_rebuilds_what_reads_it(built, setting, stages, after):
    built.plan(**setting)
    assert built.build().ran == built.steps(stages, also=after)


def test_an_override_is_for_one_run(built):
    f16 = built.build("half=f16")
    assert "sm86, f16" in f16.output
    assert built.build("half=f16").made == []
    back = built.build()
    assert (back.ran, back.restored) == ([], f16.ran)
    again = built.build("half=f16")
    assert (again.ran, again.restored) == ([], f16.ran)


@pytest.mark.parametrize(
    ("settings", "overrides", "message"),
    [
        ({"half": '"fp16"'}, (), "half = 'fp16': unknown half format; known: bf16, f16"),
        ({}, ("half=f17",), "half = 'f17': unknown half format; known: bf16, f16"),
        ({"base": "0"}, (), "base 0x0: an address of 0 names no image"),
        ({"base": "257"}, (), "base 0x101: not a multiple of 256"),
        ({"base": '"low"'}, (), "base = 'low': not an integer"),
        ({"alignment": "300"}, (), "alignment 300: give a power of two"),
        ({"targets": '["sm12"]'}, (), "target 'sm12': not one we build; known: sm86"),
        ({"targets": "[]"}, (), "targets = []: give a list"),
        ({"halves": '"f16"'}, (), "halves: unknown plan setting; known: half, base, alignment, targets"),
        ({}, ("hlaf=f16",), "hlaf: unknown plan setting"),
    ],
)
def test_a_bad_plan_is_refused_by_name_and_builds_nothing(mini, settings, overrides, message):
    mini.plan(**settings)
    outcome = mini.build(*overrides)
    assert (outcome.status, outcome.ran) == (2, [])
    assert message in outcome.output


def test_settings_that_are_no_table_are_refused(mini):
    path = mini.root / "pyproject.toml"
    path.write_text("[tool]\ncoppelius = 3\n")
    outcome = mini.build()
    assert (outcome.status, outcome.ran) == (2, [])
    assert "pyproject.toml: tool.coppelius is no table" in outcome.output


def test_a_duplicate_identity_is_refused_by_name(mini):
    mini.edit("coppelius/catalog.py", '"fourth"', '"third"')
    outcome = mini.build()
    assert (outcome.status, outcome.ran) == (2, [])
    assert "image 'third': 2 rows have this identity" in outcome.output


def test_an_empty_material_is_refused_by_name(mini):
    mini.edit("coppelius/catalog.py", '{"count": 3}', '{"count": 0}')
    mini.edit("coppelius/emit.py", '"\\n".join(instructions) + "\\n"', '"".join(i + "\\n" for i in instructions)')
    outcome = mini.build()
    assert outcome.status == 1
    assert "place:third failed\n    0 bytes to place after" in outcome.output


def test_a_catalogue_that_cannot_be_read_says_where(mini):
    mini.edit("coppelius/catalog.py", "IMAGES = (", "IMAGES = ((")
    outcome = mini.build()
    assert outcome.status == 2
    assert "coppelius.catalog cannot be read" in outcome.output
    assert "catalog.py" in outcome.output
