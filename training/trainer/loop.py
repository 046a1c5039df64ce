"""The training loop: batches, updates, evaluations, checkpoints. Reads top to bottom.

If `accelerate launch` starts several processes, each forwards its share of a batch's packs. Each
row's factor comes from the whole batch, so the sum of their gradients equals that of one process.
The weights may be split over these processes (`processes.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray

from training.trainer.batch import Pack, batches, make_packs, rows_alike
from training.trainer.checkpoint import Checkpoint, TrainingProgress
from training.trainer.journal import TrainingJournal
from training.trainer.losses import Loss, SftLoss, learned_logps, pack_loss
from training.trainer.model import OpenedModel
from training.trainer.processes import is_sharded, one_works, whole_state
from training.trainer.recipe import TrainingSettings
from training.trainer.rows import Row, Rows, TrainerError
from training.trainer.schedule import adamw, clip_gradients

__all__ = ["Training", "Update"]


@dataclass(frozen=True, slots=True)
class Update:
    """Result of one update."""

    loss: float
    norm: float
    """Of the gradient, before clipping."""
    tokens: int
    """Forwarded, in all processes."""
    learned: int


class Training:
    """One training, from its last checkpoint to its end."""

    def __init__(
        self,
        opened: OpenedModel,
        rows: Rows,
        settings: TrainingSettings,
        accelerator: Accelerator,
        loss: Loss | None = None,
    ) -> None:
        """Prepare the training.

        Args:
            opened: the model, on the accelerator's device.
            rows: to learn from; at least one.
            settings: how.
            accelerator: the processes, over which the gradients are summed.
            loss: SFT by default.
        """
        self._opened = opened
        self._model = opened.model
        self._rows = rows
        self._settings = settings
        self._accelerator = accelerator
        self._loss = loss or SftLoss()
        self._weights = opened.parameters()
        if not self._weights:
            raise TrainerError("no weight of the model is to be trained")
        self._is_sharded = is_sharded(self._weights.values())
        self._groups = rows_alike(rows)
        self._order: dict[int, list[NDArray[np.int64]]] = {}  # of the epoch that is under way
        self._steps_per_epoch = math.ceil(len(rows) / settings.batch_rows)
        steps = self._steps_per_epoch * settings.epochs
        self.schedule = settings.schedule(steps)
        self.optimizer = adamw(self._weights.values(), settings.weight_decay)

    def run(
        self,
        checkpoints: Checkpoint,
        journal: TrainingJournal,
        held: Sequence[Row] = (),
        say: Callable[[str], object] = str,
        answer: Callable[[int], Mapping[str, int]] | None = None,
    ) -> TrainingProgress:
        """Train until the last update, or until the held loss no longer falls.

        Args:
            checkpoints: the training resumes from the newest one.
            journal: receives every update and evaluation.
            held: rows that are only evaluated.
            say: receives a line for the user after each evaluation.
            answer: called in one process after each evaluation's checkpoint, with the number of
                updates; lets the model answer questions, and returns how many were `asked` and
                answered `right`. If it was interrupted, it is called again by the next resume.

        Raises:
            TrainerError: the checkpoint is from another training, or a gradient is not finite.
            OSError: a checkpoint or the log can't be written.
        """
        restored = checkpoints.restore(self._weights, self.optimizer)
        progress = restored or TrainingProgress()
        if self._is_main:
            journal.begin(-1 if restored is None else restored.step)
        try:
            if restored is None:
                progress = self._milestone(progress, checkpoints, journal, held, say, answer)
            elif answer is not None:
                self._ask(answer, progress.step, journal, say)
            while progress.step < self.schedule.steps and not self._is_over(progress):
                progress = self._advance(progress, journal)
                if self._is_milestone(progress.step):
                    progress = self._milestone(progress, checkpoints, journal, held, say, answer)
        finally:
            if self._is_main:
                journal.close()
        return progress

    def update(self, rows: Sequence[Row], rate: float) -> Update:
        """Make one update.

        Args:
            rows: the complete batch, the same in every process.
            rate: the learning rate.
        """
        self._model.train()
        factors = self._loss.factors(rows)
        packs = self._packs(rows)
        total = torch.zeros((), dtype=torch.float64)
        for pack, own_factors in self._own(packs, factors):
            share = self._share(pack, own_factors)
            share.backward()
            total += share.detach().cpu().double()
        self._add_up_gradients()
        norm = clip_gradients(self._weights.values(), self._settings.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        return Update(
            self._summed(total),
            norm,
            sum(pack.tokens for pack in packs),
            sum(len(row.learned) for row in rows),
        )

    def held_loss(self, rows: Sequence[Row]) -> float:
        """Return the loss of rows as one batch, without dropout."""
        self._model.eval()
        factors = self._loss.factors(rows)
        total = torch.zeros((), dtype=torch.float64)
        with torch.no_grad():
            for pack, own_factors in self._own(self._packs(rows), factors):
                total += self._share(pack, own_factors).cpu().double()
        return self._summed(total)

    def _advance(self, progress: TrainingProgress, journal: TrainingJournal) -> TrainingProgress:
        epoch, number = divmod(progress.step, self._steps_per_epoch)
        if epoch not in self._order:
            settings = self._settings
            self._order = {
                epoch: batches(
                    self._groups, settings.batch_rows, settings.batch_alike, settings.seed, epoch
                )
            }
        order = self._order[epoch][number]
        rate = self.schedule.rate(progress.step)
        chance = (self._settings.seed, progress.step, self._accelerator.process_index)
        torch.manual_seed(int(np.random.SeedSequence(chance).generate_state(1)[0]))  # for dropout
        began = time.perf_counter()
        made = self.update([self._rows[int(at)] for at in order], rate)
        seconds = time.perf_counter() - began
        progress = replace(progress, step=progress.step + 1)
        if self._is_main:
            record = {
                "step": progress.step,
                "epoch": epoch + 1,
                "loss": made.loss,
                "rate": rate,
                "norm": made.norm,
                "tokens": made.tokens,
                "learned": made.learned,
                "seconds": round(seconds, 3),
                "tokens_per_s": round(made.tokens / seconds, 2),
            }
            journal.add("update", record)
        return progress

    def _milestone(
        self,
        progress: TrainingProgress,
        checkpoints: Checkpoint,
        journal: TrainingJournal,
        held: Sequence[Row],
        say: Callable[[str], object],
        answer: Callable[[int], Mapping[str, int]] | None,
    ) -> TrainingProgress:
        """Evaluate the model, save the training, and let the model answer questions."""
        line = f"update {progress.step} of {self.schedule.steps}"
        if held:
            loss = self.held_loss(held)
            progress = _judged(progress, loss)
            line += f": held loss {loss:.4f}"
            if self._is_main or self._is_sharded:
                sampled = held[: self._settings.samples]
                samples = [{"step": progress.step, **self._sample(row)} for row in sampled]
            if self._is_main:
                for sample in samples:
                    journal.add("sample", sample)
                journal.add("evaluation", {"step": progress.step, "held_loss": loss})
        weights = whole_state(self._weights, is_kept=self._is_main)
        state = whole_state(self.optimizer.state_dict(), is_kept=self._is_main)
        with one_works(self._accelerator) as is_it:
            if is_it:
                checkpoints.save(progress, weights, state)
                say(line)
        if answer is not None:
            self._ask(answer, progress.step, journal, say)
        return progress

    def _ask(
        self,
        answer: Callable[[int], Mapping[str, int]],
        step: int,
        journal: TrainingJournal,
        say: Callable[[str], object],
    ) -> None:
        """Let the model answer questions, once a step, in one process; the others wait."""
        with one_works(self._accelerator) as is_it:
            if is_it and not journal.has("notebooks", step):
                answered = answer(step)
                journal.add("notebooks", {"step": step, **answered})
                say(f"update {step}: {answered['right']} of {answered['asked']} questions right")

    def _is_milestone(self, step: int) -> bool:
        return step % self._settings.evaluate_every == 0 or step == self.schedule.steps

    def _is_over(self, progress: TrainingProgress) -> bool:
        return progress.worse >= self._settings.patience

    @property
    def _is_main(self) -> bool:
        return bool(self._accelerator.is_main_process)

    def _packs(self, rows: Sequence[Row]) -> list[Pack]:
        return make_packs(rows, self._settings.pack_tokens if self._opened.can_pack else 1)

    def _own(
        self, packs: Sequence[Pack], factors: Mapping[str, float]
    ) -> list[tuple[Pack, Mapping[str, float]]]:
        """Return the packs of this process, on its device, each with the factors of its rows.

        All processes gather split weights together, so all must forward equally often. A process
        without a pack of its own forwards one with factors of 0.
        """
        processes = self._accelerator.num_processes
        mine = [(pack, factors) for pack in packs[self._accelerator.process_index :: processes]]
        if self._is_sharded and len(mine) < math.ceil(len(packs) / processes):
            smallest = min(packs, key=lambda pack: pack.tokens)
            mine.append((smallest, dict.fromkeys(factors, 0.0)))
        return [(pack.to(self._accelerator.device), one) for pack, one in mine]

    def _share(self, pack: Pack, factors: Mapping[str, float]) -> torch.Tensor:
        # Split weights are converted where they are gathered, as the launch was configured.
        with nullcontext() if self._is_sharded else self._opened.computing():
            logp_T = learned_logps(self._model, pack)
        return pack_loss(self._loss, logp_T, pack, factors)

    def _add_up_gradients(self) -> None:
        if self._accelerator.num_processes == 1 or self._is_sharded:
            return
        for weight in self._weights.values():
            own = torch.zeros_like(weight) if weight.grad is None else weight.grad
            weight.grad = self._accelerator.reduce(own, "sum")

    def _summed(self, total: torch.Tensor) -> float:
        if self._accelerator.num_processes == 1:  # a device need not have float64
            return float(total)
        on_device = total.to(self._accelerator.device)
        return float(self._accelerator.reduce(on_device, "sum"))

    def _sample(self, row: Row) -> dict[str, Any]:
        """Return the first turn of a row as the model writes it with greedy decoding."""
        tokenizer = self._opened.tokenizer
        first = int(row.learned[0])
        behind = int(
            next((at for at in range(first, len(row.ids)) if not row.mask[at]), len(row.ids))
        )
        prompt = torch.from_numpy(row.ids[:first])[None].to(self._accelerator.device)
        greedy = self._opened.generation_config(self._settings.sample_tokens)
        self._model.eval()
        with nullcontext() if self._is_sharded else self._opened.computing():
            made = self._model.generate(
                input_ids=prompt, attention_mask=torch.ones_like(prompt), generation_config=greedy
            )
        return {
            "id": row.id,
            "text": tokenizer.decode(made[0, first:], skip_special_tokens=False),
            "expected": tokenizer.decode(row.ids[first:behind], skip_special_tokens=False),
        }


def _judged(progress: TrainingProgress, loss: float) -> TrainingProgress:
    if progress.best_loss is None or loss < progress.best_loss:
        return replace(progress, best_loss=loss, best_step=progress.step, worse=0)
    return replace(progress, worse=progress.worse + 1)
