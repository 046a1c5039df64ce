import { nullTranslator } from '@jupyterlab/translation';

import { announcement } from '../panel/announcer';
import { statusText } from '../kernel/kernelstatus';
import type { IRunPicture } from '../model/pictures';
import type { IKernelMeter, RunMessage } from '../protocol.gen';
import { reduceRun } from '../model/reduce';
import {
  agreeingWords,
  asSentence,
  besideCellWords,
  meterWords,
  phaseWords,
  secondsWords,
  stopWords,
  triesWords
} from '../model/wording';
import {
  PATH,
  cellOpened,
  changeOf,
  filesWait,
  runClosed,
  runOpened,
  stepOpened
} from './messages';

const trans = nullTranslator.load('dm_jupyter');
const MEBIBYTE = 1024 * 1024;

function runOf(...messages: RunMessage[]): IRunPicture {
  const run = messages.reduce<IRunPicture | null>(
    reduceRun,
    reduceRun(null, runOpened())
  );
  if (!run) {
    throw new Error('the run was not opened');
  }
  return run;
}

describe('asSentence', () => {
  it.each([
    ['the kernel died', 'The kernel died'],
    ['stopped.', 'Stopped.'],
    ['os.system() on line 6', 'os.system() on line 6'],
    ['eval() on line 2', 'eval() on line 2'],
    ['', '']
  ])('of %j', (message, sentence) => {
    expect(asSentence(message)).toBe(sentence);
  });
});

describe('meterWords', () => {
  it('says which endpoint answered, and nothing of this machine', () => {
    const here = runOf(stepOpened(2, 1));
    expect(meterWords(here, 3, trans)).toMatch(/1 step$/);
    const there = { ...here, model: 'big', endpoint: 'http://far:8000/v1' };
    expect(meterWords(there, 3, trans)).toMatch(/1 step · big at far:8000$/);
  });
});

const METER: IKernelMeter = {
  kind: 'kernel_meter',
  notebook_path: PATH,
  kernel_id: 'kernel-1',
  is_restricted: true,
  layers_active: ['rlimits'],
  layers_missing: [],
  memory_bytes: 100 * MEBIBYTE,
  memory_limit_bytes: 1000 * MEBIBYTE,
  cpu_s: 4.4,
  cpu_limit_s: 60,
  processes: 3,
  process_limit: 64,
  files_left_out: []
};

describe('secondsWords', () => {
  it.each([
    [0.44, '0.4 s'],
    [14.2, '14 s'],
    [59.6, '1 min 00 s'],
    [125, '2 min 05 s']
  ])('of %d', (seconds, words) => {
    expect(secondsWords(seconds, trans)).toBe(words);
  });
});

describe('stopWords', () => {
  it('is silent about a run that was answered', () => {
    expect(stopWords(runOf(runClosed({ seq: 2 })), trans)).toBe('');
  });

  it.each([
    ['turn_limit', 'after 10 steps'],
    ['budget', '(20000 tokens)'],
    ['cancelled', 'was stopped'],
    ['void', 'another model'],
    ['fault', 'an unexpected error occurred: 20000 tokens. Ask again']
  ])('says what happened: %s', (stop, words) => {
    const run = runOf(
      runClosed({ seq: 2, stop, answer: null, detail: '20000 tokens' })
    );
    expect(stopWords(run, trans)).toContain(words);
  });
});

describe('announcement', () => {
  const opened = runOf();
  const stepped = runOf(stepOpened(2));
  const waiting = runOf(stepOpened(2), cellOpened({ waits_because: 'risky' }));
  const closed = runOf(runClosed({ seq: 2 }));

  it('tells of a step, of a cell that waits, and of the answer, once each', () => {
    expect(announcement(null, opened, trans)).toBe('');
    expect(announcement(opened, stepped, trans)).toBe('Step 1');
    expect(announcement(stepped, stepped, trans)).toBe('');
    expect(announcement(stepped, waiting, trans)).toContain('risky');
    expect(announcement(waiting, waiting, trans)).toBe('');
    expect(announcement(waiting, closed, trans)).toContain('There are');
    expect(announcement(closed, closed, trans)).toBe('');
  });

  it('tells of files that wait, also in the step whose cell waited', () => {
    const files = filesWait([changeOf('sales.csv', { kind: 'changed' })], 9);
    const asked = runOf(
      stepOpened(2),
      cellOpened({ waits_because: 'risky' }),
      files
    );
    const words = 'Files wait for you: sales.csv';
    expect(announcement(waiting, asked, trans)).toBe(words);
    expect(announcement(asked, asked, trans)).toBe('');
  });

  it('does not tell of a run that had ended before', () => {
    expect(announcement(null, closed, trans)).toBe('');
  });
});

describe('statusText', () => {
  it('says how much of its limits a restricted kernel uses', () => {
    expect(statusText(METER, trans)).toBe(
      'Restricted · 100 of 1000 MiB · 4 of 60 s'
    );
  });

  it('warns of a kernel without restrictions', () => {
    expect(statusText({ ...METER, is_restricted: false }, trans)).toBe(
      '⚠ Not restricted'
    );
  });

  it('warns near a limit', () => {
    expect(statusText({ ...METER, cpu_s: 55 }, trans)).toContain(
      'Nearly at a limit'
    );
  });
});

describe('beside a cell', () => {
  it('only what its step does not say is told', () => {
    expect(besideCellWords('thinking')).toBe('');
    expect(besideCellWords('Installing tabulate…')).toBe(
      'Installing tabulate…'
    );
  });
});

/** A run of so many tries that was answered. */
function triedRun(tries: number, agreeing = 0, ran = 0): IRunPicture {
  const opened = reduceRun(null, runOpened({ tries }));
  const took = { tokens: 1200, seconds: 40 };
  const closed = runClosed({ seq: 2, agreeing, tries: ran, ...took });
  return reduceRun(opened, closed)!;
}

describe('trying harder', () => {
  it('costs so many times what one answer took', () => {
    const cost = triesWords(triedRun(1), 3, trans)[1];
    expect(cost).toBe(
      'The last answer took 1,200 tokens and 40 s; this takes about 3,600 tokens and about 2 min 00 s at most.'
    );
  });

  it('costs the same again after as many tries', () => {
    const cost = triesWords(triedRun(3), 3, trans)[1];
    expect(cost).toContain('about 1,200 tokens and about 40 s at most');
  });

  it('is what a run waits for', () => {
    const phase = 'trying 3 times in fresh kernels';
    expect(phaseWords(phase, trans)).toBe(
      'Trying up to 3 times in fresh kernels…'
    );
    expect(phaseWords(`${phase}: 1 ended`, trans)).toBe(
      'Trying in fresh kernels: 1 of up to 3 done'
    );
  });

  it.each([
    [1, 0, 0, ''],
    [3, 2, 2, '2 independent programs agree'],
    [3, 3, 3, '3 independent programs agree'],
    [3, 2, 3, '2 of 3 attempts agree'],
    [
      3,
      1,
      3,
      'Only 1 of 3 attempts says this. Check it yourself, or say in the question what is meant.'
    ],
    [3, 0, 3, 'None of 3 attempts says this. Check it yourself.'],
    // Of a record that does not say how many ran.
    [3, 2, 0, '2 of 3 attempts agree']
  ])('of up to %d tries %d agree, %d ran', (tries, agreeing, ran, words) => {
    expect(agreeingWords(triedRun(tries, agreeing, ran), trans)).toBe(words);
  });

  it('says nothing of agreement where there is no answer', () => {
    expect(agreeingWords({ ...triedRun(3), answer: null }, trans)).toBe('');
  });
});
