"""What rollouts earn by the rules of a suite, for `rollout_group`."""

from __future__ import annotations

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.search.groups import GroupReward
from training.evaluation.run import outcome_of
from training.evaluation.scoring import ScoringPool
from training.suites.suite import Sample

__all__ = ["suite_reward"]


def suite_reward(scorer: ScoringPool, item: Sample) -> GroupReward:
    """Returns the reward of rollouts at an item: 1 for a right answer by our rules, otherwise 0.

    The suite scores in the processes of the scorer, so the event loop goes on meanwhile. An answer
    that it can't score has no reward: the reward raises.

    Args:
        scorer: of the suite; open.
        item: what was asked.
    """

    async def reward(candidate: Candidate) -> float:
        folder = candidate.folder
        if folder is None:
            raise ValueError("a rollout without a folder has no outcome")
        return float((await scorer.score(item, outcome_of(candidate, folder))).correct)

    return reward
