"""loss-target-gather: correct[r] = logits[r, targets[r]], 0 where the target is not below the vocabulary."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel


def loss_target_gather(k: Kernel, *, vocabulary: int = 12288) -> None:
    """A thread a row; both loads are single, since rows lie far apart."""
    k.descriptor()
    thread = k.thread_index()
    block = k.block_index()
    row = k.IMAD("row", block, 256, thread)
    k.exit_when(k.compare("past", "GE", row, k.parameter("rows")))
    element = k.move("element.bytes", 4)
    target_pointer = k.IMAD_WIDE_U32("target.pointer", row, element, k.parameter("targets"))
    target = k.LDG_E("target", k.at(target_pointer))
    stride = k.move("row.bytes", 4 * vocabulary)
    logits_row = k.IMAD_WIDE_U32("logits.row", row, stride, k.parameter("logits"))
    out = k.IMAD_WIDE_U32("out", row, element, k.parameter("correct"))
    value = k.zero("value")
    known = k.compare("known", "LT", target, vocabulary)
    logit_pointer = k.IMAD_WIDE_U32("logit.pointer", target, element, logits_row)
    k.LDG_E(value, k.at(logit_pointer), guard=known)
    k.STG_E(k.at(out), value)
    k.finish()
