"""Rewards of rollouts by the rules of a suite, for `rollout_group`."""

from __future__ import annotations

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.search.groups import GroupReward
from training.evaluation.run import outcome_of
from training.evaluation.scoring import ScoringPool
from training.suites.suite import Sample

__all__ = ["suite_reward"]


def suite_reward(scorer: ScoringPool, item: Sample) -> GroupReward:
    """Return the reward function of a sample: 1 for a correct answer by our rules, else 0.

    The suite scores in the processes of the scorer, so the event loop continues meanwhile. For an
    answer that it can't score, the function raises.

    Args:
        scorer: the suite's pool; open.
        item: the question and its label.
    """

    async def reward(candidate: Candidate) -> float:
        folder = candidate.folder
        if folder is None:
            raise ValueError("a rollout without a folder has no outcome")
        return float((await scorer.score(item, outcome_of(candidate, folder))).correct)

    return reward
