"""Builds the projection of a cluster from a reading and from the lanes of its workflow."""

from temporalio import workflow

from edgewright.domain.cluster import Desired, Phase, Wanted
from edgewright.domain.conditions import Obstacle, conditions_of
from edgewright.domain.lifecycle import order_for, phase_of
from edgewright.domain.projection import Done, Projection
from workflows.secret_lane import SecretLane
from workflows.step_lane import StepLane


def nothing_yet() -> Projection:
    """Returns the projection of a cluster before its workflow's first reading."""
    return Projection(sequence=0, phase=Phase.COMMISSIONING, ready=False, waiting_for="the first reading")


def project(
    wanted: Wanted, done: Done, steps: StepLane, secrets: SecretLane, before: Projection | None
) -> Projection:
    """Returns the present projection of the cluster.

    Args:
        before: the last published projection; the new one keeps its number until it is published.
    """
    commissioned = wanted.desired is Desired.PRESENT and (done.generation, done.commissioning) == (
        wanted.generation,
        wanted.commissioning,
    )
    obstacle = steps.obstacle
    if obstacle is None and wanted.render_problem and wanted.desired is Desired.PRESENT:
        obstacle = Obstacle(reason="TemplateInvalid", sentence=wanted.render_problem)
    desired_revision = steps.newest_commit
    waiting_for = steps.waiting_for or secrets.problem
    return Projection(
        sequence=before.sequence if before else 0,
        phase=phase_of(wanted, commissioned=commissioned),
        ready=commissioned,
        done=done,
        plan=steps.records.plan,
        change_done=wanted.change,
        waiting_for=waiting_for,
        conditions=conditions_of(
            wanted,
            commissioned=commissioned,
            waiting_for=waiting_for,
            obstacle=obstacle,
            desired_revision=desired_revision,
            now=workflow.now(),
            before=before.conditions if before else (),
        ),
        steps=steps.records.in_order,
        residue=steps.records.residue,
        lease_epoch=wanted.lease.epoch,
        order=order_for(steps.records.current) if wanted.desired is Desired.DELETED else order_for(None),
        desired_revision=desired_revision,
        resealing=wanted.resealing,
    )


def projected_again(before: Projection | None, steps: StepLane) -> Projection | None:
    """Returns the last projection, updated with the lanes' work since; None before the first one."""
    lanes = {
        "plan": steps.records.plan,
        "steps": steps.records.in_order,
        "residue": steps.records.residue,
        "desired_revision": steps.newest_commit,
    }
    return before.model_copy(update=lanes) if before else None
