/**
 * When work for the screen is done.
 */

/** Runs a callback later; returns what takes it back. */
export type Schedule = (callback: () => void) => () => void;

/** How long a hidden tab, which is given no frames, may be behind. */
const HIDDEN_DELAY_MS = 250;

/**
 * Runs the callback with the next animation frame. The run goes on while its tab is hidden, so a
 * timer does it where no frame comes.
 */
export const nextFrame: Schedule = callback => {
  let isDone = false;
  const once = () => {
    if (!isDone) {
      isDone = true;
      cancel();
      callback();
    }
  };
  const frame = requestAnimationFrame(once);
  const timer = window.setTimeout(once, HIDDEN_DELAY_MS);
  const cancel = () => {
    isDone = true;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
  return cancel;
};
