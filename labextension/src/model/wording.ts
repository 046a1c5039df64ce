/**
 * The panel's words for what the protocol names.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IRunPicture, RunState, StepStatus } from './pictures';

/** What a colour stands for; the sign and the words say it too. */
export type Tone = 'done' | 'failed' | 'asks' | 'busy' | 'quiet';

/** A status in words, with a sign beside them. */
export interface IStatusWords {
  readonly sign: string;
  readonly text: string;
  readonly tone: Tone;
}

export function stepWords(
  status: StepStatus,
  trans: TranslationBundle
): IStatusWords {
  const words: { [status: string]: [string, Tone, string] } = {
    thinking: ['…', 'busy', trans.__('Thinking')],
    waiting: ['?', 'asks', trans.__('Waits for you')],
    files_wait: ['?', 'asks', trans.__('Files wait for you')],
    running: ['▸', 'busy', trans.__('Running')],
    ok: ['✓', 'done', trans.__('Done')],
    answer: ['✓', 'done', trans.__('Done')],
    error: ['✗', 'failed', trans.__('Error')],
    timeout: ['✗', 'failed', trans.__('Out of time')],
    memory: ['✗', 'failed', trans.__('Out of memory')],
    killed: ['✗', 'failed', trans.__('Kernel ended')],
    denied: ['✗', 'failed', trans.__('Not allowed')],
    interrupted: ['■', 'quiet', trans.__('Interrupted')],
    unfinished: ['■', 'quiet', trans.__('Not finished')],
    skipped: ['–', 'quiet', trans.__('Skipped')],
    void: ['–', 'quiet', trans.__('No code')]
  };
  const [sign, tone, text] = words[status] ?? ['–', 'quiet', status];
  return { sign, text, tone };
}

export function stateWords(
  state: RunState,
  trans: TranslationBundle
): IStatusWords {
  switch (state) {
    case 'running':
      return { sign: '▸', text: trans.__('Running'), tone: 'busy' };
    case 'answered':
      return { sign: '✓', text: trans.__('Answered'), tone: 'done' };
    case 'stopped':
      return { sign: '■', text: trans.__('Stopped'), tone: 'quiet' };
    case 'failed':
      return { sign: '✗', text: trans.__('No answer'), tone: 'failed' };
    case 'undone':
      return { sign: '↶', text: trans.__('Undone'), tone: 'quiet' };
  }
}

/** Says why a run ended without an answer, and what to do; empty for one that was answered. */
export function stopWords(run: IRunPicture, trans: TranslationBundle): string {
  const { detail, limits } = run;
  switch (run.stop) {
    case null:
    case 'answered':
      return '';
    case 'turn_limit':
      return trans.__(
        'No answer after %1 steps, the most that a run may take. Its cells stay: ask for the next part, or ask a narrower question.',
        limits.turns
      );
    case 'budget':
      return withDetail(
        trans.__(
          'The run reached one of its limits before it had an answer. Its cells stay: ask for the next part, or ask a narrower question.'
        ),
        detail
      );
    case 'cancelled':
      return trans.__(
        'The run was stopped. Cells that ran stay: ask again, or undo the run.'
      );
    case 'lost':
      return trans.__(
        'The server does not keep this run any more. Cells that ran stay: ask again.'
      );
    case 'void':
      return trans.__(
        'The model wrote neither code nor an answer. Ask again in other words, or choose another model.'
      );
    default:
      return detail
        ? trans.__(
            'There is no answer, because an unexpected error occurred: %1. Ask again; if it happens once more, look into the server’s log.',
            detail.replace(/\.$/, '')
          )
        : trans.__(
            'There is no answer, because an unexpected error occurred. Ask again; if it happens once more, look into the server’s log.'
          );
  }
}

function withDetail(text: string, detail: string): string {
  return detail ? `${text} (${detail})` : text;
}

/** What the server says while a run is tried several times. */
const TRYING = /^trying (\d+) times in fresh kernels(?:: (\d+) ended)?$/;

/** Translates what a run waits for, as far as it is known. */
export function phaseWords(phase: string, trans: TranslationBundle): string {
  const [, tries, ended] = TRYING.exec(phase) ?? [];
  if (tries) {
    return ended
      ? trans.__('Trying in fresh kernels: %1 of up to %2 done', ended, tries)
      : trans.__('Trying up to %1 times in fresh kernels…', tries);
  }
  switch (phase) {
    case '':
    case 'thinking':
      return trans.__('Thinking…');
    case 'reading the files':
      return trans.__('Reading the files…');
    case 'loading the model':
      return trans.__('Loading the model…');
    default:
      return phase;
  }
}

/** What goes on beside a cell that runs or waits: only what is not said by its step already. */
export function besideCellWords(phase: string): string {
  const ownWords = ['', 'thinking', 'reading the files', 'loading the model'];
  return ownWords.includes(phase) ? '' : phase;
}

/** A duration, short: `0.4 s`, `14 s`, `2 min 05 s`. */
export function secondsWords(
  seconds: number,
  trans: TranslationBundle
): string {
  if (seconds < 10) {
    return trans.__('%1 s', seconds.toFixed(1));
  }
  const whole = Math.round(seconds);
  if (whole < 60) {
    return trans.__('%1 s', whole);
  }
  const rest = String(whole % 60).padStart(2, '0');
  return trans.__('%1 min %2 s', Math.floor(whole / 60), rest);
}

/** What a run has used, without what it has none of: `14 s · 3 steps · 2 cells · 512 of 20,000 tokens`. */
export function meterWords(
  run: IRunPicture,
  seconds: number,
  trans: TranslationBundle
): string {
  const { cells, tokens, turns } = run.totals;
  const steps = Math.max(turns, run.steps.length);
  return [
    secondsWords(seconds, trans),
    steps > 0 && trans._n('%1 step', '%1 steps', steps),
    cells > 0 && trans._n('%1 cell', '%1 cells', cells),
    tokens > 0 &&
      trans.__(
        '%1 of %2 tokens',
        tokens.toLocaleString(),
        run.limits.tokens.toLocaleString()
      ),
    answeredByWords(run, trans)
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Which model answered elsewhere, and where; empty for a model of the server's machine. */
export function answeredByWords(
  run: { readonly model: string; readonly endpoint: string },
  trans: TranslationBundle
): string {
  const host = /^[^:]+:\/\/([^/]+)/.exec(run.endpoint)?.[1];
  return host ? trans.__('%1 at %2', run.model, host) : '';
}

/** What trying a run's question so many times does, and what it costs by what the run took. */
export function triesWords(
  run: IRunPicture,
  tries: number,
  trans: TranslationBundle
): readonly string[] {
  const { tokens } = run.totals;
  const seconds = run.totals.seconds ?? 0;
  // Of a run that had several tries itself, the figures are those of all of them.
  const factor = tries / (run.tried || run.tries);
  return [
    trans.__(
      'Asks twice in fresh kernels, and up to %1 times while the answers differ; takes what most of them say.',
      tries
    ),
    trans.__(
      'The last answer took %1 tokens and %2; this takes about %3 tokens and about %4 at most.',
      tokens.toLocaleString(),
      secondsWords(seconds, trans),
      Math.round(tokens * factor).toLocaleString(),
      secondsWords(seconds * factor, trans)
    ),
    trans.__(
      'The fresh kernels are restricted, know the files and not the notebook’s variables, and run their cells unasked. Only the cells of the answer taken come into the notebook, where they wait for you as always.'
    )
  ];
}

/** How many of a run's tries say what its answer says; empty for a run that was tried once. */
export function agreeingWords(
  run: IRunPicture,
  trans: TranslationBundle
): string {
  const { agreeing, tried, tries } = run;
  if (tries < 2 || !run.answer) {
    return '';
  }
  if (agreeing > 1 && agreeing === tried) {
    return trans.__('%1 independent programs agree', agreeing);
  }
  if (agreeing > 1) {
    return trans.__('%1 of %2 attempts agree', agreeing, tried);
  }
  return agreeing === 1
    ? trans.__(
        'Only 1 of %1 attempts says this. Check it yourself, or say in the question what is meant.',
        tried
      )
    : trans.__('None of %1 attempts says this. Check it yourself.', tried);
}

/** The names of containment layers, as the server gives them, in plain text. */
export function layerWords(layers: readonly string[]): string {
  return layers.map(layer => layer.replace(/_/g, ' ')).join(', ');
}

/** A message of the server, which may begin small, as a sentence of its own. Names of code stay as they are. */
export function asSentence(message: string): string {
  const isCode = /^\S*[._(]\S/.test(message);
  return isCode ? message : message.charAt(0).toUpperCase() + message.slice(1);
}

/** What the person should check: numbers of the answer that the outputs do not bear out. */
export function doubtWords(
  run: IRunPicture,
  trans: TranslationBundle
): string[] {
  const mismatched = run.numbers.filter(one => one.verdict === 'mismatched');
  const elsewhere = mismatched.map(one => one.text);
  const lost = run.unsupported.filter(text => !elsewhere.includes(text));
  const words: string[] = [];
  if (lost.length > 0) {
    words.push(
      trans.__(
        'Not found in the outputs: %1. Check these yourself.',
        lost.join(', ')
      )
    );
  }
  if (mismatched.length > 0) {
    const odd = mismatched.map(one => `${one.text} (${one.why})`);
    words.push(
      trans.__(
        'At odds with the outputs: %1. Check these yourself.',
        odd.join('; ')
      )
    );
  }
  return words;
}
