"""`accel-micro compare --confirm`: proposed changes measured anew, the builds on both sides by turns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from accel_micro.comparison.history import Outcome, Settlement

if TYPE_CHECKING:
    from accel_micro.commands.compare_measure import Subject
    from accel_micro.comparison.deciding import Decision, Pair
    from accel_micro.comparison.history import Changes, Proposal, Step
    from accel_micro.stats.verdict import Verdict

    Decide = Callable[[Sequence[Pair[Subject]], str], Sequence[Decision[Subject]]]
    """Takes pairs and the machine; gives a decision for each clock of each pair, see `compare_measure.Measuring`."""

REGRESSION: Final = 1
UNDECIDED: Final = 4


def confirm(changes: "Changes", decide: "Decide", is_here: Callable[[str], bool]) -> "Changes":
    """Settle every proposal that can be measured on this machine.

    Measured are the last build that is surely before the step and the first that is surely after it, so that a step
    whose place is uncertain is confirmed all the same. All proposals are one family: of those confirmed, at most
    the share alpha is false on average.

    Args:
        is_here: whether a machine of the results is this one.

    Raises:
        SessionError: none of the builds can be run here.
    """
    why_not = {
        id(proposal): why
        for step in changes.steps
        for proposal in step.proposals
        if (why := _why_not(step, is_here))
    }
    wanted = sorted((proposal for proposal in changes.proposals if id(proposal) not in why_not), key=_urgency)
    decisions: dict[tuple[Subject, Subject, str], Decision[Subject]] = {}
    for machine in dict.fromkeys(proposal.history.whose.machine for proposal in wanted):
        pairs = _pairs([one for one in wanted if one.history.whose.machine == machine])
        decisions |= {
            (decision.pair.baseline, decision.pair.contender, decision.clock): decision
            for decision in decide(pairs, machine)
        }
    return replace(
        changes,
        steps=tuple(
            replace(
                step,
                proposals=tuple(
                    replace(
                        proposal, settlement=_settlement(proposal, why_not.get(id(proposal), ""), decisions)
                    )
                    for proposal in step.proposals
                ),
            )
            for step in changes.steps
        ),
    )


def exit_code(changes: "Changes", fail_on_regression: bool) -> int:
    """Where a regression shall fail: 1 when one is confirmed, 4 when no proposal could be settled. Else 0."""
    settled = [proposal.settlement for proposal in changes.proposals if proposal.settlement]
    if not fail_on_regression or not settled:
        return 0
    if any(
        proposal.slower and proposal.settlement and proposal.settlement.outcome == "confirmed"
        for proposal in changes.proposals
    ):
        return REGRESSION
    return 0 if any(one.outcome in ("confirmed", "refuted") for one in settled) else UNDECIDED


def outcome_of(verdict: "Verdict", slower: bool) -> Outcome:
    """What a verdict says of a proposed change."""
    if not verdict.decided:
        return "open"
    return "confirmed" if verdict.kind == ("regression" if slower else "improvement") else "refuted"


def _why_not(step: "Step", is_here: Callable[[str], bool]) -> str:
    if step.same_commit:
        return "both builds are of one PyTorch commit"
    return "" if is_here(step.machine) else f"{step.machine} is not this machine"


def _urgency(proposal: "Proposal") -> tuple[bool, bool, float]:
    """What lasts comes first, then what is slower, then what is larger."""
    ratio = proposal.change.ratio
    return proposal.fate != "present", not proposal.slower, -max(ratio, 1 / ratio)


def _subjects(proposal: "Proposal") -> "tuple[Subject, Subject]":
    from accel_micro.asv_plugin.opening import Where

    whose = proposal.history.whose
    before, after = (
        (Where(build.id, whose.environment), whose.case)
        for build in (proposal.surely_before, proposal.latest)
    )
    return before, after


def _pairs(proposals: "Sequence[Proposal]") -> "list[Pair[Subject]]":
    """One process reads all clocks of a case, so those that changed between the same builds are one pair."""
    from accel_micro.comparison.deciding import Pair

    clocks: dict[tuple[Subject, Subject], list[str]] = {}
    floors: dict[tuple[Subject, Subject], float] = {}
    for proposal in proposals:
        subjects = _subjects(proposal)
        clocks.setdefault(subjects, []).append(proposal.history.whose.clock)
        floors[subjects] = proposal.floor
    return [Pair(*subjects, tuple(of), floors[subjects]) for subjects, of in clocks.items()]


def _settlement(
    proposal: "Proposal", why_not: str, decisions: "Mapping[tuple[Subject, Subject, str], Decision[Subject]]"
) -> Settlement:
    before, after = proposal.surely_before, proposal.latest
    if why_not:
        return Settlement("not measured", before, after, reason=why_not)
    baseline, contender = _subjects(proposal)
    decision = decisions[baseline, contender, proposal.history.whose.clock]
    verdict = decision.verdict
    if not decision.contender:
        ended = {"budget": "the budget ended before", "interrupted": "it was interrupted before"}
        why = ended.get(decision.stopped, verdict.reason)
        return Settlement("not measured", before, after, reason=why)
    return Settlement(outcome_of(verdict, proposal.slower), before, after, verdict, verdict.reason)
